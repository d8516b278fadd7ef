//! Counters by cause and the histogram of handler times: each loss is counted.

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
    /// Signals with our number that dwell did not send; passed on.
    Foreign,
    /// Signals for a thread record that has ended or has been reused.
    Stale,
    /// Signals while another thread worked on the thread's record; armed again afterwards.
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
    /// Threads that ended without notice, found by `tend`.
    Vanished,
    /// Points of ended threads that never found a slot and were not taken over: CPU time that no
    /// sample carries.
    PointsLost,
    /// Samples without a kernel call chain because the ring's records could not be parsed.
    RingSkipped,
    /// Slots or records lost to endless contention; should stay 0.
    Contention,
    /// Threads that waited in vain for the walking thread and took a snapshot instead.
    PauseTimeout,
    /// Walks that were restarted because a deep stack needed a larger slot.
    WalkedAgain,
    /// Stacks walked in the handler because they could not be copied as a whole.
    WalkedInstead,
    /// Stacks walked in the handler because copies were walked too late; see
    /// [`crate::Engine::set_behind`].
    WalkedBehind,
    /// Snapshots of threads that had allocated an object were published.
    Allocation,
    /// Allocations without a free slot.
    AllocationLost,
    /// Snapshots of threads that had waited for a monitor were published.
    Wait,
    /// Such waits without a free slot.
    WaitLost,
    /// Snapshots copied by the kernel without a signal; they are included in the others.
    Unsignalled,
}

/// How many causes there are.
pub const CAUSES: usize = Cause::Unsignalled as usize + 1;

/// Buckets to each doubling of the time.
const PER_OCTAVE_BITS: u32 = 3;

/// Buckets of the histogram of handler times, see [`bucket_end_ns`]. The last one takes all longer
/// times.
pub const HISTOGRAM_BUCKETS: usize = 30 << PER_OCTAVE_BITS;

/// Handlers that took longer were most likely off the CPU in between.
const LONG_NS: u64 = 250_000;

/// The bucket of `ns`: values below 8 have one each, then eight share each doubling.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let bits = u64::BITS.wrapping_sub(ns.leading_zeros());
    let octave = bits.saturating_sub(PER_OCTAVE_BITS.wrapping_add(1));
    let place = ((octave as usize) << PER_OCTAVE_BITS).wrapping_add((ns >> octave) as usize);
    place.min(HISTOGRAM_BUCKETS.wrapping_sub(1))
}

/// The first time in ns that is too long for `bucket`: at most an eighth above the shortest in it.
#[must_use]
pub fn bucket_end_ns(bucket: usize) -> u64 {
    let next = bucket.saturating_add(1);
    let octave = (next >> PER_OCTAVE_BITS).saturating_sub(1);
    let within = next.wrapping_sub(octave << PER_OCTAVE_BITS) as u64;
    within.checked_shl(octave as u32).unwrap_or(u64::MAX)
}

/// All counters at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSnapshot {
    counts: [u64; CAUSES],
    /// Handler times: how long threads were held up, including waits.
    pub handler_ns: [u64; HISTOGRAM_BUCKETS],
    /// Number of handlers that were not off the CPU, and their total working time.
    pub worked: (u64, u64),
    /// How long threads waited for the walking thread.
    pub waited_ns: u64,
    /// CPU time that the points lost stood for.
    pub lost_ns: u64,
    /// Bytes that the published snapshots of allocations stand for.
    pub allocated_bytes: u64,
    /// Bytes that the allocations without a slot stood for.
    pub allocated_lost_bytes: u64,
    /// Time that the published snapshots of waits for monitors stand for.
    pub blocked_ns: u64,
    /// Time that the waits without a slot stood for.
    pub blocked_lost_ns: u64,
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
    worked: AtomicU64,
    worked_ns: AtomicU64,
    waited_ns: AtomicU64,
    lost_ns: AtomicU64,
    allocated_bytes: AtomicU64,
    allocated_lost_bytes: AtomicU64,
    blocked_ns: AtomicU64,
    blocked_lost_ns: AtomicU64,
}

impl Counters {
    pub(crate) const fn new() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; CAUSES],
            handler_ns: [const { AtomicU64::new(0) }; HISTOGRAM_BUCKETS],
            worked: AtomicU64::new(0),
            worked_ns: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            lost_ns: AtomicU64::new(0),
            allocated_bytes: AtomicU64::new(0),
            allocated_lost_bytes: AtomicU64::new(0),
            blocked_ns: AtomicU64::new(0),
            blocked_lost_ns: AtomicU64::new(0),
        }
    }

    #[inline]
    pub(crate) fn add(&self, cause: Cause, count: u64) {
        if let Some(counter) = self.counts.get(cause as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self, cause: Cause) -> u64 {
        let counter = self.counts.get(cause as usize);
        counter.map_or(0, |counter| counter.load(Ordering::Relaxed))
    }

    /// Adds a handler that took `ns`, of which it waited `waited_ns` to be walked.
    #[inline]
    pub(crate) fn handler_took(&self, ns: u64, waited_ns: u64) {
        if let Some(counter) = self.handler_ns.get(bucket_of(ns)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let worked_ns = ns.saturating_sub(waited_ns);
        if worked_ns <= LONG_NS {
            self.worked.fetch_add(1, Ordering::Relaxed);
            self.worked_ns.fetch_add(worked_ns, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn waited(&self, ns: u64) {
        self.waited_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Adds points that no sample will carry, and the CPU time they stood for.
    pub(crate) fn lost(&self, points: u64, weight_ns: u64) {
        self.add(Cause::PointsLost, points);
        self.lost_ns.fetch_add(weight_ns, Ordering::Relaxed);
    }

    /// Adds an allocation with this weight in bytes that was published, or found no slot.
    pub(crate) fn allocated(&self, bytes: u64, published: bool) {
        let (cause, sum) = match published {
            true => (Cause::Allocation, &self.allocated_bytes),
            false => (Cause::AllocationLost, &self.allocated_lost_bytes),
        };
        self.add(cause, 1);
        sum.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds a wait with this weight in ns that was published, or found no slot.
    pub(crate) fn wait(&self, ns: u64, published: bool) {
        let (cause, sum) = match published {
            true => (Cause::Wait, &self.blocked_ns),
            false => (Cause::WaitLost, &self.blocked_lost_ns),
        };
        self.add(cause, 1);
        sum.fetch_add(ns, Ordering::Relaxed);
    }

    /// The counters now; not one instant across all of them.
    pub fn snapshot(&self) -> CounterSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CounterSnapshot {
            counts: self.counts.each_ref().map(load),
            handler_ns: self.handler_ns.each_ref().map(load),
            worked: (load(&self.worked), load(&self.worked_ns)),
            waited_ns: load(&self.waited_ns),
            lost_ns: load(&self.lost_ns),
            allocated_bytes: load(&self.allocated_bytes),
            allocated_lost_bytes: load(&self.allocated_lost_bytes),
            blocked_ns: load(&self.blocked_ns),
            blocked_lost_ns: load(&self.blocked_lost_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_bucket_and_buckets_are_narrow() {
        let mut at: u64 = 0;
        while at < 1 << 31 {
            let bucket = bucket_of(at);
            let end = bucket_end_ns(bucket);
            let begin = bucket.checked_sub(1).map_or(0, bucket_end_ns);
            assert!((begin..end).contains(&at), "{at} in {begin}..{end}");
            assert!(end - begin <= 1 + begin / 8, "{begin}..{end}");
            at += 1 + at / 100;
        }
        assert_eq!(bucket_of(u64::MAX), HISTOGRAM_BUCKETS - 1);
    }
}
