//! Names of the measure of a profile's samples.

use dwell_profile::{Measured, Profile};

/// Name of the samples' time, for use behind a number of seconds.
pub(crate) fn of_time(profile: &Profile) -> &'static str {
    match profile.info().measured {
        Measured::CpuTime => "of CPU time",
        Measured::Wall => "of running by the wall clock",
        Measured::Java | Measured::Native | Measured::Event(_) => "of samples",
    }
}
