//! Profiles in the formats of other tools.
//!
//! Everything is written to a `Write` that the caller gives. This crate must not open files. Sums
//! of what it writes are those of the profile, and names reach the output only through
//! [`dwell_profile::plain`].

#![forbid(unsafe_code)]

mod pprof;

pub use pprof::pprof;
