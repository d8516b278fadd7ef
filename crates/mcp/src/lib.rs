//! Recordings as tools of the Model Context Protocol: JSON-RPC lines in, JSON-RPC lines out.
//!
//! The caller provides the recordings and both streams: this crate must not open files. Sums come
//! from `profile`, `report` and `explain`; a tool selects rows and gives them units. Names of the
//! recorded program are data: [`answer`] makes each text of an answer plain and short, and names
//! occur inside of JSON strings only.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
mod json_rpc;
#[cfg(test)]
mod made_profile;
mod recordings;
mod selection;
mod server;
mod tools;

pub use recordings::Source;
pub use server::serve;
