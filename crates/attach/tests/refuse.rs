//! Cases that must be refused, with the target unchanged.
#![allow(missing_docs)]

mod common;

use common::{Start, modern};
use dwell_attach::{Error, Target};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// A process of the test's own that is not a JVM.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Sleeper {
        Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn process_that_is_not_a_jvm_survives() {
    let mut sleeper = Sleeper::new();
    let error = Target::examine(sleeper.0.id()).unwrap_err();
    assert!(matches!(error, Error::NotJvm { .. }), "{error}");
    assert!(
        error.to_string().contains("(sleep) is not a JVM"),
        "{error}"
    );
    assert_eq!(sleeper.0.try_wait().unwrap(), None);
}

#[test]
fn unused_pids_are_reported() {
    for pid in [0, 4_194_305, u32::MAX] {
        let error = Target::examine(pid).unwrap_err();
        assert!(
            matches!(error, Error::NoSuchProcess { .. }),
            "{pid}: {error}"
        );
    }
    let mut child = Command::new("true").spawn().unwrap();
    // A zombie: not reaped yet, but it no longer runs.
    while !std::fs::read_to_string(format!("/proc/{}/stat", child.id()))
        .unwrap()
        .contains(") Z ")
    {
        std::thread::yield_now();
    }
    let error = Target::examine(child.id()).unwrap_err();
    assert!(matches!(error, Error::NoSuchProcess { .. }), "{error}");
    child.wait().unwrap();
}

#[test]
fn a_thread_is_not_a_process() {
    let running = Start::new(&modern()).run();
    let tasks = std::fs::read_dir(format!("/proc/{}/task", running.pid)).unwrap();
    let ids = tasks.map(|task| {
        task.unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .parse::<u32>()
            .unwrap()
    });
    let thread = ids.into_iter().find(|&id| id != running.pid).unwrap();
    let error = Target::examine(thread).unwrap_err();
    assert!(
        matches!(error, Error::Thread { process, .. } if process == running.pid),
        "{error}"
    );
}

#[test]
fn reduced_signals_work_while_the_socket_exists() {
    for jdk in common::jdks() {
        let mut running = Start::new(&jdk).option("-Xrs").run();
        let target = Target::examine(running.pid).unwrap();
        // HotSpot then starts the listener without a signal.
        assert_eq!(target.command("properties", &[]).unwrap().code, 0);
        // Programs that clean temporary files do this. Only a signal could now restore the socket.
        std::fs::remove_file(format!("/tmp/.java_pid{}", running.pid)).unwrap();
        let error = target.command("properties", &[]).unwrap_err();
        assert!(matches!(error, Error::QuitNotCaught { .. }), "{error}");
        running.assert_untouched();
    }
}

#[test]
fn disabled_attach_mechanism_is_found_in_any_source() {
    let flag = "-XX:+DisableAttachMechanism";
    let dir = common::scratch_dir("flags");
    let settings = dir.join("settings");
    std::fs::write(&settings, "+DisableAttachMechanism\n").unwrap();
    let words = dir.join("words");
    std::fs::write(&words, format!("{flag}\n")).unwrap();
    let by_settings = format!("-XX:Flags={}", settings.display());
    let by_words = format!("@{}", words.display());
    for jdk in common::jdks() {
        let mut starts = vec![
            Start::new(&jdk).option(flag),
            Start::new(&jdk).option(flag).option("-XX:-UsePerfData"),
            Start::new(&jdk).env("JAVA_TOOL_OPTIONS", &format!("-Da='b c' {flag}")),
            Start::new(&jdk).option(&by_settings),
        ];
        if jdk.feature >= 9 {
            starts.push(Start::new(&jdk).option(&by_words));
        }
        for start in starts {
            let mut running = start.run();
            let target = Target::examine(running.pid).unwrap();
            let error = target.command("properties", &[]).unwrap_err();
            assert!(matches!(error, Error::AttachDisabled { .. }), "{error}");
            running.assert_untouched();
        }
    }
}

#[test]
fn disabled_agents_are_refused_before_and_by_the_jvm() {
    let flag = "-XX:-EnableDynamicAgentLoading";
    for jdk in common::jdks().into_iter().filter(|jdk| jdk.feature >= 9) {
        let mut running = Start::new(&jdk).option(flag).run();
        let error = Target::examine(running.pid)
            .unwrap()
            .load_agent("/x.so", "")
            .unwrap_err();
        assert!(matches!(error, Error::AgentsDisabled { .. }), "{error}");
        running.assert_untouched();
        let socket = format!("/tmp/.java_pid{}", running.pid);
        assert!(
            !Path::new(&socket).exists(),
            "no listener was started for it"
        );
    }
    // If neither arguments nor performance data show the flag, the reply does.
    let words = common::scratch_dir("hidden").join("words");
    std::fs::write(&words, format!("{flag} -XX:-UsePerfData\n")).unwrap();
    for jdk in common::jdks().into_iter().filter(|jdk| jdk.feature >= 9) {
        let mut running = Start::new(&jdk)
            .option(&format!("@{}", words.display()))
            .run();
        let error = Target::examine(running.pid)
            .unwrap()
            .load_agent("/x.so", "")
            .unwrap_err();
        assert!(
            matches!(error, Error::AgentsDisabled { .. }),
            "JDK {}: {error}",
            jdk.feature
        );
        running.assert_untouched();
    }
}

