//! A sampling interval that adapts to the rate of allocation. Pure.
//!
//! The runtime's sampler puts a point into each thread's stream of allocated bytes. When the
//! thread has met a point, the sampler draws the distance to the next one around the interval of
//! that moment. An interval that is set in between counts from the thread's next point on. The
//! distance is exponential, and an exponential distance has no memory. After any allocations, the
//! next object of size s meets the point with a chance of `1 - exp(-s / interval)`, where the
//! interval is the one with which this thread's distance was drawn. That interval is known before
//! the object is allocated. So a weight by it is right in the mean for each object, given all
//! earlier ones. Sums are right in the mean for any choice of an interval from earlier samples
//! (each object's error is a step of a martingale). A weight by the interval of the moment would
//! be wrong: a thread that has waited for a distant point would stand for little.
//!
//! One inaccuracy is left. If the interval is set while a thread is between its draw and its
//! callback, the thread draws with one interval and is weighted with the other. That is one object
//! for each such thread. Intervals change no more than once in a second, unless far too many
//! samples arrive.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The smallest adaptive interval of objects, in bytes.
pub const LEAST: u64 = 4 << 10;
/// The largest one.
pub const MOST: u64 = 64 << 20;

/// Time between two checks of the interval, ...
const WINDOW: Duration = Duration::from_secs(1);
/// ... which ends early when this multiple of the wanted number of samples has been taken.
const TOO_MANY: u64 = 4;
/// With a maximum: as soon as the samples of a window have been taken. If they were in the window
/// before, the check comes after this part of them, until the flood is over.
const FLOOD: u64 = 4;
/// The interval is made smaller again if fewer than this part of the maximum arrived, ...
const CALM: f64 = 0.35;
/// ... so that no more than this part is used.
const HALF_FULL: f64 = 0.7;
/// If a sample found no slot, the interval is doubled, but no more often than this.
const SCARCE: Duration = Duration::from_millis(5);

/// How many samples are wanted in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// About this many: half to twice.
    About(u64),
    /// No more than this many.
    AtMost(u64),
}

/// Finds intervals.
#[derive(Clone, Debug)]
pub struct Rate {
    wanted: Wanted,
    /// The least and the largest interval.
    bounds: (u64, u64),
    interval: u64,
    since_ns: u64,
    samples: u64,
    /// The window before ended before its time.
    is_flooded: bool,
    /// When the interval was last doubled for want of slots.
    scarce_ns: u64,
}

impl Rate {
    fn new(wanted: Wanted, bounds: (u64, u64), interval: u64, now_ns: u64) -> Rate {
        Rate {
            wanted,
            bounds,
            interval,
            since_ns: now_ns,
            samples: 0,
            is_flooded: false,
            scarce_ns: 0,
        }
    }

    /// Aims at this many samples of objects in a second from now on; begins with `interval`, in
    /// bytes.
    #[must_use]
    pub fn about(per_s: u64, interval: u64, now_ns: u64) -> Rate {
        Rate::new(Wanted::About(per_s.max(1)), (LEAST, MOST), interval, now_ns)
    }

    /// Limits samples to about this many in a second from now on. The given interval is the
    /// smallest one, and `most` the largest, in the same unit.
    #[must_use]
    pub fn at_most(per_s: u64, interval: u64, most: u64, now_ns: u64) -> Rate {
        let bounds = (interval, most.max(interval));
        Rate::new(Wanted::AtMost(per_s.max(1)), bounds, interval, now_ns)
    }

    /// The interval.
    #[must_use]
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// The interval could not be set: this one is in force.
    pub fn stays(&mut self, interval: u64) {
        self.interval = interval;
    }

    /// The number of samples after which a window ends early.
    fn limit(&self) -> u64 {
        match self.wanted {
            Wanted::About(per_s) => per_s.saturating_mul(TOO_MANY),
            Wanted::AtMost(per_s) if self.is_flooded => (per_s / FLOOD).max(1),
            Wanted::AtMost(per_s) => per_s,
        }
    }

