//! Threads that are at places where they were seen before, as far as their signs tell (see
//! [`dwell_wall::signs`]): a tick of such a thread counts without a look, but for some that are
//! drawn.

use super::{At, Looked, Sampler};
use crate::runtime::Runtime;
use dwell_wall::grid;
use dwell_wall::runs::Part;
use dwell_wall::signs::Shown;

/// What becomes of a tick of a thread whose sign tells where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ByItsSign {
    /// It was drawn to be looked at all the same, and does not count.
    Drawn,
    Counted,
}

impl<R: Runtime> Sampler<'_, R> {
    /// Looks at those of `moved` whose place has to be seen, and at some of the others; `looked`
    /// tells what the tick has cost so far, and what it costs with that.
    ///
    /// Who is drawn is looked at before the next one's sign is read: a look takes a hundred times
    /// as long as a sign, and what a sign told is over after some.
    pub(super) fn look_by_sign(
        &mut self,
        (eligible, asked): (usize, usize),
        moved: &[u32],
        at: &At<'_>,
        looked: &mut Looked,
    ) {
        let weight_ns = grid::weight_ns(&at.look, eligible, asked);
        let part = at.part(weight_ns, false);
        let chance = self.budget.chance(at.look.ticks);
        let (mut unknown, mut carried, mut looks_cpu_ns) = (Vec::new(), 0, 0);
        for index in moved {
            let is_drawn = self.random.part() < chance;
            match self.count_by_sign(*index, is_drawn, part, at) {
                None => unknown.push(*index),
                Some(ByItsSign::Counted) => carried += 1,
                Some(ByItsSign::Drawn) => {
                    looked.cpu_ns += self.cpu_since();
                    looked.failed += usize::from(!self.look_at(*index, weight_ns, at));
                    looked.count += 1;
                    looks_cpu_ns += self.cpu_since();
                }
            }
        }
        let count = self.budget.count_of_unknown(unknown.len(), at.look.ticks);
        looked.cpu_ns += self.cpu_since();
        // What it takes to meet new ones says nothing of later ticks.
        let cpu_ns = (!self.meets_some()).then_some(looked.cpu_ns);
        let known = carried + looked.count;
        self.budget.met(unknown.len(), known, cpu_ns);
        self.told_by_sign += carried;
        let (count, failed) = self.look_at_some((eligible, asked), &mut unknown, count, at);
        looked.count += count;
        looked.failed += failed;
        looked.cpu_ns += looks_cpu_ns;
    }

    /// Reads the sign of a thread, and counts a tick of it by that, unless it is drawn. `None`: its
    /// place has to be seen.
    fn count_by_sign(
        &mut self,
        index: u32,
        is_drawn: bool,
        part: Part,
        at: &At<'_>,
    ) -> Option<ByItsSign> {
        let record = self.setup.engine.record(index)?;
        let (sign, context) = self.sign(record)?;
        let known = self.known.get_mut(index as usize)?;
        let shown = known.classes.shown(sign, at.now_ns)?;
        if is_drawn {
            return Some(ByItsSign::Drawn);
        }
        let last = known.before.mark();
        // One that is no more has to be seen to be.
        self.kernel.note_moved(record, &mut known.before)?;
        let has_run = known.before.has_run_since(last);
        let runs = shown == Shown::Run;
        self.strata.note(index, has_run || runs, at.now_ns);
        self.ran |= runs;
        self.news |= has_run && !runs;
        known.works_for(context.as_ref());
        known.carry(sign, part, &mut at.shelf.lock());
        Some(ByItsSign::Counted)
    }
}
