//! Records a JVM from outside, without an agent, signals or stopped threads.

use super::outputs::Outputs;
use super::progress::Progress;
use crate::args::{Engine, Event, Record, Sampling, Walk};
use crate::{Usage, recording, sys, units};
use anyhow::{Context, Result, bail};
use dwell_attach::Target;
use dwell_outside::record::{Recorder, Sum, Wanted};
use dwell_outside::{Live, Vm};
use dwell_profile::{count, plural};
use std::time::Duration;

/// Default share of one CPU for wall-clock samples, in percent. A read from outside costs about ten
/// times as much as one by the agent, and takes no time of the program's own threads.
const WALL_BUDGET: f64 = 5.0;
/// Time between two checks of the clock, Ctrl-C and the JVM.
const PAUSE: Duration = Duration::from_millis(50);

/// Records until the time is over, Ctrl-C, or the JVM's end; writes files and prints findings.
pub fn run(target: &Target, args: &Record, outputs: &Outputs) -> Result<()> {
    let result = record(target, args, outputs);
    if !matches!(&result, Ok(sum) if sum.samples + sum.looks > 0) {
        outputs.give_up();
    }
    let sum = result?;
    if !outputs.has_recording() {
        bail!("nothing was recorded");
    }
    if sum.lost > 0 {
        note!(
            "dwell: {} were lost: this machine is too busy",
            plural(sum.lost, "sample")
        );
    }
    recording::write_page_and_findings(&outputs.jfr, &outputs.html, &outputs.secrets)
}

/// Refuses what only the agent can do.
pub fn check(sampling: &Sampling) -> Result<(), Usage> {
    let refused = [
        (sampling.filter.is_some(), "--filter"),
        (sampling.engine != Engine::Auto, "--engine"),
        (sampling.walk != Walk::Snapshot, "--walk"),
        (!sampling.idle.is_empty(), "--idle"),
        (sampling.wall_threads.is_some(), "--wall-threads"),
        (sampling.late != units::LATE, "--late"),
        (sampling.live_bytes().is_some(), "-e live"),
        (sampling.alloc_bytes().is_some(), "-e alloc"),
        (sampling.lock_interval().is_some(), "-e lock"),
    ];
    match refused.iter().find(|(is_there, _)| *is_there) {
        Some((_, option)) => Err(Usage(format!(
            "{option}: needs the agent; leave it out, or leave --no-agent out"
        ))),
        None => Ok(()),
    }
}

/// The recorder's settings.
pub fn wanted(sampling: &Sampling) -> Wanted {
    Wanted {
        // CPU samples show where running threads are, so wall time needs them, too.
        cpu: match sampling.has(Event::Cpu) {
            true => sampling.interval,
            false => sampling.wall,
        },
        wall: sampling.has(Event::Wall).then_some(sampling.wall),
        wall_budget: sampling.wall_budget.unwrap_or(WALL_BUDGET),
        depth: sampling.depth as usize,
        version: env!("CARGO_PKG_VERSION"),
        options: "--no-agent".to_owned(),
        secrets: sampling.redaction.secrets(),
    }
}

fn record(target: &Target, args: &Record, outputs: &Outputs) -> Result<Sum> {
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let live: Live = crate::stacks::open(target)?;
    let mut vm = Vm::read(target, &live)?;
    let mut recorder = Recorder::start(&mut vm, outputs.claim()?, wanted(&args.sampling))?;
    let pid = target.jvm().pid;
    let until = match args.duration {
        Some(_) => "",
        None => " until Ctrl-C",
    };
    note!("recording JVM {pid} from outside{until}");
    let mut progress = Progress::new(args.duration);
    loop {
        if !target.is_alive() {
            progress.clear();
            note!("JVM {pid} has ended; keeping what was recorded");
            break;
        }
        if sys::interrupted() || progress.is_over() {
            progress.clear();
            break;
        }
        recorder.step(PAUSE)?;
        if progress.is_due() {
            progress.say(&line(&recorder.sum()));
        }
    }
    Ok(recorder.end()?)
}

fn line(sum: &Sum) -> String {
    let (samples, looks) = (count(sum.samples), count(sum.looks));
    let mut text = format!(", {samples} samples, {looks} wall samples");
    for (number, label) in [(sum.failed, "failed"), (sum.lost, "lost")] {
        if number > 0 {
            text.push_str(&format!(", {} {label}", count(number)));
        }
    }
    text
}
