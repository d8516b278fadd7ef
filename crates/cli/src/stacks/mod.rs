//! `dwell stacks`: the stacks of a JVM's threads, read from outside.

mod json;
mod of_jvm;
#[cfg(test)]
mod tests;
mod text;

use crate::args::Stacks;
use crate::{find, sys, units};
use anyhow::{Context, Result, bail};
use dwell_attach::Target;
use dwell_outside::dump::{Dumper, How, Options};
use dwell_outside::{Dump, Error, Live, Refusal, Stop, Vm};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// Time limit for running threads, which are sampled when they have used a little CPU time.
const RUNNING: Duration = Duration::from_millis(50);
/// Time between two checks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(20);

/// Prints the dumps.
pub fn run(args: &Stacks) -> Result<()> {
    let target = find::target(&args.jvm)?;
    let live = open(&target)?;
    if args.repeat > 1 {
        sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    }
    let mut vm = Vm::read(&target, &live)?;
    let options = Options {
        native: args.native,
        virtual_max: args.r#virtual.unwrap_or(0),
        running: RUNNING,
        stop: match args.stop {
            true => Stop::IfNotSampled,
            false => Stop::IfFiltered,
        },
    };
    let mut next = Instant::now();
    for look in 0..args.repeat {
        if look > 0 {
            vm.refresh();
        }
        let dump = Dumper::new(&vm).dump(&options);
        if dump.threads.is_empty() {
            if target.is_alive() {
                bail!(Error::Unreadable(target.jvm().pid));
            }
            bail!(Error::Ended(target.jvm().pid));
        }
        let text = match args.json {
            true => json::line(target.jvm(), &dump, args),
            false => text::whole(target.jvm(), &dump, args),
        };
        crate::print(&text)?;
        if look + 1 == args.repeat {
            if let Some(advice) = advice(&dump, args) {
                note!("dwell: {advice}");
            }
            break;
        }
        next += args.interval;
        while Instant::now() < next && !sys::interrupted() {
            std::thread::sleep(PAUSE.min(next.saturating_duration_since(Instant::now())));
        }
        if sys::interrupted() || !target.is_alive() {
            break;
        }
    }
    Ok(())
}

/// The memory of the target.
pub fn open(target: &Target) -> Result<Live> {
    let pid = target.jvm().pid;
    Live::open(pid).map_err(|why| match why.kind() {
        ErrorKind::NotFound => Error::Ended(pid).into(),
        _ => Error::Denied { pid, why }.into(),
    })
}

/// Why running threads have no stack, with the remedy, or why they were stopped.
fn advice(dump: &Dump, args: &Stacks) -> Option<String> {
    let why = dump.refusal.as_ref().filter(|_| !args.stop)?;
    let threads = |how: How| dump.threads.iter().filter(move |thread| thread.how == how);
    let counted = |how: How| match threads(how).count() {
        1 => "1 running thread".to_owned(),
        count => format!("{count} running threads"),
    };
    let is_any = |how: How| threads(how).next().is_some();
    if is_any(How::NotSampled) {
        let missing = counted(How::NotSampled);
        let remedy = why.remedy();
        let remedy = match (why, remedy) {
            // Stops were tried.
            (Refusal::Seccomp, Some(remedy)) => format!("cannot be stopped either; {remedy}"),
            (_, Some(remedy)) => format!("{remedy}, or add --stop"),
            (_, None) => "add --stop".to_owned(),
        };
        return Some(match why {
            Refusal::Seccomp => format!("{why}: {missing} {remedy}"),
            _ => format!("{missing} could not be sampled ({why}); {remedy}"),
        });
    }
    let longest = threads(How::Stopped)
        .filter_map(|thread| thread.stood)
        .max()?;
    let longest = units::short(longest.as_nanos() as u64);
    let stopped = counted(How::Stopped);
    Some(format!(
        "{why}: {stopped} stopped to be read, as with --stop (longest stop {longest})"
    ))
}
