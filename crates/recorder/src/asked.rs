//! The owner of a monitor when a wait for it begins: which waits ask for its stack, the weight of
//! an answer, and the open questions.
//!
//! An answer costs the asking thread some tens of microseconds, so not every wait asks. Chance
//! decides when the wait begins, depending on how many have asked before ([`crate::rate`]).
//!
//! A wait that asks lasts at least as long as the question. So the choice of the recorded waits
//! must not depend on which ones ask: else the recorded ones would be those that last longer. Waits
//! that ask and all others are therefore two strata, with a choice of their own in each. If one in
//! n asks, the interval of those that ask is an n-th of the others' interval: a wait of d is
//! recorded with an answer with a chance of `min(1/n, d/interval)`. With the others' interval it
//! would be `d / (n interval)`: nearly all answers of many short waits would be wasted.

use crate::blocked;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// About the maximum number of waits that ask in a second. A wait whose request takes long counts
/// as several.
pub const PER_S: u64 = 100;
/// The smallest share of waits that ask is one in this many: the largest n.
pub const MOST: u64 = 1 << 20;
/// Requests that take longer count as several, ...
const LONG_NS: u64 = 100_000;
/// ... but as no more than this many.
const SEVERAL: u64 = 8;

/// Whether the wait with this random number is the one in `one_in` that asks. All numbers are
/// equally likely.
#[must_use]
pub fn asks(draw: u64, one_in: u64) -> bool {
    (u128::from(draw) * u128::from(one_in)) >> 64 == 0
}

/// A random number from the one that decided whether the wait asks: all of them are equally likely
/// among the waits that ask, and among the others.
#[must_use]
pub fn within_stratum(draw: u64, one_in: u64) -> u64 {
    if asks(draw, one_in) {
        return draw.wrapping_mul(one_in);
    }
    // The numbers that do not ask.
    let first = (1u128 << 64).div_ceil(u128::from(one_in.max(1)));
    let all = (1u128 << 64).saturating_sub(first).max(1);
    let place = u128::from(draw).saturating_sub(first);
    ((place << 64) / all) as u64
}

/// The interval for a wait, by how many of which one asked; 0: the wait did not ask.
#[must_use]
pub fn interval(interval_ns: u64, one_in: u64) -> u64 {
    (interval_ns / one_in.max(1)).max(1)
}

/// The time in waits that the answer of a recorded wait of `duration_ns` stands for.
#[must_use]
pub fn weight(duration_ns: u64, interval_ns: u64, one_in: u64) -> u64 {
    blocked::weight(duration_ns, interval(interval_ns, one_in)).saturating_mul(one_in)
}

/// The number of requests that one of this duration counts as.
#[must_use]
pub fn counts_as(took_ns: u64) -> u64 {
    (took_ns / LONG_NS + 1).min(SEVERAL)
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Why {
    /// The question was asked, and no more is known.
    #[default]
    NoAnswer = 0,
    /// The monitor had no owner at that moment, or the owner could not be found.
    NoOwner = 1,
    /// The owner was no thread that can be sampled: a virtual one without a carrier, say.
    NoThread = 2,
    /// The owner continued while it was sampled, or gave the monitor up.
    WentOn = 3,
    /// Too many questions were open, or there was no slot.
    NoRoom = 4,
}

impl Why {
    /// The name in the file.
    #[must_use]
    pub fn name_of(number: u32) -> &'static str {
        match number {
            1 => "owner_unknown",
            2 => "owner_no_thread",
            3 => "owner_went_on",
            4 => "no_room",
            _ => "no_answer",
        }
    }
}

/// Maximum number of open questions.
const PLACES: usize = 256;
/// No thread. It is 0 like all free values, so unused places take no room in the library.
const NOBODY: u32 = 0;

/// A question.
struct Place {
    /// The question's number; 0: the place is free. The remainder of a division by [`PLACES`] is
    /// the place.
    number: AtomicU64,
    /// The monitor, as the runtime keeps it.
    monitor: AtomicU64,
    /// The record of the signalled thread that has not answered, plus one.
    record: AtomicU32,
}

impl Place {
    const fn free() -> Place {
        Place {
            number: AtomicU64::new(0),
            monitor: AtomicU64::new(0),
            record: AtomicU32::new(NOBODY),
        }
    }
}

