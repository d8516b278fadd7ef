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
        }
    }

    /// Whether samples came so lately that the next ones are waited for.
    #[must_use]
    pub fn is_set_by_samples(&self) -> bool {
        self.vain <= IDLE_AFTER
    }

    /// How long to wait, having seen so many samples in all; `losing`: some of late were too old.
    pub fn wait(&mut self, samples: u64, losing: bool) -> Duration {
        let is_vain = std::mem::replace(&mut self.samples, samples) == samples;
        self.vain = if is_vain {
            self.vain.saturating_add(1)
        } else {
            0
        };
        match (losing, self.vain > IDLE_AFTER) {
            (true, _) => self.tick.min(TICK_LOSING),
            (false, true) => self.tick.max(TICK_IDLE),
            (false, false) => self.tick,
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
    fn who_finds_nothing_looks_less_often_until_there_is_something() {
        let mut pace = Pace::new(Duration::from_millis(10));
        let usual = pace.tick;
        assert_eq!(pace.wait(1, false), usual);
        for _ in 0..IDLE_AFTER {
            assert_eq!(pace.wait(1, false), usual);
        }
        assert_eq!(pace.wait(1, false), TICK_IDLE);
        assert_eq!(pace.wait(1, true), TICK_LOSING);
        assert_eq!(pace.wait(2, false), usual);
    }
}
