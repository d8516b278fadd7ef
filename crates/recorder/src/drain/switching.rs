//! Which threads have a timer instead of a perf event, because they are switched too often for one.
//!
//! An event costs 0.7 to 2 us at each switch of its thread (`bench/switches`). So with 10,000
//! switches a second it takes up to 2 % of a processor, where samples every 10 ms cost 0.3. A
//! timer costs nothing there, but it does not show where in the kernel a sample was. So such
//! threads still have an event in one second of eight, drawn again each time: then a switch costs
//! at most 0.3 us in the mean. Such a second lasts from one account of the thread to the next,
//! which comes when the thread is sampled again. A mostly idle thread keeps the event, as it also
//! shows the wall-clock sampler that the thread has not run.
//!
//! Timers fire in the kernel's tick. If that comes less than twice in an interval, such threads
//! have fewer samples, which stand for more. But events of such short intervals cost five times as
//! much at a switch, because the machine's timer is set for them: a thread with 20,000 switches a
//! second loses a fifth of its time. From there on a timer is worth it, down to a quarter of a
//! tick. An event is used in only one second of 32.

use crate::options::EngineChoice;
use crate::runtime::Runtime;
use crate::runtime::setup::Setup;
use crate::sys::process;
use dwell_signal::{Engine, EngineKind, ThreadRecord};
use dwell_wall::random::Random;
use std::time::Duration;

/// Switches in a second of its own CPU time, from which on a thread has a timer; below half of it,
/// an event again.
const OFTEN: u64 = 5_000;
/// The same if timers are too slow for the interval.
const VERY_OFTEN: u64 = 20_000;
/// Below this number of switches in a second of the clock, events cost too little.
const BUSY: u64 = 500;
/// One second in this many with an event, where that can show the place in the kernel, ...
const SHARE: u64 = 8;
/// ... and where events cost that much more.
const SMALL_SHARE: u64 = 32;

/// A thread's activity between two accounts of it.
#[derive(Clone, Copy, Debug)]
pub struct Did {
    /// How long that was.
    pub passed_ns: u64,
    /// Its time on a processor.
    pub cpu_ns: u64,
    /// How often it was given one.
    pub turns: u64,
}

impl Did {
    /// Whether a thread with this activity is to have an event; `had`: it has one. `None`: no
    /// change.
    fn wants_event(&self, had: bool, often: u64) -> Option<bool> {
        let turns_per = |ns: u64| {
            let turns = u128::from(self.turns) * 1_000_000_000;
            turns.checked_div(u128::from(ns)).unwrap_or(u128::MAX)
        };
        let (own, clock) = (turns_per(self.cpu_ns), turns_per(self.passed_ns));
        let is_often = own >= u128::from(often) && clock >= u128::from(BUSY);
        let is_seldom = own < u128::from(often / 2) || clock < u128::from(BUSY / 2);
        match had {
            true if is_often => Some(false),
            false if is_seldom => Some(true),
            _ => None,
        }
    }
}

/// Decides it, for the threads of a recording.
#[derive(Debug)]
pub struct Switching {
    /// Switches in a second of CPU time from which on a thread has a timer; `None`: no thread has.
    often: Option<u64>,
    kernel_frames: bool,
    random: Random,
}

impl Switching {
    /// For a recording with these options.
    #[must_use]
    pub fn new<R: Runtime>(setup: &Setup<R>) -> Switching {
        let is_left = matches!(
            setup.options.engine,
            EngineChoice::Auto | EngineChoice::Kernel
        );
        let is_on = is_left && setup.engine.kind() != EngineKind::Timer;
        let often = often(setup.options.cpu_interval, process::kernel_tick());
        Switching {
            often: often.filter(|_| is_on),
            kernel_frames: setup.kernel_frames,
            random: Random::new(process::monotonic_ns()),
        }
    }

