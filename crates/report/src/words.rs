//! Words for what the samples of a profile measure.

use dwell_profile::{Measured, Profile};

/// What time of samples is, behind a number of seconds.
pub(crate) fn of_time(profile: &Profile) -> &'static str {
    match profile.info().measured {
        Measured::CpuTime => "of CPU time",
        Measured::Wall => "of running by the wall clock",
        Measured::Java | Measured::Native | Measured::Event(_) => "of samples",
    }
}
