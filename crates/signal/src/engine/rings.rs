//! Which threads have a ring, in which the kernel puts their samples, instead of signals.
//!
//! A thread is signalled first, as what it does is seen so only: what it works for, which logical
//! thread is mounted, how deep its stack is. One that has been seen some times to have nothing of
//! all that gets a ring, of which there are few, as each takes locked memory. It is signalled again
//! when that changes, or when it rests and another one wants its ring. Nothing here runs in a
//! handler.

use crate::counters::Cause;
use crate::engine::Engine;
use crate::engine::{turns, unsignalled};
use crate::record::{Guard, KERNEL, NO_ENGINE, PERF, ThreadRecord};
use crate::slots::{Reason, Slot, SlotHeader};
use crate::sys::{self, Errno};
use core::sync::atomic::{AtomicU32, Ordering};
use dwell_walker::Memory;

/// Rings at once, at most: each is some 1 MiB of locked memory.
const RINGS_MAX: usize = 64;
/// Samples by signals in a row that show nothing that only the thread could tell, until it gets a
/// ring.
const PLAIN_SAMPLES: u32 = 3;
/// In place of their number: the thread is signalled for good.
const SIGNALLED: u32 = u32::MAX;
/// A thread without a sample for so long may lose its ring to another one.
const RESTS_NS: u64 = 2_000_000_000;

/// A bit beside the number of bytes, which is a multiple of 8.
const AT_ONCE: u32 = 1;

/// Who has a ring.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Bytes of stack that the kernel copies for each sample; 0: threads are signalled.
    bytes: AtomicU32,
    /// So many there can be: fewer where the kernel has refused one.
    most: AtomicU32,
    /// The thread's record, and one; 0: free. Written by the holder of that record.
    holders: [AtomicU32; RINGS_MAX],
}

impl Rings {
    pub(crate) const fn new() -> Rings {
        Rings {
            bytes: AtomicU32::new(0),
            most: AtomicU32::new(RINGS_MAX as u32),
            holders: [const { AtomicU32::new(0) }; RINGS_MAX],
        }
    }

    pub(super) fn bytes(&self) -> u32 {
        self.bytes.load(Ordering::Relaxed) & !AT_ONCE
    }

    /// How many have one.
    fn held(&self) -> usize {
        let is_held = |it: &&AtomicU32| it.load(Ordering::Relaxed) != 0;
        self.holders.iter().filter(is_held).count()
    }

    /// Whether there is one more.
    pub(super) fn take(&self, index: u32) -> bool {
        if self.held() >= self.most.load(Ordering::Relaxed) as usize {
            return false;
        }
        let mine = index.wrapping_add(1);
        self.holders.iter().any(|holder| {
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            holder.compare_exchange(0, mine, success, failure).is_ok()
        })
    }

    pub(super) fn give_back(&self, index: u32) {
        let mine = index.wrapping_add(1);
        for holder in &self.holders {
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            let _ = holder.compare_exchange(mine, 0, success, failure);
        }
    }

    /// The kernel has refused one: no more than there are.
    pub(super) fn refused(&self) {
        self.most.store(self.held() as u32, Ordering::Relaxed);
    }
}

impl Engine {
    /// Lets the kernel copy so many bytes of stack for each sample of threads of which a signal
    /// has shown nothing more; 0: threads are signalled. Takes effect with the next drain.
    pub fn let_kernel_copy(&self, stack_bytes: u32) {
        self.rings.bytes.store(stack_bytes, Ordering::Relaxed);
        self.rings.most.store(RINGS_MAX as u32, Ordering::Relaxed);
    }

    /// As [`Engine::let_kernel_copy`], for all threads from their first sample on.
    #[cfg(feature = "experiments")]
    pub fn let_kernel_copy_at_once(&self, stack_bytes: u32) {
        self.let_kernel_copy(stack_bytes | AT_ONCE);
    }

    /// Whether threads get rings before a signal has shown anything.
    pub(super) fn gives_rings_at_once(&self) -> bool {
        self.rings.bytes.load(Ordering::Relaxed) & AT_ONCE != 0
    }

    /// Bytes of stack that the kernel copies; 0: threads are signalled.
    #[must_use]
    pub fn kernel_copies(&self) -> u32 {
        self.rings.bytes()
    }

