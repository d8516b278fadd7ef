//! Reads stretches of time of all kinds.

use super::GAPS_MAX;
use crate::builder::Builder;
use crate::counts::count;
use crate::stretches::{Fact, Stretch};
use dwell_jfr::kinds::KINDS;
use dwell_jfr::reader::{Cell, Recording};

/// Takes those of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording) {
    for (place, kind) in KINDS.iter().enumerate() {
        let mut all = kind.stretches(recording);
        for told in all.by_ref().take(GAPS_MAX) {
            let fact = |cell: &Cell| match cell {
                Cell::Text(text) => Fact::Text(builder.name(text)),
                Cell::Number(number) => Fact::Number(*number),
                Cell::Thread(thread) => Fact::Thread(*thread),
                Cell::Other => Fact::Nothing,
            };
            let stretch = Stretch {
                time_ns: told.time_ns,
                duration_ns: told.duration_ns,
                facts: told.cells.iter().map(fact).collect(),
            };
            builder.stretches.add_at(place, stretch);
        }
        let rest = all.count();
        if rest > 0 {
            let (what, all) = (kind.words.one, count((rest + GAPS_MAX) as u64));
            let first = count(GAPS_MAX as u64);
            builder.warnings.push(format!(
                "only the first {first} of {all} {what}s are summed up and shown"
            ));
        }
    }
}
