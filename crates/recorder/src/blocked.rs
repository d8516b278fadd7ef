//! Waits for monitors: which of them are sampled, their weight, and the number of all waits.
//! Nothing here is called in a handler.

use std::sync::atomic::{AtomicU64, Ordering};

/// The minimum duration of a wait to be sampled, in nanoseconds from 1 to `interval_ns`, each
/// equally likely. `draw` is any number, all of them equally likely. So a wait is sampled with a
/// chance in proportion to its duration, and always if it lasts for an interval or longer.
#[must_use]
pub fn threshold(draw: u64, interval_ns: u64) -> u64 {
    let place = (u128::from(draw) * u128::from(interval_ns)) >> 64;
    place as u64 + 1
}

/// The time in waits that a sampled wait of `duration_ns` stands for. It was sampled with a chance
/// of `p = min(1, duration / interval)`, so that is `duration / p`.
#[must_use]
pub fn weight(duration_ns: u64, interval_ns: u64) -> u64 {
    duration_ns.max(interval_ns)
}

/// The next of a thread's random numbers, and the state behind it (splitmix64).
#[must_use]
pub fn draw(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31), state)
}

/// All waits for monitors since the recording began, sampled or not.
#[derive(Debug, Default)]
pub struct Blocked {
    waits: AtomicU64,
    ns: AtomicU64,
    untold: AtomicU64,
}

impl Blocked {
    /// A recording begins.
    pub fn begin(&self) {
        self.waits.store(0, Ordering::Relaxed);
        self.ns.store(0, Ordering::Relaxed);
        self.untold.store(0, Ordering::Relaxed);
    }

    /// A wait is over.
    pub fn add(&self, duration_ns: u64) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(duration_ns, Ordering::Relaxed);
    }

    /// Counts a wait whose begin could not be noted: its duration is not known.
    pub fn add_untold(&self) {
        self.untold.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of waits that are missing for that reason.
    #[must_use]
    pub fn untold(&self) -> u64 {
        self.untold.load(Ordering::Relaxed)
    }

    /// Their number, and their total duration in nanoseconds.
    #[must_use]
    pub fn sums(&self) -> (u64, u64) {
        let load = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
        (load(&self.waits), load(&self.ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over all possible thresholds, a wait's mean weight is exactly its duration.
    #[test]
    fn weights_are_durations_in_the_mean() {
        const INTERVAL: u64 = 1000;
        for duration in [0, 1, 20, 999, 1000, 1001, 200_000] {
            let mut sum = 0;
            for place in 0..INTERVAL {
                // The middle of the draws that lead to this threshold.
                let drawn = ((u128::from(place) << 64) + (1 << 63)) / u128::from(INTERVAL);
                let threshold = threshold(drawn as u64, INTERVAL);
                assert_eq!(threshold, place + 1);
                if duration >= threshold {
                    sum += weight(duration, INTERVAL);
                }
            }
            assert_eq!(sum, duration * INTERVAL, "{duration}");
        }
    }

    #[test]
    fn thresholds_stay_in_their_bounds() {
        assert_eq!(threshold(0, 1_000_000), 1);
        assert_eq!(threshold(u64::MAX, 1_000_000), 1_000_000);
        assert_eq!(threshold(u64::MAX, 1), 1);
        assert_eq!(threshold(u64::MAX, u64::MAX), u64::MAX);
    }

    /// The generator of any thread fills the range evenly. None of 64 parts is off by more than 7
    /// standard deviations, which chance alone does once in 10^10 for any seed; these are fixed.
    #[test]
    fn draws_are_even_for_any_seed() {
        for seed in [0, 1, 0x7f00_dead_b000, u64::MAX] {
            let (mut state, mut parts) = (seed, [0u32; 64]);
            for _ in 0..64_000 {
                let (number, next) = draw(state);
                state = next;
                parts[(number >> 58) as usize] += 1;
            }
            let off = parts.iter().map(|n| n.abs_diff(1000)).max();
            assert!(off < Some(7 * 32), "{seed}: {parts:?}");
        }
    }

    #[test]
    fn all_waits_are_counted_from_the_begin_on() {
        let blocked = Blocked::default();
        blocked.add(20);
        blocked.add(7);
        blocked.add_untold();
        assert_eq!((blocked.sums(), blocked.untold()), ((2, 27), 1));
        blocked.begin();
        assert_eq!((blocked.sums(), blocked.untold()), ((0, 0), 0));
    }
}
