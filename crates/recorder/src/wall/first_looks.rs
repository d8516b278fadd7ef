//! First looks. Where a thread is that nobody has looked at is not known, so of those that have
//! done nothing since they were met a few are looked at in each tick, and stand for the others; who
//! has run is one of the active threads from then on, and is looked at with these.

use super::{At, Looked, Sampler};
use crate::looks::shelf::Shelf;
use crate::runtime::Runtime;
use dwell_signal::sys::cpu_ns_of;
use dwell_wall::grid;
use dwell_wall::members::choose_of;

/// Of those that are not young any more, so many are asked in a tick whether they have run ...
const ASKED: usize = 512;
/// ... and so many, in one tick of so many, once first looks have taken what they may.
const ASKED_WITHOUT_CREDIT: usize = 16;
const TICKS_WITHOUT_CREDIT: u64 = 32;
/// Looks at the others of these at least: they stand for many.
const LOOKED_LEAST: usize = 2;

impl<R: Runtime> Sampler<'_, R> {
    /// Asks young threads whether they have run since they were asked before: those are active.
    /// What asking has cost.
    pub(super) fn ask_young(&mut self, now_ns: u64, shelf: &Shelf) -> u64 {
        self.woken_cpu_ns = self.cpu_since();
        self.find_sampled(now_ns, shelf);
        let mut to_ask = self.strata.fresh().to_ask();
        if !self.first.has_credit() {
            to_ask.truncate(ASKED_WITHOUT_CREDIT);
        }
        if self.setup.options.only_context || to_ask.is_empty() {
            return 0;
        }
        for index in to_ask {
            if self.has_run_since_met(index) {
                self.strata.note(index, true, now_ns);
            }
        }
        self.cpu_since()
    }

    /// Of those at whom nobody has looked yet the ones of whom the drainer has a sample are active:
    /// among thousands they would be asked late.
    pub(super) fn find_sampled(&mut self, at_ns: u64, shelf: &Shelf) {
        for index in shelf.take_sampled() {
            if self.strata.fresh().contains(index) {
                self.strata.note(index, true, at_ns);
            }
        }
    }

    /// Looks at some of those at whom nobody has looked yet: those of each group stand for it.
    pub(super) fn look_at_fresh(&mut self, at: &At<'_>) -> Looked {
        let mut looked = Looked::default();
        let (all, old) = (self.strata.fresh().len(), self.strata.fresh().old());
        let interval_ns = self.setup.options.wall_interval.as_nanos() as u64;
        let period_ns = TICKS_WITHOUT_CREDIT.saturating_mul(interval_ns);
        let waited_ns = self.unlooked.wait(old, at.look.span_ns);
        if self.setup.options.only_context || all == 0 {
            return looked;
        }
        let is_due = self.first.has_credit() || waited_ns >= period_ns || self.ends;
        let is_due = old > 0 && is_due;
        let count = self.first.count(all, at.look.span_ns);
        let for_young = match is_due {
            true => count.div_ceil(2).max(count.saturating_sub(old)),
            false => count,
        };
        for group in self
            .strata
            .fresh_mut()
            .choose_young(for_young, &mut self.random)
        {
            let weight_ns = grid::weight_ns(&at.look, group.eligible, group.ids.len());
            self.look_first(&group.ids, weight_ns, at, &mut looked);
        }
        let mut cpu_ns = self.cpu_since();
        if is_due {
            let span_ns = self.unlooked.take(old);
            let left = count.saturating_sub(looked.count);
            self.look_at_old(left.max(LOOKED_LEAST), &at.over(span_ns), &mut looked);
        }
        cpu_ns += self.cpu_since();
        self.first.spent(looked.count, cpu_ns);
        looked.first_cpu_ns += cpu_ns;
        looked
    }

    /// Of the old ones some are asked: those who have run are looked at before the others, and are
    /// active then.
    fn look_at_old(&mut self, count: usize, at: &At<'_>, looked: &mut Looked) {
        let asked = match self.first.has_credit() {
            true => ASKED,
            false => ASKED_WITHOUT_CREDIT.max(count),
        };
        let asked = self.strata.fresh_mut().choose_old(asked, &mut self.random);
        let (mut ran, mut still) = (Vec::new(), Vec::new());
        for index in &asked.ids {
            let of = match self.has_run_since_met(*index) {
                true => &mut ran,
                false => &mut still,
            };
            of.push(*index);
        }
        // What asking costs says nothing of what a look does.
        looked.first_cpu_ns += self.cpu_since();
        let for_still = count.saturating_sub(ran.len()).max(count.div_ceil(2));
        for (mut ids, count) in [(ran, count), (still, for_still)] {
            let of = ids.len();
            let chosen = choose_of(&mut ids, count, &mut self.random);
            let eligible = asked.eligible.saturating_mul(of);
            let share = asked.ids.len().saturating_mul(chosen.len());
            let weight_ns = grid::weight_ns(&at.look, eligible, share);
            self.look_first(chosen, weight_ns, at, looked);
        }
    }

    fn look_first(&mut self, ids: &[u32], weight_ns: u64, at: &At<'_>, looked: &mut Looked) {
        for index in ids {
            looked.failed += usize::from(!self.look_at(*index, weight_ns, at));
        }
        looked.count += ids.len();
    }

    /// Whether a thread has run since this was asked before; not at the first time.
    pub(super) fn has_run_since_met(&mut self, index: u32) -> bool {
        let record = self.setup.engine.record(index);
        let (Some(known), Some(record)) = (self.known.get_mut(index as usize), record) else {
            return false;
        };
        let clock_ns = cpu_ns_of(record.tid()).ok();
        let before_ns = std::mem::replace(&mut known.asked_ns, clock_ns);
        before_ns.is_some() && before_ns != clock_ns
    }
}
