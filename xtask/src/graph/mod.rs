//! `handler-graph`: proves on the built library that signal handlers reach nothing forbidden.
//!
//! Follows calls, tail calls and taken addresses from each handler through the machine code.
//! Reached code must not allocate, panic or lock. Imports, system calls and indirect calls must be
//! on the lists in [`rules`]. Must not be lenient: an undecidable place is a problem.

mod image;
mod rules;
mod travel;

pub use image::Image;
pub use rules::Rules;
pub use travel::{Report, walk};

use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Runs the task with its command-line arguments; true if all is well.
///
/// # Errors
/// Unusable arguments or a library that cannot be read.
pub fn run(arguments: &[String]) -> Result<bool> {
    let mut rules = Rules::for_dwell();
    let mut library = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == "--hook" {
            let symbol = arguments
                .next()
                .context("--hook needs the name of a symbol")?;
            rules.roots.push(symbol.clone());
        } else if argument.starts_with('-') || library.is_some() {
            bail!("handler-graph: unexpected argument {argument}");
        } else {
            library = Some(PathBuf::from(argument));
        }
    }
    let library = library.unwrap_or_else(default_library);
    let bytes = std::fs::read(&library).with_context(|| {
        // Cargo leaves out link-time optimisation for a library that is also built as an rlib, and
        // without it the compiler does not know that the hook cannot unwind.
        let build = "cargo rustc --release -p dwell-agent --crate-type cdylib";
        format!("{}: build it with `{build}`", library.display())
    })?;
    let image = Image::parse(&bytes).with_context(|| library.display().to_string())?;
    let report = walk(&image, &rules)?;
    print!("{report}");
    Ok(report.problems.is_empty())
}

fn default_library() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| crate::repository().join("target"), PathBuf::from);
    target.join("release/libdwell.so")
}
