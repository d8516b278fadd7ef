//! The reports about a recording, and that it can be carried out: with a test runtime.

use super::*;
use crate::chosen::Events;
use crate::looks::shelf::Tick;
use crate::testing::{Alone, Mock, alone};

/// A recording with hardly any samples, with `more` options.
fn begun(alone: &Alone, more: &str) -> Session<Mock> {
    let setup = alone.setup(alone.agent(), more);
    Session::start(setup, alone.file(), || ()).unwrap()
}

/// The same, after its end: only the test changes its progress.
fn ended(alone: &Alone, more: &str) -> Session<Mock> {
    let mut session = begun(alone, more);
    assert!(session.stop());
    session
}

/// The value in a line of `status`.
fn value(status: &str, key: &str) -> Option<String> {
    let line = |line: &str| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    let values: Vec<String> = status.lines().filter_map(line).collect();
    assert!(values.len() <= 1, "{key} is there twice:\n{status}");
    values.into_iter().next()
}

#[track_caller]
fn check(status: &str, wanted: &[(&str, &str)]) {
    for (key, wanted) in wanted {
        assert_eq!(value(status, key).as_deref(), Some(*wanted), "{key}");
    }
}

#[test]
fn the_file_s_name_has_the_pid_in_it() {
    let options = Options {
        file: "/somewhere/%p.jfr".into(),
        ..Options::default()
    };
    let file = format!("/somewhere/{}.jfr", std::process::id());
    assert_eq!(target_path(&options), Path::new(&file));
}

#[test]
fn order_is_done_when_its_answer_arrives() {
    let alone = alone();
    let mut session = begun(&alone, "");
    assert_eq!(session.path(), alone.file());
    assert_eq!(session.running().path, alone.file());
    assert!(session.dump());
    let bytes = std::fs::read(alone.file()).unwrap();
    let first = dwell_jfr::reader::parse(&bytes).unwrap();
    let version = |recording: &dwell_jfr::reader::Recording| {
        let about = recording.events_named("jdk.JVMInformation").next().unwrap();
        about.text("jvmVersion").map(str::to_owned)
    };
    assert_eq!(version(&first).as_deref(), Some("1.2"));
    let told: u64 = value(&session.status("running"), "bytes")
        .unwrap()
        .parse()
        .unwrap();
    assert!(told >= bytes.len() as u64, "{told} of {}", bytes.len());
    let events = Events {
        alloc_bytes: 4096,
        ..session.running().events
    };
    assert!(session.change(events, "alloc=4k"));
    assert_eq!(session.running().events, events);
    assert!(session.stop());
    assert!(session.stop(), "it is over");
    let bytes = std::fs::read(alone.file()).unwrap();
    let chunks = bytes.windows(4).filter(|four| four == b"FLR\0").count();
    assert!(chunks >= 2, "what was changed begins a chunk: {chunks}");
    dwell_jfr::reader::parse(&bytes).unwrap();
}

#[test]
fn status_omits_absent_parts() {
    let alone = alone();
    let session = ended(&alone, "");
    let status = session.status("stopped");
    let file = alone.file().display().to_string();
    check(
        &status,
        &[
            ("state", "stopped"),
            ("events", "cpu=10s"),
            ("engine", "per-thread CPU timers"),
            ("walk", "walked from snapshots"),
            ("engine_reason", "timers were requested"),
            ("interval_ns", "10000000000"),
            ("file", &file),
            ("trouble", ""),
            ("collections_waited_ns", "0"),
        ],
    );
    for absent in ["wall_", "alloc_", "live_", "lock_"] {
        let line = status.lines().find(|line| line.starts_with(absent));
        assert_eq!(line, None);
    }
}

#[test]
fn status_reports_each_number_under_its_name() {
    let alone = alone();
    let session = ended(&alone, "");
    let progress = &session.progress;
    let numbers = [
        ("samples", &progress.samples),
        ("failed", &progress.failed),
        ("lost", &progress.lost),
        ("weight_ns", &progress.weight_ns),
        ("bytes", &progress.bytes),
        ("agent_cpu_ns", &progress.agent_cpu_ns),
        ("agent_memory", &progress.agent_memory),
        ("walk_ns", &progress.walk_ns),
        ("copied", &progress.copied_bytes),
    ];
    for (number, (_, counter)) in (71..).zip(numbers) {
        counter.store(number, Ordering::Relaxed);
    }
    progress.patience.waited(99);
    progress.set_trouble(Some("no room".into()));
    let status = session.status("running");
    for (number, (name, _)) in (71..).zip(numbers) {
        check(&status, &[(name, &number.to_string())]);
    }
    let trouble = [("trouble", "no room"), ("collections_waited_ns", "99")];
    check(&status, &trouble);
}

