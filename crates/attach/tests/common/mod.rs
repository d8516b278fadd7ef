//! JVMs for tests: found, started, and ended by the handle that started them.
#![allow(dead_code, missing_docs)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// One JDK of this machine.
#[derive(Debug, Clone)]
pub struct Jdk {
    pub feature: u32,
    pub home: PathBuf,
}

impl Jdk {
    pub fn java(&self) -> PathBuf {
        self.home.join("bin/java")
    }
}

/// JDKs below `DWELL_JDKS` (or its default place), `JAVA_HOME` and `/usr/lib/jvm`, one per feature
/// release.
pub fn jdks() -> Vec<Jdk> {
    static FOUND: OnceLock<Vec<Jdk>> = OnceLock::new();
    FOUND.get_or_init(find_jdks).clone()
}

fn find_jdks() -> Vec<Jdk> {
    let cache = std::env::var_os("DWELL_JDKS")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/dwell-jdks")));
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME")
        .map(PathBuf::from)
        .into_iter()
        .collect();
    for dir in cache.into_iter().chain([PathBuf::from("/usr/lib/jvm")]) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        homes.extend(entries.map(|entry| entry.path()));
    }
    let mut found: Vec<Jdk> = Vec::new();
    for home in homes {
        // Links may lead through directories that other users may not enter.
        let Ok(home) = home.canonicalize() else {
            continue;
        };
        if !home.join("bin/java").exists() {
            continue;
        }
        let Some(feature) = feature_of(&home) else {
            continue;
        };
        if is_asked_for(feature) && found.iter().all(|jdk| jdk.feature != feature) {
            found.push(Jdk { feature, home });
        }
    }
    found.sort_by_key(|jdk| jdk.feature);
    assert!(
        !found.is_empty(),
        "these tests need a JDK: set JAVA_HOME or DWELL_JDKS"
    );
    found
}

/// Whether tests use this feature release: one of `DWELL_TEST_JDKS`, or any.
fn is_asked_for(feature: u32) -> bool {
    std::env::var("DWELL_TEST_JDKS").map_or(true, |all| {
        all.split(',').any(|one| one.trim() == feature.to_string())
    })
}

fn feature_of(home: &Path) -> Option<u32> {
    let release = std::fs::read_to_string(home.join("release")).unwrap_or_default();
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
    if let Some(version) = line {
        return dwell_attach::version::feature(version.trim_end_matches('"'));
    }
    let output = Command::new(home.join("bin/java"))
        .arg("-version")
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    dwell_attach::version::feature(text.split('"').nth(1)?)
}

/// The oldest JDK from 17 on, the minimum of most users.
pub fn modern() -> Jdk {
    let all = jdks();
    let modern = all.iter().find(|jdk| jdk.feature >= 17).or(all.last());
    modern.expect("a JDK").clone()
}

/// Directory with the class of the test program, compiled once for every JDK. With
/// `DWELL_TEST_SHARED`, it is compiled once for all tests of a run.
pub fn classes() -> PathBuf {
    static DONE: Mutex<()> = Mutex::new(());
    let _one_at_a_time = DONE.lock().unwrap();
    let shared = std::env::var_os("DWELL_TEST_SHARED").map(PathBuf::from);
    let dir = shared.unwrap_or_else(|| scratch_dir("classes"));
    let class = dir.join("Waiter.class");
    if !class.exists() {
        std::fs::create_dir_all(&dir).unwrap();
        let new = scratch_dir("new-classes");
        compile(&new);
        // Other tests may compile at the same time, so the file appears whole or not at all.
        let here = dir.join(format!(".Waiter.{}", std::process::id()));
        std::fs::copy(new.join("Waiter.class"), &here).unwrap();
        std::fs::rename(here, class).unwrap();
    }
    dir
}

fn compile(to: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../attach/tests/java/Waiter.java");
    let with_javac = jdks()
        .into_iter()
        .find(|jdk| (11..=17).contains(&jdk.feature) && jdk.home.join("bin/javac").exists());
    let home = with_javac.unwrap_or_else(modern).home;
    let mut command = Command::new(home.join("bin/javac"));
    command
        .args(["--release", "8", "-Xlint:-options", "-d"])
        .arg(to)
        .arg(source);
    assert!(command.status().expect("javac").success());
}

