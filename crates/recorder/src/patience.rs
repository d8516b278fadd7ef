//! How long a collection of garbage waits for the drainer.
//!
//! A collection may unload classes and free code while samples of that code are not walked yet.
//! The drainer is woken when a collection begins, but on a busy machine it comes late. If samples
//! were lost that way, the next collections wait for it: only briefly, and only for a small part
//! of the time. Programs that do not unload classes never wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One collection waits no longer.
const WAIT_MAX: Duration = Duration::from_millis(5);
/// All waits together take no more than one part in this many of the time.
const SHARE: u64 = 50;
/// And only for this long after a sample was lost.
const AFTER_LOSS_NS: u64 = 10_000_000_000;
/// A sample of this age was due long ago: the walking thread gets too little CPU time.
const LATE_NS: u64 = 25_000_000;

/// Samples lost, and time waited.
#[derive(Debug, Default)]
pub struct Patience {
    until_ns: AtomicU64,
    behind_until_ns: AtomicU64,
    waited_ns: AtomicU64,
}

impl Patience {
    /// A sample taken at `taken_ns` could not be walked or named because code or a method was
    /// freed.
    pub fn lost(&self, taken_ns: u64, now_ns: u64) {
        let until_ns = now_ns.saturating_add(AFTER_LOSS_NS);
        self.until_ns.store(until_ns, Ordering::Relaxed);
        if now_ns.saturating_sub(taken_ns) > LATE_NS {
            self.behind_until_ns.store(until_ns, Ordering::Relaxed);
        }
    }

    /// Whether samples are better walked where they are taken: not long ago one was lost that was
    /// drained far too late.
    #[must_use]
    pub fn behind(&self, now_ns: u64) -> bool {
        now_ns < self.behind_until_ns.load(Ordering::Relaxed)
    }

    /// Whether samples have been lost lately.
    #[must_use]
    pub fn losing(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns.load(Ordering::Relaxed)
    }

    /// How long a collection that begins now may wait, in a recording that is `elapsed_ns` old.
    #[must_use]
    pub fn allowed(&self, now_ns: u64, elapsed_ns: u64) -> Duration {
        let losing = self.losing(now_ns);
        let left_ns = (elapsed_ns / SHARE).saturating_sub(self.waited_ns());
        if losing {
            WAIT_MAX.min(Duration::from_nanos(left_ns))
        } else {
            Duration::ZERO
        }
    }

    /// A collection has waited.
    pub fn waited(&self, ns: u64) {
        self.waited_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// How long collections have waited so far.
    #[must_use]
    pub fn waited_ns(&self) -> u64 {
        self.waited_ns.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn collection_waits_only_after_recent_losses() {
        let patience = Patience::default();
        assert_eq!(patience.allowed(SECOND, SECOND), Duration::ZERO);
        patience.lost(SECOND, SECOND);
        assert_eq!(patience.allowed(2 * SECOND, SECOND), WAIT_MAX);
        assert_eq!(patience.allowed(12 * SECOND, 11 * SECOND), Duration::ZERO);
    }

    #[test]
    fn late_lost_samples_move_walks_for_a_while() {
        let patience = Patience::default();
        patience.lost(SECOND, SECOND + LATE_NS);
        assert!(patience.losing(SECOND + LATE_NS) && !patience.behind(SECOND + LATE_NS));
        patience.lost(SECOND, SECOND + LATE_NS + 1);
        assert!(patience.behind(10 * SECOND) && !patience.behind(12 * SECOND));
    }

    #[test]
    fn all_waits_together_are_a_small_part_of_the_time() {
        let patience = Patience::default();
        let (mut now_ns, mut waited) = (0, Duration::ZERO);
        // Collections without end. Each waits as long as it may.
        while now_ns < 20 * SECOND {
            patience.lost(now_ns, now_ns);
            let wait = patience.allowed(now_ns, now_ns);
            patience.waited(wait.as_nanos() as u64);
            waited += wait;
            now_ns += 100_000 + wait.as_nanos() as u64;
        }
        let share = waited.as_nanos() as f64 / now_ns as f64;
        assert!((0.019..=0.0201).contains(&share), "{share}");
    }
}
