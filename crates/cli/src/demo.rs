//! `dwell demo`: records a bundled service under its own load, like any other JVM.
//!
//! The service is a child in its own process group, so that Ctrl-C reaches only this process. It
//! ends with this process, or after a time limit if this process is killed.

use crate::args::{Demo, Engine, Event, Redaction, Sampling, Walk};
use crate::record::outputs::Outputs;
use crate::record::{attached, start_options};
use crate::{java, recording, sys, units};
use anyhow::{Context, Result, bail};
use dwell_attach::{Library, Target};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const JAR: Library<'static> = Library {
    name: "dwell-demo.jar",
    bytes: include_bytes!(env!("DWELL_DEMO_JAR_PATH")),
};
/// A few seconds must show many endpoints.
const WALL: Duration = Duration::from_millis(10);
const WALL_BUDGET: f64 = 3.0;
/// The load's clients are in the same process. Their waits for answers are not the service's, which
/// has no such connections.
const CLIENTS: [&str; 2] = [
    "io.dwell.demo.load.LoadClient.*",
    "sun.net.www.protocol.http.HttpURLConnection.*",
];
/// Callers of these rules of the service wait while they are compiled. Otherwise such waits only
/// occur in JVMs that compile before they run.
const COMPILED_BEFORE_USE: [&str; 2] = [
    "-XX:CompileCommand=quiet",
    "-XX:CompileCommand=option,io.dwell.demo.plugin.Rules::*,bool,BackgroundCompilation,false",
];
/// How long the service may take to warm up.
const READY_WAIT: Duration = Duration::from_secs(120);
/// The service's time limit beyond the recording, in case this process is killed.
const MARGIN: Duration = Duration::from_secs(120);
/// How long the service may take to end when asked.
const END_WAIT: Duration = Duration::from_secs(5);

/// Runs the demo.
pub fn run(args: &Demo) -> Result<()> {
    let java = java::find()?;
    let outputs = Outputs::prepare(Some(Path::new("dwell-demo")), "dwell-demo")?;
    let result = record(args, &java, &outputs);
    if result.is_err() {
        outputs.give_up();
    }
    result?;
    let profile = recording::load(Path::new("dwell-demo.jfr"))?;
    crate::print(&dwell_report::requests_text(&profile))?;
    crate::print(
        "\nOpen the .html in a browser, or: dwell view dwell-demo.jfr; \
         dwell report dwell-demo.jfr --text has details.\n",
    )
}

fn record(args: &Demo, java: &Path, outputs: &Outputs) -> Result<()> {
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    // The place of the agent's library: it is reused, and needs no removal.
    let jar = dwell_attach::place_locally(&JAR)?;
    note!("starting the demo service with {}", java.display());
    let service = Service::start(java, &jar, args.duration)?;
    let target = Target::examine(service.child.id())?;
    let mut event = vec![Event::Cpu, Event::Wall, Event::Lock];
    if service.samples_allocations {
        event.extend([Event::Alloc, Event::Live]);
    }
    let sampling = Sampling {
        interval: args.interval,
        event,
        wall: WALL,
        wall_threads: None,
        wall_budget: Some(WALL_BUDGET),
        filter: None,
        idle: CLIENTS.map(str::to_owned).to_vec(),
        late: units::LATE,
        alloc: None,
        alloc_rate: None,
        max_rate: None,
        lock: None,
        engine: Engine::Auto,
        walk: Walk::Snapshot,
        depth: 8192,
        redaction: Redaction::default(),
    };
    attached::run(
        target,
        &start_options(&sampling),
        Some(args.duration),
        outputs,
    )
}

/// The running service. It ends when this value is dropped.
struct Service {
    child: Child,
    /// Whether its JVM can sample allocations: JDK 8 cannot.
    samples_allocations: bool,
}

impl Service {
    /// Starts it and waits until it is warm.
    fn start(java: &Path, jar: &Path, duration: Duration) -> Result<Service> {
        let seconds = (duration + MARGIN).as_secs().min(24 * 3600).to_string();
        let mut child = Command::new(java)
            .args(COMPILED_BEFORE_USE)
            .arg("-jar")
            .arg(jar)
            .args(["--quiet", "--seconds", &seconds])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| java.display().to_string())?;
        sys::end_with_us(Some(&child));
        let stdout = child.stdout.take();
        let mut service = Service {
            child,
            samples_allocations: false,
        };
        let version = service.wait_until_ready(first_line(stdout))?;
        service.samples_allocations = !version.starts_with("1.");
        Ok(service)
    }

    /// Waits until it is warm. Returns its version of Java.
    fn wait_until_ready(&mut self, line: mpsc::Receiver<String>) -> Result<String> {
        let began = Instant::now();
        loop {
            match line.recv_timeout(Duration::from_millis(50)) {
                Ok(text) if text.starts_with("ready ") => {
                    let version = text.split_whitespace().nth(2);
                    return Ok(version.unwrap_or("1.").to_owned());
                }
                Ok(text) => bail!(
                    "the demo service said '{}'",
                    dwell_report::plain(text.trim())
                ),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().context("waiting for the demo service")?;
                    bail!("the demo service ended early ({status})");
                }
            }
            if sys::interrupted() {
                bail!("interrupted before anything was recorded");
            }
            if began.elapsed() > READY_WAIT {
                bail!(
                    "the demo service was not ready within {} s",
                    READY_WAIT.as_secs()
                );
            }
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        sys::signal_child(&self.child, libc::SIGTERM);
        let began = Instant::now();
        while began.elapsed() < END_WAIT {
            // Withdraws the pid before the wait, after which another process may get it.
            if !is_running(&self.child) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        sys::end_with_us(None);
        let _ = self.child.wait();
    }
}

/// Whether a child still runs. It is not reaped here.
fn is_running(child: &Child) -> bool {
    dwell_attach::Process::open(child.id()).is_ok_and(|process| process.is_alive())
}

/// The first line of the service's output, read on its own thread, which discards the other lines.
fn first_line(stdout: Option<ChildStdout>) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let Some(stdout) = stdout else { return };
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        if let Some(line) = lines.next() {
            // The receiver may have stopped waiting.
            let _ = sender.send(line);
        }
        lines.for_each(drop);
    });
    receiver
}
