//! Logical threads that no platform thread runs: their part of the budget, and the ticks in which
//! they are sampled.

use super::unmounted::{LeftOut, Teller};
use super::{Sampler, aim};
use crate::looks::shelf::Shelf;
use crate::looks::unmounted::{Found, Unmounted};
use crate::runtime::{Looks, Runtime};
use dwell_signal::ThreadRecord;
use dwell_wall::budget::Budget;
use dwell_wallclock::grid;

/// Least part of the budget for logical threads, if there are any.
pub(super) const PART: f64 = 0.4;
/// Maximum platform threads queried in one tick for logical threads that only they know.
const ASKED_MAX: usize = 16;
/// Maximum logical threads that have run, kept between two ticks that sample some.
const RAN_MAX: usize = 2048;

/// State of the sampling of logical threads.
#[derive(Debug, Default)]
pub(super) struct Logical {
    budget: Option<Budget>,
    left_out: LeftOut,
    /// Logical threads that have run.
    ran: Vec<u64>,
    /// Share of logical threads in the last samples.
    part: f64,
}

impl Logical {
    /// Whether logical threads are sampled.
    pub fn is_on(&self) -> bool {
        self.budget.is_some()
    }

    /// The part of a debt that the budget of logical threads pays.
    pub fn part_of(&self, debt_ns: u64) -> u64 {
        (debt_ns as f64 * self.part) as u64
    }

    /// Adds a tick: the debt of logical threads, and the number of samples of platform threads.
    pub fn add(&mut self, look: &grid::Look, debt_ns: u64, sampled: usize) {
        self.left_out.add(look.ticks, look.span_ns, debt_ns);
        self.left_out.looked += sampled;
    }
}

impl<R: Runtime> Sampler<'_, R> {
    /// Records which logical threads have run: those in samples of CPU time, and those that are
    /// mounted on one of these platform threads now.
    pub(super) fn note_running(&mut self, read: &[u32], shelf: &Shelf) {
        if !self.looks.has_unmounted() || self.logical.ran.len() >= RAN_MAX {
            return;
        }
        shelf.take_ran(&mut self.logical.ran);
        for id in read.iter().filter(|id| !self.clock.is_calm(**id)) {
            let record = self.setup.engine.record(*id);
            let mounted = record.and_then(|it| self.looks.mounted(it.managed_thread()));
            self.logical.ran.extend(mounted);
        }
    }

    /// Samples logical threads that no platform thread runs. If this tick is left out, the next
    /// samples stand for it.
    pub(super) fn look_at_logical(
        &mut self,
        now_ns: u64,
        last: bool,
        shelf: &Shelf,
    ) -> (Found, u64) {
        if !self.looks.has_unmounted() {
            return (Found::default(), 0);
        }
        let whole = aim(self.setup);
        let mut own = match (self.logical.budget.take(), self.setup.options.wall_threads) {
            (Some(own), _) => own,
            (None, Some(threads)) => Budget::fixed(threads),
            (None, None) => Budget::of_share(PART * whole),
        };
        if self.logical.left_out.ticks < own.ticks() && !last {
            self.logical.budget = Some(own);
            return (self.logical.left_out.as_before(), 0);
        }
        // Budget that platform threads do not use goes to logical threads.
        own.set_share((whole - self.costs.spent).max(PART * whole));
        let only_context = self.setup.options.only_context;
        let (moment, ticks) = self.logical.left_out.take(now_ns, only_context);
        let allowed = own.after(self.logical.left_out.wanted(), ticks);
        let (chosen, factor) = self.choose_to_ask();
        let ran = std::mem::take(&mut self.logical.ran);
        let teller = Teller {
            moment,
            threads: &self.threads,
            kernel: &self.kernel,
            shelf,
        };
        let at = Unmounted {
            chosen: &chosen,
            factor,
            threads: &self.threads,
            at_ns: moment.at_ns,
            ran: &ran,
            tell: &|looks, seen, each, buffers, found| {
                teller.tell::<R, _>(looks, seen, each, buffers, found);
            },
        };
        let (found, looked) = self
            .looks
            .look_at_unmounted(&at, &allowed, &mut self.random);
        let left_out = &mut self.logical.left_out;
        left_out.found(&found, looked, looked < allowed.count(usize::MAX));
        if found.looked > 0 {
            let all = std::mem::take(&mut left_out.looked) + found.looked;
            self.logical.part = found.looked as f64 / all as f64;
        }
        let cpu_ns = self.cpu_since() + moment.debt_ns;
        own.spent_in(ticks, looked, moment.span_ns, cpu_ns);
        self.logical.budget = Some(own);
        (found, cpu_ns)
    }

    /// Chooses platform threads to query for logical threads. Returns them, and the number of
    /// platform threads that each stands for.
    fn choose_to_ask(&mut self) -> (Vec<u64>, f64) {
        let all = self.members.len();
        let chosen = self.members.choose(ASKED_MAX, &mut self.random);
        let factor = all as f64 / chosen.len().max(1) as f64;
        let records = chosen
            .iter()
            .filter_map(|index| self.setup.engine.record(*index));
        (records.map(ThreadRecord::managed_thread).collect(), factor)
    }
}
