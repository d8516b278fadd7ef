//! One test or command in a process of its own: with a time limit and its output in a file. It
//! leaves no process running.
//!
//! It is the leader of a process group, which is killed when it is over: a test that hangs takes
//! its JVMs with it.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an exit code; true for 0.
    Exit(bool),
    /// It was killed after this time.
    TimedOut(Duration),
}

/// How a process ended, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub end: End,
    /// Its resources.
    pub took: Took,
}

/// The resources that a test or a part used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// From its begin to its end.
    pub time: Duration,
    /// CPU time of its own, and of those children that were waited for.
    pub cpu: Duration,
}

impl From<Duration> for Took {
    fn from(time: Duration) -> Took {
        Took {
            time,
            ..Took::default()
        }
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (time, cpu) = (self.time.as_secs_f64(), self.cpu.as_secs_f64());
        write!(f, "{time:6.1} s, {cpu:6.1} s of CPU time")
    }
}

/// Runs a command to its end, or kills it and its group after `limit`. Its output is in `log`.
///
/// # Errors
/// A command that cannot be started, a file that cannot be made.
pub fn run(command: &mut Command, limit: Duration, log: &Path) -> Result<Ended> {
    let output = File::create(log).with_context(|| log.display().to_string())?;
    let errors = output.try_clone()?;
    let began = Instant::now();
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .with_context(|| command.get_program().to_string_lossy().into_owned())?;
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let group = group.context("a process without an id")?;
    let is_over = wait(group, began, limit)?;
    let time = began.elapsed();
    // Whether it is over or not: nothing that it started may go on. Its own process has not been
    // waited for yet, so the group's number cannot be another's by now.
    let _ = kill_process_group(group, Signal::KILL);
    let cpu = cpu_time(child.id());
    let status = child.wait()?;
    let end = if is_over {
        End::Exit(status.success())
    } else {
        End::TimedOut(limit)
    };
    let took = Took { time, cpu };
    Ok(Ended { end, took })
}

/// The CPU time of a process that has ended and was not waited for, as its `stat` in `/proc` has it
/// (proc(5): `utime`, `stime`, `cutime`, `cstime`); none if that cannot be read.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let ticks: u64 = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|text| text.parse::<u64>().ok())
        .sum();
    let a_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / a_second)
}

/// Waits until it ends. False if it exceeds its time. Detects the end of short processes at once.
fn wait(pid: Pid, began: Instant, limit: Duration) -> Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let mut pause = Duration::from_micros(500);
    loop {
        if waitid(WaitId::Pid(pid), options)?.is_some() {
            return Ok(true);
        }
        if began.elapsed() >= limit {
            return Ok(false);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Ended, String) {
        let name = format!("suite-{}-{}", std::process::id(), script.len());
        let log = std::env::temp_dir().join(name);
        let mut command = Command::new("sh");
        let ended = run(command.args(["-c", script]), limit, &log).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(log).unwrap();
        (ended, text)
    }

    #[test]
    fn both_outputs_and_the_exit_code_are_kept() {
        let long = Duration::from_secs(60);
        let (ended, text) = shell("echo out; echo err >&2", long);
        assert_eq!((ended.end, text.as_str()), (End::Exit(true), "out\nerr\n"));
        let (ended, _) = shell("exit 3", long);
        assert_eq!(ended.end, End::Exit(false));
        let (ended, _) = shell("kill -SEGV $$", long);
        assert_eq!(ended.end, End::Exit(false));
    }

    /// Whether a process is there and is no zombie.
    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| {
            let state = rest.split_whitespace().next();
            state.is_some_and(|state| state != "Z")
        })
    }

    #[test]
    fn cpu_time_includes_the_childrens() {
        let script = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; sleep 0.3";
        let (ended, _) = shell(script, Duration::from_secs(60));
        let Took { time, cpu } = ended.took;
        assert!(cpu >= Duration::from_millis(20), "{cpu:?}");
        assert!(
            cpu + Duration::from_millis(280) <= time,
            "{cpu:?} of {time:?}"
        );
    }

    #[test]
    fn hanging_test_is_killed_with_its_children() {
        let limit = Duration::from_millis(300);
        let (ended, text) = shell("sleep 1000 & echo $!; echo said; wait", limit);
        assert_eq!(ended.end, End::TimedOut(limit));
        let pid = text.lines().next().unwrap();
        assert!(text.contains("said"), "{text}");
        for _ in 0..3000 {
            if !runs(pid) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{pid} still runs");
    }

    #[test]
    fn background_process_ends_with_its_test() {
        let (ended, text) = shell("sleep 1001 & echo $!", Duration::from_secs(60));
        assert_eq!(ended.end, End::Exit(true));
        let pid = text.trim();
        for _ in 0..3000 {
            if !runs(pid) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("{pid} still runs");
    }
}
