//! `dwell safepoints`: shows a JVM's safepoints while they happen.
//!
//! This is a recording with few samples, in a temporary file of the JVM. The agent writes new data
//! once a second, and this command then reads the file again.

use crate::agent::{self, Agent};
use crate::args::Safepoints;
use crate::lease::{self, Lease};
use crate::{find, recording, sys};
use anyhow::{Context, Result, bail};
use dwell_profile::Profile;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::{Duration, Instant};

/// A long interval of CPU time, because samples are not needed.
const RECORDING: &str = "start,cpu=1s";
/// Time between two readings of the file; the agent writes once a second.
const LOOK: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);
/// A larger file is not read each second: then only the sums are printed.
const LIVE_BYTES_MAX: u64 = 64 << 20;

/// Runs until the time is over, Ctrl-C or the JVM's end.
pub fn run(args: &Safepoints) -> Result<()> {
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let agent = Agent::new(find::target(&args.jvm)?)?;
    let name = format!(
        "dwell-{}-{}",
        agent.target().jvm().pid,
        agent::random_name()
    );
    let scratch = agent.target().scratch(&name, "safepoints.jfr")?;
    let mut file = scratch.file;
    let limits = lease::options(args.duration);
    let started = agent.command(&format!("{RECORDING}{limits},file={}", scratch.path));
    let least_ns = args.least.as_nanos() as u64;
    let mut printed = Printed::default();
    let result = started.and_then(|_| {
        let shown = watch(args, &agent, &mut file, &mut printed);
        // The recording may have ended with the JVM.
        let _ = agent.command("stop");
        shown
    });
    // It remains only if the JVM's file system is gone as well.
    let _ = agent.target().remove_scratch(&scratch.path);
    result?;
    let Some(profile) = read(&mut file)? else {
        bail!("nothing was recorded");
    };
    // Safepoints since the last reading, and those that the agent had not written by then.
    let last = match is_small(&file) {
        true => printed.news(&profile, least_ns),
        false => String::new(),
    };
    let sums = dwell_report::safepoints_text(&profile);
    crate::print(&format!("{last}\n{sums}"))
}

/// Prints safepoints as they happen.
fn watch(args: &Safepoints, agent: &Agent, file: &mut File, printed: &mut Printed) -> Result<()> {
    let pid = agent.target().jvm().pid;
    let until = match args.duration {
        Some(_) => "",
        None => " until Ctrl-C",
    };
    note!("watching JVM {pid}{until}; one line per stop-the-world pause");
    let began = Instant::now();
    let least_ns = args.least.as_nanos() as u64;
    let mut look_at = began + LOOK;
    let mut lease = Lease::begin();
    loop {
        lease.keep(agent);
        let is_alive = agent.target().is_alive();
        let is_over = args
            .duration
            .is_some_and(|wanted| began.elapsed() >= wanted);
        if sys::interrupted() || is_over || !is_alive {
            return Ok(());
        }
        if Instant::now() >= look_at {
            look_at = Instant::now() + LOOK;
            if let Some(profile) = is_small(file).then(|| read(file)).transpose()?.flatten() {
                crate::print(&printed.news(&profile, least_ns))?;
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether the file is small enough for repeated readings.
fn is_small(file: &File) -> bool {
    let data = file.metadata();
    data.is_ok_and(|data| data.len() <= LIVE_BYTES_MAX)
}

/// The file's content; `None` if it is still empty.
fn read(file: &mut File) -> Result<Option<Profile>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    // The agent may be writing: the complete part is read now, and all of the file the next time.
    Ok(match bytes.is_empty() {
        true => None,
        false => recording::parsed(&bytes).ok(),
    })
}

/// Safepoints that were printed. One that waits for a late thread's stack comes after later ones.
#[derive(Default)]
struct Printed {
    times_ns: BTreeSet<u64>,
}

impl Printed {
    /// Longest delay of a safepoint in the file.
    const LATE_NS: u64 = 10_000_000_000;

    /// Lines for new safepoints of at least this duration.
    fn news(&mut self, profile: &Profile, least_ns: u64) -> String {
        let mut text = String::new();
        let newest_ns = self.times_ns.last().copied().unwrap_or(0);
        let oldest_ns = newest_ns.saturating_sub(Self::LATE_NS);
        for stop in profile.safepoints() {
            let is_new = stop.time_ns > oldest_ns && self.times_ns.insert(stop.time_ns);
            if is_new && stop.duration_ns() >= least_ns {
                let _ = writeln!(text, "{}", dwell_report::safepoint_line(profile, stop));
            }
        }
        self.times_ns = self.times_ns.split_off(&oldest_ns);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Safepoint};

    #[test]
    fn each_safepoint_is_printed_once() {
        let mut builder = Builder::default();
        let operation = builder.name("G1CollectFull");
        let stop = |time_ns, reaching_ns| Safepoint {
            time_ns,
            id: time_ns,
            operation,
            reaching_ns,
            operation_ns: 0,
            threads: 1,
            running: 1,
            count: 1,
            is_known: true,
        };
        builder.safepoints = vec![stop(1, 500), stop(2, 5000)];
        let mut printed = Printed::default();
        let first = printed.news(&builder.clone().finish(), 1000);
        assert_eq!(first.lines().count(), 1, "{first}");
        assert!(first.contains("G1CollectFull"), "{first}");
        builder.safepoints = vec![stop(1, 500), stop(2, 5000), stop(4, 7000)];
        let second = printed.news(&builder.clone().finish(), 1000);
        assert_eq!(second.lines().count(), 1, "{second}");
        assert!(second.contains("7.00 us"), "{second}");
        builder.safepoints.insert(2, stop(3, 9000));
        let third = printed.news(&builder.finish(), 1000);
        assert!(
            third.lines().count() == 1 && third.contains("9.00 us"),
            "{third}"
        );
    }
}
