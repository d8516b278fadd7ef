//! The part of a thread's waits for a processor that follow a wake-up: they belong to the place
//! where it waited before. The others follow a preemption and belong to the code that it ran.
//!
//! The kernel measures the sum only. Reads that find the thread ready show the parts. Where no read
//! asks for that, they find a preempted thread running, as they cannot tell it from one on a
//! processor. Then the time that they found it running, minus its CPU time, is the time of its
//! preemptions. Reads are at random moments, so both are only equal in the mean: a difference is
//! kept for the next accounts.

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

/// Numbers of reads that found threads ready: woken, or preempted. Where such reads are made, they
/// show the two parts better than the time found running. The sampler itself waits for a processor,
/// often until a thread begins to wait, so it finds too few threads on one.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadyReads {
    woken: f32,
    preempted: f32,
}

impl ReadyReads {
    /// Adds reads. Of a thread's, the last `most` or so count.
    pub fn add(&mut self, woken: u32, preempted: u32, most: f32) {
        self.woken += woken as f32;
        self.preempted += preempted as f32;
        if self.sum() > most {
            self.woken /= 2.0;
            self.preempted /= 2.0;
        }
    }

    fn sum(&self) -> f32 {
        self.woken + self.preempted
    }

    /// The part of a thread's waits for a processor that follow wake-ups. Where the thread has few
    /// reads, those of `all` threads count. `None` without any read.
    #[must_use]
    pub fn woken_part(&self, all: &ReadyReads) -> Option<f32> {
        /// All threads together count as so many reads of this one.
        const OTHERS: f32 = 4.0;
        let part_of_all = (all.sum() > 0.0).then(|| all.woken / all.sum())?;
        Some((self.woken + OTHERS * part_of_all) / (self.sum() + OTHERS))
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
    fn reads_of_ready_threads_show_the_parts() {
        let (mut own, mut all) = (ReadyReads::default(), ReadyReads::default());
        assert_eq!(own.woken_part(&all), None);
        all.add(30, 10, 1e3);
        assert_eq!(own.woken_part(&all), Some(0.75));
        own.add(0, 4, 1e3);
        assert_eq!(own.woken_part(&all), Some(0.375));
        // Old reads count less and less.
        (0..40).for_each(|_| own.add(2, 0, 20.0));
        assert!(own.woken_part(&all).is_some_and(|part| part > 0.9));
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
