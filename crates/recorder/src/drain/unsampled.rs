//! CPU time that no signal can reach: a thread's last steps in the runtime and the kernel, and
//! native threads that begin and end unseen. The process's CPU clock includes it. So it is
//! reported, without a stack, and the sum of weights stays the CPU time.

use crate::ended::Clocks;
use crate::registry::Registry;
use crate::sys::process;
use std::time::{Duration, Instant};

/// Smaller amounts are not reported: reading the clocks of many threads one after the other is not
/// more exact.
const TOLD_MIN_NS: u64 = 1_000_000;

/// A clock takes one to ten microseconds to read. This is the maximum number that is read in a
/// second.
const CLOCKS_MAX: u32 = 150;
/// Unsampled time is reported with at most this delay, for any number of threads.
const LATE_MAX: Duration = Duration::from_secs(60);

/// Compares the process's CPU time with that of the threads while they could be sampled.
pub struct Unsampled {
    process_at_start: Duration,
    told_ns: u64,
    /// Unsampled time at the last check.
    seen_ns: u64,
    not_before: Instant,
}

impl Unsampled {
    /// Starts comparing when the process had used `process_at_start`.
    #[must_use]
    pub fn new(process_at_start: Duration) -> Unsampled {
        Unsampled {
            process_at_start,
            told_ns: 0,
            seen_ns: 0,
            not_before: Instant::now(),
        }
    }

    /// CPU time that could not be sampled since the last report, if it is enough to report. It may
    /// be left for later.
    ///
    /// A thread that has begun and is not registered yet is not unsampled: its first sample will
    /// stand for its whole life. So only time that is still unsampled at the next check is
    /// reported, or at the end.
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

    /// The same at the end, from the clocks when sampling ended: the CPU time that the process
    /// used while sampling was being ended, and the remaining unsampled time.
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

/// Divides unsampled time into the part that may have been used in the last `ending_ns` of CPU
/// time, and the part used before.
fn in_two(all_ns: u64, ending_ns: u64) -> (Option<u64>, Option<u64>) {
    let some = |ns: u64| (ns > 0).then_some(ns);
    let ending_ns = all_ns.min(ending_ns);
    (some(ending_ns), some(all_ns - ending_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_while_sampling_ends_is_reported_apart() {
        assert_eq!(in_two(0, 5), (None, None));
        assert_eq!(in_two(3, 5), (Some(3), None));
        assert_eq!(in_two(8, 5), (Some(5), Some(3)));
        assert_eq!(in_two(8, 0), (None, Some(8)));
    }

    #[test]
    fn unsampled_time_is_reported_once_without_noise() {
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
    fn late_found_thread_adds_no_unsampled_time() {
        let mut unsampled = Unsampled::new(Duration::ZERO);
        let mut look = |process, sampled, last| unsampled.new_part(process, sampled, last);
        // It has used 45 ms and is not registered.
        assert_eq!(look(100_000_000, 55_000_000, false), None);
        assert_eq!(look(150_000_000, 150_000_000, false), None);
        assert_eq!(look(160_000_000, 160_000_000, true), None);
    }
}
