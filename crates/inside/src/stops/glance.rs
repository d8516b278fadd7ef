//! A short check for safepoints by another thread that is awake anyway. While the wall-clock
//! sampler checks at each tick, the watcher of safepoints sleeps until there is a safepoint.

use dwell_signal::Live;
use dwell_walker::hotspot::safepoints::{Safepoints, State};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

/// Ticks are placed randomly in their intervals, so two may be twice the mean distance apart. The
/// watcher relies on them if they are as frequent as its own checks, ...
const GAP_PACES: u64 = 2;
/// ... or half as often where an alarm reports late safepoints, because waking the watcher costs as
/// much as a tick.
const GAP_PACES_ALARMED: u64 = 4;
/// Allowed delay of a tick.
const SLACK_NS: u64 = 5_000_000;
/// The watcher sleeps for this number of its own intervals, ...
const SLEEP_PACES: u64 = 10;
/// ... and for at most this time.
const SLEEP_MAX_NS: u64 = 1_000_000_000;

/// The watcher to wake, and the time until which it need not check itself.
#[derive(Debug, Default)]
pub struct Glance {
    watcher: OnceLock<Thread>,
    /// The last safepoint that the watcher knows.
    known_id: AtomicU64,
    /// Largest gap between checks that the watcher accepts.
    gap_ns: AtomicU64,
    /// Time until which another check is due.
    until_ns: AtomicU64,
}

impl Glance {
    /// Sets the watcher's state: its interval, the last safepoint that it knows, and whether an
    /// alarm can wake it. The calling thread is the watcher.
    pub fn watches(&self, known_id: u64, pace_ns: u64, is_alarmed: bool) {
        let paces = match is_alarmed {
            true => GAP_PACES_ALARMED,
            false => GAP_PACES,
        };
        self.known_id.store(known_id, Ordering::Relaxed);
        self.gap_ns
            .store(pace_ns.saturating_mul(paces), Ordering::Relaxed);
        self.watcher.get_or_init(std::thread::current);
    }

    /// How long the watcher can sleep, if its interval is `pace_ns`: longer if another thread
    /// checks before that.
    #[must_use]
    pub fn sleep_ns(&self, now_ns: u64, pace_ns: u64) -> u64 {
        match now_ns < self.until_ns.load(Ordering::Relaxed) {
            true => pace_ns.max(pace_ns.saturating_mul(SLEEP_PACES).min(SLEEP_MAX_NS)),
            false => pace_ns,
        }
    }

    /// Checks for a safepoint. Wakes the watcher if there is one, or if the next check, in
    /// `next_ns`, is too late for it.
    pub fn look(&self, live: &Live, found: &Safepoints, now_ns: u64, next_ns: u64) {
        let Some(watcher) = self.watcher.get() else {
            return;
        };
        let known_id = self.known_id.load(Ordering::Relaxed);
        let is_calm = found.state(live) == Ok(State::Running)
            && matches!(found.noted(live), Ok(Some(noted)) if noted.id == known_id);
        let until_ns = match next_ns <= self.gap_ns.load(Ordering::Relaxed) {
            true => now_ns + next_ns + SLACK_NS,
            false => 0,
        };
        let before_ns = self.until_ns.swap(until_ns, Ordering::Relaxed);
        if !is_calm || until_ns == 0 && before_ns != 0 {
            watcher.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watcher_sleeps_ten_intervals_but_at_most_a_second() {
        const MS: u64 = 1_000_000;
        let glance = Glance::default();
        assert_eq!(glance.sleep_ns(0, 20 * MS), 20 * MS, "no other checks");
        glance.until_ns.store(7, Ordering::Relaxed);
        let paces = [20, 100, 300, 2000].map(|ms| glance.sleep_ns(6, ms * MS) / MS);
        assert_eq!(paces, [200, 1000, 1000, 2000]);
        assert_eq!(glance.sleep_ns(7, 100 * MS), 100 * MS, "no longer");
    }

    #[test]
    fn checks_may_be_further_apart_with_an_alarm() {
        let glance = Glance::default();
        let gap = |is_alarmed| {
            glance.watches(3, 20, is_alarmed);
            glance.gap_ns.load(Ordering::Relaxed)
        };
        assert_eq!((gap(false), gap(true)), (40, 80));
    }
}
