//! Waits in recordings of async-profiler and the JDK's recorder: threads without work, and the
//! class of a monitor that only an event has.

use dwell_jfr::reader::{self, GenericEvent, Recording, SampleKind, Value, Wall};
use dwell_jfr::writer::{ChunkClock, ChunkWriter, FrameRef, MethodInfo, Sample, ThreadInfo};
use dwell_jfr::{FrameKind, ThreadState};
use dwell_profile::Profile;

/// Class, method and kind of a frame.
type Frame = (&'static str, &'static str, FrameKind);

const FUTEX: Frame = ("libc.so.6", "__futex_abstimed_wait", FrameKind::Native);
const WORK: Frame = ("libjvm.so", "WorkerThread::run", FrameKind::Native);
const ROOT: Frame = ("libc.so.6", "clone3", FrameKind::Native);
const ENTER: Frame = ("libjvm.so", "ObjectMonitor::enter", FrameKind::Native);
const JAVA: Frame = ("app/Main", "enter", FrameKind::C2);
const TICK_NS: u64 = 10_000_000;

/// A sample of the same thread with each of the stacks, a tick after the other.
fn waits(stacks: &[&[Frame]]) -> Recording {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    });
    let info = ThreadInfo {
        os_name: "thread",
        os_tid: 7,
        java_name: Some("thread"),
        java_tid: 7,
        group: None,
        is_virtual: false,
    };
    let thread = chunk.thread(1, &info);
    let mut key = 0;
    for (at, stack) in stacks.iter().enumerate() {
        let mut frame = |(class, name, kind): &Frame| {
            key += 1;
            let info = MethodInfo {
                class,
                name,
                descriptor: "()V",
                modifiers: 0,
                hidden: false,
                origin: None,
            };
            FrameRef {
                method: chunk.method(key, &info),
                line: 1,
                bci: 0,
                kind: *kind,
            }
        };
        let frames: Vec<FrameRef> = stack.iter().map(&mut frame).collect();
        let stack = chunk.stack(&frames, false);
        chunk.execution_sample(&Sample {
            ticks: at as u64 * TICK_NS,
            thread,
            stack,
            state: ThreadState::Sleeping,
            weight_ns: 1,
            failure: None,
            carrier: None,
            context: None,
        });
    }
    let mut file = chunk.flush(1_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    let mut recording = reader::parse(&file).unwrap();
    recording.events.clear();
    for sample in &mut recording.samples {
        sample.weight_ns = None;
    }
    recording
}

/// The same by the wall clock of async-profiler.
fn async_profiler(stacks: &[&[Frame]]) -> Recording {
    let mut recording = waits(stacks);
    for sample in &mut recording.samples {
        sample.kind = SampleKind::WallClock;
        sample.wall = Some(recording.walls.len() as u32);
        recording.walls.push(Wall {
            count: 1,
            ..Wall::default()
        });
    }
    for (name, value) in [
        ("event", "wall"),
        ("wall", "10000000"),
        ("jstackdepth", "9"),
    ] {
        let text = |text: &str| Value::Text(text.into());
        let fields = [("name", text(name)), ("value", text(value))];
        let setting = event("jdk.ActiveSetting", 0, &fields);
        recording.events.push(setting);
    }
    recording
}

fn event(name: &str, time_ns: u64, fields: &[(&str, Value)]) -> GenericEvent {
    let fields = fields.iter();
    GenericEvent {
        name: name.into(),
        time_ns,
        fields: fields
            .map(|(name, value)| ((*name).into(), value.clone()))
            .collect(),
    }
}

fn texts(recording: Recording, text: impl Fn(&Profile, usize) -> String) -> Vec<String> {
    let profile = Profile::from_recording(recording);
    (0..profile.looks().len())
        .map(|at| text(&profile, at))
        .collect()
}

fn cause(profile: &Profile, at: usize) -> String {
    let cause = profile.looks()[at].cause;
    profile.names().text(cause).to_owned()
}

#[test]
fn sleep_event_of_a_jdk_thread_is_idle() {
    let sleep = ("java/lang/Thread", "sleep", FrameKind::C2);
    let timer = ("sun/net/www/http/KeepAliveCache", "run", FrameKind::C2);
    let mut recording = waits(&[&[sleep, timer], &[sleep, JAVA], &[JAVA]]);
    recording.samples.clear();
    for stack in 0..3 {
        let fields = [
            ("duration", Value::DurationNs(TICK_NS as i64)),
            ("eventThread", Value::Thread(0)),
            ("stackTrace", Value::Stack(stack)),
        ];
        let time_ns = u64::from(stack) * 2 * TICK_NS;
        let sleep = event("jdk.ThreadSleep", time_ns, &fields);
        recording.events.push(sleep);
    }
    let expected = ["idle-pool", "sleep", "sleep"];
    assert_eq!(texts(recording, cause), expected);
}

#[test]
fn waits_of_threads_that_never_run_java_are_idle() {
    let recording = async_profiler(&[
        &[FUTEX, WORK, ROOT],
        // Its other frames are unknown: it may be a thread of the program.
        &[FUTEX, WORK],
        &[FUTEX, JAVA, ROOT],
        &[],
    ]);
    let expected = ["idle-pool", "unknown", "unknown", "unknown"];
    assert_eq!(texts(recording, cause), expected);
}

#[test]
fn monitors_get_the_class_of_the_wait_at_that_time() {
    let mut recording = async_profiler(&[&[ENTER, JAVA][..]; 5]);
    let begin = recording.samples[0].time_ns;
    for (ticks, class) in [(1, "app.First"), (3, "[I")] {
        let fields = [
            ("duration", Value::DurationNs(TICK_NS as i64 / 2)),
            ("monitorClass", Value::Text(class.into())),
            ("eventThread", Value::Thread(0)),
            ("stackTrace", Value::Stack(0)),
        ];
        let time_ns = begin + ticks * TICK_NS - 1;
        let wait = event("jdk.JavaMonitorEnter", time_ns, &fields);
        recording.events.push(wait);
    }
    let detail = |profile: &Profile, at: usize| {
        let detail = profile.looks()[at].detail;
        detail.map_or("", |it| profile.names().text(it)).to_owned()
    };
    let found = texts(recording, detail);
    assert_eq!((&*found[1], &*found[3]), ("app.First", "int[]"));
    // The others get one that was seen at their place.
    assert!(found.iter().all(|it| it == "app.First" || it == "int[]"));
}