#[test]
fn the_first_sample_has_a_time_since_the_beginning() {
    let alone = alone();
    let session = ended(&alone, "");
    let told = |at_ns: u64| {
        session
            .progress
            .first_sample_ns
            .store(at_ns, Ordering::Relaxed);
        value(&session.status("running"), "first_sample_ms").unwrap()
    };
    assert_eq!(told(session.began_ns + 2_450_000), "2.5");
    assert_eq!(told(session.began_ns), "0.0");
    assert_eq!(told(session.began_ns - 1), "0.0", "of before");
    assert_eq!(told(0), "-1.0");
}

#[test]
fn status_reports_wall_samples_as_sums_except_threads() {
    let alone = alone();
    let session = ended(&alone, "");
    let tick = |n: usize| Tick {
        span_ns: n as u64,
        ticks: 1,
        live: n + 1,
        looked: n + 2,
        failed: n + 3,
        cpu_ns: n as u64 + 4,
        unmounted: n as u64 + 5,
        unmounted_looked: n + 6,
        followed: n + 7,
        by_page: n as u32 + 8,
        ..Tick::default()
    };
    session.progress.add_tick(&tick(100));
    session.progress.add_tick(&tick(1000));
    check(
        &session.status("running"),
        &[
            ("wall_interval_ns", "0"),
            ("wall_ns", "1100"),
            ("wall_threads", "1001"),
            ("wall_looks", "1104"),
            ("wall_failed", "1106"),
            ("wall_cpu_ns", "1108"),
            ("wall_unmounted", "1005"),
            ("wall_unmounted_looks", "1112"),
            ("wall_followed", "1114"),
            ("wall_by_page", "1116"),
        ],
    );
}

#[test]
fn objects_and_waits_are_reported_once_requested() {
    let alone = alone();
    let session = ended(&alone, "");
    let set = |events| session.setup.switched.set(events, "", 1);
    let asked = Events {
        alloc_bytes: 4096,
        alloc_rate: 50,
        alive_bytes: 4096,
        lock: Duration::from_nanos(700),
        ..session.running().events
    };
    let recorder = session.setup.recorder;
    recorder.blocked.add(30);
    recorder.blocked.add(12);
    recorder.blocked.add_untold();
    set(asked);
    let status = session.status("running");
    check(
        &status,
        &[
            ("alloc_interval", "4096"),
            ("alloc_rate", "50"),
            ("alloc_samples", "0"),
            ("alloc_lost", "0"),
            ("lock_interval_ns", "700"),
            ("lock_waits", "2"),
            ("lock_blocked_ns", "42"),
            ("lock_samples", "0"),
            ("lock_untold", "1"),
        ],
    );
    assert_eq!(value(&status, "live_interval"), None, "nobody follows any");
    recorder.adapted_bytes.store(8192, Ordering::Relaxed);
    recorder.adapted_lock_ns.store(900, Ordering::Relaxed);
    check(
        &session.status("running"),
        &[
            ("alloc_interval", "8192"),
            ("alloc_asked", "4096"),
            ("lock_interval_ns", "900"),
            ("lock_asked_ns", "700"),
        ],
    );
    // Switched off, but there was some.
    recorder.adapted_bytes.store(0, Ordering::Relaxed);
    recorder.adapted_lock_ns.store(0, Ordering::Relaxed);
    set(Events {
        cpu: asked.cpu,
        ..Events::default()
    });
    let status = session.status("running");
    check(&status, &[("alloc_interval", "4096"), ("alloc_rate", "0")]);
    check(&status, &[("lock_interval_ns", "700")]);
}

#[test]
fn causes_are_reported_only_if_seen() {
    assert_eq!(dropped(|_| 0), "");
    let some = dropped(|cause| match cause {
        Cause::QueueFull => 3,
        Cause::NoSlot => 1,
        _ => 0,
    });
    assert_eq!(
        some,
        "lost.no_free_slot_weight_moved_on=1\nlost.signal_queue_full=3\n"
    );
    assert_eq!(dropped(|_| 9).lines().count(), DROPS.len());
}
