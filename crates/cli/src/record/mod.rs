//! `dwell record`: of a running JVM ([`attached`]), or of a program started for it ([`launch`]).

pub mod attached;
pub mod launch;
pub mod outputs;
pub mod progress;

use crate::args::{Record, Sampling};
use crate::find;
use anyhow::Result;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Record) -> Result<ExitCode> {
    match &args.jvm {
        Some(jvm) => {
            let target = find::target(jvm)?;
            let main = target.jvm().main.as_deref().unwrap_or("jvm");
            let outputs =
                outputs::Outputs::prepare(args.output.as_deref(), find::simple_name(main))?;
            attached::run(
                target,
                &start_options(&args.sampling),
                args.duration,
                &outputs,
            )?;
            Ok(ExitCode::SUCCESS)
        }
        None => launch::run(args),
    }
}

/// The part of the agent's `start` options that says how to sample.
pub fn start_options(sampling: &Sampling) -> String {
    format!(
        "start,cpu={}ns,engine={},walk={},depth={}",
        sampling.interval.as_nanos(),
        sampling.engine.word(),
        sampling.walk.word(),
        sampling.depth
    )
}
