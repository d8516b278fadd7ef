//! Thread records: the handler's data about the thread it runs on.
//!
//! Records live in a slab that is never freed, so a late signal can always look at one and find
//! that it is not meant (any more). Signals carry a cookie of index and generation, or a perf file
//! descriptor that a table maps to a record. Code that works on a record holds its `busy` word; a
//! handler never waits for it.

mod by_fd;
mod cookie;
mod slab;

pub(crate) use by_fd::FdTable;
pub(crate) use cookie::Cookie;
pub(crate) use slab::Slab;

use crate::plan::Plan;
use crate::sys;
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// The agent's data about a thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Registration {
    /// The thread's id.
    pub tid: i32,
    /// The runtime's own structure of the thread, or 0.
    pub managed_thread: u64,
    /// Lowest address of the stack, or 0 if unknown.
    pub stack_lo: u64,
    /// End of the stack, or 0 if unknown.
    pub stack_hi: u64,
    /// Seed of the thread's sampling points.
    pub seed: u64,
    /// Whether the thread was born while being registered. Its plan then begins at CPU time 0,
    /// otherwise at the time it has used when sampling begins.
    pub newborn: bool,
    /// Any value; comes back in each slot.
    pub user: u64,
}

pub(crate) const FREE: u32 = 0;
pub(crate) const LIVE: u32 = 1;
pub(crate) const ENDED: u32 = 2;

pub(crate) const NO_ENGINE: u32 = 0;
pub(crate) const PERF: u32 = 1;
pub(crate) const TIMER: u32 = 2;
pub(crate) const KERNEL: u32 = 3;

/// The thread has a source of signals, or is not sampled.
pub(crate) const NOT_DEFERRED: u32 = 0;

/// No number of turns.
pub(crate) const NO_TURNS: u64 = u64::MAX;

/// Data that only the holder of `busy` may touch.
#[derive(Debug)]
pub(crate) struct Inner {
    pub plan: Plan,
    /// The period that the thread's perf event has.
    pub period_ns: u64,
    /// Maximum number of signals that it may send before it is disabled.
    pub credit: u32,
    /// The CPU time of the thread until which it is not sampled, after a long handler.
    pub spared_until_ns: u64,
    /// The CPU time at its last signal, and at the one before.
    pub signals_ns: (u64, u64),
}

/// State of the exchange of a perf event and a timer.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Whether a timer signals it.
    pub is_by_timer: AtomicBool,
    /// Whether the event had a ring.
    pub had_ring: AtomicBool,
    /// Number of checks in a row in which it has hardly run.
    pub rests: AtomicU32,
    /// Whether it keeps its timer because all threads together are switched too often for events.
    pub is_held: AtomicBool,
    /// Whether a timer did not find it running: it keeps its event.
    pub needs_event: AtomicBool,
}

impl Exchange {
    /// Resets it to the initial state.
    pub fn reset(&self) {
        self.is_by_timer.store(false, Ordering::Relaxed);
        self.had_ring.store(false, Ordering::Relaxed);
        self.rests.store(0, Ordering::Relaxed);
        self.is_held.store(false, Ordering::Relaxed);
        self.needs_event.store(false, Ordering::Relaxed);
    }
}

