//! Fields of events, as the readers here want them.

use dwell_jfr::reader::GenericEvent;

/// A number that cannot be negative in a recording that makes sense; 0 if it is not there.
pub(super) fn count(event: &GenericEvent, field: &str) -> u64 {
    let number = event.int(field).unwrap_or(0);
    u64::try_from(number).unwrap_or(0)
}