/// Questions of waits that are not over. Without locks: handlers search in it.
pub struct Questions {
    places: [Place; PLACES],
    asked: AtomicU64,
}

/// Those of the process.
pub static QUESTIONS: Questions = Questions::new();

impl Questions {
    /// No questions.
    #[must_use]
    pub const fn new() -> Questions {
        Questions {
            places: [const { Place::free() }; PLACES],
            asked: AtomicU64::new(0),
        }
    }

    /// Asks for the owner of `monitor`: the question's number, if there is room.
    pub fn open(&self, monitor: u64) -> Option<u64> {
        let serial = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        for tried in 0..PLACES as u64 {
            let at = (serial.wrapping_add(tried)) % PLACES as u64;
            let number = serial.wrapping_mul(PLACES as u64).wrapping_add(at);
            let place = self.places.get(at as usize)?;
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            if place.number.load(Ordering::Relaxed) == 0
                && (place.number)
                    .compare_exchange(0, number, success, failure)
                    .is_ok()
            {
                place.monitor.store(monitor, Ordering::Relaxed);
                return Some(number);
            }
        }
        None
    }

    fn place(&self, number: u64) -> Option<&Place> {
        let place = self.places.get((number % PLACES as u64) as usize)?;
        (place.number.load(Ordering::Acquire) == number && number != 0).then_some(place)
    }

    /// The thread of this record is to answer.
    pub fn tell(&self, number: u64, record: u32) {
        if let Some(place) = self.place(number) {
            place
                .record
                .store(record.wrapping_add(1), Ordering::Release);
        }
    }

    /// The wait is over.
    pub fn close(&self, number: u64) {
        if let Some(place) = self.place(number) {
            place.record.store(NOBODY, Ordering::Relaxed);
            place.number.store(0, Ordering::Release);
        }
    }

    /// Whether the wait is not over.
    #[must_use]
    pub fn is_open(&self, number: u64) -> bool {
        self.place(number).is_some()
    }

    /// Takes a question that this record's thread is to answer; `has` says whether the thread has
    /// the question's monitor. Safe in a handler if `has` is.
    #[inline]
    pub fn take(&self, record: u32, mut has: impl FnMut(u64) -> bool) -> Option<u64> {
        let record = record.wrapping_add(1);
        for place in &self.places {
            if place.record.load(Ordering::Acquire) != record {
                continue;
            }
            let number = place.number.load(Ordering::Acquire);
            // Acquire: before the number is read again.
            if number == 0 || !has(place.monitor.load(Ordering::Acquire)) {
                continue;
            }
            // A thread that waits for this thread's monitor cannot have got it in between. But the
            // place may have held another question when its monitor was read.
            let is_same = place.number.load(Ordering::Acquire) == number;
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            if is_same
                && (place.record)
                    .compare_exchange(record, NOBODY, success, failure)
                    .is_ok()
            {
                return Some(number);
            }
        }
        None
    }

    /// Forgets all questions: of waits that had not ended when an earlier recording did.
    pub fn clear(&self) {
        for place in &self.places {
            place.record.store(NOBODY, Ordering::Relaxed);
            place.number.store(0, Ordering::Release);
        }
    }
}

