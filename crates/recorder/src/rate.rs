//! An interval of samples of allocations that adapts to how much is allocated. Pure.
//!
//! The runtime's sampler puts a point into each thread's stream of allocated bytes, in a distance
//! that it draws around the interval of that moment, when the thread has met its last one; an
//! interval that is set meanwhile counts from the thread's next point on. The distance is
//! exponential, and such a one has no memory: whatever was allocated before, the next object of
//! size s meets the point with a chance of `1 - exp(-s / interval)`, where the interval is that by
//! which this thread's distance was drawn. That one is known before the object is allocated. So a
//! weight by it is right in the mean for each object, given all that was before, and sums are right
//! in the mean however an interval is chosen from what was sampled before (each object's error is a
//! step of a martingale). A weight by the interval of the moment would not be: who has waited for a
//! point from far away would stand for little.
//!
//! What is left: a thread that is between its draw and its callback while the interval is set draws
//! by one interval and is told with the other. That is one object for each thread that is there at
//! that moment; intervals change once in a second at most, unless far too many samples come.

use std::time::Duration;

/// The smallest interval, in bytes.
pub const LEAST: u64 = 4 << 10;
/// The largest one.
pub const MOST: u64 = 64 << 20;

/// It is looked so often whether the interval is the right one, ...
const WINDOW: Duration = Duration::from_secs(1);
/// ... or as soon as so many times as many samples as are wanted in that time have come.
const TOO_MANY: u64 = 4;

/// Finds intervals.
#[derive(Clone, Debug)]
pub struct Rate {
    wanted_per_s: u64,
    interval: u64,
    since_ns: u64,
    samples: u64,
}

impl Rate {
    /// For about so many samples in a second, from now on; begins with `interval`, in bytes.
    #[must_use]
    pub fn new(wanted_per_s: u64, interval: u64, now_ns: u64) -> Rate {
        Rate {
            wanted_per_s: wanted_per_s.max(1),
            interval,
            since_ns: now_ns,
            samples: 0,
        }
    }

    /// The interval, in bytes.
    #[must_use]
    pub fn interval(&self) -> u64 {
        self.interval
    }

    /// The interval that was to be set could not be: it is another one.
    pub fn stays(&mut self, interval: u64) {
        self.interval = interval;
    }

    /// So many samples were taken. The interval that is to be set now, if it changes: the old one
    /// times a power of two, so that it stays where samples come half to twice as often as is
    /// wanted.
    pub fn sampled(&mut self, count: u64, now_ns: u64) -> Option<u64> {
        self.samples += count;
        let window_ns = WINDOW.as_nanos() as u64;
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        if passed_ns < window_ns && self.samples < TOO_MANY * self.wanted_per_s {
            return None;
        }
        let wanted = self.wanted_per_s as f64 * passed_ns.max(1) as f64 / window_ns as f64;
        // Towards the interval that there is: it is not changed for little.
        let steps = (self.samples as f64 / wanted).log2().trunc();
        let wanted = self.interval as f64 * steps.exp2();
        let interval = wanted.clamp(LEAST as f64, MOST as f64) as u64;
        (self.since_ns, self.samples) = (now_ns, 0);
        (std::mem::replace(&mut self.interval, interval) != interval).then_some(interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocated::weight;
    use crate::blocked::draw;

    const SECOND: u64 = 1_000_000_000;
    const FIRST: u64 = 512 << 10;

    /// What HotSpot 17 and later do for a thread (`ThreadHeapSampler`): a counter of bytes that is
    /// drawn anew by the interval of that moment.
    struct ModelThread {
        left: f64,
        /// The interval by which that was drawn.
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

    /// What is told of a phase: errors of the sum, and their variance, with weights by the drawn
    /// interval; and the error with weights by the interval of the moment.
    #[derive(Clone, Copy, Default)]
    struct Sums {
        error: f64,
        variance: f64,
        by_moment: f64,
        bytes: f64,
        changes: u32,
    }

    /// Bytes in a second, how long, and the silence before that.
    const PHASES: [(u64, u64, u64); 3] = [(200 << 20, 2, 0), (2 << 20, 8, 30), (100 << 20, 2, 0)];

    /// A process of many threads that goes through the phases, with objects of all sizes.
    fn run(seed: u64, sums: &mut [Sums; 3]) {
        const SIZES: [u64; 4] = [1 << 10, 16 << 10, 100_000, 300_000];
        let mut rate = Rate::new(50, FIRST, 0);
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

    /// Sums are right in the mean while the interval changes: over 200 runs the error of each phase
    /// is within 5 standard deviations, each of 3 % of its bytes at most; the seeds are fixed. With
    /// weights by the interval of the moment the slow phase is off by almost half.
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

    /// Samples at equal distances, as many as an interval leaves of so many bytes in a second.
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
            let mut rate = Rate::new(200, FIRST, 0);
            settle(&mut rate, bytes_per_s, 0, 10);
            let samples = settle(&mut rate, bytes_per_s, 10 * SECOND, 10);
            assert!((1000..=4000).contains(&samples), "{bytes_per_s}: {samples}");
        }
    }

    #[test]
    fn a_burst_is_met_before_the_second_is_over() {
        let mut rate = Rate::new(200, FIRST, 0);
        settle(&mut rate, 2 << 20, 0, 10);
        assert!(rate.interval() <= 16 << 10);
        // 8 GiB/s at that interval are half a million samples in a second.
        let samples = settle(&mut rate, 8 << 30, 10 * SECOND, 1);
        assert!(samples < 2000, "{samples}");
        assert!(rate.interval() >= 16 << 20);
    }

    #[test]
    fn after_a_silence_the_interval_becomes_small() {
        let mut rate = Rate::new(200, FIRST, 0);
        settle(&mut rate, 8 << 30, 0, 5);
        assert!(rate.interval() >= 32 << 20);
        // What came before the silence counts for this one, but not for the next.
        rate.sampled(1, 65 * SECOND);
        assert!(rate.interval() <= 2 << 20, "{}", rate.interval());
        rate.sampled(1, 125 * SECOND);
        assert_eq!(rate.interval(), LEAST);
    }

    #[test]
    fn intervals_stay_in_their_bounds_and_are_not_changed_for_little() {
        let mut rate = Rate::new(1, FIRST, 0);
        for n in 0..1000 {
            rate.sampled(1, n);
        }
        assert_eq!(rate.interval(), MOST);
        let mut rate = Rate::new(100, FIRST, 0);
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
}
