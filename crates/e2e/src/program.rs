//! Test programs in JVMs: started, talked to through their gate, and ended with their handle.

use crate::{Jdk, Place, agent, cpu_time, experiment_agent, java_file, silent};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A program that says nothing for so long is stuck.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Kinds of threads of the program `Waits`, and the cause of their waits.
pub const WAITS: [(&str, &str); 8] = [
    ("sleep-1", "sleep"),
    ("park-1", "park"),
    ("object-wait-1", "object-wait"),
    ("queue-1", "park"),
    ("monitor-1", "monitor"),
    ("lock-1", "lock"),
    ("socket-1", "socket"),
    ("pipe-1", "file"),
];

/// How a program is started.
pub struct Starter {
    command: Command,
    name: String,
    jar: PathBuf,
    arguments: Vec<String>,
    errors: PathBuf,
    agent: PathBuf,
}

impl Starter {
    /// The test program `name` on a JDK, with its gate on.
    #[must_use]
    pub fn new(jdk: &Jdk, place: &Place, name: &str) -> Starter {
        let jar = match name {
            "VirtualThreads" | "VirtualRequests" | "VirtualWaits" | "VirtualFew" | "Scopes" => {
                "dwell-testprograms-21.jar"
            }
            "OtelRequests" => "dwell-testprograms-otel.jar",
            _ => "dwell-testprograms.jar",
        };
        let mut command = Command::new(jdk.tool("java"));
        command
            .current_dir(&place.dir)
            .env_remove("JAVA_TOOL_OPTIONS");
        command.arg("-Xmx512m");
        if jdk.feature >= 22 {
            command.arg("--enable-native-access=ALL-UNNAMED");
        }
        if jdk.feature >= 21 {
            command.arg("-XX:+EnableDynamicAgentLoading");
        }
        Starter {
            command,
            name: format!("io.dwell.test.{name}"),
            jar: java_file(jar),
            arguments: vec!["gate=1".into()],
            errors: place.path(&format!("{name}.err")),
            agent: agent(),
        }
    }

    /// Adds an option of the JVM.
    #[must_use]
    pub fn jvm(mut self, option: &str) -> Starter {
        self.command.arg(option);
        self
    }

    /// Adds arguments of the program, divided by blanks.
    #[must_use]
    pub fn with(mut self, arguments: &str) -> Starter {
        self.arguments
            .extend(arguments.split_whitespace().map(str::to_owned));
        self
    }

    /// Loads the agent with these options.
    #[must_use]
    pub fn agent(self, options: &str) -> Starter {
        let path = self.agent.clone();
        self.jvm(&format!("-agentpath:{}={options}", path.display()))
    }

    /// The same, so that it records into this file from the start.
    #[must_use]
    pub fn recorded(self, options: &str, file: &Path) -> Starter {
        self.agent(&format!("start,{options},file={}", file.display()))
    }

    /// Loads the agent that has experiments, with these options.
    #[must_use]
    pub fn experiment(mut self, options: &str) -> Starter {
        self.agent = experiment_agent();
        self.agent(options)
    }

    /// Changes the command before it is run.
    #[must_use]
    pub fn change(mut self, change: impl FnOnce(&mut Command)) -> Starter {
        change(&mut self.command);
        self
    }

    /// Has it started by another program, which executes what its arguments end with.
    #[must_use]
    pub fn through(mut self, words: &[&str]) -> Starter {
        if let Some((program, rest)) = words.split_first() {
            let mut outer = Command::new(program);
            outer.args(rest).arg(self.command.get_program());
            outer.args(self.command.get_args());
            for (name, value) in self.command.get_envs() {
                match value {
                    Some(value) => outer.env(name, value),
                    None => outer.env_remove(name),
                };
            }
            if let Some(dir) = self.command.get_current_dir() {
                outer.current_dir(dir);
            }
            self.command = outer;
        }
        self
    }

    /// Starts it and waits until it is ready.
    #[must_use]
    pub fn start(mut self) -> Program {
        let errors = File::create(&self.errors).expect("a file for standard error");
        self.command
            .arg("-cp")
            .arg(&self.jar)
            .arg(&self.name)
            .args(&self.arguments);
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut child = self.command.spawn().expect("java starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        let pid = child.id();
        let errors = self.errors;
        let mut program = Program {
            child,
            pid,
            input,
            lines,
            errors,
            agent: self.agent,
            other: Vec::new(),
        };
        program.other = program.read_until("ready");
        program
    }
}

/// A program's own measurements, printed at its end.
#[derive(Debug, Default)]
pub struct Truths {
    /// CPU time by name.
    pub cpu_ns: BTreeMap<String, u64>,
    /// Facts; one name may have several.
    pub info: Vec<(String, String)>,
}

impl Truths {
    /// A truth that must be there.
    #[must_use]
    pub fn ns(&self, name: &str) -> u64 {
        *self
            .cpu_ns
            .get(name)
            .unwrap_or_else(|| panic!("no truth {name} in {self:?}"))
    }

