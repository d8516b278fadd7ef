//! `dwell stacks`: the stacks of a JVM's threads, read from outside.

mod json;
mod of_jvm;
#[cfg(test)]
mod tests;
mod text;

use crate::args::Stacks;
use crate::{find, sys};
use anyhow::{Context, Result, bail};
use dwell_attach::Target;
use dwell_outside::dump::{Dumper, How, Options};
use dwell_outside::{Dump, Error, Live, Vm};
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
        stop: args.stop,
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
            advise(&dump, args);
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

/// Prints why running threads have no stack, with the remedy.
fn advise(dump: &Dump, args: &Stacks) {
    let without = dump
        .threads
        .iter()
        .filter(|thread| thread.how == How::NotSampled);
    let count = without.count();
    if let Some(why) = &dump.refusal
        && count > 0
        && !args.stop
    {
        note!(
            "dwell: {count} threads run and could not be sampled ({why}); run dwell as root, \
             lower kernel.perf_event_paranoid to 2, or add --stop"
        );
    }
}
