//! One sample of a virtual thread that is not mounted: its state, its frames in the heap, and its
//! blocker.
//!
//! During the read, the thread may be mounted and the collector may move it. The result is valid
//! only if the thread's state and the address of its frames are the same afterwards.

pub mod by_id;

use super::look::{Claim, Looker, Seen};
use crate::jvm::virtual_threads::VirtualThreads;
use crate::vantage;
use dwell_recorder::looks::unmounted::OffLogical;
use dwell_walker::hotspot::monitors::Owner;
use dwell_walker::hotspot::objects;
use dwell_walker::hotspot::virtual_threads::{Unmounted, Wait, monitor, unmounted};
use dwell_walker::{Failure, Fault, Frame, Outcome};
use dwell_wall::cause::{Call, Monitor, Os};
use std::sync::atomic::{Ordering, fence};

impl Looker<'_> {
    /// The present state of the virtual thread with this object; `None` if it is mounted or not
    /// alive.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read.
    pub fn unmounted(
        &self,
        known: &VirtualThreads,
        thread: u64,
    ) -> Result<Option<Unmounted>, Fault> {
        let (live, layout) = (&self.live, &self.vm.layout);
        let is_chunk = |object| {
            let class_word = layout.extra.objects.class_word;
            let class = objects::class_of(live, layout, class_word, object)?;
            Ok(class == known.chunk_class.of(live, layout, class)?)
        };
        // A caller compares the states before and after other reads: those stay between the two,
        // also for the processor.
        fence(Ordering::Acquire);
        let state = unmounted(live, layout, &known.fields, thread, is_chunk);
        fence(Ordering::Acquire);
        state
    }

    /// Samples the virtual thread with this object; `None` if it is mounted or not alive.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read, or changes during the read.
    pub fn look_unmounted(
        &self,
        known: &VirtualThreads,
        thread: u64,
        frames: &mut [Frame],
    ) -> Result<Option<OffLogical<Claim>>, Fault> {
        let (live, layout) = (&self.live, &self.vm.layout);
        let objects = &layout.extra.objects;
        let Some(before) = self.unmounted(known, thread)? else {
            return Ok(None);
        };
        let id = objects::thread_id(live, objects, thread)?;
        let mut seen = self.off_of(&before, frames);
        if before.wait == Wait::Park
            && let Some(blocker) = objects::blocker(live, layout, objects, thread)?
        {
            self.parked_on(&blocker, 0, &mut seen);
            // A thread does not wait for a lock that it owns itself.
            if seen.owner == Owner::Id(id) {
                seen.owner = Owner::Nobody;
                seen.off.is_owned_lock = false;
            }
        }
        if matches!(before.wait, Wait::Monitor | Wait::Notification)
            && let Some(monitor) = monitor(live, layout, known.monitor_entry, thread)?
        {
            match before.wait {
                Wait::Monitor => self.entering(monitor, &mut seen),
                _ => seen.off.detail = self.monitor_text(monitor),
            }
        }
        let name = self.vm.names.of(live, layout, thread);
        // A failed walk means that the collector moved the frames or the thread ran.
        let is_whole = seen.off.walk.is_none_or(|walk| {
            let outcome = walk.outcome;
            matches!(
                outcome,
                Outcome::Complete | Outcome::Failed(Failure::Truncated)
            )
        });
        let after = self.unmounted(known, thread)?;
        if !is_whole || after != Some(before) {
            return Err(Fault { addr: thread });
        }
        let (off, claim) = seen.split();
        Ok(Some(OffLogical {
            id,
            name: name.map(String::into_boxed_str),
            off,
            claim,
        }))
    }

    fn off_of(&self, unmounted: &Unmounted, frames: &mut [Frame]) -> Seen {
        let chunk = unmounted.chunk.as_ref();
        let walk =
            chunk.and_then(|chunk| vantage::walk_unmounted(&self.live, chunk, self.cache, frames));
        let (os, monitor) = match unmounted.wait {
            Wait::Carrier => (Os::Runnable, Monitor::None),
            Wait::Park => (Os::Call(Call::Futex), Monitor::None),
            Wait::Monitor => (Os::Call(Call::Futex), Monitor::Entering),
            Wait::Notification => (Os::Call(Call::Futex), Monitor::Waiting),
        };
        let is_ready = unmounted.wait == Wait::Carrier;
        let mut seen = Seen::at(os, walk);
        seen.off.monitor = monitor;
        seen.off.detail = is_ready.then(|| "a carrier thread".into());
        seen
    }
}