    /// A fact that must be there, as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        let found = self.info.iter().find(|(key, _)| key == name);
        let (_, value) = found.unwrap_or_else(|| panic!("no info {name} in {self:?}"));
        value.parse().expect("a number")
    }
}

/// A program that runs; killed with this value if it still does.
pub struct Program {
    /// The JVM.
    pub child: Child,
    /// Its process id.
    pub pid: u32,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    errors: PathBuf,
    agent: PathBuf,
    /// Its output before it was ready.
    pub other: Vec<String>,
}

impl Program {
    fn read_until(&mut self, word: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            match self.lines.recv_timeout(SILENCE_MAX) {
                Ok(line) if line == word => return seen,
                Ok(line) => seen.push(line),
                // It has ended before its time, or hangs.
                Err(error) => must!(
                    false,
                    "waiting for {word:?}: {error}; it said {seen:?} and {}",
                    self.errors()
                ),
            }
        }
    }

    /// Lets it pass its gate.
    pub fn pass(&mut self) {
        let input = self.input.as_mut().expect("the gate is still there");
        input.write_all(b"\n").expect("it reads");
    }

    /// Reads its truths up to `done`; it then waits at the gate.
    #[must_use]
    pub fn truths(&mut self) -> Truths {
        let mut truths = Truths::default();
        for line in self.read_until("done") {
            let words = |tag: &str| line.strip_prefix(tag)?.rsplit_once(' ');
            if let Some((name, ns)) = words("truth ") {
                truths
                    .cpu_ns
                    .insert(name.to_owned(), ns.parse().expect("nanoseconds"));
            } else if let Some((name, value)) = words("info ") {
                truths.info.push((name.to_owned(), value.to_owned()));
            }
        }
        truths
    }

    /// The work from gate to gate.
    #[must_use]
    pub fn work(&mut self) -> Truths {
        self.pass();
        self.truths()
    }

    /// Lets it pass the last gate and end, which must succeed.
    pub fn end(mut self) {
        let status = self.exit();
        must!(status.success(), "{status}: {}", self.errors());
    }

    fn exit(&mut self) -> ExitStatus {
        drop(self.input.take());
        self.child.wait().expect("our child")
    }

    /// Its standard error.
    #[must_use]
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.errors).unwrap_or_default()).into_owned()
    }

    /// Sends a command to the agent by attach; the answer's lines, or the error's.
    ///
    /// # Errors
    /// What the agent answered as an error.
    pub fn attach(&self, options: &str) -> Result<String, String> {
        let target = dwell_attach::Target::examine(self.pid).expect("a JVM of ours");
        // It is a JVM that hangs that is looked for, not one that has to wait for a processor.
        let target = target.with_timeout(SILENCE_MAX);
        let reply = self.errors.with_extension("reply");
        let _ = std::fs::remove_file(&reply);
        let options = format!("{options},reply={}", reply.display());
        let code = target.load_agent(self.agent.to_str().expect("a plain path"), &options);
        let text = std::fs::read_to_string(&reply).unwrap_or_default();
        match (code, text.split_once('\n')) {
            (Ok(0), Some(("ok", rest))) => Ok(rest.to_owned()),
            (_, Some(("error", rest))) => Err(rest.trim_end().to_owned()),
            (code, _) => {
                let threads = silent::what_it_does(&target);
                let errors = self.errors();
                panic!("{options}: {code:?}, reply {text:?}; {errors}; {threads}")
            }
        }
    }

    /// The same where it must work.
    pub fn tell(&self, options: &str) -> String {
        self.attach(options)
            .unwrap_or_else(|error| panic!("{options}: {error}"))
    }

    /// Waits until the JVM has used so much more CPU time, however slow the machine is.
    ///
    /// # Panics
    /// When it does not.
    pub fn await_cpu(&self, time: Duration) {
        let used = || Duration::from_nanos(cpu_time(self.pid).total_ns());
        let (began, wanted) = (Instant::now(), used() + time);
        while used() < wanted {
            let patience = began.elapsed() < SILENCE_MAX;
            assert!(patience, "it used {:?} of {wanted:?}", used());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the recording has so many samples; says how many it has.
    ///
    /// # Panics
    /// When they do not come.
    pub fn await_samples(&self, wanted: u64) -> u64 {
        let began = Instant::now();
        loop {
            let status = self.tell("status");
            let samples = number_of(&status, "samples");
            if samples >= wanted {
                return samples;
            }
            let patience = began.elapsed() < SILENCE_MAX;
            assert!(patience, "only {samples} samples of {wanted}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("our child").is_none()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The number that a status says under this key.
///
/// # Panics
/// When it says none.
#[must_use]
pub fn number_of(status: &str, key: &str) -> u64 {
    let values = status.lines().filter_map(|line| line.split_once('='));
    let mut found = values.filter(|(name, _)| *name == key);
    let number = found.next().and_then(|(_, value)| value.parse().ok());
    number.unwrap_or_else(|| panic!("no {key} in {status}"))
}