    /// How many threads have a ring just now, and how many can have one.
    #[must_use]
    pub fn rings(&self) -> (usize, usize) {
        let most = self.rings.most.load(Ordering::Relaxed) as usize;
        (self.rings.held(), most)
    }

    /// What this thread does can be told by itself only: it is signalled from the next drain on,
    /// for good.
    pub fn must_signal(&self, record: &ThreadRecord) {
        record.plain.store(SIGNALLED, Ordering::Relaxed);
    }

    /// The same from now on, for the calling thread, whose record this is.
    pub fn must_signal_now(&'static self, record: &'static ThreadRecord) {
        self.must_signal(record);
        if record.engine.load(Ordering::Relaxed) == KERNEL
            && let Some(mut guard) = record.lock()
        {
            self.take_back(&mut guard);
            self.unlock(guard);
        }
    }

    /// Takes what the kernel has copied, and takes rings from those who are to be signalled.
    pub(super) fn pump(&'static self) {
        let is_on = self.rings.bytes() != 0;
        for holder in &self.rings.holders {
            let Some(index) = holder.load(Ordering::Acquire).checked_sub(1) else {
                continue;
            };
            // A record that is worked on is for the next drain.
            if let Some(record) = self.slab.get(index)
                && let Some(mut guard) = record.try_lock()
            {
                let pumped = unsignalled::pump(self, &guard, true);
                if pumped.is_cut || self.has_logical(record) {
                    self.must_signal(record);
                }
                if !is_on || record.plain.load(Ordering::Relaxed) == SIGNALLED {
                    self.take_back(&mut guard);
                }
                self.unlock(guard);
            }
        }
    }

    /// Whether a logical thread is mounted just now, as far as the runtime has said where that is
    /// to be seen.
    fn has_logical(&self, record: &ThreadRecord) -> bool {
        let thread = record.managed_thread();
        let at = self.words.mounted().filter(|_| thread != 0);
        at.is_some_and(|at| self.live.word(thread.wrapping_add(at)) != Ok(0))
    }

    /// A sample has been shown to the drainer: its thread gets a ring if this was one more that
    /// needed no signal.
    pub(super) fn consider(&'static self, slot: &Slot<'_>) {
        let header = slot.header();
        if header.is_copied_by_kernel || header.reason != Reason::CpuTime {
            return;
        }
        let Some(record) = self.record_of(slot) else {
            return;
        };
        let plain = record.plain.load(Ordering::Relaxed);
        if plain == SIGNALLED || record.engine.load(Ordering::Relaxed) != PERF {
            return;
        }
        if !is_plain(header, self.rings.bytes()) {
            return self.must_signal(record);
        }
        if plain.saturating_add(1) < PLAIN_SAMPLES {
            record
                .plain
                .store(plain.saturating_add(1), Ordering::Relaxed);
            return;
        }
        record.plain.store(0, Ordering::Relaxed);
        if !self.rings.take(record.index()) {
            // Its turn comes again, when one is free or taken from who rests.
            return self.free_one();
        }
        if self.give_ring(record).is_err() {
            self.rings.give_back(record.index());
            self.rings.refused();
        }
    }

    /// Takes the ring of somebody who rests, if all are taken.
    fn free_one(&'static self) {
        let now_ns = sys::monotonic_ns();
        for holder in &self.rings.holders {
            let index = holder.load(Ordering::Acquire).checked_sub(1);
            let Some(record) = index.and_then(|index| self.slab.get(index)) else {
                continue;
            };
            let last_ns = record.kernel_last_ns.load(Ordering::Relaxed);
            if now_ns.saturating_sub(last_ns) < RESTS_NS {
                continue;
            }
            if let Some(mut guard) = record.try_lock() {
                self.take_back(&mut guard);
                self.unlock(guard);
                return;
            }
        }
    }

    /// From signals to a ring. What the thread owes is its next sample's.
    fn give_ring(&'static self, record: &'static ThreadRecord) -> Result<(), Errno> {
        let Some(mut guard) = record.try_lock() else {
            self.rings.give_back(record.index());
            return Ok(());
        };
        let is_signalled = self.running.load(Ordering::SeqCst)
            && record.armed.load(Ordering::Relaxed)
            && record.engine.load(Ordering::Relaxed) == PERF;
        let result = match is_signalled {
            true => self.leave_signals(&mut guard),
            false => {
                self.rings.give_back(record.index());
                Ok(())
            }
        };
        self.unlock(guard);
        result
    }

