//! The command under test, busy JVMs for it, and a directory for each test.
#![allow(dead_code, missing_docs)]

#[path = "../../../../attach/tests/common/mod.rs"]
pub mod common;

use common::{Jdk, modern};
use dwell_jfr::writer::{ChunkWriter, Event};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Writes what a recording of CPU time, every 10 ms, of a JVM with these arguments begins with.
pub fn begin_recording(chunk: &mut ChunkWriter, jvm_arguments: &str, java_arguments: &str) {
    chunk.event(&Event::Recording {
        ticks: 0,
        version: "1",
        pid: 1,
        mode: "cpu",
        engine: "perf",
        engine_reason: "",
        cpu_interval_ns: 10_000_000,
        wall_interval_ns: 0,
        options: "",
    });
    chunk.event(&Event::JvmInformation {
        ticks: 0,
        jvm_name: "VM",
        jvm_version: "25",
        jvm_arguments,
        jvm_flags: "",
        java_arguments,
        jvm_start_epoch_ms: 0,
        pid: 1,
    });
}

/// Result of a command.
#[derive(Debug)]
pub struct Done {
    pub status: ExitStatus,
    pub out: String,
    pub err: String,
}

impl Done {
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Fails with the whole output unless the exit code is this.
    #[track_caller]
    pub fn exits(self, code: i32) -> Done {
        assert_eq!(self.code(), Some(code), "{self:?}");
        self
    }

    /// The error line. It must be the only line that begins with the command's name.
    #[track_caller]
    pub fn error(&self) -> &str {
        let lines: Vec<&str> = self
            .err
            .lines()
            .filter(|l| l.starts_with("dwell: "))
            .collect();
        assert_eq!(lines.len(), 1, "{self:?}");
        lines[0]
    }
}

/// Directory of one test, in which commands run. Removed at the end.
pub struct Place {
    pub dir: PathBuf,
}

impl Place {
    pub fn new(test: &str) -> Place {
        let dir = common::scratch_dir(test);
        Place { dir }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The command with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dwell"));
        command
            .args(args)
            .current_dir(&self.dir)
            .env_remove("JAVA_TOOL_OPTIONS");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command to its end.
    pub fn dwell(&self, args: &[&str]) -> Done {
        finish(self.command(args).spawn().unwrap())
    }

    /// Starts the command. Returns once it has printed `line` to standard error.
    pub fn dwell_until(&self, args: &[&str], line: &str) -> Child {
        self.started_until(&mut self.command(args), line)
    }

    /// The same for another program that starts it.
    pub fn started_until(&self, command: &mut Command, line: &str) -> Child {
        command.current_dir(&self.dir).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        wait_for(&mut stderr, line);
        // Keeps reading, so that the command never blocks on a full pipe.
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(drop));
        child
    }

    /// The names of the files in the directory.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.dir).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Fails unless a stack of the recording has the busy method.
    #[track_caller]
    pub fn has_busy_stack(&self, jfr: &str) {
        let out = format!("{jfr}.collapsed");
        self.dwell(&["convert", jfr, "-o", &out]).exits(0);
        let stacks = std::fs::read_to_string(self.path(&out)).unwrap();
        std::fs::remove_file(self.path(&out)).unwrap();
        assert!(
            stacks
                .lines()
                .any(|line| line.contains("Steady60.steadyRoot;")),
            "{stacks}"
        );
    }

