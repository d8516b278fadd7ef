//! A glance at the JVM's safepoints by somebody who is awake anyway: while the wall-clock sampler
//! has one at each tick, the watcher of safepoints sleeps until there is something to see.

use dwell_signal::Live;
use dwell_walker::hotspot::safepoints::{Safepoints, State};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

/// Ticks have a place by chance in each interval, so two may be twice as far apart as they are in
/// the mean: they are relied on if that is as often as the watcher would look, ...
const GAP_PACES: u64 = 2;
/// ... or half as often where an alarm tells of what is late: waking the watcher costs as much as a
/// tick.
const GAP_PACES_ALARMED: u64 = 4;
/// A tick may come so late.
const SLACK_NS: u64 = 5_000_000;
/// The watcher sleeps for so many of the times after which it would look, ...
const SLEEP_PACES: u64 = 10;
/// ... and at most so long.
const SLEEP_MAX_NS: u64 = 1_000_000_000;

/// Who is to be woken, and when it is not needed that it looks by itself.
#[derive(Debug, Default)]
pub struct Glance {
    watcher: OnceLock<Thread>,
    /// The last safepoint that it knows of.
    told: AtomicU64,
    /// Glances that are so far apart do not do.
    gap_ns: AtomicU64,
    /// Until when there will be another glance.
    until_ns: AtomicU64,
}

impl Glance {
    /// The calling thread watches, would look so often, and knows all safepoints up to this one;
    /// whether an alarm would wake it.
    pub fn watches(&self, told: u64, pace_ns: u64, is_alarmed: bool) {
        let paces = match is_alarmed {
            true => GAP_PACES_ALARMED,
            false => GAP_PACES,
        };
        self.told.store(told, Ordering::Relaxed);
        self.gap_ns
            .store(pace_ns.saturating_mul(paces), Ordering::Relaxed);
        self.watcher.get_or_init(std::thread::current);
    }

    /// How long one can sleep who would look in `pace_ns`: longer if somebody else will have looked
    /// by then.
    #[must_use]
    pub fn sleep_ns(&self, now_ns: u64, pace_ns: u64) -> u64 {
        match now_ns < self.until_ns.load(Ordering::Relaxed) {
            true => pace_ns.max(pace_ns.saturating_mul(SLEEP_PACES).min(SLEEP_MAX_NS)),
            false => pace_ns,
        }
    }

    /// Wakes the watcher if there is something to see, or the next glance, in `next_ns`, will be
    /// later than it relies on.
    pub fn look(&self, live: &Live, found: &Safepoints, now_ns: u64, next_ns: u64) {
        let Some(watcher) = self.watcher.get() else {
            return;
        };
        let told = self.told.load(Ordering::Relaxed);
        let is_calm = found.state(live) == Ok(State::Running)
            && matches!(found.noted(live), Ok(Some(noted)) if noted.id == told);
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
    fn who_is_kept_sleeps_ten_times_as_long_and_a_second_at_most() {
        const MS: u64 = 1_000_000;
        let glance = Glance::default();
        assert_eq!(glance.sleep_ns(0, 20 * MS), 20 * MS, "nobody else looks");
        glance.until_ns.store(7, Ordering::Relaxed);
        let paces = [20, 100, 300, 2000].map(|ms| glance.sleep_ns(6, ms * MS) / MS);
        assert_eq!(paces, [200, 1000, 1000, 2000]);
        assert_eq!(glance.sleep_ns(7, 100 * MS), 100 * MS, "nobody any more");
    }

    #[test]
    fn glances_may_be_further_apart_where_an_alarm_tells_of_what_is_late() {
        let glance = Glance::default();
        let gap = |is_alarmed| {
            glance.watches(3, 20, is_alarmed);
            glance.gap_ns.load(Ordering::Relaxed)
        };
        assert_eq!((gap(false), gap(true)), (40, 80));
    }
}