/// One thread.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct ThreadRecord {
    index: AtomicU32,
    generation: AtomicU32,
    pub(crate) state: AtomicU32,
    pub(crate) tid: AtomicI32,
    // Here, because the wall-clock sampler reads these fields and those before for each thread in
    // each tick.
    pub(crate) engine: AtomicU32,
    pub(crate) perf_fd: AtomicI32,
    /// The control page of its perf event, or 0; that of the ring if there is one.
    pub(crate) page: AtomicUsize,
    pub(crate) silent_tends: AtomicU32,
    pub(crate) armed: AtomicBool,
    pub(crate) newborn: AtomicBool,
    pub(crate) missed: AtomicBool,
    /// Whether its source of signals could be deferred.
    pub(crate) had_choice: AtomicBool,
    /// Whether its source of signals is deferred.
    pub(crate) deferred: AtomicU32,
    /// The request that the thread missed, as its reason's number; 0: none.
    pub(crate) missed_reason: AtomicU32,
    /// The thread pointer of the thread with this id, once its handler has seen both; 0 before.
    pub(crate) tls_base: AtomicU64,
    pub(crate) managed_thread: AtomicU64,
    /// The runtime's id of the platform thread, or 0.
    managed_id: AtomicU64,
    pub(crate) stack_lo: AtomicU64,
    pub(crate) stack_hi: AtomicU64,
    pub(crate) user: AtomicU64,
    pub(crate) seed: AtomicU64,
    next_free: AtomicU32,
    busy: AtomicU32,
    pub(crate) timer_id: AtomicI32,
    /// The reason of a signal of ours that may have merged with one that was pending; 0: none.
    pub(crate) asked: AtomicU32,
    pub(crate) exchange: Exchange,
    /// Plain samples by signals in a row.
    pub(crate) plain: AtomicU32,
    /// Why no signal reaches it, as a number; 0: one does.
    pub(crate) unreachable: AtomicU32,
    /// Whether the kernel gives only a small ring.
    pub(crate) has_small_ring: AtomicBool,
    /// The event whose samples the kernel copies, its ring, ...
    pub(crate) kernel_fd: AtomicI32,
    pub(crate) kernel_ring: AtomicUsize,
    pub(crate) kernel_data_bytes: AtomicUsize,
    /// ... the CPU time that samples cover, ...
    pub(crate) kernel_told_ns: AtomicU64,
    /// ... the estimate of how far its clock is ahead of the thread's, ...
    pub(crate) kernel_ahead_ns: AtomicI64,
    /// ... the CPU time used when it began to count, ...
    pub(crate) kernel_base_ns: AtomicU64,
    /// ... when the last sample was, ...
    pub(crate) kernel_last_ns: AtomicU64,
    /// ... where the stack ends, as a signal has shown it, ...
    pub(crate) kernel_stack_hi: AtomicU64,
    /// ... and how many bytes of it are copied.
    pub(crate) kernel_bytes: AtomicU32,
    pub(crate) ring: AtomicUsize,
    pub(crate) next_due_ns: AtomicU64,
    /// CPU time when the plan was last asked for due points.
    pub(crate) counted_ns: AtomicU64,
    pub(crate) signals: AtomicU64,
    pub(crate) signals_tended: AtomicU64,
    /// CPU time when the thread was last checked.
    pub(crate) tended_ns: AtomicU64,
    /// CPU time at the thread's begin that is in no window: the cost of its source, or all until
    /// its first signal was set.
    pub(crate) left_out_ns: AtomicU64,
    /// Its turns then, if it has not run since the last check; else [`NO_TURNS`].
    pub(crate) tended_turns: AtomicU64,
    pub(crate) ended_epoch: AtomicU64,
    /// Points taken that found no slot; written only by the holder of `busy`.
    pub(crate) carried: AtomicU64,
    /// The CPU time these stand for.
    pub(crate) carried_ns: AtomicU64,
    pub(crate) samples: AtomicU64,
    pub(crate) points: AtomicU64,
    pub(crate) weight_ns: AtomicU64,
    pub(crate) no_slot: AtomicU64,
    pub(crate) inner: UnsafeCell<Inner>,
}

// SAFETY: every field is atomic but `inner`, which is only reached through `Guard`, and there is
// one guard at a time because `busy` is taken by compare-and-swap.
unsafe impl Sync for ThreadRecord {}

