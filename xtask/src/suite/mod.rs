//! `test`: every test of the repository, each by the rules of its kind. What `./test` runs.
//!
//! Tests are *exact* or *never* (one failure is red) or *measured* (alone on the machine; a failure
//! is repeated once, after everything else, and a pass then is listed as unstable; examples are
//! measured too, but tried beside other tests first). A Rust test
//! says its kind by the beginning of its name; see [`kind`]. Must not install anything: `./test`
//! does, before it.
//!
//! Read next: [`kind`], [`steps`] (what is not a Rust test), [`cargo`] (finds the Rust tests),
//! [`rotation`] (which tests are left to another run), [`process`] (runs one),
//! [`verdict`] (what the outcomes mean), [`run`](mod@run) (the order).

pub mod cargo;
pub mod kind;
pub mod options;
pub mod process;
pub mod rotation;
pub mod run;
pub mod steps;
pub mod verdict;

use anyhow::Result;

/// Runs the task; true if nothing failed.
///
/// # Errors
/// Wrong options, and a repository in which nothing can be run.
pub fn run(arguments: &[String]) -> Result<bool> {
    let options = options::Options::parse(arguments)?;
    run::run(&options)
}
