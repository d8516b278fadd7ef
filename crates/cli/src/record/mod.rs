//! `dwell record`: of a running JVM ([`attached`], or [`outside`] without touching it), or of a
//! program started for it ([`launch`]).

pub mod attached;
pub mod launch;
pub mod outputs;
pub mod outside;
pub mod progress;

use crate::args::{Event, Filter, Record, Sampling};
use crate::ship::Afterwards;
use crate::{Usage, find, hint, units};
use anyhow::Result;
use std::process::ExitCode;

/// Runs the command.
pub fn run(args: &Record) -> Result<ExitCode> {
    if args.no_agent {
        outside::check(&args.sampling)?;
    }
    let receiver = Afterwards::of(&args.to)?;
    let target = match &args.jvm {
        Some(jvm) => find::target(jvm)?,
        None if !args.program.is_empty() => return launch::run(args, receiver),
        None => {
            let words: Vec<_> = std::env::args_os().skip(1).collect();
            if let Some(meant) = hint::program_without_dashes(&words) {
                return Err(Usage(meant).into());
            }
            let target = find::only_one()?;
            let main = target.jvm().main.as_deref().unwrap_or("?");
            let main = dwell_report::plain(main);
            eprintln!("dwell: recording the only JVM: {} {main}", target.jvm().pid);
            target
        }
    };
    let main = target.jvm().main.as_deref().unwrap_or("jvm");
    let outputs = outputs::Outputs::prepare(args.output.as_deref(), find::simple_name(main))?
        .redacting(args.sampling.redaction.secrets());
    match args.no_agent {
        true => outside::run(&target, args, &outputs)?,
        false => attached::run(
            target,
            &start_options(&args.sampling),
            args.duration,
            &outputs,
        )?,
    }
    if let Some(receiver) = receiver {
        receiver.send(std::slice::from_ref(&outputs.jfr), &outputs.secrets)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The agent's `start` options for sampling.
pub fn start_options(sampling: &Sampling) -> String {
    // CPU samples show where running threads are, so wall time needs them, too.
    let cpu = match sampling.has(Event::Cpu) {
        true => sampling.interval,
        false => sampling.wall,
    };
    let mut options = format!(
        "start,cpu={}ns,engine={},walk={},depth={}",
        cpu.as_nanos(),
        sampling.engine.word(),
        sampling.walk.word(),
        sampling.depth
    );
    if sampling.has(Event::Wall) {
        let wall = sampling.wall.as_nanos();
        options += &format!(",wall={wall}ns");
        if let Some(budget) = sampling.wall_budget {
            options += &format!(",wall-budget={budget}%");
        }
        if let Some(threads) = sampling.wall_threads {
            options += &format!(",wall-threads={threads}");
        }
        if let Some(Filter::Context) = sampling.filter {
            options += ",filter=context";
        }
        for method in &sampling.idle {
            options += &format!(",idle={method}");
        }
    }
    if let Some(bytes) = sampling.alloc_bytes() {
        options += &format!(",alloc={bytes}");
    }
    if let Some(bytes) = sampling.live_bytes() {
        options += &format!(",live={bytes}");
    }
    if let Some(rate) = sampling.alloc_rate {
        options += &format!(",alloc-rate={rate}");
    }
    if let Some(rate) = sampling.max_rate {
        options += &format!(",maxrate={rate}");
    }
    if let Some(interval) = sampling.lock_interval() {
        options += &format!(",lock={}ns", interval.as_nanos());
    }
    if sampling.late != units::LATE {
        options += &format!(",late={}ns", sampling.late.as_nanos());
    }
    options + &sampling.redaction.options()
}