impl ThreadRecord {
    /// Where the record is in the slab.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index.load(Ordering::Relaxed)
    }

    /// The number of this use of the record; slots carry it.
    #[inline]
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// The thread's id.
    #[inline]
    #[must_use]
    pub fn tid(&self) -> i32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// The runtime's own structure of the thread, or 0 if it runs no
    /// managed code.
    #[must_use]
    pub fn managed_thread(&self) -> u64 {
        self.managed_thread.load(Ordering::Acquire)
    }

    /// Sets that structure; 0 before its memory is freed. A reader that sees this value also sees
    /// all earlier writes of the caller.
    pub fn set_managed_thread(&self, managed_thread: u64) {
        self.managed_thread.store(managed_thread, Ordering::Release);
    }

    /// The runtime's id of the managed thread, or 0 for a native one.
    #[inline]
    #[must_use]
    pub fn managed_id(&self) -> u64 {
        self.managed_id.load(Ordering::Relaxed)
    }

    /// Sets it; 0 when the thread is not a managed one any more.
    pub fn set_managed_id(&self, managed_id: u64) {
        self.managed_id.store(managed_id, Ordering::Relaxed);
    }

    /// Lowest address of the thread's stack, or 0 if unknown.
    #[must_use]
    pub fn stack_low(&self) -> u64 {
        self.stack_lo.load(Ordering::Relaxed)
    }

    /// Where the thread's stack ends, or 0 if unknown.
    #[must_use]
    pub fn stack_high(&self) -> u64 {
        self.stack_hi.load(Ordering::Relaxed)
    }

    /// The agent's value in the record.
    #[must_use]
    pub fn user(&self) -> u64 {
        self.user.load(Ordering::Relaxed)
    }

    /// Attaches a value to the record; later slots carry it.
    pub fn set_user(&self, user: u64) {
        self.user.store(user, Ordering::Relaxed);
    }

    /// Whether the thread is registered and has not ended.
    #[inline]
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state.load(Ordering::Acquire) == LIVE
    }

    /// CPU time at the thread's begin that no sample stands for: dwell's own in a newborn thread,
    /// or the time before its first signal was set in another one.
    #[must_use]
    pub fn left_out_ns(&self) -> u64 {
        self.left_out_ns.load(Ordering::Relaxed)
    }

    /// Whether the thread has no source of signals before it has lived for some time.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        self.deferred.load(Ordering::Relaxed) != NOT_DEFERRED
    }

    /// Published snapshots of this thread.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.load(Ordering::Relaxed)
    }

    /// Whether a ring is mapped for it.
    #[must_use]
    pub fn has_ring(&self) -> bool {
        self.ring.load(Ordering::Relaxed) != 0
    }

    /// Points in the published snapshots of this thread, including carried ones.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.points.load(Ordering::Relaxed)
    }

    /// CPU time that the published snapshots of this thread stand for.
    #[must_use]
    pub fn weight_ns(&self) -> u64 {
        self.weight_ns.load(Ordering::Relaxed)
    }

    /// Takes over the weight of the thread's samples that found no free slot, in ns of its CPU
    /// time. For threads that have ended: otherwise the next sample carries it.
    #[must_use]
    pub fn take_carried_ns(&self) -> u64 {
        self.carried.store(0, Ordering::Relaxed);
        self.carried_ns.swap(0, Ordering::Relaxed)
    }

    /// Samples of this thread that found no free slot.
    #[must_use]
    pub fn no_slot(&self) -> u64 {
        self.no_slot.load(Ordering::Relaxed)
    }

    pub(crate) fn cookie(&self) -> Cookie {
        Cookie::new(self.index(), self.generation())
    }

    /// Locks the record, if it is not locked.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Guard<'_>> {
        // Sequentially consistent: see `Guard::unlock`.
        self.busy
            .compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst)
            .ok()
            .map(|_| Guard { record: self })
    }

    /// Like [`Self::try_lock`], for ordinary threads. Waits while a handler is at work, which
    /// takes microseconds unless the thread loses its processor in between.
    pub(crate) fn lock(&self) -> Option<Guard<'_>> {
        const YIELDS_MAX: u32 = 1 << 20;
        for _ in 0..YIELDS_MAX {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            sys::sched_yield();
        }
        None
    }

    pub(crate) fn begin(&self, registration: &Registration) {
        self.tid.store(registration.tid, Ordering::Relaxed);
        self.managed_thread
            .store(registration.managed_thread, Ordering::Relaxed);
        self.managed_id.store(0, Ordering::Relaxed);
        self.tls_base.store(0, Ordering::Relaxed);
        self.stack_lo
            .store(registration.stack_lo, Ordering::Relaxed);
        self.stack_hi
            .store(registration.stack_hi, Ordering::Relaxed);
        self.user.store(registration.user, Ordering::Relaxed);
        self.seed.store(registration.seed, Ordering::Relaxed);
        self.newborn.store(registration.newborn, Ordering::Relaxed);
        self.missed.store(false, Ordering::Relaxed);
        self.missed_reason.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
        self.armed.store(false, Ordering::Relaxed);
        self.had_choice.store(false, Ordering::Relaxed);
        self.deferred.store(NOT_DEFERRED, Ordering::Relaxed);
        self.engine.store(NO_ENGINE, Ordering::Relaxed);
        self.perf_fd.store(-1, Ordering::Relaxed);
        self.timer_id.store(-1, Ordering::Relaxed);
        self.exchange.reset();
        self.plain.store(0, Ordering::Relaxed);
        self.unreachable.store(0, Ordering::Relaxed);
        self.has_small_ring.store(false, Ordering::Relaxed);
        self.kernel_stack_hi.store(0, Ordering::Relaxed);
        self.kernel_bytes.store(0, Ordering::Relaxed);
        self.kernel_fd.store(-1, Ordering::Relaxed);
        self.kernel_ring.store(0, Ordering::Relaxed);
        self.ring.store(0, Ordering::Relaxed);
        self.page.store(0, Ordering::Relaxed);
        self.next_due_ns.store(u64::MAX, Ordering::Relaxed);
        self.counted_ns.store(0, Ordering::Relaxed);
        self.tended_turns.store(NO_TURNS, Ordering::Relaxed);
        for counter in [
            &self.signals,
            &self.tended_ns,
            &self.left_out_ns,
            &self.signals_tended,
            &self.carried,
            &self.carried_ns,
            &self.weight_ns,
            &self.samples,
            &self.points,
            &self.no_slot,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        self.silent_tends.store(0, Ordering::Relaxed);
        self.state.store(LIVE, Ordering::Release);
    }
}

/// Exclusive use of a record's inner part.
pub(crate) struct Guard<'a> {
    record: &'a ThreadRecord,
}

impl<'a> Guard<'a> {
    #[inline]
    pub fn record(&self) -> &'a ThreadRecord {
        self.record
    }

    #[inline]
    pub fn inner(&mut self) -> &mut Inner {
        // SAFETY: `busy` is ours, so there is no other guard, and this borrow of the guard keeps
        // the reference unique.
        unsafe { &mut *self.record.inner.get() }
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        // A handler that finds the record busy sets `missed` and then tries once more. Unlocking
        // checks `missed` afterwards. All four are sequentially consistent, so at least one of the
        // two sees the other and no wake-up is lost.
        self.record.busy.store(0, Ordering::SeqCst);
    }
}
