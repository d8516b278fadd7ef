//! CPU time that no signal can reach: a thread's last steps in the runtime and the kernel, native
//! threads that come and go unseen. The process's CPU clock knows of it, so it is reported, without
//! a stack, and the sum of weights stays the CPU time.

use crate::ended::Clocks;
use crate::registry::Registry;
use crate::sys::process;
use std::time::{Duration, Instant};

/// Less is not told: reading the clocks of many threads one after the other is no more exact.
const TOLD_MIN_NS: u64 = 1_000_000;

/// A clock takes a microsecond to read, or ten: so many of them are read in a second at most.
const CLOCKS_MAX: u32 = 150;
/// What is out of reach is told this late at most, however many threads there are.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Compares the process's CPU time with that of the threads while they could be sampled.
pub struct Unsampled {
    process_at_start: Duration,
    told_ns: u64,
    /// What was out of reach when that was looked at last.
    seen_ns: u64,
    not_before: Instant,
}

impl Unsampled {
    /// Begins to compare at a moment at which the process had used `process_at_start`.
    #[must_use]
    pub fn new(process_at_start: Duration) -> Unsampled {
        Unsampled {
            process_at_start,
            told_ns: 0,
            seen_ns: 0,
            not_before: Instant::now(),
        }
    }

    /// CPU time that was out of reach since that was told last, if it is enough to tell; it may be
    /// left for later.
    ///
    /// A thread that has begun and is not registered yet is not out of reach: its first sample will
    /// stand for all of its life. So only what still is at the next look is told, or at the end.
    pub fn take(&mut self, registry: &Registry) -> Option<u64> {
        let now = Instant::now();
        if now < self.not_before {
            return None;
        }
        let threads = u32::try_from(registry.len()).unwrap_or(u32::MAX);
        let pause = Duration::from_secs(1).saturating_mul(threads / CLOCKS_MAX);
        self.not_before = now + pause.min(LATE_MAX);
        self.new_since_start(process::process_cpu(), registry.sampled_cpu_ns(), false)
    }

    /// The same at the end, as the clocks were when sampling ended: what the process used while
    /// that was being done, and the rest.
    pub fn take_last(&mut self, clocks: &Clocks) -> (Option<u64>, Option<u64>) {
        let all = self.new_since_start(clocks.process, clocks.sampled_ns, true);
        in_two(all.unwrap_or(0), clocks.ending_ns)
    }

    fn new_since_start(&mut self, process: Duration, sampled_ns: u64, last: bool) -> Option<u64> {
        let process = process.saturating_sub(self.process_at_start);
        self.new_part(process.as_nanos() as u64, sampled_ns, last)
    }

    fn new_part(&mut self, process_ns: u64, sampled_ns: u64, last: bool) -> Option<u64> {
        let out_of_reach = process_ns.saturating_sub(sampled_ns);
        let before = std::mem::replace(&mut self.seen_ns, out_of_reach);
        let sure = if last {
            out_of_reach
        } else {
            out_of_reach.min(before)
        };
        let new = sure.saturating_sub(self.told_ns);
        if new < TOLD_MIN_NS {
            return None;
        }
        self.told_ns += new;
        Some(new)
    }
}

/// Divides what was out of reach into what may have been used in the last `ending_ns` of CPU time,
/// and what was used before.
fn in_two(all_ns: u64, ending_ns: u64) -> (Option<u64>, Option<u64>) {
    let some = |ns: u64| (ns > 0).then_some(ns);
    let ending_ns = all_ns.min(ending_ns);
    (some(ending_ns), some(all_ns - ending_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_while_sampling_was_being_ended_is_told_apart() {
        assert_eq!(in_two(0, 5), (None, None));
        assert_eq!(in_two(3, 5), (Some(3), None));
        assert_eq!(in_two(8, 5), (Some(5), Some(3)));
        assert_eq!(in_two(8, 0), (None, Some(8)));
    }

    #[test]
    fn every_ns_is_told_once_and_noise_never() {
        let mut unsampled = Unsampled::new(Duration::ZERO);
        let mut look = |process, sampled, last| unsampled.new_part(process, sampled, last);
        assert_eq!(look(10_000_000, 10_000_500, false), None);
        assert_eq!(look(20_000_000, 19_500_000, false), None);
        assert_eq!(look(30_000_000, 28_000_000, false), None);
        assert_eq!(look(35_000_000, 33_000_000, false), Some(2_000_000));
        assert_eq!(look(40_000_000, 38_000_000, false), None);
        assert_eq!(look(50_000_000, 40_000_000, true), Some(8_000_000));
    }

    #[test]
    fn a_thread_that_is_found_late_is_told_by_its_samples_alone() {
        let mut unsampled = Unsampled::new(Duration::ZERO);
        let mut look = |process, sampled, last| unsampled.new_part(process, sampled, last);
        // It has used 45 ms and nobody knows it.
        assert_eq!(look(100_000_000, 55_000_000, false), None);
        assert_eq!(look(150_000_000, 150_000_000, false), None);
        assert_eq!(look(160_000_000, 160_000_000, true), None);
    }
}
