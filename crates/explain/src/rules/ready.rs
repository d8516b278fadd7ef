//! Time of threads that ran or wanted to: of requests where they are known, else of all threads.

use crate::evidence::{Facts, IDLE, Kind, RUNNABLE, THROTTLED, is_ready};
use dwell_profile::{RUNNING, Weight};

/// The sums.
pub(super) struct Ready {
    /// Ready without a processor.
    pub runnable: Weight,
    /// Ready without quota.
    pub throttled: Weight,
    /// On a processor.
    pub ran: Weight,
    /// All of the time that the others are a part of.
    pub busy: Weight,
    /// Name of the whole.
    pub of: &'static str,
}

impl Ready {
    pub(super) fn of(facts: &Facts<'_>) -> Ready {
        let (kind, of) = match facts.has_endpoints() {
            true => (Kind::Endpoint, facts.all_busy_name()),
            false => (Kind::Threads, "the time that threads ran or wanted to"),
        };
        let mut sums = Ready {
            runnable: Weight::default(),
            throttled: Weight::default(),
            ran: Weight::default(),
            busy: Weight::default(),
            of,
        };
        for entry in &facts.entries {
            let subject = facts.subjects.get(entry.subject);
            if subject.is_none_or(|subject| subject.kind != kind) || entry.cause == IDLE {
                continue;
            }
            // Without requests, waiting threads may be idle, so only runnable and running time
            // counts.
            let wants_to_run = is_ready(entry.cause) || entry.cause == RUNNING;
            if kind == Kind::Endpoint || wants_to_run {
                sums.busy += &entry.weight;
            }
            match entry.cause {
                RUNNABLE => sums.runnable += &entry.weight,
                THROTTLED => sums.throttled += &entry.weight,
                RUNNING => sums.ran += &entry.weight,
                _ => {}
            }
        }
        sums
    }
}