    /// Samples of a recording, by dwell's own text report.
    #[track_caller]
    pub fn samples(&self, jfr: &str) -> u64 {
        let report = self.dwell(&["report", jfr, "--text"]).exits(0);
        let line = report
            .out
            .lines()
            .find_map(|line| line.strip_prefix("samples "))
            .unwrap();
        let digits: String = line
            .split("sample")
            .next()
            .unwrap()
            .chars()
            .filter(char::is_ascii_digit)
            .collect();
        digits.parse().unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Waits for a command's end and collects its output. The lines that a command prints only if its
/// work takes long are left out: that depends on the machine.
pub fn finish(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    // An error may end in a command to complete.
    let is_progress = |line: &&str| {
        let is_error = line.ends_with("java ...\n");
        line.starts_with("dwell: ") && line.ends_with(" ...\n") && !is_error
    };
    let lines = err.split_inclusive('\n');
    Done {
        status: output.status,
        out: String::from_utf8(output.stdout).unwrap(),
        err: lines.filter(|line| !is_progress(line)).collect(),
    }
}

/// Reads lines up to the one that begins like this.
pub fn wait_for(lines: &mut impl BufRead, start: &str) {
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        assert_ne!(
            lines.read_line(&mut line).unwrap(),
            0,
            "ended without {start:?}: {seen}"
        );
        if line.starts_with(start) {
            return;
        }
        seen.push_str(&line);
    }
}

/// Sends a signal to a process that the test has started.
pub fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The jar with the test programs, from the build scripts.
pub fn programs() -> PathBuf {
    let jar =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/java/dwell-testprograms.jar");
    jar.canonicalize()
        .expect("target/java/dwell-testprograms.jar; java/build.sh makes it")
}

/// Command line of a program that burns CPU in `steadyRoot` for so many seconds.
pub fn busy_words(seconds: u32) -> Vec<String> {
    busy_words_of(&programs(), seconds)
}

fn busy_words_of(jar: &Path, seconds: u32) -> Vec<String> {
    let jar = jar.to_str().unwrap().to_owned();
    let words = [
        "-cp",
        &jar,
        "io.dwell.test.Steady60",
        &format!("seconds={seconds}"),
    ];
    words.map(str::to_owned).to_vec()
}

/// Longer than any test takes on a slow machine. A test ends its programs, and the runner those of
/// a test that hangs.
const LONG_SECONDS: u32 = 600;

/// Command line of a program whose only thread sleeps.
fn resting_words_of(jar: &Path) -> Vec<String> {
    let jar = jar.to_str().unwrap();
    let seconds = format!("seconds={LONG_SECONDS}");
    let words = ["-cp", jar, "io.dwell.test.Idle", "threads=1", &seconds];
    words.map(str::to_owned).to_vec()
}

fn copy_of_programs() -> PathBuf {
    let copy = common::scratch_dir("programs").join("programs.jar");
    std::fs::copy(programs(), &copy).unwrap();
    copy
}

/// A JVM that burns CPU, or an idle one. It ends when dropped.
pub struct Busy {
    pub child: Child,
    pub pid: u32,
    output: BufReader<ChildStdout>,
}

impl Busy {
    pub fn start(jdk: &Jdk) -> Busy {
        Busy::with(Command::new(jdk.java()), busy_words(LONG_SECONDS))
    }

    /// An idle JVM, for tests that do not depend on its work, so that other tests get the
    /// processor.
    pub fn resting(jdk: &Jdk) -> Busy {
        Busy::with(Command::new(jdk.java()), resting_words_of(&programs()))
    }

    /// Runs it as another user or in a container: `command` gets the JVM's command line as
    /// arguments. Only its owner may be able to read the repository.
    pub fn elsewhere(command: Command) -> Busy {
        Busy::with(command, busy_words_of(&copy_of_programs(), LONG_SECONDS))
    }

    /// The same, but idle.
    pub fn resting_elsewhere(command: Command) -> Busy {
        Busy::with(command, resting_words_of(&copy_of_programs()))
    }

    fn with(mut command: Command, words: Vec<String>) -> Busy {
        command
            .args(words)
            .env_remove("JAVA_TOOL_OPTIONS")
            .current_dir("/");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        wait_for(&mut output, "ready");
        let pid = child.id();
        Busy { child, pid, output }
    }

    pub fn pid(&self) -> String {
        self.pid.to_string()
    }

    #[track_caller]
    pub fn assert_running(&mut self) {
        assert!(
            self.child.try_wait().unwrap().is_none(),
            "the JVM has ended"
        );
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition is true, up to a time limit.
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "{what} did not come about"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Turns the events of waits off, which the launcher and the JVM have as well.
const NO_WAITS: &str = ",jdk.JavaMonitorEnter#enabled=false,jdk.JavaMonitorWait#enabled=false,\
                        jdk.ThreadPark#enabled=false,jdk.ThreadSleep#enabled=false,\
                        jdk.FileRead#enabled=false,jdk.FileWrite#enabled=false,\
                        jdk.FileForce#enabled=false";

/// Makes `jdk.jfr` with the JDK's own recorder, without waits.
pub fn record_by_the_jdk(place: &Place) {
    let busy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jfr/tests/java/Busy.java");
    let done = Command::new(modern().java())
        .arg(format!(
            "-XX:StartFlightRecording:filename=jdk.jfr,settings=profile{NO_WAITS}"
        ))
        .arg(busy)
        .arg("2500")
        .current_dir(&place.dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// Makes `traced.jfr` of a program that waits, transfers and throws as it is known beforehand.
pub fn record_traced_by(jdk: &Jdk, place: &Place) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jfr/tests/java/Traced.java");
    let compiled = Command::new(jdk.home.join("bin/javac"))
        .args(["-d", "classes"])
        .arg(program)
        .current_dir(&place.dir)
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let of_version = match jdk.feature >= 25 {
        true => {
            ",jdk.JavaExceptionThrow#throttle=off,method-trace=Traced::takeLock,\
             method-timing=Traced::awaitSignal"
        }
        false => "",
    };
    let done = Command::new(jdk.java())
        .arg(format!(
            "-XX:StartFlightRecording:filename=traced.jfr,settings=profile,\
             jdk.FileRead#threshold=0ns,jdk.FileWrite#threshold=0ns,\
             jdk.JavaExceptionThrow#enabled=true{of_version}"
        ))
        .args(["-cp", "classes", "Traced", "transferred.bin"])
        .current_dir(&place.dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}
