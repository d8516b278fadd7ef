//! Idle time in one line, the same for tables and findings.

use crate::number::{count, duration, percent};
use dwell_profile::Idle;

/// How much of all wall time was idle, and of how many threads.
pub(crate) fn in_words(idle: &Idle) -> String {
    format!(
        "{}, {} of all wall time, of {} of {} threads",
        duration(idle.weight.sum),
        percent(idle.share()),
        count(idle.threads as u64),
        count(idle.all_threads as u64)
    )
}
