//! Which threads are still where the last look saw them. A thread that has not run since then waits
//! for the same thing, and has done so all the time: that is known without a look, at some 30 ns a
//! thread where the kernel tells each thread's turns in a page of memory, and 0.3 us where its CPU
//! clock has to be asked. Only those who have run since are looked at. Nobody's chance to be looked
//! at depends on what a look would show: who has run is found out before anybody is chosen.

use super::{At, Sampler};
use crate::runtime::{Looks, Runtime};
use dwell_signal::sys::cpu_ns_of;
use dwell_wall::grid;
use dwell_wall::members::choose_of;
use dwell_wall::strata::Chosen;

/// Of the threads that rest, as many are asked in a tick as this part of what these may cost pays
/// for, but so many at least, ...
const ASKED_PART: f64 = 0.7;
const ASKED_LEAST: usize = 32;
/// ... so many at most where their turns can be read, ...
const ASKED_BY_PAGE: usize = 400;
/// ... and so many where their clocks have to be asked.
const ASKED_BY_CLOCK: usize = 64;
/// What asking one is taken to cost before one was asked.
pub(super) const ASKED_NS: f64 = 200.0;
/// Whether who was never looked at has run is asked once in so many ticks.
const UNKNOWN_TICKS: u64 = 8;
/// Of the active ones, so many at most.
pub(super) const ASKED_ACTIVE_MAX: usize = 1024;

/// Threads that have to be looked at, as it is not known where they are.
#[derive(Debug, Default)]
pub(super) struct Astray {
    /// Those that have run since their last look, or were not off a processor then.
    pub moved: Vec<u32>,
    /// Those that nobody has ever looked at, and that have done nothing since they were met.
    pub unknown: Vec<u32>,
}

/// What is known of a thread without a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It waits where it did.
    Still,
    /// It does, but has been woken and waits for a processor.
    Woken,
    /// It has run.
    Ran,
    /// It ran when it was looked at last, or what it waits for has another owner.
    Open,
    /// It was never looked at, and has done nothing since it was asked before.
    Unknown,
    /// It was never looked at, and was not asked now.
    Unasked,
}

impl<R: Runtime> Sampler<'_, R> {
    /// Of so many threads that rest, how many are asked in a tick.
    pub(super) fn asked_of(&self, resting: usize) -> usize {
        let most = match self.kernel.tells_turns() {
            true => ASKED_BY_PAGE,
            false => ASKED_BY_CLOCK,
        };
        let interval_ns = self.setup.options.wall_interval.as_nanos() as f64;
        let may_ns = ASKED_PART * super::RESTING_PART * super::aim(self.setup) * interval_ns;
        self.asking
            .count(may_ns)
            .clamp(ASKED_LEAST, most)
            .min(resting)
    }

    /// Adds this tick to the wait of each who is still where it was, and gives back the others.
    pub(super) fn follow(&mut self, chosen: &Chosen, at: &At<'_>) -> Astray {
        let weight_ns = grid::weight_ns(&at.look, chosen.eligible, chosen.ids.len());
        let mut astray = Astray::default();
        let mut notes = at.shelf.lock();
        for index in &chosen.ids {
            let step = self.step(*index);
            // Who was never looked at, and has not run, rests like others after a while.
            if matches!(step, Step::Still | Step::Ran | Step::Unknown) {
                self.strata.note(*index, step == Step::Ran, at.now_ns);
            }
            match (step, self.known.get_mut(*index as usize)) {
                (Step::Still, Some(known)) => {
                    self.followed += 1;
                    known.add(at.now_ns, at.part(weight_ns, true), &mut notes);
                }
                (Step::Woken, Some(known)) => known.flush(&mut notes),
                (Step::Unknown | Step::Unasked, _) => astray.unknown.push(*index),
                _ => astray.moved.push(*index),
            }
        }
        astray
    }

    /// Looks at `count` of `astray`, which stand for the rest of them, and for those who were not
    /// `asked`. How many there were, and how many of them could not be seen.
    pub(super) fn look_at_some(
        &mut self,
        asked: &Chosen,
        astray: &mut [u32],
        count: usize,
        at: &At<'_>,
    ) -> (usize, usize) {
        let all = astray.len();
        let ids = choose_of(astray, count, &mut self.random);
        let eligible = asked.eligible.saturating_mul(all);
        let looked = asked.ids.len().saturating_mul(ids.len());
        let weight_ns = grid::weight_ns(&at.look, eligible, looked);
        let mut failed = 0;
        for index in ids {
            failed += usize::from(!self.look_at(*index, weight_ns, at));
        }
        (ids.len(), failed)
    }

    fn step(&mut self, index: u32) -> Step {
        let known = self.known.get_mut(index as usize);
        let record = self.setup.engine.record(index);
        let (Some(known), Some(record)) = (known, record) else {
            return Step::Open;
        };
        if known.before.mark().is_none() {
            // Who works is looked at before those who have done nothing since they were met.
            if !(self.ticks + u64::from(index)).is_multiple_of(UNKNOWN_TICKS) {
                return Step::Unasked;
            }
            let clock_ns = cpu_ns_of(record.tid()).ok();
            let before_ns = std::mem::replace(&mut known.asked_ns, clock_ns);
            return match before_ns {
                None => Step::Unasked,
                Some(_) if before_ns == clock_ns => Step::Unknown,
                Some(_) => Step::Ran,
            };
        }
        if !known.before.is_off() {
            return Step::Open;
        }
        if self.kernel.has_run(record, &known.before) {
            return Step::Ran;
        }
        let claim = known.before.claim();
        // A monitor or a lock may pass from one thread to another while a third one waits.
        if claim.is_some_and(|claim| !self.looks.is_still(record, claim)) {
            return Step::Open;
        }
        if self.kernel.is_woken(record.tid()) {
            return Step::Woken;
        }
        Step::Still
    }
}
