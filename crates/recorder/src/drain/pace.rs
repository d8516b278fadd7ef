//! How often the drainer looks at the slots.

use std::time::Duration;

/// Time between two looks. Short enough that a method's class is hardly ever unloaded before its
/// name is read, long enough to cost little.
const TICK_MAX: Duration = Duration::from_millis(20);
/// The shortest, where many samples come.
pub const TICK_MIN: Duration = Duration::from_millis(5);
/// Where none come, after so many looks in vain: a program that does nothing costs next to nothing.
const TICK_IDLE: Duration = Duration::from_millis(100);
const IDLE_AFTER: u32 = 4;
/// Where at most so many come, after so many looks: most of a look's cost is that of waking up.
const TICK_FEW: Duration = Duration::from_millis(50);
const FEW: u64 = 2;
/// Where code and classes go away before their samples are looked at.
const TICK_LOSING: Duration = Duration::from_millis(1);
/// So many samples may wait for a look: an eighth of the smallest slots.
const WAITING_MAX: u32 = 128;

/// The time between two looks when all processors are busy with what is sampled.
fn tick(interval: Duration, processors: usize) -> Duration {
    let processors = u32::try_from(processors).unwrap_or(u32::MAX).max(1);
    let filling = interval.saturating_mul(WAITING_MAX) / processors;
    filling.clamp(TICK_MIN, TICK_MAX)
}

/// The time from look to look.
#[derive(Debug)]
pub struct Pace {
    tick: Duration,
    /// Samples at the last look, and looks in vain since.
    samples: u64,
    vain: u32,
    /// Looks since more than a few samples came.
    few: u32,
}

impl Pace {
    /// For samples that every thread takes at `interval` of CPU time.
    #[must_use]
    pub fn new(interval: Duration) -> Pace {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Pace {
            tick: tick(interval, processors),
            samples: 0,
            vain: 0,
            few: 0,
        }
    }

    /// How many looks are made for samples in the time in which one would do for all else.
    #[must_use]
    pub fn looks_for_samples(&self) -> u64 {
        let usual = self.usual().as_micros().max(1);
        (TICK_IDLE.as_micros() / usual).max(1) as u64
    }

    fn usual(&self) -> Duration {
        if self.vain > IDLE_AFTER {
            self.tick.max(TICK_IDLE)
        } else if self.few > IDLE_AFTER {
            self.tick.max(TICK_FEW)
        } else {
            self.tick
        }
    }

    /// How long to wait, having seen so many samples in all; `losing`: some of late were too old.
    pub fn wait(&mut self, samples: u64, losing: bool) -> Duration {
        let before = std::mem::replace(&mut self.samples, samples);
        let new = samples.saturating_sub(before);
        let again = |is_so: bool, count: u32| if is_so { count.saturating_add(1) } else { 0 };
        self.vain = again(new == 0, self.vain);
        self.few = again(new <= FEW, self.few);
        match losing {
            true => self.tick.min(TICK_LOSING),
            false => self.usual(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_samples_are_looked_at_sooner() {
        let of = |us, processors| tick(Duration::from_micros(us), processors).as_micros();
        assert_eq!(of(10_000, 2), 20_000);
        assert_eq!(of(1000, 2), 20_000);
        assert_eq!(of(1000, 10), 12_800);
        assert_eq!(of(1000, 64), 5000);
        assert_eq!(of(100, 2), 6400);
        assert_eq!(of(u64::MAX / 2000, 0), 20_000);
    }

    #[test]
    fn who_finds_nothing_or_little_looks_less_often_until_there_is_more() {
        let mut pace = Pace::new(Duration::from_millis(10));
        let usual = pace.tick;
        let mut samples = 5;
        assert_eq!(pace.wait(samples, false), usual);
        for _ in 0..IDLE_AFTER {
            assert_eq!(pace.wait(samples, false), usual);
        }
        assert_eq!(pace.wait(samples, false), TICK_IDLE);
        assert_eq!(pace.looks_for_samples(), 1);
        assert_eq!(pace.wait(samples, true), TICK_LOSING);
        samples += 1;
        assert_eq!(pace.wait(samples, false), TICK_FEW);
        assert_eq!(pace.looks_for_samples(), 2);
        samples += 3;
        assert_eq!(pace.wait(samples, false), usual);
        assert_eq!(pace.looks_for_samples(), 5);
        for _ in 0..IDLE_AFTER {
            samples += 2;
            assert_eq!(pace.wait(samples, false), usual);
        }
        samples += 1;
        assert_eq!(pace.wait(samples, false), TICK_FEW);
    }
}
