//! Safepoints of a JVM that has counters only: sums since the last flush.

use super::COUNTERS;
use super::counters::{Counters, Sums};
use crate::hotspot::Setup;
use dwell_recorder::stops::{Shelf, Stop};
use dwell_recorder::sys::process;
use dwell_signal::Live;

/// Sums of the JVM's counters since the last flush, for a JVM that has counters only.
pub struct Counted {
    counters: Option<Counters>,
    before: Sums,
}

impl Counted {
    /// Begins now. Reports nothing if each safepoint is seen.
    #[must_use]
    pub fn new(setup: &Setup) -> Counted {
        let live = setup.engine.live();
        let vm = setup.recorder.runtime.vm();
        let counters = match vm.safepoints {
            Some(found) if found.are_noted() && found.futex(&live).is_some() => None,
            _ => Counters::find(&live, &vm.layout, &setup.about.version),
        };
        Counted {
            counters,
            before: counters.map_or(Sums::default(), |it| it.read(&live)),
        }
    }

    /// Reports the growth of the counters.
    ///
    /// A safepoint is counted at its request, and its times at its end. Times that come after the
    /// count are reported with the next safepoint, or alone if this is the last call.
    pub fn take(&mut self, live: &Live, shelf: &Shelf, is_last: bool) {
        let Some(counters) = self.counters else {
            return;
        };
        let now = counters.read(live);
        let since = now.since(&self.before);
        let has_rest = is_last && since != Sums::default();
        if since.count == 0 && !has_rest {
            return;
        }
        self.before = now;
        let now_ns = process::monotonic_ns();
        shelf.add(Stop {
            id: now.count,
            began_ns: now_ns.saturating_sub(since.reaching_ns + since.operation_ns),
            reaching_ns: since.reaching_ns,
            operation_ns: since.operation_ns,
            count: since.count,
            source: COUNTERS,
            ..Stop::default()
        });
    }
}
