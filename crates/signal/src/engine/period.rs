//! What to do with a perf event that goes off by itself, so that it goes off at the next point.
//!
//! Such an event counts its period again and again; each signal gives it one more to send, and
//! nothing else as long as it is in step. Setting a period restarts the event's timer, which is
//! dear. A place further on is reached in two steps: a period that leads there, then the interval.
//!
//! Pure arithmetic.

use crate::plan::EARLY_PART;

/// Signals that an event may send before one of them is answered. A thread that blocks the signal
/// has so many pending at most, and the event is disabled.
pub const CREDIT: u32 = 4;

/// Where an event stands in its handler.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The period the kernel has.
    pub period_ns: u64,
    /// The plan's interval.
    pub interval_ns: u64,
    /// From now to the plan's next point.
    pub gap_ns: u64,
    /// Whether the next point is an interval after the one just taken.
    pub steady: bool,
}

/// The period to give the kernel; `None` if it has the right one.
#[inline]
#[must_use]
pub const fn to_set(standing: &Standing) -> Option<u64> {
    let Standing {
        period_ns,
        interval_ns,
        gap_ns,
        steady,
    } = *standing;
    let Some(early_ns) = interval_ns.checked_div(EARLY_PART) else {
        return Some(gap_ns);
    };
    // Half an interval late is no harm: which place it is does not depend on the program. Early
    // is, as the point would not be due.
    let in_step =
        steady && gap_ns >= interval_ns / 2 && gap_ns <= interval_ns.saturating_add(early_ns);
    match (in_step, period_ns == interval_ns) {
        (true, true) => None,
        (true, false) => Some(interval_ns),
        (false, _) => Some(gap_ns),
    }
}

#[cfg(test)]
#[path = "period_tests.rs"]
mod tests;
