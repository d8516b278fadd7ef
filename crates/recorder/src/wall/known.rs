//! What the wall-clock sampler remembers of a thread, and how looks at it become notes.

use super::look::{Before, Look};
use crate::looks::shelf::{Note, Notes, Run};
use dwell_context::Context;
use dwell_wall::flips::Flips;
use dwell_wall::proc::Schedule;
use dwell_wall::roll_call::Owed;
use dwell_wall::runs::{Part, Run as SameRun};
use dwell_wall::signs::{Classes, Shown, Sign};
use std::sync::Arc;

/// What a thread works for.
pub(super) type Work = Option<Arc<Context>>;

/// A thread, kept at its record's place.
pub(super) struct Known<C> {
    pub generation: u32,
    pub thread: u64,
    /// What it is found by as the owner of something.
    pub managed: u64,
    pub id: u64,
    /// Tells its names apart.
    pub name_mark: u64,
    pub before: Before<C>,
    /// What it had used of processors when it was asked last, before its first look.
    pub asked_ns: Option<u64>,
    /// What looks have shown, by what its signs were, and what is not told of that yet.
    pub classes: Classes<Work>,
    /// What it worked for when that was read last.
    pub work: Work,
    /// Of one that waits for microseconds at a time.
    pub flips: Flips,
}

impl<C> Default for Known<C> {
    fn default() -> Known<C> {
        Known {
            generation: 0,
            thread: 0,
            managed: 0,
            id: 0,
            name_mark: 0,
            before: Before::default(),
            asked_ns: None,
            classes: Classes::default(),
            work: None,
            flips: Flips::default(),
        }
    }
}

impl<C> Known<C> {
    /// A look at a thread that is where the last stack says, or a tick in which it is known to have
    /// been.
    pub fn add(&mut self, part: Part, notes: &mut Notes) {
        let ended = self.classes.pending().add(self.work.clone(), part);
        self.tell_ended(ended, part.at_ns, notes);
    }

    /// It works for this now.
    pub fn works_for(&mut self, context: Option<&Context>) {
        if self.work.as_deref() != context {
            self.work = context.copied().map(Arc::new);
        }
    }

    /// Passes in which it is known to have been where the last stack says.
    pub fn add_owed(&mut self, owed: &Owed, notes: &mut Notes) {
        let part = Part {
            weight_ns: owed.span_ns,
            span_ns: owed.span_ns,
            at_ns: owed.until_ns,
            // It has not run since it was asked for the first time: there is no gap.
            interval: (0, owed.until_ns),
            is_known: true,
        };
        let work = self.work.clone();
        let ended = self.classes.pending().add_many(work, owed.passes, part);
        self.tell_ended(ended, owed.until_ns, notes);
    }

    fn tell_ended(&mut self, ended: Option<SameRun<Work>>, now_ns: u64, notes: &mut Notes) {
        let thread = self.thread;
        if let Some(run) = ended {
            tell((thread, self.classes.current()), &run, notes);
        }
        self.classes
            .due(now_ns, |class, run| tell((thread, class), &run, notes));
    }

    /// A look at it, with this sign, has shown that, at a place of this number: what is pending of
    /// the last look at one of its class is told.
    pub fn look(&mut self, sign: Option<Sign>, now_ns: u64, seen: (Shown, u64), notes: &mut Notes) {
        let thread = self.thread;
        let mut tell = |class, run| tell((thread, class), &run, notes);
        self.classes.look(sign, now_ns, seen, &mut tell);
        self.classes.due(now_ns, tell);
    }

    /// The sign that it had before a look that was begun while it waited and over when it ran, if
    /// that is not its sign by now and its place was seen before. Such a look shows nothing: a wait
    /// may end while a look at it is made, and if all ticks in its place counted as running until
    /// the next look, short waits would hardly be seen. The tick counts as one without a look.
    pub fn left(
        &mut self,
        seen: &Look,
        moved: bool,
        (sign, by_now): (Option<Sign>, Option<Sign>),
        now_ns: u64,
    ) -> Option<Sign> {
        let has_left = moved && seen.is_ready() && sign != by_now;
        let sign = sign.filter(|_| has_left)?;
        self.classes.shown(sign, now_ns).map(|_| sign)
    }

    /// A tick in which it was not looked at, but has this sign.
    pub fn carry(&mut self, sign: Sign, part: Part, notes: &mut Notes) {
        match self.flips.is_on() {
            // The next look that finds it waiting tells all of the time.
            true => self.classes.owe(sign, self.work.clone(), part),
            false => {
                let part = self.still(part);
                self.classes.carry(sign, self.work.clone(), part);
            }
        }
        let thread = self.thread;
        self.classes
            .due(part.at_ns, |class, run| tell((thread, class), &run, notes));
    }

