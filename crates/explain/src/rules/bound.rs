//! Whether processors limit the program: only then do rules report CPU time.

use crate::evidence::{Facts, Kind, is_ready};
use dwell_profile::{RUNNING, Weight};

/// Least use in processors. A program below it has no code worth optimizing, and neither has a
/// method below it, unless a request waits for that method.
const LEAST: f64 = 0.03;
/// A program that waits nearly all the time is not bound by processors.
const RUNS: f64 = 0.10;

/// Whether the program uses enough CPU time for a change to help.
pub(super) fn matters(facts: &Facts<'_>) -> bool {
    let span_ns = facts.profile.info().duration_ns as f64;
    let is_little = facts.has_cpu_time() && (facts.program_total.sum as f64) < LEAST * span_ns;
    !is_little && is_bound(facts)
}

/// Whether a part of the CPU time is enough for a finding: a request waits for it, or it uses a
/// part of a processor.
pub(super) fn is_worth(facts: &Facts<'_>, part: &Weight) -> bool {
    let span_ns = facts.profile.info().duration_ns as f64;
    facts.has_endpoints() || !facts.has_cpu_time() || part.sum as f64 >= LEAST * span_ns
}

/// Whether processors are a part of the time worth telling; without wall time it is not known.
fn is_bound(facts: &Facts<'_>) -> bool {
    if facts.entries.is_empty() {
        return true;
    }
    let kind = match facts.has_endpoints() {
        true => Kind::Endpoint,
        false => Kind::Threads,
    };
    let mut runs = Weight::default();
    for entry in &facts.entries {
        let is_told = facts
            .subjects
            .get(entry.subject)
            .is_some_and(|s| s.kind == kind);
        if is_told && (entry.cause == RUNNING || is_ready(entry.cause)) {
            runs += &entry.weight;
        }
    }
    let span_ns = facts.profile.info().duration_ns.max(1) as f64;
    // Many idle threads must not hide a thread that runs all the time.
    let is_one_thread = runs.sum as f64 >= 0.5 * span_ns;
    is_one_thread || runs.share(&facts.all_busy()) >= RUNS
}