/// An empty directory of this test process, readable by all users.
pub fn scratch_dir(name: &str) -> PathBuf {
    static CLEANED: OnceLock<()> = OnceLock::new();
    CLEANED.get_or_init(remove_left_over_dirs);
    let dir = PathBuf::from(format!("/tmp/dwell-test-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Removes directories of test processes that have exited.
fn remove_left_over_dirs() {
    for entry in std::fs::read_dir("/tmp").unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some((_, pid)) = name.rsplit_once('-') else {
            continue;
        };
        if name.starts_with("dwell-test-") && !Path::new("/proc").join(pid).exists() {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A JVM that waits until its standard input closes; killed with this value.
pub struct Running {
    child: Child,
    pub pid: u32,
    output: BufReader<std::process::ChildStdout>,
}

/// How a JVM for a test is started.
pub struct Start {
    jdk: Jdk,
    options: Vec<String>,
    env: Vec<(String, String)>,
    wrapper: Vec<String>,
    uid: Option<u32>,
}

impl Start {
    pub fn new(jdk: &Jdk) -> Start {
        Start {
            jdk: jdk.clone(),
            options: vec![],
            env: vec![],
            wrapper: vec![],
            uid: None,
        }
    }

    pub fn option(mut self, option: &str) -> Start {
        self.options.push(option.to_owned());
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Start {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn uid(mut self, uid: u32) -> Start {
        self.uid = Some(uid);
        self
    }

    /// Starts the JVM as a child of this program (such as `unshare --fork`).
    pub fn wrapper(mut self, words: &[&str]) -> Start {
        self.wrapper = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Starts it and waits for its first line, which it prints from `main`.
    pub fn run(self) -> Running {
        use std::os::unix::process::CommandExt;
        let mut words = self.wrapper.clone();
        words.push(self.jdk.java().to_str().unwrap().to_owned());
        words.extend(self.options.iter().cloned());
        words.extend([
            "-cp".to_owned(),
            classes().to_str().unwrap().to_owned(),
            "Waiter".to_owned(),
        ]);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.env.clone());
        command.env_remove("JAVA_TOOL_OPTIONS").envs(self.env);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .current_dir("/");
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        let began = std::time::SystemTime::now();
        let mut child = command.spawn().expect("java");
        let output = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id();
        let mut running = Running { child, pid, output };
        running.wait_for("waiting");
        if !self.wrapper.is_empty() {
            running.pid = only_child(pid);
        }
        forget_namesake(running.pid, began);
        running
    }
}

/// A killed JVM leaves its socket behind, and this JVM may have its number. A JVM of another user
/// cannot remove a socket of root.
fn forget_namesake(pid: u32, began: std::time::SystemTime) {
    let socket = Path::new("/tmp").join(format!(".java_pid{pid}"));
    let is_older = std::fs::symlink_metadata(&socket)
        .and_then(|found| found.modified())
        .is_ok_and(|modified| modified < began);
    if is_older {
        let _ = std::fs::remove_file(socket);
    }
}

impl Running {
    /// Reads lines until one starts with `text`; returns all of them.
    pub fn wait_for(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).unwrap();
            assert_ne!(count, 0, "the JVM ended before it said {text:?}: {lines:?}");
            if line.starts_with(text) {
                return lines;
            }
            lines.push(line);
        }
    }

    /// Makes the program print its next line; returns the lines before it.
    pub fn lines_until_pong(&mut self) -> Vec<String> {
        use std::io::Write;
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(b"ping\n")
            .unwrap();
        self.wait_for("pong")
    }

    /// Whether it still runs and answers.
    pub fn assert_untouched(&mut self) {
        let lines = self.lines_until_pong();
        assert!(lines.is_empty(), "the JVM printed {lines:?}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The single process that `parent` has started.
fn only_child(parent: u32) -> u32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace()
        .next()
        .expect("a child")
        .parse()
        .unwrap()
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
