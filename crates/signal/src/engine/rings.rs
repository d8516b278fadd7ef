//! Which threads have a ring, into which the kernel writes their samples, instead of signals.
//!
//! A thread is signalled first, because only its own handler sees its context, its mounted logical
//! thread and the depth of its stack. If several samples show none of these, the thread gets a
//! ring. Rings are few, as each takes locked memory. The thread is signalled again when that
//! changes, or when it is idle and another thread wants its ring. Nothing here runs in a handler.

use crate::counters::Cause;
use crate::engine::Engine;
use crate::engine::turns;
use crate::engine::unreachable;
use crate::engine::unsignalled::{self, FEW_BYTES};
use crate::record::{Guard, KERNEL, PERF, ThreadRecord};
use crate::slots::{Reason, Slot, SlotHeader};
use crate::sys::{self, Errno};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use dwell_walker::Memory;

/// Maximum number of rings at once: each is 0.5 or 2 MiB of locked memory.
const RINGS_MAX: usize = 64;
/// Samples by signals in a row that show only what the kernel can copy, before a thread gets a
/// ring.
const PLAIN_SAMPLES: u32 = 3;
/// In place of their number: the thread is signalled permanently.
const SIGNALLED: u32 = u32::MAX;
/// A thread without a sample for this long, or for this many intervals, may lose its ring to
/// another one.
const RESTS_NS: u64 = 2_000_000_000;
const RESTS_INTERVALS: u64 = 8;

/// A flag bit in the number of bytes, which is a multiple of 8.
const AT_ONCE: u32 = 1;

/// The threads that have a ring.
#[derive(Debug)]
pub(crate) struct Rings {
    /// Bytes of stack that the kernel copies for each sample; 0: threads are signalled.
    bytes: AtomicU32,
    /// Maximum number of rings: fewer where the kernel has refused one.
    most: AtomicU32,
    /// Its error then; 0: it has not.
    refusal: AtomicI32,
    /// The thread's record plus one; 0: free. Written by the holder of that record.
    holders: [AtomicU32; RINGS_MAX],
}

