//! Waits for monitors as events, and their sums.

use super::Writer;
use crate::drain::contexts::ContextTexts;
use crate::drain::sample::Sampler;
use crate::record::batch::{Batch, PendingWait};
use crate::runtime::Runtime;
use dwell_jfr::writer::{Event, MonitorEnter, StackId, ThreadId};
use dwell_signal::{Cause, CounterSnapshot};

impl<R: Runtime> Writer<'_, R> {
    /// Waits that are over and were chosen.
    pub(super) fn waits(
        &mut self,
        batch: &Batch,
        stacks: &[StackId],
        contexts: &ContextTexts,
        sampler: &Sampler<'_, R>,
    ) {
        for pending in batch.waits() {
            let stack = pending.stack;
            let stack = stack.and_then(|index| stacks.get(index as usize).copied());
            let thread = self.thread(pending.thread, sampler);
            let carrier = pending.carrier.map(|key| self.thread(key, sampler));
            let owner = pending.owner.map(|key| self.thread(key, sampler));
            let wait = &pending.wait;
            let name = self.setup.recorder.classes.name(wait.class);
            let class = self.chunk.object_class(&name);
            self.chunk.monitor_enter(&MonitorEnter {
                ticks: wait.begin_ns,
                duration_ticks: wait.duration_ns,
                thread,
                carrier,
                stack: stack.unwrap_or_default(),
                class,
                owner,
                address: wait.monitor,
                weight_ns: wait.weight_ns,
                failure: pending.failure,
                context: contexts.get(pending.context).as_ref(),
            });
            if wait.asked.weight_ns != 0 {
                self.owner_of_wait(pending, stacks, (owner, thread), &name);
            }
        }
    }

    /// The owner's stack in one of the waits that asked for it.
    fn owner_of_wait(
        &mut self,
        pending: &PendingWait,
        stacks: &[StackId],
        (owner, waiter): (Option<ThreadId>, ThreadId),
        class: &str,
    ) {
        let (wait, at) = (&pending.wait, &pending.owner_at);
        let id = |stack: Option<u32>| {
            let id = stack.and_then(|index| stacks.get(index as usize).copied());
            id.unwrap_or_default()
        };
        self.chunk.event(&Event::MonitorOwner {
            ticks: match at.time_ns {
                0 => wait.begin_ns,
                time_ns => time_ns,
            },
            owner: owner.unwrap_or_default(),
            stack: id(at.stack),
            class,
            waiter,
            waiter_stack: id(pending.stack),
            address: wait.monitor,
            duration_ns: wait.duration_ns,
            weight_ns: wait.asked.weight_ns,
            failure: at.failure.unwrap_or_default(),
        });
    }

    /// Sums of all waits since the recording began, while they were recorded, and the estimates
    /// from the sampled ones.
    pub(super) fn wait_sums(&mut self, ticks: u64, now: &CounterSnapshot) {
        let stretch = self.setup.switched.get().lock;
        if !stretch.was_on() {
            return;
        }
        let before = &self.setup.counters_at_start;
        let since = |cause| now.get(cause).saturating_sub(before.get(cause));
        let (waits, blocked_ns) = self.setup.recorder.blocked.sums();
        self.chunk.event(&Event::MonitorWaits {
            ticks,
            interval_ns: self.setup.recorder.lock_ns(stretch.interval),
            asked_ns: stretch.interval,
            told_ns: stretch.on_ns(ticks),
            waits,
            blocked_ns,
            samples: since(Cause::Wait),
            weight_ns: now.blocked_ns.saturating_sub(before.blocked_ns),
            lost: since(Cause::WaitLost),
            lost_ns: now.blocked_lost_ns.saturating_sub(before.blocked_lost_ns),
            untold: self.setup.recorder.blocked.untold(),
        });
    }
}
