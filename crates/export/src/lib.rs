//! Profiles in the formats of other tools.
//!
//! All output goes to a `Write` of the caller. This crate must not open files. Sums of its output
//! are those of the profile, and names reach the output only through [`dwell_profile::plain`].

#![forbid(unsafe_code)]

mod otlp;
mod parquet;
mod pprof;
mod sample_facts;
mod typed_values;
#[cfg(test)]
mod whole_profile;

pub use self::parquet::{TABLES, parquet};
pub use otlp::{Encoding, otlp};
pub use pprof::pprof;

/// Facts about the program that a profile lacks.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name; empty if unknown.
    pub name: String,
    /// Names and values of attributes, which replace the default ones: those of
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub resource: Vec<(String, String)>,
}

/// The function of samples without a stack, as in collapsed stacks.
const NO_STACK: &str = "[no stack]";
