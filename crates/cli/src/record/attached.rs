//! Records a running JVM.
//!
//! The agent writes the file itself: directly to its place if it can, else to a temporary file in
//! the JVM's file system. This command holds that file open, so it can copy the file even after the
//! JVM and its container are gone.

use super::outputs::Outputs;
use super::progress::Progress;
use crate::agent::{self, Agent};
use crate::{lease, recording, sys, unanswered};
use anyhow::{Context, Result, bail};
use dwell_attach::Target;
use dwell_outside::perf_server::{self, PerfServer};
use std::fs::File;
use std::time::Duration;

/// Time between two checks of the clock, Ctrl-C and the JVM.
const PAUSE: Duration = Duration::from_millis(50);

/// Where the agent writes.
enum Sink {
    /// Directly to the requested place.
    Direct,
    /// To a file in the JVM's file system, to be copied.
    Staged { path: String, file: File },
}

/// How a recording ended.
enum End {
    /// The JVM ended.
    Jvm,
    /// This command or another one ended it; with the agent's write error, if known.
    Stopped { trouble: Option<String> },
}

impl End {
    /// The reason why nothing was recorded.
    fn without_recording(&self) -> String {
        match self {
            End::Jvm => "the JVM ended before anything was recorded".to_owned(),
            End::Stopped { trouble: None } => "nothing was recorded".to_owned(),
            End::Stopped {
                trouble: Some(trouble),
            } => format!("nothing was recorded: {trouble}"),
        }
    }
}

/// Records until the time is over, Ctrl-C, or the JVM's end; writes files and prints findings.
pub fn run(
    target: Target,
    start_options: &str,
    wanted: Option<Duration>,
    outputs: &Outputs,
) -> Result<()> {
    let result = record(target, start_options, wanted, outputs);
    if result.is_err() {
        outputs.give_up();
    }
    let end = result?;
    if !outputs.has_recording() {
        outputs.give_up();
        bail!(end.without_recording());
    }
    if let End::Stopped {
        trouble: Some(trouble),
    } = &end
    {
        note!("dwell: {trouble}; keeping what was written");
    }
    recording::write_page_and_findings(&outputs.jfr, &outputs.html, &outputs.secrets)
}

fn record(
    target: Target,
    start_options: &str,
    wanted: Option<Duration>,
    outputs: &Outputs,
) -> Result<End> {
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let agent = Agent::new(target)?;
    let mut sink = choose_sink(agent.target(), outputs)?;
    let path = match &sink {
        Sink::Direct => outputs.jfr.to_str().unwrap_or_default().to_owned(),
        Sink::Staged { path, .. } => path.clone(),
    };
    let limits = lease::options(wanted);
    let events = PerfEvents::offer(agent.target(), start_options);
    let socket = events.as_ref().map_or("", |events| &events.option);
    let started = agent.command(&format!("{start_options}{limits},file={path}{socket}"));
    if let Err(error) = started {
        discard(&agent, &sink);
        return Err(error);
    }
    let ended_alone = watch(&agent, wanted);
    let mut trouble = None;
    if !ended_alone {
        match agent.command("stop") {
            Ok(reply) => {
                if let Some(text) = unanswered::threads(&reply) {
                    note!("dwell: {text}");
                }
                let early = lease::early(&reply);
                trouble = early.or_else(|| reply.trouble().map(str::to_owned));
            }
            // Flushed data is in the file, and the user gets it in any case.
            Err(error) => note!("dwell: {error:#}; keeping what was written"),
        }
    }
    let end = match trouble.is_some() || agent.target().is_alive() {
        true => End::Stopped { trouble },
        false => End::Jvm,
    };
    drop(events);
    collect(&agent, &mut sink, outputs)?;
    discard(&agent, &sink);
    Ok(end)
}

/// Perf events for a JVM that may not open them, while this command may: in a container, or of a
/// user without the right. They end with the recording.
struct PerfEvents<'a> {
    target: &'a Target,
    path: String,
    /// The agent's option.
    option: String,
    /// Dropped before the socket is removed.
    server: Option<PerfServer>,
}

impl<'a> PerfEvents<'a> {
    /// None if they are of no use. A failure costs kernel frames and exact intervals only.
    fn offer(target: &'a Target, start_options: &str) -> Option<PerfEvents<'a>> {
        const TIMERS: &str = "engine=timer";
        let jvm = target.jvm();
        if start_options.contains(TIMERS) || !perf_server::is_useful(jvm.pid) {
            return None;
        }
        let name = format!("dwell-{}-{}", jvm.pid, agent::random_name());
        let listener = target.listen(&name, "perf").ok()?;
        let server = PerfServer::start(jvm.pid, jvm.ns_pid, listener.socket);
        Some(PerfEvents {
            target,
            option: format!(",perf-socket={}", listener.path),
            path: listener.path,
            server: server.ok(),
        })
    }
}

impl Drop for PerfEvents<'_> {
    fn drop(&mut self) {
        drop(self.server.take());
        let _ = self.target.remove_scratch(&self.path);
    }
}

fn choose_sink(target: &Target, outputs: &Outputs) -> Result<Sink> {
    let direct = outputs.jfr.to_str().is_some_and(agent::can_be_an_option);
    if direct && target.shares_files() {
        return Ok(Sink::Direct);
    }
    let name = format!("dwell-{}-{}", target.jvm().pid, agent::random_name());
    let scratch = target.scratch(&name, "recording.jfr")?;
    Ok(Sink::Staged {
        path: scratch.path,
        file: scratch.file,
    })
}

/// Waits for the end; `true` if the recording ended without this command.
fn watch(agent: &Agent, wanted: Option<Duration>) -> bool {
    let pid = agent.target().jvm().pid;
    let until = if wanted.is_some() {
        ""
    } else {
        " until Ctrl-C"
    };
    note!("recording JVM {pid}{until}");
    let mut progress = Progress::new(wanted);
    loop {
        if !agent.target().is_alive() {
            progress.clear();
            note!("JVM {pid} has ended; keeping what was recorded");
            return true;
        }
        if sys::interrupted() || progress.is_over() {
            progress.clear();
            return false;
        }
        if progress.is_due() {
            match agent.command(&lease::status()) {
                Ok(status) if status.get("ended").is_some_and(|why| why != "stop") => {
                    progress.clear();
                    return false;
                }
                Ok(status) if status.get("state") == Some("stopped") => {
                    progress.clear();
                    note!("the recording was stopped by another command");
                    return true;
                }
                Ok(status) => progress.show(&status),
                // The JVM is too busy to answer; the recording does not depend on it.
                Err(_) => progress.postpone(),
            }
        }
        std::thread::sleep(PAUSE);
    }
}

/// Moves the recording to its place.
fn collect(agent: &Agent, sink: &mut Sink, outputs: &Outputs) -> Result<()> {
    let Sink::Staged { path, file } = sink else {
        return Ok(());
    };
    if file.metadata().is_ok_and(|data| data.len() == 0)
        && let Ok(replaced) = agent::open_recording(agent.target(), path)
    {
        *file = replaced;
    }
    outputs.copy_from(file)
}

fn discard(agent: &Agent, sink: &Sink) {
    if let Sink::Staged { path, .. } = sink {
        // It remains only if the JVM's file system is gone as well.
        let _ = agent.target().remove_scratch(path);
    }
}
