//! The CPU time of the runtime's callbacks when a thread begins or ends: a part of dwell's cost
//! that no thread of dwell has. To read a thread's CPU clock takes a system call, which is as long
//! as a callback. So a random part of the callbacks is measured and stands for all, without the time
//! that a read of the clock takes.

use crate::alive::key;
use crate::sys::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// One callback in so many is measured.
const MEASURED: u32 = 16;

/// The sum of all callbacks.
#[derive(Debug, Default)]
pub struct Callbacks {
    count: AtomicU64,
    cpu_ns: AtomicU64,
}

impl Callbacks {
    /// Runs `work`, a callback.
    pub fn run(&self, work: impl FnOnce()) {
        self.run_on(work, || process::own_cpu().as_nanos() as u64);
    }

    fn run_on(&self, work: impl FnOnce(), clock_ns: impl Fn() -> u64) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        // Callbacks alternate, so each 16th one would always be of the same kind.
        if key(number) > u32::MAX / MEASURED {
            work();
            return;
        }
        let first_ns = clock_ns();
        let before_ns = clock_ns();
        work();
        let both_ns = clock_ns().wrapping_sub(before_ns);
        // Negative if the first read was the longer one: both kinds of error have to count.
        let took_ns = both_ns.wrapping_sub(before_ns.wrapping_sub(first_ns));
        self.cpu_ns
            .fetch_add(took_ns.wrapping_mul(u64::from(MEASURED)), Ordering::Relaxed);
    }

    /// The estimated CPU time of all callbacks so far.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed).cast_signed().max(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const ROUNDS: u64 = 10_000;

    /// The estimated time of callbacks of 9 and 1 us and the number of reads, if the n-th read of
    /// the clock takes `read_ns(n)`.
    fn counted(read_ns: impl Fn(u64) -> u64) -> (u64, u64) {
        let callbacks = Callbacks::default();
        let (now_ns, reads) = (Cell::new(0_u64), Cell::new(0_u64));
        let ran = Cell::new(0_u64);
        let clock_ns = || {
            let half_ns = read_ns(reads.get()) / 2;
            reads.set(reads.get() + 1);
            now_ns.set(now_ns.get() + 2 * half_ns);
            now_ns.get() - half_ns
        };
        for _ in 0..ROUNDS {
            for took_ns in [9000, 1000] {
                let work = || {
                    ran.set(ran.get() + 1);
                    now_ns.set(now_ns.get() + took_ns);
                };
                callbacks.run_on(work, clock_ns);
            }
        }
        assert_eq!(ran.get(), 2 * ROUNDS, "each callback ran once");
        (callbacks.cpu_ns(), reads.get())
    }

    #[test]
    fn counted_part_stands_for_all_kinds_of_callbacks() {
        let (counted_ns, reads) = counted(|_| 0);
        let truth_ns = ROUNDS * 10_000;
        let (measured, expected) = (reads / 3, 2 * ROUNDS / u64::from(MEASURED));
        assert!(measured.abs_diff(expected) < expected / 8, "{measured}");
        let error_ns = counted_ns.abs_diff(truth_ns);
        assert!(error_ns < truth_ns / 10, "{error_ns} of {truth_ns} ns");
    }

    #[test]
    fn reads_of_the_clock_are_not_counted() {
        let (without_ns, _) = counted(|_| 0);
        assert_eq!(counted(|_| 5000).0, without_ns);
        // Of the three reads of a callback one takes longer.
        for longer in 0..3 {
            let read_ns = |read| 400 + 600 * u64::from(read % 3 == longer);
            let (counted_ns, reads) = counted(read_ns);
            let error_ns = [-300, 0, 300][longer as usize] * i64::from(MEASURED);
            let expected_ns = without_ns as i64 + error_ns * (reads / 3) as i64;
            assert_eq!(counted_ns as i64, expected_ns);
        }
    }

    #[test]
    fn more_reads_than_work_count_as_none() {
        let callbacks = Callbacks::default();
        let times_ns = Cell::new([0_u64, 500, 600].into_iter());
        for _ in 0..1000 {
            let clock_ns = || {
                let mut left = times_ns.take();
                let now_ns = left.next().expect("three reads");
                times_ns.set(if left.len() == 0 {
                    [0, 500, 600].into_iter()
                } else {
                    left
                });
                now_ns
            };
            callbacks.run_on(|| (), clock_ns);
        }
        assert_eq!(callbacks.cpu_ns(), 0);
    }
}