    /// What a look stands for that has `seen` this: `part`, or what the thread waited since the
    /// last one, if it waits for microseconds at a time.
    /// `moved`: it did not stand still; `counted`: the tick has counted without the look.
    pub fn weight(
        &mut self,
        seen: &Look,
        (moved, counted): (bool, bool),
        part: Part,
        schedule: impl Fn() -> Option<Schedule>,
    ) -> Part {
        let (now_ns, until_ns) = (part.at_ns, part.interval.1);
        let was_on = self.flips.is_on();
        let part = match seen {
            Look::Off(_) => match self.flips.waited((now_ns, until_ns), &schedule) {
                Some(waited_ns) => Part {
                    weight_ns: self.classes.settle(Some(waited_ns), part.weight_ns),
                    ..part
                },
                // Of a look before, if that was the last one by the account.
                None => {
                    let _ = self.classes.settle(None, part.weight_ns);
                    self.still(part)
                }
            },
            Look::Same => self.still(part),
            _ => {
                if !self.flips.is_on() {
                    let _ = self.flips.end();
                }
                part
            }
        };
        if moved {
            // This look counts to the end of its interval, if it counts.
            let counts = (matches!(seen, Look::Off(_)) || counted) && !was_on;
            let since_ns = if counts { until_ns.max(now_ns) } else { now_ns };
            self.flips.moved(since_ns, schedule);
        }
        part
    }

    /// What a look stands for that finds it where the last one did.
    pub fn still(&mut self, part: Part) -> Part {
        let rest_ns = self.flips.end();
        Part {
            weight_ns: part.weight_ns.saturating_add_signed(rest_ns),
            span_ns: part.span_ns.saturating_add_signed(rest_ns),
            ..part
        }
    }

    /// It has left the place where it was.
    pub fn flush(&mut self, notes: &mut Notes) {
        if let Some(run) = self.classes.pending().rest() {
            tell((self.thread, self.classes.current()), &run, notes);
        }
    }

    /// The recording ends.
    pub fn flush_all(&mut self, notes: &mut Notes) {
        let thread = self.thread;
        self.classes
            .rest(|class, run| tell((thread, class), &run, notes));
    }

    /// The thread is no more.
    pub fn end(&mut self, notes: &mut Notes) {
        self.flush_all(notes);
        let thread = self.thread;
        notes.add(Note::Gone { thread }, 0);
    }
}

