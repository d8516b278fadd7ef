//! The CPU time of the runtime's callbacks when a thread begins or ends: a part of dwell's cost
//! that no thread of dwell has. A thread's CPU clock takes a system call to read, twice for each
//! callback. So a random part of the callbacks is measured and stands for all.

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
        let before_ns = clock_ns();
        work();
        let took_ns = clock_ns().saturating_sub(before_ns);
        self.cpu_ns
            .fetch_add(took_ns * u64::from(MEASURED), Ordering::Relaxed);
    }

    /// The estimated CPU time of all callbacks so far.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn counted_part_stands_for_all_kinds_of_callbacks() {
        const ROUNDS: u64 = 10_000;
        let callbacks = Callbacks::default();
        let (now_ns, reads) = (Cell::new(0_u64), Cell::new(0_u64));
        let clock_ns = || {
            reads.set(reads.get() + 1);
            now_ns.get()
        };
        for _ in 0..ROUNDS {
            for took_ns in [9000, 1000] {
                callbacks.run_on(|| now_ns.set(now_ns.get() + took_ns), clock_ns);
            }
        }
        let truth_ns = ROUNDS * 10_000;
        assert_eq!(now_ns.get(), truth_ns, "each callback ran once");
        let measured = reads.get() / 2;
        let expected = 2 * ROUNDS / u64::from(MEASURED);
        assert!(measured.abs_diff(expected) < expected / 8, "{measured}");
        let error_ns = callbacks.cpu_ns().abs_diff(truth_ns);
        assert!(error_ns < truth_ns / 10, "{error_ns} of {truth_ns} ns");
    }
}
