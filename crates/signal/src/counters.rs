//! Counters by cause and the histogram of handler times: nothing is lost silently.

use core::sync::atomic::{AtomicU64, Ordering};

/// Why something was counted. The numbers are indices; new causes go to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Cause {
    /// A snapshot was published.
    Sample,
    /// Points (intervals of CPU time) in published snapshots.
    Points,
    /// Wake-ups before the next point: the timer's clock ran ahead of the thread's CPU clock.
    Early,
    /// Samples without a free slot; their weight goes to the thread's next sample.
    NoSlot,
    /// Snapshots whose stack did not fit.
    Truncated,
    /// Snapshots whose stack could not be read to its end.
    StackFault,
    /// Signals with our number that nobody of ours sent; passed on.
    Foreign,
    /// Signals for a thread record that has ended or belongs to somebody else by now.
    Stale,
    /// Signals while the thread's record was being worked on; armed again afterwards.
    Nested,
    /// Signals after the recording was stopped.
    Stopped,
    /// Wake-ups that could not be armed again.
    RearmFailed,
    /// SIGIO instead of our signal: the limit of queued signals (`RLIMIT_SIGPENDING`) is reached.
    QueueFull,
    /// Threads without a perf event (no permission, no file descriptor left), given a timer.
    PerfFallback,
    /// Threads that could be given neither a perf event nor a timer.
    ArmFailed,
    /// Threads armed again by `tend` because no signal had come for too long.
    Silent,
    /// Threads that ended without saying so, found by `tend`.
    Vanished,
    /// Points of ended threads for which there was never a slot: CPU time that no sample carries.
    PointsLost,
    /// Samples without a kernel call chain because the ring could not be read in step.
    RingSkipped,
    /// Slots or records lost to endless contention; should stay 0.
    Contention,
}

/// How many causes there are.
pub const CAUSES: usize = Cause::Contention as usize + 1;

/// Buckets of the histogram of handler times: bucket `n` counts times below `2^n` ns (and at least
/// half of that); the last one takes the rest.
pub const HISTOGRAM_BUCKETS: usize = 32;

/// All counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSnapshot {
    counts: [u64; CAUSES],
    /// Handler times by power of two.
    pub handler_ns: [u64; HISTOGRAM_BUCKETS],
    /// Sum of handler times.
    pub handler_sum_ns: u64,
}

impl CounterSnapshot {
    /// The count of one cause.
    #[must_use]
    pub fn get(&self, cause: Cause) -> u64 {
        self.counts.get(cause as usize).copied().unwrap_or(0)
    }
}

/// The counters.
#[derive(Debug)]
pub struct Counters {
    counts: [AtomicU64; CAUSES],
    handler_ns: [AtomicU64; HISTOGRAM_BUCKETS],
    handler_sum_ns: AtomicU64,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; CAUSES],
            handler_ns: [const { AtomicU64::new(0) }; HISTOGRAM_BUCKETS],
            handler_sum_ns: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn add(&self, cause: Cause, count: u64) {
        if let Some(counter) = self.counts.get(cause as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn handler_took(&self, ns: u64) {
        let bits = u64::BITS.wrapping_sub(ns.leading_zeros()) as usize;
        let bucket = bits.min(HISTOGRAM_BUCKETS.wrapping_sub(1));
        if let Some(counter) = self.handler_ns.get(bucket) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.handler_sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The counters now; not one instant across all of them.
    pub fn snapshot(&self) -> CounterSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CounterSnapshot {
            counts: self.counts.each_ref().map(load),
            handler_ns: self.handler_ns.each_ref().map(load),
            handler_sum_ns: load(&self.handler_sum_ns),
        }
    }
}