impl Rings {
    pub(crate) const fn new() -> Rings {
        Rings {
            bytes: AtomicU32::new(0),
            most: AtomicU32::new(RINGS_MAX as u32),
            refusal: AtomicI32::new(0),
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

    /// The kernel has refused a ring. The present number becomes the maximum, if the error means
    /// that. (Otherwise the thread has just ended, or there is no descriptor left.)
    pub(super) fn refused(&self, error: Errno) {
        if matches!(error.0, libc::EPERM | libc::EACCES | libc::ENOMEM) {
            self.most.store(self.held() as u32, Ordering::Relaxed);
            self.refusal.store(error.0, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Lets the kernel copy this many bytes of stack for each sample of threads whose signals have
    /// shown no more than it can copy; 0: threads are signalled. Takes effect with the next drain.
    pub fn let_kernel_copy(&self, stack_bytes: u32) {
        self.rings.bytes.store(stack_bytes, Ordering::Relaxed);
        self.rings.most.store(RINGS_MAX as u32, Ordering::Relaxed);
        self.rings.refusal.store(0, Ordering::Relaxed);
    }

    /// Like [`Engine::let_kernel_copy`], for all threads from their first sample on.
    #[cfg(feature = "experiments")]
    pub fn let_kernel_copy_at_once(&self, stack_bytes: u32) {
        self.let_kernel_copy(stack_bytes | AT_ONCE);
    }

    /// Whether threads get rings before a signal has shown their context.
    pub(super) fn gives_rings_at_once(&self, record: &ThreadRecord) -> bool {
        self.rings.bytes.load(Ordering::Relaxed) & AT_ONCE != 0 && !must_be_signalled(record)
    }

    /// Bytes of stack that the kernel copies; 0: threads are signalled.
    #[must_use]
    pub fn kernel_copies(&self) -> u32 {
        self.rings.bytes()
    }

    /// How many threads have a ring now, and the maximum.
    #[must_use]
    pub fn rings(&self) -> (usize, usize) {
        let most = self.rings.most.load(Ordering::Relaxed) as usize;
        (self.rings.held(), most)
    }

    /// The kernel's error, if it has refused more rings.
    #[must_use]
    pub fn rings_refused(&self) -> Option<Errno> {
        let error = self.rings.refusal.load(Ordering::Relaxed);
        (error != 0).then_some(Errno(error))
    }

    /// Only the thread's own handler can read what this thread does: it is signalled permanently
    /// from the next drain on.
    pub fn must_signal(&self, record: &ThreadRecord) {
        record.plain.store(SIGNALLED, Ordering::SeqCst);
    }

    /// Like [`Engine::must_signal`], at once, for the calling thread, whose record this is.
    pub fn must_signal_now(&'static self, record: &'static ThreadRecord) {
        self.must_signal(record);
        if record.unreachable().is_some() {
            return;
        }
        // A thread that is just giving it a ring has locked the record, or will see the mark.
        if let Some(mut guard) = record.lock() {
            self.take_back(&mut guard);
            self.unlock(guard);
        }
    }

    /// Takes what the kernel has copied, and takes the rings from threads that are to be
    /// signalled.
    pub(super) fn pump(&'static self) {
        let is_on = self.rings.bytes() != 0;
        for holder in &self.rings.holders {
            let Some(index) = holder.load(Ordering::Acquire).checked_sub(1) else {
                continue;
            };
            // A record that is locked is left to the next drain.
            if let Some(record) = self.slab.get(index)
                && let Some(mut guard) = record.try_lock()
            {
                let pumped = unsignalled::pump(self, &guard, true);
                if record.unreachable().is_some() {
                    if pumped.is_cut && unreachable::needs_larger(record) {
                        self.take_back(&mut guard);
                    }
                    self.unlock(guard);
                    continue;
                }
                let may_have_more = pumped.is_cut
                    && record
                        .kernel_bytes
                        .swap(self.rings.bytes(), Ordering::Relaxed)
                        < self.rings.bytes();
                if pumped.is_cut && !may_have_more || self.has_logical(record) {
                    self.must_signal(record);
                }
                if !is_on || pumped.is_cut || must_be_signalled(record) {
                    self.take_back(&mut guard);
                }
                self.unlock(guard);
            }
        }
    }

    /// Whether a logical thread is mounted just now, as far as the runtime has configured where
    /// that can be read.
    fn has_logical(&self, record: &ThreadRecord) -> bool {
        let thread = record.managed_thread();
        let at = self.words.mounted().filter(|_| thread != 0);
        at.is_some_and(|at| self.live.word(thread.wrapping_add(at)) != Ok(0))
    }

    /// The drainer has seen a sample: its thread gets a ring after enough samples that needed no
    /// signal.
    pub(super) fn consider(&'static self, slot: &Slot<'_>) {
        let header = slot.header();
        if header.is_copied_by_kernel || header.reason != Reason::CpuTime {
            return;
        }
        let Some(record) = self.record_of(slot) else {
            return;
        };
        if must_be_signalled(record) || record.engine.load(Ordering::Relaxed) != PERF {
            return;
        }
        match sight(header, self.rings.bytes()) {
            Sight::Nothing => return,
            Sight::More => return self.must_signal(record),
            Sight::Plain => {}
        }
        if !is_one_more(record) {
            return;
        }
        let index = record.index();
        if !self.rings.take(index) {
            // The thread is tried again when a ring is free or has been taken from an idle thread.
            return self.free_one();
        }
        // For the runtime's own threads, only they themselves know where their stacks end.
        record
            .kernel_stack_hi
            .store(header.stack_hi, Ordering::Relaxed);
        let before = record.kernel_bytes.load(Ordering::Relaxed);
        let bytes = bytes_for(depth(header), before, self.rings.bytes());
        record.kernel_bytes.store(bytes, Ordering::Relaxed);
        match self.give_ring(record) {
            Ok(true) => {}
            Ok(false) => self.rings.give_back(index),
            Err(error) => self.rings_refused_for(record, error),
        }
    }

    /// Takes the ring of an idle thread, if no ring is free.
    fn free_one(&'static self) {
        let now_ns = sys::monotonic_ns();
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        let rests_ns = RESTS_NS.max(interval_ns.saturating_mul(RESTS_INTERVALS));
        for holder in &self.rings.holders {
            let index = holder.load(Ordering::Acquire).checked_sub(1);
            let Some(record) = index.and_then(|index| self.slab.get(index)) else {
                continue;
            };
            let last_ns = record.kernel_last_ns.load(Ordering::Relaxed);
            if now_ns.saturating_sub(last_ns) < rests_ns {
                continue;
            }
            if let Some(mut guard) = record.try_lock() {
                self.take_back(&mut guard);
                self.unlock(guard);
                return;
            }
        }
    }

    /// Takes a ring for this thread, if one is free.
    pub(super) fn rings_take(&self, record: &ThreadRecord) -> bool {
        self.rings.take(record.index())
    }

    /// The kernel has refused the ring of this thread.
    pub(super) fn rings_refused_for(&self, record: &ThreadRecord, error: Errno) {
        self.rings.give_back(record.index());
        self.rings.refused(error);
    }

    /// Moves a thread from signals to a ring, if it is signalled and has not been marked in
    /// between as one that must be.
    fn give_ring(&'static self, record: &'static ThreadRecord) -> Result<bool, Errno> {
        let Some(mut guard) = record.try_lock() else {
            return Ok(false);
        };
        let is_signalled = self.running.load(Ordering::SeqCst)
            && record.armed.load(Ordering::Relaxed)
            && record.engine.load(Ordering::Relaxed) == PERF
            && !must_be_signalled(record);
        let result = match is_signalled {
            true => self.leave_signals(&mut guard),
            false => Ok(()),
        };
        self.unlock(guard);
        result.map(|()| is_signalled)
    }

    /// Its windows are taken as a whole. Future time that the last window covers is not counted
    /// again, and time used since is carried.
    pub(super) fn leave_signals(&self, guard: &mut Guard<'_>) -> Result<(), Errno> {
        let record = guard.record();
        let now_ns = sys::cpu_ns_of(record.tid())?;
        let taken_ns = guard.inner().plan.taken_to_ns();
        unsignalled::open(self, record, now_ns)?;
        turns::detach(self, guard);
        self.close_perf(record);
        record
            .kernel_told_ns
            .store(taken_ns.saturating_sub(now_ns), Ordering::Relaxed);
        record
            .carried_ns
            .fetch_add(now_ns.saturating_sub(taken_ns), Ordering::Relaxed);
        let plan = unsignalled::plan(now_ns);
        guard.inner().plan = plan;
        record
            .next_due_ns
            .store(plan.next_point_ns(), Ordering::Relaxed);
        unsignalled::show(record);
        Ok(())
    }

    /// Moves a thread from its ring to signals, if its record is not locked. Returns whether it
    /// had a ring.
    pub(super) fn leave_ring(&'static self, record: &'static ThreadRecord) -> bool {
        if record.engine.load(Ordering::Relaxed) != KERNEL {
            return false;
        }
        let Some(mut guard) = record.try_lock() else {
            return false;
        };
        self.take_back(&mut guard);
        self.unlock(guard);
        true
    }

    /// Moves a thread from a ring to signals. The weight that the thread carries goes to its next
    /// sample.
    fn take_back(&self, guard: &mut Guard<'_>) {
        let record = guard.record();
        if record.engine.load(Ordering::Relaxed) != KERNEL {
            return;
        }
        let told_to_ns = unsignalled::close(self, guard);
        let is_armed = record.armed.swap(false, Ordering::Relaxed);
        if is_armed && self.arm_from(guard, told_to_ns).is_err() {
            self.counters.add(Cause::ArmFailed, 1); // `tend` tries again
        }
    }
}

/// Whether the thread has been marked as signalled permanently.
fn must_be_signalled(record: &ThreadRecord) -> bool {
    record.plain.load(Ordering::SeqCst) == SIGNALLED
}

/// Counts a sample that needed no signal. Returns whether it was the last one required.
fn is_one_more(record: &ThreadRecord) -> bool {
    let more = |plain: u32| match plain.saturating_add(1) {
        _ if plain == SIGNALLED => None,
        PLAIN_SAMPLES => Some(0),
        plain => Some(plain),
    };
    let order = Ordering::SeqCst;
    record.plain.fetch_update(order, order, more) == Ok(PLAIN_SAMPLES.saturating_sub(1))
}

/// The result of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    /// Only data that the kernel copies as well.
    Plain,
    /// Something that only the thread's handler can read, or that the kernel does not copy.
    More,
    /// The stack was walked at once, for want of time, or not at all: this shows neither.
    Nothing,
}

/// From the stack pointer to the stack's end.
fn depth(header: &SlotHeader) -> u64 {
    header.stack_hi.saturating_sub(header.regs.sp())
}

/// Bytes to copy of a stack of this depth, given the number `before` (0 if none) and the maximum
/// `most`. A thread that was too deep once gets `most`.
fn bytes_for(depth: u64, before: u32, most: u32) -> u32 {
    let with_room = depth.saturating_add(depth / 2);
    match with_room <= u64::from(FEW_BYTES) && before <= FEW_BYTES {
        true => FEW_BYTES.min(most),
        false => most,
    }
}

/// The result of a sample for a kernel that copies this many bytes of stack.
fn sight(header: &SlotHeader, bytes: u32) -> Sight {
    let is_all_there = header.stack_end_known && depth(header) <= u64::from(bytes);
    let is_alone = header.context.active == 0 && header.logical_id == 0 && header.cont_entry == 0;
    match (is_all_there && is_alone, header.walk.walk()) {
        (false, _) => Sight::More,
        (true, None) => Sight::Plain,
        (true, Some(_)) => Sight::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Registers;
    use crate::record::{Registration, Slab};
    use crate::slots::WalkNote;
    use dwell_walker::Failure;

    #[test]
    fn rings_are_few_and_each_has_one_holder() {
        let rings = Rings::new();
        for index in 0..RINGS_MAX as u32 {
            assert!(rings.take(index));
        }
        assert_eq!(rings.held(), RINGS_MAX);
        assert!(!rings.take(1000), "no ring is left");
        rings.give_back(7);
        rings.give_back(7);
        assert!(rings.take(1000));
        assert!(!rings.take(1001));
    }

    #[test]
    fn refused_ring_limits_their_number() {
        let rings = Rings::new();
        assert!(rings.take(1) && rings.take(2));
        rings.give_back(2);
        rings.refused(Errno(libc::ESRCH));
        assert_eq!(rings.refusal.load(Ordering::Relaxed), 0, "it has ended");
        rings.refused(Errno(libc::EPERM));
        assert!(!rings.take(3));
        rings.give_back(1);
        assert!(rings.take(3), "as many as there were");
    }

    #[test]
    fn context_or_anchor_in_a_sample_needs_signals() {
        let shown = |change: &dyn Fn(&mut SlotHeader)| {
            // SAFETY: numbers, and enums of which 0 is one: so slots begin.
            let mut header: SlotHeader = unsafe { core::mem::zeroed() };
            header.stack_end_known = true;
            header.regs = Registers::at(0, 0x10_0000, 0);
            header.stack_hi = 0x10_1000;
            header.walk = WalkNote::NONE;
            change(&mut header);
            sight(&header, 60 << 10)
        };
        let more = |change: &dyn Fn(&mut SlotHeader)| shown(change) == Sight::More;
        assert_eq!(shown(&|_| ()), Sight::Plain);
        assert!(more(&|it| it.context.active = 1), "it works for something");
        assert!(more(&|it| it.logical_id = 9), "a virtual thread is mounted");
        assert!(more(&|it| it.cont_entry = 8), "or is just being");
        assert!(more(&|it| it.stack_hi = 0x11_0000), "too deep");
        assert!(more(&|it| it.stack_end_known = false), "another stack");
        let walked = WalkNote::failed(Failure::SignalStack);
        assert_eq!(shown(&|it| it.walk = walked), Sight::Nothing);
        assert!(more(&|it| (it.walk, it.logical_id) = (walked, 9)));
    }

    #[test]
    fn shallow_stack_is_copied_short_until_it_was_deep() {
        let most = 60 << 10;
        assert_eq!(bytes_for(10 << 10, 0, most), FEW_BYTES);
        assert_eq!(bytes_for(11 << 10, 0, most), most);
        assert_eq!(bytes_for(10 << 10, FEW_BYTES, most), FEW_BYTES);
        assert_eq!(bytes_for(1 << 10, most, most), most, "it was deeper");
        assert_eq!(bytes_for(1 << 10, 0, 8 << 10), 8 << 10);
        assert_eq!(bytes_for(u64::MAX, 0, most), most);
    }

    #[test]
    fn permanent_mark_survives_plain_samples() {
        static SLAB: Slab = Slab::new();
        let record = SLAB.begin(&Registration::default()).unwrap();
        let said: [bool; 5] = core::array::from_fn(|_| is_one_more(record));
        assert_eq!(said, [false, false, true, false, false]);
        record.plain.store(SIGNALLED, Ordering::SeqCst);
        assert!(!is_one_more(record) && !is_one_more(record));
        assert!(must_be_signalled(record));
    }
}
