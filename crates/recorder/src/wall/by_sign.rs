//! Threads that are at places where they were seen before, as far as their signs tell (see
//! [`dwell_wall::signs`]): a tick of such a thread counts without a look, but for some that are
//! drawn.

use super::{At, Looked, Sampler};
use crate::runtime::{Looks, Runtime};
use dwell_wall::grid;
use dwell_wall::runs::Part;
use dwell_wall::signs::Shown;

/// Those of a tick who are not where they were.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Their place has to be seen: all of them are looked at, or some stand for the others.
    pub unknown: Vec<u32>,
    /// Their place is known, and they are looked at all the same.
    pub drawn: Vec<u32>,
    /// Ticks that count without a look.
    pub carried: usize,
}

impl<R: Runtime> Sampler<'_, R> {
    /// Looks at those of `moved` whose place has to be seen, and at some of the others; `looked`
    /// tells what the tick has cost so far, and what it costs with that.
    pub(super) fn look_by_sign(
        &mut self,
        (eligible, asked): (usize, usize),
        moved: &[u32],
        at: &At<'_>,
        looked: &mut Looked,
    ) {
        let weight_ns = grid::weight_ns(&at.look, eligible, asked);
        let mut sorted = self.sort_by_sign(moved, weight_ns, at);
        let count = self
            .budget
            .count_of_unknown(sorted.unknown.len(), at.look.ticks);
        looked.cpu_ns += self.cpu_since();
        let carried = sorted.drawn.len() + sorted.carried;
        // What it takes to meet new ones says nothing of later ticks.
        let cpu_ns = (!self.meets_some()).then_some(looked.cpu_ns);
        self.budget.met(sorted.unknown.len(), carried, cpu_ns);
        let of = (eligible, asked);
        let (count, failed) = self.look_at_some(of, &mut sorted.unknown, count, at);
        looked.count += count + sorted.drawn.len();
        self.told_by_sign += sorted.carried;
        looked.failed += failed;
        for index in &sorted.drawn {
            looked.failed += usize::from(!self.look_at(*index, weight_ns, at));
        }
    }

    /// Sorts `moved`, each of which stands for `weight_ns`, and counts the ticks of those who are
    /// not looked at.
    pub(super) fn sort_by_sign(&mut self, moved: &[u32], weight_ns: u64, at: &At<'_>) -> Sorted {
        let part = at.part(weight_ns, false);
        let chance = self.budget.chance(at.look.ticks);
        let mut sorted = Sorted::default();
        for index in moved {
            match self.carry(*index, chance, part, at) {
                None => sorted.unknown.push(*index),
                Some(true) => sorted.drawn.push(*index),
                Some(false) => sorted.carried += 1,
            }
        }
        sorted
    }

    /// Counts a tick of a thread by its sign. `None` if that tells nothing; true if it is drawn to
    /// be looked at, and does not count.
    fn carry(&mut self, index: u32, chance: f64, part: Part, at: &At<'_>) -> Option<bool> {
        let known = self.known.get_mut(index as usize)?;
        let record = self.setup.engine.record(index)?;
        let sign = self.looks.sign(record)?;
        let shown = known.classes.shown(sign, at.now_ns)?;
        if self.random.part() < chance {
            return Some(true);
        }
        let last = known.before.mark();
        // One that is no more has to be seen to be.
        self.kernel.note_moved(record, &mut known.before)?;
        let has_run = known.before.has_run_since(last);
        let runs = shown == Shown::Run;
        self.strata.note(index, has_run || runs, at.now_ns);
        self.ran |= runs;
        self.news |= has_run && !runs;
        known.carry(sign, at.now_ns, part, &mut at.shelf.lock());
        Some(false)
    }
}
