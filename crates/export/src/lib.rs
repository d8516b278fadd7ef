//! Profiles in the formats of other tools.
//!
//! All output goes to a `Write` of the caller. This crate must not open files. Sums of its output
//! are those of the profile, and names reach the output only through [`dwell_profile::plain`].

#![forbid(unsafe_code)]

mod comments;
mod firefox;
mod imported;
mod json_writer;
mod otlp;
mod parquet;
mod pprof;
mod sample_facts;
mod speedscope;
mod timeline;
mod typed_values;
#[cfg(test)]
mod whole_profile;

use dwell_profile::{Profile, plain};

pub use self::parquet::{TABLES, parquet};
pub use firefox::firefox;
pub use imported::{Refused, imported};
pub use otlp::{Encoding, otlp};
pub use pprof::{pprof, pyroscope};
pub use speedscope::speedscope;

/// Facts about the program that a profile lacks.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its name; empty if unknown.
    pub name: String,
    /// Names and values of attributes, which replace the default ones: those of
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub resource: Vec<(String, String)>,
}

impl Program {
    /// The name in the file.
    fn shown_name(&self, profile: &Profile) -> String {
        let names = [self.name.as_str(), &profile.info().jvm_name];
        let name = names.into_iter().find(|name| !name.is_empty());
        plain(name.unwrap_or("JVM"))
    }
}

/// The function of samples without a stack, as in collapsed stacks.
const NO_STACK: &str = "[no stack]";
