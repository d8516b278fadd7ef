//! Those who rest and whose turns can be read, asked in one go: a pass costs so little for each
//! that hundreds can be asked in each tick. Only those who have run are looked at.

use super::{At, Looked, RESTING_PART, Sampler, aim};
use crate::runtime::Runtime;

/// What asking one is taken to cost before one was asked.
pub(super) const EACH_NS: f64 = 60.0;
/// The part of what those who rest may cost that passes may.
const PASS_PART: f64 = 0.7;
/// At least once in so many ticks all are asked, whatever that costs: about a second.
const PASS_TICKS: u64 = 48;

impl<R: Runtime> Sampler<'_, R> {
    /// A tick of `span_ns` begins, or the `last` one: whether all of them are asked in it.
    pub(super) fn begin_pass(&mut self, span_ns: u64, last: bool) {
        self.rested_ns += span_ns;
        self.ends = last;
        let waited_ns = self.roll_call.wait(span_ns);
        self.is_pass_due = last || self.is_due(self.roll_call.len(), waited_ns);
    }

    /// Asks all of them whether they have run, where that is due, and looks at those who have.
    pub(super) fn look_at_counted(&mut self, at: &At<'_>) -> Looked {
        if !self.is_pass_due {
            return Looked::default();
        }
        let all = self.roll_call.len();
        let engine = self.setup.engine;
        let found = self.roll_call.pass(
            at.now_ns,
            |index, turns| {
                if let Some(record) = engine.record(index) {
                    turns.fetch(record);
                }
            },
            |index| engine.record(index).and_then(|record| engine.turns(record)),
        );
        self.kernel.add_told(all);
        self.followed += self.roll_call.len();
        let mut moved = Vec::new();
        let mut notes = at.shelf.lock();
        let owed = found
            .due
            .into_iter()
            .map(|(index, owed)| (index, Some(owed)));
        for (index, owed) in found.ran.iter().copied().chain(owed) {
            if let (Some(owed), Some(known)) = (owed, self.known.get_mut(index as usize)) {
                known.add_owed(&owed, &mut notes);
            }
        }
        drop(notes);
        for (index, _) in found.ran {
            self.strata.note(index, true, at.now_ns);
            moved.push(index);
        }
        let asked_ns = self.cpu_since();
        self.counting.spent(all, asked_ns);
        let count = self.resting.count(moved.len());
        let at = at.over(found.span_ns);
        let (count, failed) = self.look_at_some((all, all), &mut moved, count, &at);
        Looked {
            asked: all,
            count,
            failed,
            cpu_ns: asked_ns + self.cpu_since(),
            first_cpu_ns: 0,
        }
    }

    /// Whether so many may be asked after so much time, or have to be.
    fn is_due(&self, all: usize, waited_ns: u64) -> bool {
        let part = PASS_PART * RESTING_PART * aim(self.setup);
        let interval_ns = self.setup.options.wall_interval.as_nanos() as u64;
        self.counting.count(part * waited_ns as f64) >= all
            || waited_ns >= PASS_TICKS.saturating_mul(interval_ns)
    }
}
