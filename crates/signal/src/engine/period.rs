//! Adjusts a free-running perf event so that it overflows at the next point.
//!
//! Such an event counts its period again and again, as long as it may send signals. Setting a
//! period restarts the event's timer, which is expensive. It is more expensive while the event is
//! enabled, as the running timer is removed first. So an event gets no more signals to send than
//! the block has points, and has disabled itself when its period is to change. A place further on
//! is reached in two steps: a period that leads there, then the windows' length.
//!
//! Pure arithmetic.

use crate::plan::EARLY_PART;

/// Signals that an event may send before one of them is answered. A thread that blocks the signal
/// has no more than this many pending. Then the event is disabled.
pub const CREDIT: u32 = 4;

/// Where an event stands in its handler.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The period the kernel has.
    pub period_ns: u64,
    /// How long the plan's windows are now.
    pub width_ns: u64,
    /// From now to the plan's next point.
    pub gap_ns: u64,
    /// Whether the next point is in the same block as the last one.
    pub steady: bool,
    /// Whether the event overflowed on time, so that it may continue from there.
    pub on_time: bool,
    /// Whether it has sent as many signals as it may, and is disabled, or may have: then it needs a
    /// period in any case.
    pub silenced: bool,
}

/// The period to give the kernel; `None` if it is right already.
#[inline]
#[must_use]
pub const fn to_set(standing: &Standing) -> Option<u64> {
    let Standing {
        period_ns,
        width_ns,
        gap_ns,
        steady,
        on_time,
        silenced,
    } = *standing;
    // Wherever it has strayed to, see `Plan::due`.
    if steady && period_ns == width_ns && (on_time || !silenced) {
        return if silenced { Some(width_ns) } else { None };
    }
    // Half a window late does no harm: the place does not depend on the program. Early does, as
    // the point would not be due. Also, a thread that is spared must not be woken early.
    let early_ns = if steady { width_ns / EARLY_PART } else { 0 };
    if gap_ns >= width_ns / 2 && gap_ns <= width_ns.saturating_add(early_ns) {
        return Some(width_ns);
    }
    Some(gap_ns)
}

/// Whether an event may have gone off more often than its thread had signals: a signal that is sent
/// while another one is pending is lost. `last_ns`, `before_ns`: CPU time at the thread's last
/// signal and at the one before. From one to the other there was room for two; or the handler,
/// which lasts until `now_ns`, is so long that the event may go off at its begin, since its timer
/// was late, and at its end.
#[inline]
#[must_use]
pub const fn may_have_merged(
    period_ns: u64,
    (last_ns, before_ns): (u64, u64),
    now_ns: u64,
) -> bool {
    let longest_ns = period_ns.saturating_add(period_ns / 2);
    // The event goes on until its period is set, somewhat after `now_ns`.
    let handler_ns = period_ns.saturating_sub(period_ns / 4);
    last_ns.saturating_sub(before_ns) >= longest_ns || now_ns.saturating_sub(last_ns) >= handler_ns
}

/// How many more signals to let an event send that may send `credit` more, if the block has `left`
/// more points. `in_step`: each of them will have a signal.
#[inline]
#[must_use]
pub const fn to_grant(credit: u32, left: u64, in_step: bool) -> u32 {
    let wanted = match (in_step, left < CREDIT as u64) {
        (false, _) => 1, // it goes to its place and stops there
        (true, true) => left as u32,
        (true, false) => CREDIT,
    };
    // Not each time: that is a system call.
    if credit > 1 || credit >= wanted {
        return 0;
    }
    wanted.wrapping_sub(credit)
}

#[cfg(test)]
#[path = "period_tests.rs"]
mod tests;
