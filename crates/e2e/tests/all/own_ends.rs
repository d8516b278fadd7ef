//! Recordings that end without a `stop`: after their duration, without a renewal, or without
//! memory. Their files are whole. The JVM continues, ends as without dwell, and can be recorded
//! again.

use dwell_e2e::{Jdk, Place, Program, Starter, View, both, each, is_whole, java_file, turn};
use std::path::Path;
use std::time::{Duration, Instant};

/// Whatever is waited for has come by then.
const PATIENCE: Duration = Duration::from_secs(60);

/// The value of a line of the status; empty if there is no such line.
fn value<'a>(status: &'a str, key: &str) -> &'a str {
    let line = |line: &'a str| line.strip_prefix(key)?.strip_prefix('=');
    status.lines().find_map(line).unwrap_or("")
}

/// Waits until the recording is over; how `status` describes it then.
fn await_end(program: &Program) -> String {
    let began = Instant::now();
    loop {
        let status = program.tell("status");
        if value(&status, "state") == "stopped" {
            return status;
        }
        assert!(began.elapsed() < PATIENCE, "it goes on: {status}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn busy(jdk: &Jdk, place: &Place) -> Program {
    let steady = Starter::new(jdk, place, "Steady60").with("seconds=600");
    let mut program = steady.start();
    program.pass();
    program
}

#[test]
fn recording_ends_when_its_duration_is_over() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("duration");
        let program = busy(jdk, &place);
        let options = "start,cpu=1ms,duration=1500ms";
        let file = place.text("a.jfr");
        let status = program.tell(&format!("{options},file={file}"));
        assert!(!value(&status, "left_ms").is_empty(), "{status}");
        let status = await_end(&program);
        assert_eq!(value(&status, "ended"), "duration");
        let elapsed_ms: u64 = value(&status, "elapsed_ms").parse().unwrap();
        assert!(elapsed_ms >= 1500, "{status}");
        let samples = value(&status, "samples").to_owned();
        let kept = View::read(&place.path("a.jfr")).recording.samples.len();
        assert_eq!(kept.to_string(), samples);
        // The first `stop` after the end still gets the answer; a second one fails.
        let status = program.tell("stop");
        assert_eq!(value(&status, "samples"), samples);
        assert!(program.attach("stop").is_err());
        // A recording that ended without a `stop` does not prevent the next one.
        let more = "wall=10ms,alloc=64k,live,lock=1us,duration=300ms";
        program.tell(&format!("start,{more},file={}", place.text("b.jfr")));
        await_end(&program);
        let status = program.tell(&format!("start,cpu=1ms,file={}", place.text("c.jfr")));
        assert_eq!(value(&status, "state"), "running");
        program.await_samples(10);
        program.tell("stop");
        View::read(&place.path("c.jfr")).check_failures();
    });
}

#[test]
fn recording_ends_when_its_lease_is_not_renewed() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("lease");
        let program = busy(jdk, &place);
        let file = place.text("a.jfr");
        program.tell(&format!("start,cpu=1ms,wall=10ms,lease=30s,file={file}"));
        let left_ms = |options: &str| {
            let status = program.tell(options);
            value(&status, "lease_left_ms").parse::<u64>().unwrap()
        };
        let began = Instant::now();
        while left_ms("status") > 29_500 {
            assert!(began.elapsed() < PATIENCE, "the lease does not pass");
            std::thread::sleep(Duration::from_millis(50));
        }
        let before = left_ms("status");
        let after = left_ms("status,lease=1s");
        assert!(after > before, "{before} ms, then {after} ms");
        program.tell("stop");
        program.tell(&format!("start,cpu=1ms,wall=10ms,lease=1s,file={file}"));
        let status = await_end(&program);
        assert_eq!(value(&status, "ended"), "lease");
        View::read(&place.path("a.jfr")).check_failures();
        // The kernel lists a thread for a moment after its end.
        let began = Instant::now();
        let threads = || dwell_e2e::task_names(program.pid);
        while threads().iter().any(|name| name.starts_with("dwell-")) {
            assert!(began.elapsed() < PATIENCE, "{:?}", threads());
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Runs a JVM to its end whose agent gets no memory: in each thread from the `call`-th call on, for
/// `count` calls. Returns what was said.
fn without_memory(jdk: &Jdk, call: u32, count: u32) -> String {
    let what = format!("JDK {}, {count} from {call} on", jdk.feature);
    let place = Place::new("memory");
    let file = place.path("m.jfr");
    let options = "cpu=1ms,wall=10ms,alloc=64k,live,lock=1us";
    let mut program = Starter::new(jdk, &place, "Steady60")
        .with("seconds=1")
        .recorded(options, &file)
        .change(|command| {
            let library = java_file("libdwelltest_nomemory.so");
            command.env("LD_PRELOAD", library);
            command.env("DWELL_TEST_NO_MEMORY", format!("{call},{count}"));
        })
        .start();
    let _ = program.work();
    let said = program.errors();
    let began = Instant::now();
    std::thread::scope(|scope| {
        // A hang is the fault that is looked for.
        let pid = program.pid;
        let (ended, is_ended) = std::sync::mpsc::channel::<()>();
        let what = &what;
        scope.spawn(move || {
            if is_ended.recv_timeout(PATIENCE).is_err() {
                println!("{what}: hangs");
                let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        });
        program.end();
        let _ = ended.send(());
    });
    println!("{what}: ended in {:?}", began.elapsed());
    check_file(&file, &what);
    said
}

/// A file with any content can be read.
fn check_file(file: &Path, what: &str) {
    if std::fs::metadata(file).is_ok_and(|data| data.len() > 0) {
        let view = View::read(file);
        println!("{what}: {} samples", view.recording.samples.len());
    }
}

#[test]
fn never_lack_of_memory_hangs_a_jvm_or_ends_it_early() {
    const LASTING: u32 = 1_000_000;
    each(&turn(&both()), |jdk| {
        let calls: Vec<u32> = match is_whole() {
            true => (1..=300).collect(),
            false => vec![1, 7, 23, 90, 240],
        };
        let mut said = 0;
        for call in &calls {
            for count in [1, LASTING] {
                let text = without_memory(jdk, *call, count);
                said += usize::from(text.contains("dwell: out of memory"));
            }
        }
        println!("{said} of {} recordings ended early", 2 * calls.len());
        assert!(said > calls.len() / 2, "the allocator did not fail");
    });
}
