//! A glance at the JVM's safepoints by somebody who is awake anyway: while the wall-clock sampler
//! has one at each tick, the watcher of safepoints sleeps until there is something to see.

use super::CALM_NS;
use dwell_signal::Live;
use dwell_walker::hotspot::safepoints::{Safepoints, State};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;

/// Ticks have a place by chance in each interval, so two may be twice as far apart as they are in
/// the mean: they are relied on if that is as often as the watcher would look.
const GAP_MAX_NS: u64 = 2 * CALM_NS;
/// A tick may come so late.
const SLACK_NS: u64 = 5_000_000;
/// The watcher sleeps at most so long.
pub const SLEEP_NS: u64 = 200_000_000;

/// Who is to be woken, and when it is not needed that it looks by itself.
#[derive(Debug, Default)]
pub struct Glance {
    watcher: OnceLock<Thread>,
    /// The last safepoint that it knows of.
    told: AtomicU64,
    /// Until when there will be another glance.
    until_ns: AtomicU64,
}

impl Glance {
    /// The calling thread watches, and knows all safepoints up to this one.
    pub fn watches(&self, told: u64) {
        self.told.store(told, Ordering::Relaxed);
        self.watcher.get_or_init(std::thread::current);
    }

    /// Whether somebody else will have looked by then, so that it can sleep.
    #[must_use]
    pub fn is_kept(&self, now_ns: u64) -> bool {
        now_ns < self.until_ns.load(Ordering::Relaxed)
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
        let until_ns = match next_ns <= GAP_MAX_NS {
            true => now_ns + next_ns + SLACK_NS,
            false => 0,
        };
        let before_ns = self.until_ns.swap(until_ns, Ordering::Relaxed);
        if !is_calm || until_ns == 0 && before_ns != 0 {
            watcher.unpark();
        }
    }
}