/// Stops a JVM and waits until it has stopped.
fn stop(pid: u32) {
    signal(pid, rustix::process::Signal::STOP);
    while !std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .unwrap()
        .contains(") T ")
    {
        std::thread::yield_now();
    }
}

#[test]
fn a_stopped_jvm_is_not_waited_for() {
    let mut running = Start::new(&modern()).run();
    // Without its listener, and then with a socket that accepts connections even during the stop.
    for _ in 0..2 {
        stop(running.pid);
        let target = Target::examine(running.pid).unwrap();
        let results = [
            target.check_runs(),
            target.command("properties", &[]).map(drop),
        ];
        signal(running.pid, rustix::process::Signal::CONT);
        for result in results {
            assert!(matches!(result, Err(Error::Stopped { .. })), "{result:?}");
        }
        running.assert_untouched();
        assert_eq!(target.command("properties", &[]).unwrap().code, 0);
        assert!(Path::new(&format!("/tmp/.java_pid{}", running.pid)).exists());
    }
}

#[test]
fn jvm_stopped_during_the_wait_is_reported() {
    let mut running = Start::new(&modern()).run();
    let target = Target::examine(running.pid).unwrap();
    target.command("properties", &[]).unwrap();
    let target = target.with_timeout(Duration::from_secs(4));
    let silent = occupy(running.pid);
    let result = std::thread::scope(|scope| {
        let command = scope.spawn(|| target.command("properties", &[]));
        std::thread::sleep(Duration::from_millis(500));
        stop(running.pid);
        command.join().unwrap()
    });
    signal(running.pid, rustix::process::Signal::CONT);
    assert!(matches!(result, Err(Error::Stopped { .. })), "{result:?}");
    drop(silent);
    running.assert_untouched();
}

/// A silent connection: the listener serves one at a time, and waits for its request.
fn occupy(pid: u32) -> std::os::unix::net::UnixStream {
    std::os::unix::net::UnixStream::connect(format!("/tmp/.java_pid{pid}")).unwrap()
}

#[test]
fn a_jvm_that_does_not_answer_is_given_up() {
    let mut running = Start::new(&modern()).run();
    let target = Target::examine(running.pid).unwrap();
    target.command("properties", &[]).unwrap();
    let silent = occupy(running.pid);
    let target = target.with_timeout(Duration::from_secs(1));
    let result = target.command("properties", &[]);
    assert!(
        matches!(result, Err(Error::TimedOut { seconds: 1, .. })),
        "{result:?}"
    );
    drop(silent);
    running.assert_untouched();
    let target = target.with_timeout(Duration::from_secs(120));
    assert_eq!(target.command("properties", &[]).unwrap().code, 0);
}

#[test]
fn a_jvm_that_starts_no_listener_is_given_up_without_a_trace() {
    // Neither arguments nor performance data show the flag; only the missing answer does.
    let words = common::scratch_dir("silent").join("words");
    std::fs::write(&words, "-XX:+DisableAttachMechanism -XX:-UsePerfData\n").unwrap();
    let mut running = Start::new(&modern())
        .option(&format!("@{}", words.display()))
        .run();
    let target = Target::examine(running.pid)
        .unwrap()
        .with_timeout(Duration::from_millis(900));
    let error = target.command("properties", &[]).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(!Path::new(&format!("/tmp/.attach_pid{}", running.pid)).exists());
    // The thread that prints the dump is not the one that answers.
    let began = std::time::Instant::now();
    while running.lines_until_pong().is_empty() {
        let patience = began.elapsed() < Duration::from_secs(60);
        assert!(patience, "it prints a thread dump and lives");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn planted_socket_is_not_used() {
    let mut running = Start::new(&modern()).run();
    let path = format!("/tmp/.java_pid{}", running.pid);
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let target = Target::examine(running.pid).unwrap();
    let error = target.command("properties", &[]).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(error, Error::UntrustedSocket { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    drop(listener);
    running.assert_untouched();
    assert_eq!(target.command("properties", &[]).unwrap().code, 0);
}

#[test]
fn a_left_over_socket_does_not_matter() {
    let running = Start::new(&modern()).run();
    let path = format!("/tmp/.java_pid{}", running.pid);
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let target = Target::examine(running.pid).unwrap();
    assert_eq!(target.command("properties", &[]).unwrap().code, 0);
}