fn tell((thread, class): (u64, u8), run: &SameRun<Work>, notes: &mut Notes) {
    let told = Run {
        thread,
        class,
        work: run.seen.clone(),
        since_ns: run.since_ns,
        until_ns: run.until_ns,
        count: run.count,
        weight_ns: run.weight_ns,
        choices: run.choices(),
    };
    notes.add(Note::Run(told), run.weight_ns);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::off::Off;
    use dwell_wall::cause::Os;
    use dwell_wall::random::Random;

    const TICK_NS: u64 = 20_000_000;

    fn thread() -> Known<()> {
        Known {
            thread: 7,
            ..Known::default()
        }
    }

    /// A tick for so many threads; `at_ns` ends its interval.
    fn tick_at(at_ns: u64, of_threads: u64) -> Part {
        Part {
            weight_ns: of_threads * TICK_NS,
            span_ns: TICK_NS,
            at_ns,
            interval: (at_ns.saturating_sub(TICK_NS), at_ns),
            is_known: false,
        }
    }

    /// The same, seen at `now_ns` in an interval that ends at `until_ns`.
    fn tick_in((now_ns, until_ns): (u64, u64)) -> Part {
        Part {
            at_ns: now_ns,
            ..tick_at(until_ns, 1)
        }
    }

    fn runs(notes: &Notes) -> Vec<Run> {
        let run = |note: &Note| match note {
            Note::Run(run) => Some(run.clone()),
            _ => None,
        };
        notes.notes.iter().filter_map(run).collect()
    }

    #[test]
    fn looks_that_see_the_same_are_one_note_when_the_thread_leaves() {
        let (mut known, mut notes) = (thread(), Notes::default());
        for at in 1..=10 {
            known.add(tick_at(at * TICK_NS, 1), &mut notes);
        }
        assert_eq!(runs(&notes), []);
        known.flush(&mut notes);
        known.flush(&mut notes);
        let [run] = &runs(&notes)[..] else {
            panic!("{notes:?}");
        };
        assert_eq!(
            (run.thread, run.count, run.weight_ns),
            (7, 10, 10 * TICK_NS)
        );
        assert_eq!((run.since_ns, run.until_ns), (0, 10 * TICK_NS));
    }

    #[test]
    fn no_time_is_held_back_for_long_or_lost() {
        let (mut known, mut notes) = (thread(), Notes::default());
        let ticks = 70 * 1_000_000_000 / TICK_NS;
        for at in 1..=ticks {
            known.add(tick_at(at * TICK_NS, 1), &mut notes);
        }
        // After 1, 2, 4, 8, 16 and 32 s.
        assert_eq!(runs(&notes).len(), 6);
        known.end(&mut notes);
        let told: u64 = runs(&notes).iter().map(|run| run.weight_ns).sum();
        assert_eq!(told, ticks * TICK_NS);
        let last = notes.notes.last();
        assert!(matches!(last, Some(Note::Gone { thread: 7 })), "{last:?}");
    }

    #[test]
    fn looks_that_stand_for_many_are_told_apart_from_those_for_one() {
        let (mut known, mut notes) = (thread(), Notes::default());
        known.add(tick_at(TICK_NS, 1), &mut notes);
        known.add(tick_at(2 * TICK_NS, 100), &mut notes);
        known.flush(&mut notes);
        let weights: Vec<u64> = runs(&notes).iter().map(|run| run.weight_ns).collect();
        assert_eq!(weights, [TICK_NS, 100 * TICK_NS]);
    }

    #[test]
    fn a_look_at_one_that_does_not_stand_still_weighs_what_it_waited() {
        let mut known = thread();
        let used = |on_cpu_ns: u64| {
            let schedule = Schedule {
                on_cpu_ns,
                ..Schedule::default()
            };
            move || Some(schedule)
        };
        let off = || Look::Off(Off::at(Os::NoCall, None));
        let mut weigh = |seen: Look, moved, ticks: u64, used_ns| {
            // Each look comes 5 ns before the end of its interval.
            let now_ns = ticks * TICK_NS;
            let part = Part {
                weight_ns: 7,
                ..tick_in((now_ns, now_ns + 5))
            };
            known
                .weight(&seen, (moved, false), part, used(used_ns))
                .weight_ns
        };
        assert_eq!(weigh(off(), false, 1, 0), 7);
        assert_eq!(weigh(Look::Ready, true, 2, 1000), 7, "told to nobody");
        assert_eq!(weigh(Look::Ready, false, 3, 2000), 7);
        assert_eq!(weigh(off(), true, 5, 5000), 3 * TICK_NS - 4000);
        assert_eq!(weigh(off(), false, 6, 5000), TICK_NS);
        // It goes on to wait, also from that look to the end of its interval.
        assert_eq!(weigh(Look::Same, false, 7, 5000), 7 + 5);
        assert_eq!(weigh(Look::Same, false, 7, 5000), 7);
        assert_eq!(weigh(off(), false, 8, 6000), 7);
    }

    /// The account of a thread that was looked at while it waited begins with the next interval.
    #[test]
    fn a_look_before_the_account_counts_its_interval_once() {
        let mut known = thread();
        let off = || Look::Off(Off::at(Os::NoCall, None));
        let account = || Some(Schedule::default());
        let mut weigh = |moved, now_ns: u64, until_ns| {
            let part = tick_in((now_ns, until_ns));
            known
                .weight(&off(), (moved, false), part, account)
                .weight_ns
        };
        // Intervals end at 1, 2 and 3 ticks; it waits all the time.
        let half = TICK_NS / 2;
        let told = [1, 2, 3].map(|end| weigh(end == 1, end * TICK_NS - half, end * TICK_NS));
        assert_eq!(told, [TICK_NS, half, TICK_NS]);
    }

    /// A tick that counted by its sign counts to the end of its interval; the account begins there.
    #[test]
    fn a_tick_that_counted_is_not_in_the_account_that_begins_with_it() {
        let (mut known, mut notes) = (thread(), Notes::default());
        let sign = Sign::of([1], false);
        let account = || Some(Schedule::default());
        let off = || Look::Off(Off::at(Os::NoCall, None));
        known.look(Some(sign), TICK_NS, (Shown::Wait, 7), &mut notes);
        let signs = (Some(sign), Some(Sign::of([2], true)));
        assert_eq!(known.left(&Look::Ready, false, signs, 2), None, "it ran");
        assert_eq!(known.left(&off(), true, signs, 2), None, "it waits");
        assert_eq!(
            known.left(&Look::Ready, true, (Some(sign), Some(sign)), 2),
            None
        );
        assert_eq!(
            known.left(&Look::Ready, true, (signs.1, None), 2),
            None,
            "not seen before"
        );
        assert_eq!(known.left(&Look::Ready, true, signs, 2), Some(sign));
        let half = TICK_NS / 2;
        let time = |ticks: u64| (ticks * TICK_NS - half, ticks * TICK_NS);
        known.carry(sign, tick_in(time(1)), &mut notes);
        let _ = known.weight(&Look::Ready, (true, true), tick_in(time(1)), account);
        let part = known.weight(&off(), (false, false), tick_in(time(2)), account);
        assert_eq!(
            part.weight_ns, half,
            "what it waited since the end of the interval before"
        );
        known.end(&mut notes);
        let told: u64 = runs(&notes).iter().map(|run| run.weight_ns).sum();
        assert_eq!(told, TICK_NS);
    }

    #[test]
    fn the_last_look_by_the_account_stands_for_its_interval_too() {
        let mut known = thread();
        let mut weigh = |seen: Look, moved, ticks: u64| {
            let now_ns = ticks * TICK_NS;
            let account = || Some(Schedule::default());
            let part = Part {
                weight_ns: 7,
                ..tick_in((now_ns, now_ns + 5))
            };
            known.weight(&seen, (moved, false), part, account).weight_ns
        };
        let off = || Look::Off(Off::at(Os::NoCall, None));
        let _ = weigh(Look::Ready, true, 0);
        let by_account = (1..100).take_while(|ticks| weigh(off(), false, *ticks) == TICK_NS);
        let ticks = by_account.count() as u64;
        // The one that was not: from the last one to the end of its interval, and its own.
        let last = ticks + 1;
        assert_eq!(weigh(off(), false, last + 1), 7, "once");
        let _ = weigh(Look::Ready, true, last + 2);
        for tick in 1..=ticks {
            assert_eq!(weigh(off(), false, last + 2 + tick), TICK_NS);
        }
        assert_eq!(weigh(off(), false, last + 3 + ticks), 7 + 5);
        // It ran when it was looked at next: nothing is owed any more.
        let _ = weigh(Look::Ready, true, 2 * last);
        for tick in 1..=ticks {
            let _ = weigh(off(), false, 2 * last + tick);
        }
        let _ = weigh(Look::Ready, false, 3 * last);
        assert_eq!(weigh(off(), false, 3 * last + 1), 7);
    }

    #[test]
    fn ticks_by_sign_have_the_class_of_their_look_and_their_own_time() {
        let (mut known, mut notes) = (thread(), Notes::default());
        let signs = [1u64, 2].map(|number| Sign::of([number], false));
        for (at, sign) in (1..).zip(signs) {
            known.look(Some(sign), at * TICK_NS, (Shown::Wait, 7), &mut notes);
            known.look(Some(sign), at * TICK_NS, (Shown::Wait, 7), &mut notes);
            known.add(tick_at(at * TICK_NS, 1), &mut notes);
        }
        for at in 3..6 {
            known.carry(signs[0], tick_at(at * TICK_NS, 1), &mut notes);
        }
        // The next look there sees it run: no more is carried there.
        known.look(Some(signs[0]), 6 * TICK_NS, (Shown::Run, 0), &mut notes);
        known.carry(signs[0], tick_at(7 * TICK_NS, 1), &mut notes);
        known.end(&mut notes);
        let mut told: Vec<_> = runs(&notes)
            .iter()
            .map(|it| (it.since_ns, it.until_ns, it.class, it.count))
            .collect();
        told.sort_unstable();
        let expected = [(0, 1, 0, 1), (1, 2, 1, 1), (2, 5, 0, 3)];
        assert_eq!(
            told,
            expected.map(|(since, until, class, count)| (
                since * TICK_NS,
                until * TICK_NS,
                class,
                count
            ))
        );
    }

    /// A thread that takes one request after the other at one place.
    #[test]
    fn carried_tick_has_the_request_of_its_own_time() {
        let (mut known, mut notes) = (thread(), Notes::default());
        let sign = Sign::of([1u64], false);
        let request = |span| Context {
            span,
            active: 1,
            ..Context::default()
        };
        known.works_for(Some(&request(1)));
        for at in 1..=2 {
            known.look(Some(sign), at * TICK_NS, (Shown::Wait, 7), &mut notes);
            known.add(tick_at(at * TICK_NS, 1), &mut notes);
        }
        for at in 3..200 {
            let now = request(at / 50);
            known.works_for((now.span != 2).then_some(&now));
            known.carry(sign, tick_at(at * TICK_NS, 1), &mut notes);
        }
        known.end(&mut notes);
        let mut spans = [0; 4];
        let mut without = 0;
        for run in runs(&notes) {
            match run.work {
                Some(work) => spans[work.span as usize] += run.count,
                None => without += run.count,
            }
        }
        assert_eq!((spans, without), ([47, 52, 0, 50], 50));
    }

    /// Waits of 1.5 ms in every 15, and looks that take 0.3 ms: of those at waits a fifth sees the
    /// end of it.
    #[test]
    fn short_waits_count_whole_however_long_looks_take() {
        const WAIT_US: u64 = 1500;
        const CYCLE_US: u64 = 15_000;
        const LOOK_US: u64 = 300;
        let at = |us: u64| match us % CYCLE_US < WAIT_US {
            true => (Shown::Wait, Sign::of([1, 2], false)),
            false => (Shown::Run, Sign::of([8], true)),
        };
        for seed in 0..20 {
            let (mut known, mut notes) = (thread(), Notes::default());
            let mut random = Random::new(seed);
            let (mut ticks, mut ends_seen) = (0, 0);
            for number in 1..=5000 {
                let now_ns = number * TICK_NS;
                let us = random.below(CYCLE_US);
                let ((shown, sign), (shown_after, by_now)) = (at(us), at(us + LOOK_US));
                ticks += u64::from(shown == Shown::Wait);
                let is_drawn = random.part() < 0.1;
                if known.classes.shown(sign, now_ns).is_some() && !is_drawn {
                    known.carry(sign, tick_at(now_ns, 1), &mut notes);
                } else if (shown, shown_after) == (Shown::Wait, Shown::Wait) {
                    known.look(Some(sign), now_ns, (shown, 7), &mut notes);
                    known.add(tick_at(now_ns, 1), &mut notes);
                } else {
                    ends_seen += u64::from(shown == Shown::Wait);
                    let signs = (Some(sign), Some(by_now));
                    let moved = shown != shown_after;
                    match known.left(&Look::Ready, moved, signs, now_ns) {
                        Some(left) => known.carry(left, tick_at(now_ns, 1), &mut notes),
                        None => known.look(Some(by_now), now_ns, (Shown::Run, 0), &mut notes),
                    }
                }
            }
            known.end(&mut notes);
            let told: u64 = runs(&notes).iter().map(|run| run.weight_ns).sum();
            // One that ends in the first look at it is not known to be one.
            let lost = ticks - told / TICK_NS;
            assert!(
                ticks > 400 && ends_seen > 3 && lost <= 2,
                "{seed}: {lost} of {ticks}"
            );
        }
    }

    #[test]
    fn the_account_of_a_wait_is_shared_by_ticks_without_a_look() {
        let (mut known, mut notes) = (thread(), Notes::default());
        let sign = Sign::of([1], false);
        let account = || Some(Schedule::default());
        let off = || Look::Off(Off::at(Os::NoCall, None));
        let time = |ticks: u64| tick_at(ticks * TICK_NS, 1);
        known.look(Some(sign), TICK_NS, (Shown::Wait, 7), &mut notes);
        let _ = known.weight(&off(), (true, false), time(1), account);
        known.carry(sign, time(2), &mut notes);
        known.carry(sign, time(3), &mut notes);
        let part = known.weight(&off(), (false, false), time(4), account);
        assert_eq!(part.weight_ns, TICK_NS, "a third of what it waited");
        known.look(Some(sign), 4 * TICK_NS, (Shown::Wait, 7), &mut notes);
        known.end(&mut notes);
        let [before] = &runs(&notes)[..] else {
            panic!("{notes:?}");
        };
        assert_eq!((before.count, before.weight_ns), (2, 2 * TICK_NS));
    }

    #[test]
    fn what_is_known_without_choice_has_no_error() {
        let (mut known, mut notes) = (thread(), Notes::default());
        let certain = |ticks: u64| Part {
            is_known: true,
            ..tick_at(ticks * TICK_NS, 1)
        };
        known.add(certain(1), &mut notes);
        known.add(certain(2), &mut notes);
        known.flush(&mut notes);
        known.add(tick_at(3 * TICK_NS, 1), &mut notes);
        known.flush(&mut notes);
        let choices: Vec<u64> = runs(&notes).iter().map(|run| run.choices).collect();
        assert!(choices[0] > 1000 * choices[1], "{choices:?}");
    }
}
