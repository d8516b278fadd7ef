//! How often the drainer drains the slots.

use std::time::Duration;

/// Time between two drains. Short enough that a method's class is hardly ever unloaded before its
/// name is read, long enough to cost little.
const TICK_MAX: Duration = Duration::from_millis(20);
/// The shortest, where many samples come.
pub const TICK_MIN: Duration = Duration::from_millis(5);
/// For samples that stay valid until they are drained.
const TICK_KEPT: Duration = Duration::from_millis(200);
/// For few or no samples: a program that does little costs next to nothing.
const TICK_IDLE: Duration = Duration::from_millis(400);
/// The drainer waits for this many samples if that is not too long: most of a drain's cost is
/// waking up.
const WORTH_IT: f64 = 8.0;
/// The decay of the mean rate of samples.
const STEP: f64 = 0.25;
/// For code and classes that are freed before their samples are drained.
const TICK_LOSING: Duration = Duration::from_millis(1);
/// Maximum number of samples that wait for a drain: an eighth of the smallest slots.
const WAITING_MAX: u32 = 128;

/// The time between two drains when all processors are busy with sampled threads; the maximum is
/// `most`.
fn tick(interval: Duration, processors: usize, most: Duration) -> Duration {
    filling(interval, processors).clamp(TICK_MIN, most)
}

/// The time in which as many samples can arrive as may wait.
fn filling(interval: Duration, processors: usize) -> Duration {
    let processors = u32::try_from(processors).unwrap_or(u32::MAX).max(1);
    interval.saturating_mul(WAITING_MAX) / processors
}

/// Like `wait`, but short enough to open the sources of signals of threads that live on, if some
/// are deferred.
pub fn in_time(defers: bool, wait: Duration) -> Duration {
    match defers {
        true => wait.min(TICK_MAX),
        false => wait,
    }
}

/// The time from drain to drain.
#[derive(Debug)]
pub struct Pace {
    tick: Duration,
    /// The longest time that cannot fill the slots, even at the maximum rate of samples.
    longest: Duration,
    /// Samples at the last drain.
    samples: u64,
    /// How many come in a second, of late.
    rate: f64,
    waited: Duration,
}

impl Pace {
    /// For samples that every thread takes at `interval` of CPU time. `keeps`: samples stay valid
    /// until they are drained. The threads can use this many `processors`.
    #[must_use]
    pub fn new(interval: Duration, keeps: bool, processors: usize) -> Pace {
        let most = if keeps { TICK_KEPT } else { TICK_MAX };
        let tick = tick(interval, processors, most);
        Pace {
            tick,
            longest: filling(interval, processors).clamp(tick, TICK_IDLE),
            samples: 0,
            rate: 1.0 / tick.as_secs_f64(),
            waited: tick,
        }
    }

    /// Limits the time so that a thread cannot take more samples in it than are kept for it.
    #[must_use]
    pub fn within(self, interval: Duration, samples: u32) -> Pace {
        let most = interval.saturating_mul(samples).max(TICK_LOSING);
        Pace {
            tick: self.tick.min(most),
            longest: self.longest.min(most),
            waited: self.waited.min(most),
            ..self
        }
    }

    fn usual(&self) -> Duration {
        let wanted = Duration::try_from_secs_f64(WORTH_IT / self.rate.max(1e-3));
        wanted.unwrap_or(TICK_IDLE).clamp(self.tick, self.longest)
    }

    /// How long to wait, given the number of samples so far; `losing`: some recent ones were too
    /// old.
    pub fn wait(&mut self, samples: u64, losing: bool) -> Duration {
        let before = std::mem::replace(&mut self.samples, samples);
        let new = samples.saturating_sub(before) as f64;
        let rate = new / self.waited.as_secs_f64().max(1e-4);
        self.rate += (rate - self.rate) * if rate > self.rate { 1.0 } else { STEP };
        self.waited = match losing {
            true => self.tick.min(TICK_LOSING),
            false => self.usual(),
        };
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_samples_are_drained_sooner() {
        let of = |us, processors| {
            let interval = Duration::from_micros(us);
            tick(interval, processors, TICK_MAX).as_micros()
        };
        assert_eq!(of(10_000, 2), 20_000);
        assert_eq!(of(1000, 2), 20_000);
        assert_eq!(of(1000, 10), 12_800);
        assert_eq!(of(1000, 64), 5000);
        assert_eq!(of(100, 2), 6400);
        assert_eq!(of(u64::MAX / 2000, 0), 20_000);
    }

    #[test]
    fn lasting_samples_are_drained_before_slots_are_full() {
        let of = |ms, processors| {
            let interval = Duration::from_millis(ms);
            tick(interval, processors, TICK_KEPT).as_millis()
        };
        assert_eq!(of(10, 2), 200);
        assert_eq!(of(1, 2), 64);
        assert_eq!(of(1, 64), 5);
        let mut pace = Pace::new(Duration::from_millis(10), true, 2);
        pace.longest = TICK_IDLE;
        pace.tick = TICK_IDLE;
        for look in 1..50 {
            assert_eq!(pace.wait(look * 100, false), TICK_IDLE);
        }
        assert_eq!(pace.wait(6000, true), TICK_LOSING);
    }

    #[test]
    fn per_thread_buffers_are_drained_before_they_are_full() {
        let of = |us| Duration::from_micros(us);
        let pace = |us| Pace::new(of(us), false, 2).within(of(us), 10);
        assert_eq!(
            (pace(1000).tick, pace(1000).longest),
            (of(10_000), of(10_000))
        );
        assert_eq!(pace(10_000).longest, of(100_000));
        assert_eq!(pace(20).longest, TICK_LOSING);
        let mut slow = pace(1000);
        for _ in 0..20 {
            assert_eq!(slow.wait(0, false), of(10_000));
        }
    }

    #[test]
    fn drains_follow_the_rate_of_samples() {
        let mut pace = Pace::new(Duration::from_millis(10), false, 2);
        pace.longest = TICK_IDLE;
        // The mean over many drains, with samples at a constant rate.
        let mut now = Duration::ZERO;
        let mut mean = |pace: &mut Pace, rate: f64| {
            let (mut looks, mut waited) = (0u32, Duration::ZERO);
            for look in 0..400 {
                let wait = pace.wait((now.as_secs_f64() * rate) as u64, false);
                now += wait;
                if look >= 200 {
                    looks += 1;
                    waited += wait;
                }
            }
            now = Duration::ZERO;
            pace.samples = 0;
            (waited / looks).as_millis()
        };
        assert_eq!(mean(&mut pace, 0.0), 400);
        assert!((220..=290).contains(&mean(&mut pace, 30.0)));
        assert!((65..=90).contains(&mean(&mut pace, 100.0)));
        assert_eq!(mean(&mut pace, 800.0), 20);
    }

    #[test]
    fn long_wait_ends_at_new_samples_and_stays_bounded() {
        let mut pace = Pace::new(Duration::from_millis(10), false, 2);
        pace.longest = TICK_IDLE;
        for _ in 0..50 {
            pace.wait(7, false);
        }
        assert_eq!(pace.wait(7, false), TICK_IDLE);
        assert_eq!(pace.wait(167, false), pace.tick);
        assert_eq!(pace.wait(167, true), TICK_LOSING);
        // At the maximum rate here, more would fill the slots.
        let mut pace = Pace::new(Duration::from_micros(100), false, 2);
        for _ in 0..50 {
            let wait = pace.wait(7, false);
            assert!(wait <= filling(Duration::from_micros(100), 1));
        }
    }
}