    fn leave_signals(&self, guard: &mut Guard<'_>) -> Result<(), Errno> {
        let record = guard.record();
        let now_ns = sys::cpu_ns_of(record.tid())?;
        let owed_ns = guard.inner().plan.owed_ns(now_ns);
        unsignalled::open(self, record, now_ns)?;
        turns::detach(guard);
        self.close_perf(record);
        record.carried_ns.fetch_add(owed_ns, Ordering::Relaxed);
        record.carried.store(0, Ordering::Relaxed);
        let plan = unsignalled::plan(now_ns);
        guard.inner().plan = plan;
        record
            .next_due_ns
            .store(plan.next_point_ns(), Ordering::Relaxed);
        unsignalled::show(record);
        Ok(())
    }

    /// From a ring to signals. What the thread owes is its next sample's.
    fn take_back(&self, guard: &mut Guard<'_>) {
        let record = guard.record();
        if record.engine.load(Ordering::Relaxed) != KERNEL {
            return;
        }
        unsignalled::close(self, guard);
        record.engine.store(NO_ENGINE, Ordering::Relaxed);
        let is_armed = record.armed.swap(false, Ordering::Relaxed);
        let carried_ns = record.carried_ns.load(Ordering::Relaxed);
        if is_armed && self.arm_locked(guard).is_err() {
            self.counters.add(Cause::ArmFailed, 1); // `tend` tries again
        }
        record.carried_ns.store(carried_ns, Ordering::Relaxed);
    }
}

/// Whether a sample shows nothing but what the kernel copies as well, with so many bytes of stack.
fn is_plain(header: &SlotHeader, bytes: u32) -> bool {
    let is_copied = header.walk.walk().is_none() && !header.truncated && header.stack_end_known;
    is_copied
        && header.context.active == 0
        && header.logical_id == 0
        && header.cont_entry == 0
        && header.stack_len <= bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slots::WalkNote;
    use dwell_walker::Failure;

    #[test]
    fn rings_are_few_and_each_has_one_holder() {
        let rings = Rings::new();
        for index in 0..RINGS_MAX as u32 {
            assert!(rings.take(index));
        }
        assert_eq!(rings.held(), RINGS_MAX);
        assert!(!rings.take(1000), "there is none left");
        rings.give_back(7);
        rings.give_back(7);
        assert!(rings.take(1000));
        assert!(!rings.take(1001));
    }

    #[test]
    fn where_the_kernel_refuses_one_there_are_no_more() {
        let rings = Rings::new();
        assert!(rings.take(1) && rings.take(2));
        rings.give_back(2);
        rings.refused();
        assert!(!rings.take(3));
        rings.give_back(1);
        assert!(rings.take(3), "as many as there were");
    }

    #[test]
    fn what_only_the_thread_can_tell_wants_a_signal() {
        let header = || {
            // SAFETY: numbers, and enums of which 0 is one: so slots begin.
            let mut header: SlotHeader = unsafe { core::mem::zeroed() };
            header.stack_end_known = true;
            header.stack_len = 4000;
            header.walk = WalkNote::NONE;
            header
        };
        let plain = |change: &dyn Fn(&mut SlotHeader)| {
            let mut header = header();
            change(&mut header);
            is_plain(&header, 60 << 10)
        };
        assert!(plain(&|_| ()));
        assert!(
            !plain(&|it| it.context.active = 1),
            "it works for something"
        );
        assert!(
            !plain(&|it| it.logical_id = 9),
            "a virtual thread is mounted"
        );
        assert!(!plain(&|it| it.cont_entry = 8), "or is just being");
        assert!(!plain(&|it| it.stack_len = (60 << 10) + 8), "too deep");
        assert!(!plain(&|it| it.truncated = true), "too deep for any slot");
        assert!(!plain(&|it| it.stack_end_known = false), "another stack");
        let walked = WalkNote::failed(Failure::SignalStack);
        assert!(!plain(&|it| it.walk = walked), "walked where it was");
    }
}
