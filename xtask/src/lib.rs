//! Project tasks as functions, so that tests can run them too.
//!
//! Read next: [`graph`] (code in reach of signal handlers), [`package`] (packages of the products),
//! [`portable`] (libcs with which files load), [`tidy`] (the house rules), [`suite`] (all tests, by
//! the rules of their kinds).
#![forbid(unsafe_code)]

pub mod graph;
pub mod package;
pub mod portable;
pub mod suite;
pub mod tidy;

use std::path::{Path, PathBuf};

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
