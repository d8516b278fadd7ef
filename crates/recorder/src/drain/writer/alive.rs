//! Writes the objects that are still alive, snapshot by snapshot.

use super::Writer;
use crate::drain::contexts::ContextTexts;
use crate::drain::sample::Sampler;
use crate::drain::threads;
use crate::record::batch::{Batch, PendingAlive};
use crate::runtime::Runtime;
use dwell_jfr::writer::{AllocationSample, Event, LiveObject, StackId, ThreadId};

impl<R: Runtime> Writer<'_, R> {
    /// Surviving objects, and the figures for all.
    pub(super) fn alive(
        &mut self,
        batch: &Batch,
        stacks: &[StackId],
        contexts: &ContextTexts,
        sampler: &Sampler<'_, R>,
    ) {
        for alive in batch.alive() {
            let of = &alive.of;
            let stack = of.stack;
            let stack = stack.and_then(|index| stacks.get(index as usize).copied());
            let thread = self.allocator(alive, sampler);
            // The carrier may have exited, and does not show what keeps the object alive.
            let name = self.setup.recorder.classes.name(of.object.class);
            let class = self.chunk.object_class(&name);
            self.chunk.live_object(&LiveObject {
                allocated: AllocationSample {
                    ticks: of.time_ns,
                    thread,
                    carrier: None,
                    stack: stack.unwrap_or_default(),
                    class,
                    weight_bytes: of.object.weight,
                    size_bytes: of.object.size,
                    failure: of.failure,
                    context: contexts.get(of.context).as_ref(),
                },
                age_ns: alive.age_ns,
                collections: u64::from(alive.collections),
                snapshot: alive.snapshot,
            });
        }
        let stretch = self.setup.switched.get().alive;
        for snapshot in batch.snapshots() {
            self.chunk.event(&Event::LiveObjects {
                ticks: snapshot.at_ns,
                snapshot: snapshot.number,
                interval_bytes: self.setup.recorder.object_bytes(stretch.interval),
                followed_ns: snapshot.at_ns.saturating_sub(snapshot.since_ns),
                objects: snapshot.objects,
                one_of: snapshot.one_of,
                samples: snapshot.chosen,
                lost: snapshot.lost,
            });
        }
    }

    /// The thread that has allocated an object, under its last name if it has exited.
    fn allocator(&mut self, alive: &PendingAlive, sampler: &Sampler<'_, R>) -> ThreadId {
        let key = alive.of.thread;
        if let Some(known) = self.chunk.thread_id(key) {
            return known;
        }
        match &alive.name {
            Some(name) => threads::write_named(&mut self.chunk, key, name),
            None => threads::write(&mut self.chunk, self.setup, key, sampler),
        }
    }
}
