//! Sampled objects that were not kept, as events.

use super::Writer;
use crate::drain::sample::Sampler;
use crate::runtime::Runtime;
use dwell_jfr::writer::{Event, ThreadId};

impl<R: Runtime> Writer<'_, R> {
    /// Those since the last flush, by class, thread and method.
    pub(super) fn lost_objects(&mut self, ticks: u64, sampler: &Sampler<'_, R>) {
        let recorder = self.setup.recorder;
        for lost in recorder.lost_objects.take() {
            let thread = lost.thread.map(|key| self.thread(key, sampler));
            let class = recorder.classes.name(lost.class.unwrap_or(u32::MAX));
            let method = lost.method.map(|number| recorder.lost_methods.name(number));
            self.chunk.event(&Event::LostAllocations {
                ticks,
                thread: thread.unwrap_or(ThreadId::NONE),
                class: &class.replace('/', "."),
                method: method.as_deref().unwrap_or_default(),
                samples: lost.samples,
                weight_bytes: lost.weight_bytes,
            });
        }
    }
}
