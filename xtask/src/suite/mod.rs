//! `test`: all tests of the repository, by the rules of their kinds. `./test` runs it.
//!
//! Tests are *exact*, *never* or *measured*. One failure of an exact or never test is red. Measured
//! tests run alone on the machine. A failure is repeated once, at the end, and a pass then is
//! listed as unstable. Examples are measured too, but first run in parallel with other tests. The
//! name of a Rust test begins with its kind; see [`kind`]. Must not install anything: `./test` does
//! that before.
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
