//! JVMs that end in the midst of everything: threads are being walked, slots are full, collections
//! are due. The end is the program's own, and what was recorded is in the file.

use dwell_e2e::{Jdk, Place, Program, Starter, View, both, each, turn};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::time::{Duration, Instant};

/// How a JVM ends.
struct End {
    name: &'static str,
    /// The command to the program.
    by: &'static str,
    /// The signal sent to it.
    signal: Option<Signal>,
    /// None where it is the signal that ends the process.
    code: Option<i32>,
}

const ENDS: [End; 4] = [
    End {
        name: "System.exit",
        by: "exit",
        signal: None,
        code: Some(42),
    },
    End {
        name: "Runtime.halt",
        by: "halt",
        signal: None,
        code: Some(42),
    },
    End {
        name: "SIGTERM",
        by: "signal",
        signal: Some(Signal::TERM),
        code: Some(143),
    },
    End {
        name: "SIGKILL",
        by: "signal",
        signal: Some(Signal::KILL),
        code: None,
    },
];

/// Whether as much is in the file as its first chunk's header promises.
fn is_flushed(file: &Path) -> bool {
    let bytes = std::fs::read(file).unwrap_or_default();
    let size = bytes.get(8..16).and_then(|size| size.try_into().ok());
    size.is_some_and(|size| u64::from_be_bytes(size) <= bytes.len() as u64)
}

/// Waits for the recording's first flush; before that is over the file is not whole.
fn await_bytes(file: &Path, what: &str) {
    let began = Instant::now();
    while !is_flushed(file) {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: no file");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the end, which must come.
fn exit_code(program: &mut Program, what: &str) -> Option<i32> {
    let began = Instant::now();
    while program.is_running() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: hangs");
        std::thread::sleep(Duration::from_millis(5));
    }
    program.child.wait().expect("our child").code()
}

fn run(jdk: &Jdk, end: &End, walk: &str) {
    let what = format!("JDK {} {} {walk}", jdk.feature, end.name);
    let place = Place::new("endings");
    let file = place.path("e.jfr");
    let mut program = Starter::new(jdk, &place, "Leaves")
        .with(&format!("by={}", end.by))
        // So small that threads wait for collections all the time.
        .jvm("-Xmx32m")
        .recorded(&format!("cpu=100us,walk={walk}"), &file)
        .start();
    program.pass();
    if let Some(signal) = end.signal {
        let _ = program.truths();
        await_bytes(&file, &what);
        let pid = Pid::from_raw(program.pid.cast_signed()).expect("a pid");
        kill_process(pid, signal).expect("it runs");
    }
    let code = exit_code(&mut program, &what);
    assert_eq!(code, end.code, "{what}: {}", program.errors());
    assert_eq!(program.errors(), "", "{what}: something was complained of");
    for entry in std::fs::read_dir(&place.dir).expect("the test's").flatten() {
        let name = entry.file_name().display().to_string();
        assert!(!name.starts_with("hs_err"), "{what}: {name}");
    }
    check_file(&what, &file, end.code.is_none());
}

/// A file that was being written when the process was killed is whole up to its last flush; all
/// others have everything up to the end.
fn check_file(what: &str, file: &Path, killed: bool) {
    let view = View::read(file);
    let samples = view.of_threads("leaves-").count();
    let (weight_ns, cpu_ns) = (
        view.weight_ns() + view.sum("dwell.Lost", "weight"),
        view.cpu_load_ns(),
    );
    println!("{what}: {samples} samples of the workers, {weight_ns} ns of {cpu_ns} ns");
    view.check_failures();
    if killed {
        return;
    }
    // They had 40 ms of CPU time, in which timers come ten times.
    assert!(samples > 3, "{what}: {samples} samples");
    // As in the tests of weights: 2 %, and what is due at the end of each thread.
    let allowed_ns = cpu_ns / 50 + 20_000_000;
    assert!(weight_ns.abs_diff(cpu_ns) <= allowed_ns, "{what}");
}

fn all_ends(walk: &str) {
    each(&turn(&both()), |jdk| {
        for end in &ENDS {
            run(jdk, end, walk);
        }
    });
}

#[test]
fn jvm_ends_normally_while_snapshots_are_taken() {
    all_ends("snapshot");
}

#[test]
fn jvm_ends_normally_while_handlers_walk() {
    all_ends("handler");
}

#[test]
fn jvm_ends_normally_while_threads_wait_to_be_walked() {
    all_ends("paused");
}