impl Default for Questions {
    fn default() -> Questions {
        Questions::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocked::{self, draw, threshold};
    use crate::rate::Rate;

    /// Over all random numbers, an answer's mean weight is exactly the wait's duration, for any
    /// interval and any number of questions.
    #[test]
    fn weights_are_durations_in_the_mean() {
        const DRAWS: u64 = 1 << 12;
        for (interval, one_in) in [(64, 1), (64, 2), (64, 256), (1, 8), (4096, 16), (256, 1024)] {
            for duration in [0, 1, 3, 63, 64, 65, 1000, 5000] {
                let mut sum = 0;
                for place in 0..DRAWS {
                    // The middle of the numbers of this part.
                    let drawn = (place << 52) + (1 << 51);
                    let number = within_stratum(drawn, one_in);
                    let least = threshold(number, super::interval(interval, one_in));
                    if asks(drawn, one_in) && duration >= least {
                        sum += weight(duration, interval, one_in);
                    }
                }
                // If one in a part of the numbers is also the chance, this is exact.
                assert_eq!(sum, duration * DRAWS, "{duration} {interval} {one_in}");
            }
        }
    }

    /// A question makes a wait longer. The mean weight over all random numbers is the mean duration
    /// all the same, to the part of one number in each stratum.
    #[test]
    fn waits_that_ask_do_not_raise_the_sum() {
        const DRAWS: u64 = 1 << 14;
        const INTERVAL: u64 = 1024;
        for one_in in [1, 2, 4, 64, 1024] {
            for (alone, asking) in [(30, 90), (0, 60), (500, 560), (1000, 1500), (2000, 2000)] {
                let (mut sum, mut truth) = (0, 0);
                for place in 0..DRAWS {
                    let drawn = (place << 50) + (1 << 49);
                    let (duration, of) = match asks(drawn, one_in) {
                        true => (asking, one_in),
                        false => (alone, 0),
                    };
                    let interval = interval(INTERVAL, of);
                    truth += duration;
                    if duration >= threshold(within_stratum(drawn, one_in), interval) {
                        sum += blocked::weight(duration, interval);
                    }
                }
                let off = sum.abs_diff(truth);
                assert!(
                    off <= 2 * INTERVAL,
                    "{one_in} {alone} {asking}: {sum} {truth}"
                );
            }
        }
    }

    #[test]
    fn chance_of_a_question_follows_one_in() {
        assert!(asks(u64::MAX, 1) && asks(0, MOST));
        assert!(!asks(u64::MAX, 2) && asks(u64::MAX / 2, 2));
        assert!(!asks(u64::MAX / MOST + 1, MOST) && asks(u64::MAX / MOST, MOST));
    }

    #[test]
    fn long_requests_count_as_several() {
        assert_eq!(
            [0, 99_999, 100_000, 350_000, u64::MAX].map(counts_as),
            [1, 1, 2, 4, SEVERAL]
        );
    }

    /// 50,000 waits a second, one after the other: after the first second about [`PER_S`] ask.
    /// Whether one does depends only on those before it.
    #[test]
    fn questions_are_limited_to_the_rate() {
        let mut rate = Rate::at_most(PER_S, 1, MOST, 0);
        let (mut state, mut asked) = (7, [0u64; 10]);
        for wait in 0..500_000u64 {
            let now_ns = wait * 20_000;
            let (number, next) = draw(state);
            state = next;
            if asks(number, rate.interval()) {
                asked[(now_ns / 1_000_000_000) as usize] += 1;
                rate.sampled(1, now_ns);
            } else {
                rate.sampled(0, now_ns);
            }
        }
        assert!(asked[0] <= 8 * PER_S, "{asked:?}");
        for of_second in &asked[1..] {
            assert!((PER_S / 5..=2 * PER_S).contains(of_second), "{asked:?}");
        }
    }

    #[test]
    fn question_is_answered_once_by_monitor_owner() {
        let questions = Questions::new();
        let (first, second) = (questions.open(70).unwrap(), questions.open(80).unwrap());
        assert!(first != second && first != 0 && questions.is_open(first));
        assert_eq!(questions.take(5, |_| true), None, "nobody was told");
        questions.tell(first, 5);
        questions.tell(second, 5);
        assert_eq!(questions.take(6, |_| true), None, "another thread");
        assert_eq!(questions.take(5, |_| false), None, "it has neither");
        assert_eq!(questions.take(5, |monitor| monitor == 80), Some(second));
        assert_eq!(questions.take(5, |monitor| monitor == 80), None, "once");
        questions.close(first);
        assert_eq!(questions.take(5, |_| true), None, "nobody waits any more");
        assert!(!questions.is_open(first) && questions.is_open(second));
        questions.close(first);
        questions.tell(first, 5);
        questions.clear();
        assert!(!questions.is_open(second) && !questions.is_open(0));
    }

    #[test]
    fn questions_beyond_capacity_find_no_room() {
        let questions = Questions::new();
        let all: Vec<u64> = (0..PLACES)
            .map(|_| questions.open(1).expect("there is room"))
            .collect();
        assert_eq!(questions.open(1), None);
        questions.close(all[7]);
        let again = questions.open(1).unwrap();
        assert!(!all.contains(&again), "each number once");
        assert_eq!(questions.open(1), None);
    }

    #[test]
    fn each_reason_without_owner_has_a_name() {
        let all = [
            Why::NoAnswer,
            Why::NoOwner,
            Why::NoThread,
            Why::WentOn,
            Why::NoRoom,
        ];
        let mut names = all.map(|why| Why::name_of(why as u32)).to_vec();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
