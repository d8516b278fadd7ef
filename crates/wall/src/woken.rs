//! The part of a thread's waits for a processor that follow a wake-up: they belong to the place
//! where it waited before. The others follow a preemption and belong to the code that it ran.
//!
//! The kernel measures the sum only. But reads find a preempted thread running, as they cannot tell
//! it from one on a processor. So the time that they found it running, minus its CPU time, is the
//! time of its preemptions. Reads are at random moments, so both are only equal in the mean: a
//! difference is kept for the next accounts.

/// Differences above this are given up: reads also find a thread running that waits for a page.
const KEPT_NS: i64 = 1_000_000_000;

/// The balance of one thread.
#[derive(Clone, Debug, Default)]
pub struct Woken {
    /// Time of preemptions by reads that is not attributed yet, in ns.
    preempted_ns: i64,
}

impl Woken {
    /// The part after wake-ups of an account with `waited_ns` of waits and `ran_ns` of CPU time, in
    /// ns. Reads have found the thread running for `found_ns`.
    pub fn of(&mut self, waited_ns: u64, ran_ns: u64, found_ns: u64) -> u64 {
        let more_ns = found_ns.cast_signed() - ran_ns.cast_signed();
        let preempted_ns = (self.preempted_ns + more_ns).clamp(-KEPT_NS, KEPT_NS);
        let now_ns = preempted_ns.clamp(0, waited_ns.cast_signed());
        self.preempted_ns = preempted_ns - now_ns;
        waited_ns - now_ns.cast_unsigned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The parts after wake-ups of accounts with the same waits and CPU time, by what reads found.
    fn parts<const N: usize>(waited_ms: u64, ran_ms: u64, found_ms: [u64; N]) -> [u64; N] {
        let mut woken = Woken::default();
        found_ms.map(|found_ms| woken.of(waited_ms * MS, ran_ms * MS, found_ms * MS) / MS)
    }

    #[test]
    fn time_found_running_beyond_cpu_time_is_preempted() {
        assert_eq!(parts(10, 30, [30, 34, 40]), [10, 6, 0]);
        // A thread that does not run when it is read only waits after wake-ups.
        assert_eq!(parts(10, 3, [0, 0, 0]), [10, 10, 10]);
    }

    #[test]
    fn differences_by_chance_are_made_up_for() {
        // 200 ms of preemptions in five accounts, of which reads found some too early or too late.
        let sum: u64 = parts(100, 100, [200, 100, 260, 0, 140]).iter().sum();
        assert_eq!(sum, 5 * 100 - 200);
        assert_eq!(parts(10, 10, [40, 10, 10, 10]), [0, 0, 0, 10]);
    }

    #[test]
    fn large_difference_is_given_up() {
        let mut woken = Woken::default();
        assert_eq!(woken.of(0, 0, 5000 * MS), 0);
        assert_eq!(woken.of(3000 * MS, 0, 0), 2000 * MS);
        assert_eq!(woken.of(0, 5000 * MS, 0), 0);
        assert_eq!(woken.of(10 * MS, 0, 1005 * MS), 5 * MS);
    }
}
