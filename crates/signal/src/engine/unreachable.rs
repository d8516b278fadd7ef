//! Threads that no signal reaches: they block it, or the kernel has no room to queue one.
//!
//! Where perf events are permitted, the kernel copies their stacks into rings ([`super::rings`]),
//! even if they have a context that only the thread itself can read. Otherwise only their CPU time
//! is known. The caller finds out which threads are unreachable, as it may read files. Nothing
//! here runs in a handler.

use crate::engine::Engine;
use crate::engine::unsignalled::FEW_BYTES;
use crate::record::{Guard, KERNEL, PERF, ThreadRecord};
use crate::sys;
use core::sync::atomic::Ordering;

/// Maximum bytes of a stack that are copied; the kernel cannot copy more than about 64 KiB.
const MANY_BYTES: u32 = 60 << 10;

/// Why no signal reaches a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Unreachable {
    /// It blocks the signal.
    Blocked = 1,
    /// Signals cannot be queued: RLIMIT_SIGPENDING.
    QueueFull = 2,
}

impl ThreadRecord {
    /// Why no signal reaches the thread; `None` if signals do, as far as is known.
    #[must_use]
    pub fn unreachable(&self) -> Option<Unreachable> {
        match self.unreachable.load(Ordering::Relaxed) {
            1 => Some(Unreachable::Blocked),
            2 => Some(Unreachable::QueueFull),
            _ => None,
        }
    }

    /// Whether the thread has used far more CPU time than it should have without a signal.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.silent_tends.load(Ordering::Relaxed) > 0
    }

    /// A signal reaches the thread again, and is to wake it up.
    pub fn set_reachable(&self) {
        if self.unreachable.swap(0, Ordering::Relaxed) != 0 {
            self.silent_tends.store(0, Ordering::Relaxed);
        }
    }
}

impl Engine {
    /// Notes that no signal reaches the thread: it gets a ring, if possible. Returns the CPU time,
    /// in ns, that it has used and no sample stands for; the caller has to report it.
    pub fn set_unreachable(&'static self, record: &'static ThreadRecord, why: Unreachable) -> u64 {
        record.unreachable.store(why as u32, Ordering::Relaxed);
        let Some(mut guard) = record.try_lock() else {
            return 0;
        };
        let is_meant = self.running.load(Ordering::SeqCst)
            && record.is_live()
            && record.armed.load(Ordering::Relaxed)
            && record.engine.load(Ordering::Relaxed) != KERNEL;
        let owed_ns = match is_meant {
            true => self.do_without_signals(&mut guard),
            false => 0,
        };
        self.unlock(guard);
        owed_ns
    }

    fn do_without_signals(&self, guard: &mut Guard<'_>) -> u64 {
        let record = guard.record();
        let is_perf = record.engine.load(Ordering::Relaxed) == PERF;
        if is_perf && self.give_unreachable(guard) {
            record.silent_tends.store(0, Ordering::Relaxed);
        } else {
            let Ok(now_ns) = sys::cpu_ns_of(record.tid()) else {
                return 0;
            };
            let taken_ns = guard.inner().plan.taken_to_ns();
            let owed_ns = now_ns.saturating_sub(taken_ns);
            record.carried_ns.fetch_add(owed_ns, Ordering::Relaxed);
            // No further signal is requested: signals that wait to be unblocked would pile up.
            self.set_plan(guard, (now_ns.max(taken_ns), now_ns));
        }
        record.carried.store(0, Ordering::Relaxed);
        record.carried_ns.swap(0, Ordering::Relaxed)
    }

    /// A ring as large as its stack needs, if the kernel gives one, or else a small one.
    fn give_unreachable(&self, guard: &mut Guard<'_>) -> bool {
        let record = guard.record();
        if !self.rings_take(record) {
            return false;
        }
        let wanted = record.kernel_bytes.load(Ordering::Relaxed).max(FEW_BYTES);
        record.kernel_bytes.store(wanted, Ordering::Relaxed);
        let mut given = self.leave_signals(guard);
        if given.is_err() && wanted > FEW_BYTES {
            record.kernel_bytes.store(FEW_BYTES, Ordering::Relaxed);
            record.has_small_ring.store(true, Ordering::Relaxed);
            given = self.leave_signals(guard);
        }
        if let Err(error) = given {
            self.rings_refused_for(record, error);
        }
        given.is_ok()
    }
}

/// Whether a thread with a ring that copies too little is to have a larger one.
pub(super) fn needs_larger(record: &ThreadRecord) -> bool {
    !record.has_small_ring.load(Ordering::Relaxed)
        && record.kernel_bytes.swap(MANY_BYTES, Ordering::Relaxed) < MANY_BYTES
}