    /// End of the window, if no samples end it earlier.
    fn until_ns(&self) -> u64 {
        self.since_ns.saturating_add(WINDOW.as_nanos() as u64)
    }

    /// Adds samples. Returns the interval that is to be set now, if it changes: the old one times
    /// a power of two.
    pub fn sampled(&mut self, count: u64, now_ns: u64) -> Option<u64> {
        self.samples += count;
        let is_over = now_ns >= self.until_ns();
        if !is_over && self.samples < self.limit() {
            return None;
        }
        let passed_ns = now_ns.saturating_sub(self.since_ns).max(1);
        let seconds = passed_ns as f64 / WINDOW.as_nanos() as f64;
        let ratio = |per_s: u64| self.samples as f64 / (per_s as f64 * seconds);
        let steps = match self.wanted {
            // Towards the present interval: it is not changed for small differences.
            Wanted::About(per_s) => ratio(per_s).log2().trunc(),
            Wanted::AtMost(per_s) => match ratio(per_s) {
                more if more > 1.0 => more.log2().ceil(),
                less if less < CALM => (less / HALF_FULL).log2().ceil(),
                _ => 0.0,
            },
        };
        (self.since_ns, self.samples) = (now_ns, 0);
        self.is_flooded = !is_over;
        self.set(self.interval as f64 * steps.exp2())
    }

    /// A sample found no slot: samples arrive faster than they are drained. Returns the interval
    /// that is to be set now, if it changes.
    pub fn scarce(&mut self, now_ns: u64) -> Option<u64> {
        let since_ns = now_ns.saturating_sub(self.scarce_ns);
        if since_ns < SCARCE.as_nanos() as u64 || matches!(self.wanted, Wanted::About(_)) {
            return None;
        }
        self.scarce_ns = now_ns;
        (self.since_ns, self.samples) = (now_ns, 0);
        self.set(self.interval as f64 * 2.0)
    }

    fn set(&mut self, wanted: f64) -> Option<u64> {
        let (least, most) = self.bounds;
        // Not `f64::clamp`: its panic would bring 12 KB of code that writes numbers.
        let interval = (wanted as u64).clamp(least, most);
        (std::mem::replace(&mut self.interval, interval) != interval).then_some(interval)
    }
}

/// A [`Rate`] for many threads that never wait: counting takes no lock.
#[derive(Debug)]
pub struct Shared {
    /// Samples since the last check.
    samples: AtomicU64,
    /// The number of samples that triggers a check, ...
    limit: AtomicU64,
    /// ... or from this time on.
    until_ns: AtomicU64,
    rate: Mutex<Option<Rate>>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared::fixed()
    }
}

impl Shared {
    /// A rate whose interval is constant.
    #[must_use]
    pub const fn fixed() -> Shared {
        Shared {
            samples: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            until_ns: AtomicU64::new(u64::MAX),
            rate: Mutex::new(None),
        }
    }

    /// The interval adapts with this rate from now on; `None`: it is fixed.
    pub fn begin(&self, rate: Option<Rate>) {
        let mut inner = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        self.samples.store(0, Ordering::Relaxed);
        self.show(rate.as_ref());
        *inner = rate;
    }

    fn show(&self, rate: Option<&Rate>) {
        let limit = rate.map_or(u64::MAX, Rate::limit);
        let until_ns = rate.map_or(u64::MAX, Rate::until_ns);
        self.limit.store(limit, Ordering::Relaxed);
        self.until_ns.store(until_ns, Ordering::Relaxed);
    }

    /// Adds a sample. If the interval changes, `set` is called with the new one, and returns
    /// whether it was set.
    pub fn sampled(&self, now_ns: u64, set: impl FnOnce(u64) -> bool) {
        let samples = self.samples.fetch_add(1, Ordering::Relaxed) + 1;
        if samples >= self.limit.load(Ordering::Relaxed)
            || now_ns >= self.until_ns.load(Ordering::Relaxed)
        {
            self.look(now_ns, set);
        }
    }

