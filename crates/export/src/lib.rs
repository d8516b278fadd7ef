//! Profiles in the formats of other tools.
//!
//! Everything is written to a `Write` that the caller gives. This crate must not open files. Sums
//! of what it writes are those of the profile, and names reach the output only through
//! [`dwell_profile::plain`].

#![forbid(unsafe_code)]

mod otlp;
mod pprof;
mod sample_facts;
mod typed_values;
#[cfg(test)]
mod whole_profile;

pub use otlp::{Encoding, otlp};
pub use pprof::pprof;

/// What a profile does not say of its program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name; empty if it is not known.
    pub name: String,
    /// Names and values of attributes, which take the place of ours: those of
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub resource: Vec<(String, String)>,
}

/// The function of samples without a stack, as in collapsed stacks.
const NO_STACK: &str = "[no stack]";