    /// Adds the activity of a sampled thread since its last account.
    pub fn update(&mut self, engine: &'static Engine, record: &'static ThreadRecord, did: &Did) {
        let Some(often) = self.often else { return };
        let has_timer = engine.has_timer(record);
        // Refused or locked by another thread: another time.
        let _ = match did.wants_event(!has_timer, often) {
            // All threads together are switched too often.
            Some(true) if engine.is_held(record) => Ok(()),
            Some(true) => engine.give_event(record).map(drop),
            Some(false) if self.is_its_turn() => Ok(()),
            Some(false) => engine.take_event(record).map(drop),
            None if has_timer && self.is_its_turn() => engine.give_event(record).map(drop),
            None => Ok(()),
        };
    }

    /// Whether this is one of the seconds in which a thread has an event although it is switched
    /// often.
    fn is_its_turn(&mut self) -> bool {
        let share = match self.often {
            Some(VERY_OFTEN) => SMALL_SHARE,
            _ => SHARE,
        };
        self.kernel_frames && self.random.below(share) == 0
    }
}

/// The number of switches in a second of its CPU time from which on a thread gets a timer.
fn often(interval: Duration, tick: Duration) -> Option<u64> {
    if interval >= tick * 2 {
        Some(OFTEN)
    } else if interval >= tick / 4 {
        Some(VERY_OFTEN)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn wants(had: bool, passed_ns: u64, cpu_ns: u64, turns: u64) -> Option<bool> {
        let did = Did {
            passed_ns,
            cpu_ns,
            turns,
        };
        did.wants_event(had, OFTEN)
    }

    #[test]
    fn a_thread_that_is_switched_often_has_no_event() {
        let half = SECOND_NS / 2;
        assert_eq!(wants(true, SECOND_NS, half, 2_499), None);
        assert_eq!(wants(true, SECOND_NS, half, 2_500), Some(false));
        assert_eq!(wants(false, SECOND_NS, half, 2_500), None, "and still");
        assert_eq!(wants(false, SECOND_NS, half, 1_250), None, "and still");
        assert_eq!(wants(false, SECOND_NS, half, 1_249), Some(true));
        assert_eq!(wants(true, SECOND_NS, half, 1_249), None);
    }

    #[test]
    fn idle_thread_keeps_its_event() {
        let ms = 1_000_000;
        assert_eq!(wants(true, 20 * SECOND_NS, 10 * ms, 4_000), None);
        assert_eq!(wants(true, SECOND_NS, 10 * ms, 500), Some(false));
        assert_eq!(wants(false, SECOND_NS, 10 * ms, 260), None);
        assert_eq!(wants(false, SECOND_NS, 10 * ms, 240), Some(true));
        assert_eq!(wants(true, SECOND_NS, 0, 0), None, "it has done nothing");
        assert_eq!(wants(false, SECOND_NS, 0, 0), Some(true));
        assert_eq!(wants(true, 0, 0, u64::MAX), Some(false), "no overflow");
    }

    #[test]
    fn timers_have_to_come_often_enough() {
        let ms = Duration::from_millis;
        assert_eq!(often(ms(10), ms(4)), Some(OFTEN));
        assert_eq!(often(ms(8), ms(4)), Some(OFTEN));
        assert_eq!(often(ms(7), ms(4)), Some(VERY_OFTEN));
        assert_eq!(often(ms(1), ms(4)), Some(VERY_OFTEN));
        assert_eq!(often(Duration::from_micros(999), ms(4)), None);
        assert_eq!(often(ms(10), ms(10)), Some(VERY_OFTEN));
    }

    #[test]
    fn often_switched_thread_has_event_one_second_in_eight() {
        let mut switching = Switching {
            often: None,
            kernel_frames: true,
            random: Random::new(7),
        };
        let turns = (0..80_000).filter(|_| switching.is_its_turn()).count();
        assert!(turns.abs_diff(10_000) < 500, "{turns}");
        switching.often = Some(VERY_OFTEN);
        let turns = (0..80_000).filter(|_| switching.is_its_turn()).count();
        assert!(turns.abs_diff(2_500) < 250, "{turns}");
        switching.kernel_frames = false;
        assert!(!(0..100).any(|_| switching.is_its_turn()));
    }
}