    /// Adds an event without a sample: like [`Shared::sampled`].
    pub fn passed(&self, now_ns: u64, set: impl FnOnce(u64) -> bool) {
        if now_ns >= self.until_ns.load(Ordering::Relaxed) {
            self.look(now_ns, set);
        }
    }

    /// A sample found no slot: as [`Shared::sampled`].
    pub fn scarce(&self, now_ns: u64, set: impl FnOnce(u64) -> bool) {
        self.change(set, |rate, samples| {
            rate.samples += samples;
            rate.scarce(now_ns)
        });
    }

    fn look(&self, now_ns: u64, set: impl FnOnce(u64) -> bool) {
        self.change(set, |rate, samples| rate.sampled(samples, now_ns));
    }

    fn change(
        &self,
        set: impl FnOnce(u64) -> bool,
        find: impl FnOnce(&mut Rate, u64) -> Option<u64>,
    ) {
        // Another thread is at work: samples counted now are included next time.
        let Ok(mut inner) = self.rate.try_lock() else {
            return;
        };
        let Some(rate) = inner.as_mut() else { return };
        let before = rate.interval();
        let found = find(rate, self.samples.swap(0, Ordering::Relaxed));
        if let Some(interval) = found
            && !set(interval)
        {
            rate.stays(before);
        }
        self.show(Some(rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocated::weight;
    use crate::blocked::draw;

    const SECOND: u64 = 1_000_000_000;
    const FIRST: u64 = 512 << 10;

    /// HotSpot 17 and later do this for a thread (`ThreadHeapSampler`): a counter of bytes, drawn
    /// again with the interval of that moment.
    struct ModelThread {
        left: f64,
        /// The interval with which that was drawn.
        drawn: u64,
        random: u64,
    }

    impl ModelThread {
        fn new(random: u64) -> ModelThread {
            let mut thread = ModelThread {
                left: 0.0,
                drawn: 0,
                random,
            };
            thread.pick(FIRST);
            thread
        }

        fn pick(&mut self, interval: u64) {
            let (number, state) = draw(self.random);
            self.random = state;
            let even = ((number >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            (self.left, self.drawn) = (-even.ln() * interval as f64, interval);
        }

        fn meets(&mut self, size: u64) -> bool {
            let size = size as f64;
            let meets = size >= self.left;
            self.left -= size;
            meets
        }
    }

    /// Results of a phase: errors of the sum, and their variance, with weights by the drawn
    /// interval; and the error with weights by the interval of the moment.
    #[derive(Clone, Copy, Default)]
    struct Sums {
        error: f64,
        variance: f64,
        by_moment: f64,
        bytes: f64,
        changes: u32,
    }

    /// Bytes in a second, the duration, and the silence before it.
    const PHASES: [(u64, u64, u64); 3] = [(200 << 20, 2, 0), (2 << 20, 8, 30), (100 << 20, 2, 0)];

    /// A process of many threads that goes through the phases, with objects of all sizes.
    fn run(seed: u64, sums: &mut [Sums; 3]) {
        const SIZES: [u64; 4] = [1 << 10, 16 << 10, 100_000, 300_000];
        let mut rate = Rate::about(50, FIRST, 0);
        let mut threads: Vec<_> = (0..12).map(|n| ModelThread::new(seed * 31 + n)).collect();
        let (mut now_ns, mut number) = (0u64, 0usize);
        for ((bytes_per_s, seconds, silent), sums) in PHASES.into_iter().zip(sums) {
            now_ns += silent * SECOND;
            let end_ns = now_ns + seconds * SECOND;
            while now_ns < end_ns {
                number += 1;
                let size = SIZES[(number * 5 + number / 3) % SIZES.len()];
                now_ns += size * SECOND / bytes_per_s;
                let who = number % threads.len();
                let thread = &mut threads[who];
                let p = -(-(size as f64) / thread.drawn as f64).exp_m1();
                sums.variance += (size as f64).powi(2) * (1.0 - p) / p;
                sums.bytes += size as f64;
                sums.error -= size as f64;
                sums.by_moment -= size as f64;
                if thread.meets(size) {
                    sums.error += weight(size, thread.drawn) as f64;
                    sums.by_moment += weight(size, rate.interval()) as f64;
                    // Drawn before the callback in which the interval is set.
                    thread.pick(rate.interval());
                    sums.changes += u32::from(rate.sampled(1, now_ns).is_some());
                }
            }
        }
    }

    /// Sums are right in the mean while the interval changes. Over 200 runs the error of each
    /// phase is within 5 standard deviations, and each of these is below 3 % of its bytes; the
    /// seeds are fixed. With weights by the interval of the moment the slow phase is off by almost
    /// half.
    #[test]
    fn weights_by_the_drawn_interval_are_right_while_it_adapts() {
        let mut all = [Sums::default(); 3];
        for seed in 1..=200 {
            run(seed, &mut all);
        }
        for sums in &all {
            let sd = sums.variance.sqrt();
            let parts = [sums.error, sd, sums.by_moment].map(|bytes| bytes / sums.bytes);
            println!(
                "{} changes; error, sd, by the moment: {parts:.5?}",
                sums.changes
            );
            assert!(sums.changes >= 200);
            assert!(parts[1] < 0.03);
            assert!(sums.error.abs() < 5.0 * sd, "{} sd", sums.error / sd);
        }
        let slow = all[1];
        assert!(
            slow.by_moment.abs() > 5.0 * slow.variance.sqrt(),
            "it must see wrong weights"
        );
    }

    /// Samples at equal distances, as many as an interval gives for this many bytes in a second.
    fn settle(rate: &mut Rate, bytes_per_s: u64, from_ns: u64, seconds: u64) -> u64 {
        let (mut now_ns, mut samples) = (from_ns, 0);
        loop {
            let distance_ns = u128::from(rate.interval()) * u128::from(SECOND);
            now_ns += (distance_ns / u128::from(bytes_per_s)) as u64;
            if now_ns > from_ns + seconds * SECOND {
                return samples;
            }
            samples += 1;
            rate.sampled(1, now_ns);
        }
    }

    #[test]
    fn samples_come_half_to_twice_as_often_as_is_wanted() {
        for bytes_per_s in [10 << 20, 300 << 20, 5 << 30] {
            let mut rate = Rate::about(200, FIRST, 0);
            settle(&mut rate, bytes_per_s, 0, 10);
            let samples = settle(&mut rate, bytes_per_s, 10 * SECOND, 10);
            assert!((1000..=4000).contains(&samples), "{bytes_per_s}: {samples}");
        }
    }

    #[test]
    fn burst_raises_interval_within_a_second() {
        let mut rate = Rate::about(200, FIRST, 0);
        settle(&mut rate, 2 << 20, 0, 10);
        assert!(rate.interval() <= 16 << 10);
        // 8 GiB/s at that interval are half a million samples in a second.
        let samples = settle(&mut rate, 8 << 30, 10 * SECOND, 1);
        assert!(samples < 2000, "{samples}");
        assert!(rate.interval() >= 16 << 20);
    }

    #[test]
    fn after_a_silence_the_interval_becomes_small() {
        let mut rate = Rate::about(200, FIRST, 0);
        settle(&mut rate, 8 << 30, 0, 5);
        assert!(rate.interval() >= 32 << 20);
        // Events before the silence count for this one, but not for the next.
        rate.sampled(1, 65 * SECOND);
        assert!(rate.interval() <= 2 << 20, "{}", rate.interval());
        rate.sampled(1, 125 * SECOND);
        assert_eq!(rate.interval(), LEAST);
    }

    #[test]
    fn interval_stays_in_bounds_and_ignores_small_changes() {
        let mut rate = Rate::about(1, FIRST, 0);
        for n in 0..1000 {
            rate.sampled(1, n);
        }
        assert_eq!(rate.interval(), MOST);
        let mut rate = Rate::about(100, FIRST, 0);
        for n in 1..=190 {
            let changed = rate.sampled(1, n * SECOND / 190);
            assert_eq!(changed, None, "fewer than twice as many as are wanted");
        }
        assert_eq!(
            rate.sampled(1, 2 * SECOND),
            Some(FIRST >> 6),
            "one in a second for 100"
        );
        assert_eq!(rate.sampled(1, 200 * SECOND), Some(LEAST));
    }

    /// Samples in each of several seconds, at a constant number of bytes a second.
    fn by_second(rate: &mut Rate, bytes_per_s: u64, from_s: u64, seconds: u64) -> Vec<u64> {
        let each = from_s..from_s + seconds;
        each.map(|second| settle(rate, bytes_per_s, second * SECOND, 1))
            .collect()
    }

    #[test]
    fn a_ceiling_changes_nothing_below_it() {
        let mut rate = Rate::at_most(1000, FIRST, MOST, 0);
        let samples = by_second(&mut rate, 450 << 20, 0, 10);
        assert!(samples.iter().all(|it| (890..=900).contains(it)));
        assert_eq!(rate.interval(), FIRST);
    }

    #[test]
    fn above_a_ceiling_the_interval_grows_at_once_and_shrinks_again() {
        let mut rate = Rate::at_most(1000, FIRST, MOST, 0);
        // 10,000 samples in a second, at the requested interval.
        let samples = by_second(&mut rate, 5 << 30, 0, 10);
        assert!(samples.iter().all(|it| *it <= 2000), "{samples:?}");
        assert!(
            (3000..=10_000).contains(&samples.iter().sum::<u64>()),
            "{samples:?}"
        );
        assert!((8 << 20..=32 << 20).contains(&rate.interval()));
        // Twice within the maximum, and then far below it.
        let samples = by_second(&mut rate, 1 << 30, 10, 10);
        assert!(samples.iter().all(|it| *it <= 1000), "{samples:?}");
        assert_eq!(rate.interval(), 4 * FIRST);
        by_second(&mut rate, 100 << 20, 20, 4);
        assert_eq!(rate.interval(), FIRST);
    }

    #[test]
    fn missing_slots_raise_interval_step_by_step() {
        let (ms, us) = (1_000_000, 1000);
        let mut rate = Rate::at_most(1000, 1000, 64_000, 0);
        let found = [10 * ms, 11 * ms, 12 * ms, 16 * ms].map(|at| rate.scarce(at));
        assert_eq!(found, [Some(2000), None, None, Some(4000)]);
        for at in 20..1000 {
            rate.scarce(at * ms);
        }
        assert_eq!(rate.interval(), 64_000);
        // It is as before when the flood is over.
        rate.sampled(1, 1000 * ms + 999 * ms);
        assert_eq!(rate.interval(), 1000);
        let mut rate = Rate::about(1000, FIRST, 0);
        assert_eq!(
            rate.scarce(10 * ms + us),
            None,
            "its interval is for another end"
        );
    }

    #[test]
    fn many_threads_share_an_interval() {
        let shared = Shared::fixed();
        for n in 0..10_000 {
            shared.sampled(n, |_| panic!("it is fixed"));
        }
        shared.begin(Some(Rate::at_most(100, 1000, 1 << 20, 0)));
        let found = std::cell::Cell::new(1000);
        let set = |interval| {
            found.set(interval);
            true
        };
        for n in 1..100 {
            shared.sampled(n * 1000, set);
        }
        assert_eq!(found.get(), 1000);
        // A hundred in a tenth of a millisecond are ten thousand times too many.
        shared.sampled(100_000, set);
        assert_eq!(found.get(), 1 << 20);
        // No event is sampled any more, but some pass.
        shared.passed(500_000_000, set);
        assert_eq!(found.get(), 1 << 20);
        shared.passed(2 * SECOND, set);
        assert_eq!(found.get(), 1000);
        // An interval that cannot be set stays unchanged.
        shared.scarce(3 * SECOND, |_| false);
        shared.scarce(4 * SECOND, set);
        assert_eq!(found.get(), 2000);
        shared.begin(None);
        shared.scarce(5 * SECOND, |_| panic!("it is fixed"));
    }
}
