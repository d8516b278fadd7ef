//! Which threads are still where the last look saw them. A thread that has not run since then waits
//! for the same thing, and has done so all the time: that is known without a look, at some 30 ns a
//! thread where the kernel tells each thread's turns in a page of memory, and 0.3 us where its CPU
//! clock has to be asked. Only those who have run since are looked at. Nobody's chance to be looked
//! at depends on what a look would show: who has run is found out before anybody is chosen.

use super::known::Known;
use super::{At, Sampler};
use crate::looks::shelf::Notes;
use crate::runtime::{Looks, Runtime};
use dwell_signal::Turns;
use dwell_wall::grid;
use dwell_wall::members::{Chosen, choose_of};
use dwell_wall::roll_call::RollCall;
use dwell_wall::runs::Part;
use dwell_wall::strata::Strata;

/// Of the threads that rest, as many are asked in a tick as this part of what these may cost pays
/// for, but so many at least, ...
const ASKED_PART: f64 = 0.7;
const ASKED_LEAST: usize = 32;
/// ... so many at most where their turns can be read, ...
const ASKED_BY_PAGE: usize = 400;
/// ... and so many where their clocks have to be asked.
const ASKED_BY_CLOCK: usize = 64;
/// At least once in so many ticks they are asked, or with all others.
pub(super) const RESTED_TICKS: u64 = 16;
/// What asking one is taken to cost before one was asked.
pub(super) const ASKED_NS: f64 = 200.0;
/// So many pages that tell turns are mapped in a tick for active ones, for those who rest, for
/// those who have been looked at once, and for those who rest once first looks have taken what they
/// may.
pub(super) const PAGES_ACTIVE: u32 = 64;
pub(super) const PAGES_RESTING: u32 = 64;
pub(super) const PAGES_ON_TRIAL: u32 = 256;
pub(super) const PAGES_WITHOUT_CREDIT: u32 = 4;
/// Mapping them takes this part of the time at most.
pub(super) const PAGES_PART: f64 = 0.05;
/// Of the active ones, so many at most.
pub(super) const ASKED_ACTIVE_MAX: usize = 1024;

/// What is known of a thread without a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It waits where it did.
    Still,
    /// It does, but has been woken and waits for a processor.
    Woken,
    /// It has run.
    Ran,
    /// It ran when it was looked at last, or what it waits for has another owner, or nobody has
    /// looked at it.
    Open,
}

/// From now on a thread that waits where it did is asked in one go with others, if its turns alone
/// tell whether it has run.
fn count<C>(known: &Known<C>, index: u32, roll_call: &mut RollCall<Turns>, strata: &mut Strata) {
    if let Some(turns) = known.before.turns_alone()
        && roll_call.join(index, turns)
    {
        strata.set_apart(index);
    }
}

impl<R: Runtime> Sampler<'_, R> {
    /// Of so many threads that rest, how many are asked now; nobody where asking the least number
    /// would cost more than it may have since they were asked last, or more others, which are
    /// `counted`, are asked later.
    pub(super) fn asked_of(&self, resting: usize, counted: usize) -> usize {
        let most = match self.kernel.tells_turns() {
            true => ASKED_BY_PAGE,
            false => ASKED_BY_CLOCK,
        };
        let part = ASKED_PART * super::RESTING_PART * super::aim(self.setup);
        let asked = self.asking.count(part * self.rested_ns as f64);
        let interval_ns = self.setup.options.wall_interval.as_nanos() as u64;
        // The sooner all have a page, the sooner asking is cheap: that is part of first looks.
        if self.maps_more && self.kernel.maps_pages() && self.first.has_credit() {
            return (PAGES_RESTING as usize).max(asked.min(most)).min(resting);
        }
        if self.ends {
            return resting.min(most);
        }
        // Where thousands are asked in one go, a few others are as often as these.
        let are_few = resting <= most && resting < counted;
        if are_few && !self.is_pass_due {
            return 0;
        }
        let least = ASKED_LEAST.min(resting);
        if asked < least && self.rested_ns < RESTED_TICKS.saturating_mul(interval_ns) {
            return 0;
        }
        asked.clamp(ASKED_LEAST, most).min(resting)
    }

    /// Adds this tick to the wait of each who is still where it was, and gives back the others:
    /// they have run since their last look, or were not off a processor then.
    pub(super) fn follow(&mut self, chosen: &Chosen, at: &At<'_>, is_active: bool) -> Vec<u32> {
        let weight_ns = grid::weight_ns(&at.look, chosen.eligible, chosen.ids.len());
        let part = at.part(weight_ns, true);
        let mut moved = Vec::new();
        let mut notes = at.shelf.lock();
        for (place, index) in chosen.ids.iter().enumerate() {
            self.fetch_ahead(&chosen.ids, place);
            let step = self.step(*index);
            if step == Step::Ran {
                self.strata.note(*index, true, at.now_ns);
            }
            match (step, self.known.get_mut(*index as usize)) {
                (Step::Still, Some(_)) => {
                    self.add_still(*index, is_active, part, &mut notes);
                }
                (Step::Woken, Some(known)) => known.flush(&mut notes),
                _ => moved.push(*index),
            }
        }
        moved
    }

    /// A thread waits where it did.
    fn add_still(&mut self, index: u32, is_active: bool, part: Part, notes: &mut Notes) {
        let known = self.known.get_mut(index as usize);
        let (Some(known), Some(record)) = (known, self.setup.engine.record(index)) else {
            return;
        };
        self.kernel.ask_by_page(record, &mut known.before);
        // One of those who rest still does so later, too. One that will have its page soon rests
        // only then: it is asked in one go with all others from then on.
        let awaits_page = self.kernel.maps_pages()
            && self.first.has_credit()
            && self.setup.engine.wants_page(record);
        if is_active && !awaits_page {
            self.strata.note(index, false, part.at_ns);
        }
        self.followed += 1;
        let part = known.still(part);
        known.add(part, notes);
        if self.may_count && self.strata.rests_now(index) {
            count(known, index, &mut self.roll_call, &mut self.strata);
        }
    }

    /// Looks at `count` of `astray`, which stand for the rest of them, and for those of the
    /// `eligible` ones who were not `asked`. How many there were, and how many of them could not be
    /// seen.
    pub(super) fn look_at_some(
        &mut self,
        (eligible, asked): (usize, usize),
        astray: &mut [u32],
        count: usize,
        at: &At<'_>,
    ) -> (usize, usize) {
        let all = astray.len();
        let ids = choose_of(astray, count, &mut self.random);
        let eligible = eligible.saturating_mul(all);
        let looked = asked.saturating_mul(ids.len());
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
