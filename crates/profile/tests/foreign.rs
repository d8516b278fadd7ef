//! Recordings of other profilers as profiles: which samples count, what they stand for, and why
//! threads waited. Their samples are made of our own writer's, with what those profilers add.

use dwell_jfr::reader::{self, GenericEvent, Recording, SampleKind, Value, Wall};
use dwell_jfr::writer::{ChunkClock, ChunkWriter, FrameRef, MethodInfo, Sample, ThreadInfo};
use dwell_jfr::{FrameKind, ThreadState};
use dwell_profile::told::ClassLoad;
use dwell_profile::{EVENTS, Fact, Measured, Profile, Stretch, Unit, WallFilter};

/// The stacks of the samples: running, asleep, in a lock, in a monitor.
const STACKS: [&[(&str, &str, FrameKind)]; 4] = [
    &[("app/Main", "run", FrameKind::C2)],
    &[
        ("java/lang/Thread", "sleep0", FrameKind::Native),
        ("app/Main", "rest", FrameKind::C2),
    ],
    &[
        ("jdk/internal/misc/Unsafe", "park", FrameKind::Native),
        (
            "java/util/concurrent/locks/ReentrantLock",
            "lock",
            FrameKind::C2,
        ),
        ("app/Main", "take", FrameKind::C2),
    ],
    &[
        ("libjvm.so", "ObjectMonitor::enter", FrameKind::Native),
        ("app/Main", "enter", FrameKind::C2),
    ],
];

/// Eight samples, two of each stack, without weights.
fn recording() -> Recording {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 1_000_000_000,
    });
    let thread = chunk.thread(
        1,
        &ThreadInfo {
            os_name: "worker",
            os_tid: 7,
            java_name: Some("worker"),
            java_tid: 7,
            group: None,
            is_virtual: false,
        },
    );
    let mut key = 0;
    for time in 0..2 {
        for stack in STACKS {
            let mut frames = Vec::new();
            for (class, name, kind) in stack {
                key += 1;
                let info = MethodInfo {
                    class,
                    name,
                    descriptor: "()V",
                    modifiers: 0,
                    hidden: false,
                    origin: None,
                };
                let method = chunk.method(key, &info);
                frames.push(FrameRef {
                    method,
                    line: 1,
                    bci: 0,
                    kind: *kind,
                });
            }
            let stack = chunk.stack(&frames, false);
            chunk.execution_sample(&Sample {
                ticks: time,
                thread,
                stack,
                state: ThreadState::Runnable,
                weight_ns: 1,
                failure: None,
                carrier: None,
                context: None,
            });
        }
    }
    let mut file = chunk.flush(1_000_000_000);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    let mut recording = reader::parse(&file).unwrap();
    recording.events.clear();
    recording
        .samples
        .iter_mut()
        .for_each(|sample| sample.weight_ns = None);
    recording
}

fn event(name: &str, fields: &[(&str, Value)]) -> GenericEvent {
    let fields = fields
        .iter()
        .map(|(name, value)| ((*name).into(), value.clone()));
    GenericEvent {
        name: name.into(),
        time_ns: 0,
        fields: fields.collect(),
    }
}

fn setting(name: &str, value: &str) -> GenericEvent {
    let text = |text: &str| Value::Text(text.into());
    event(
        "jdk.ActiveSetting",
        &[("name", text(name)), ("value", text(value))],
    )
}

/// Makes the samples looks of a wall clock: so many ticks each, the first of four running.
fn on_the_wall(recording: &mut Recording, kind: SampleKind, ticks: u64) {
    for (place, sample) in recording.samples.iter_mut().enumerate() {
        sample.kind = kind;
        sample.wall = Some(recording.walls.len() as u32);
        sample.state = match place % 4 {
            0 => ThreadState::Runnable,
            _ => ThreadState::Sleeping,
        };
        recording.walls.push(Wall {
            count: ticks,
            ..Wall::default()
        });
    }
}

fn async_profiler(recording: &mut Recording, settings: &[(&str, &str)]) {
    let always = [
        ("cstack", "vm"),
        ("jstackdepth", "2048"),
        ("version", "4.6"),
    ];
    let all = always.iter().chain(settings);
    recording
        .events
        .extend(all.map(|(name, value)| setting(name, value)));
}

fn causes(profile: &Profile) -> Vec<(String, u64)> {
    let filter = WallFilter::default();
    let mut causes = profile.wall_by(&filter, |wall| wall.cause.to_owned());
    causes.sort_by(|a, b| a.0.cmp(&b.0));
    causes
        .into_iter()
        .map(|(cause, weight)| (cause, weight.sum))
        .collect()
}

#[test]
fn cpu_samples_of_async_profiler_stand_for_its_interval() {
    for (interval, expected) in [("0", 80_000_000), ("1000000", 8_000_000)] {
        let mut recording = recording();
        async_profiler(&mut recording, &[("event", "cpu"), ("interval", interval)]);
        let profile = Profile::from_recording(recording);
        assert_eq!(profile.unit(), Unit::Nanoseconds);
        assert_eq!(profile.total().sum, expected);
        assert_eq!(profile.info().engine, "async-profiler 4.6");
    }
    // Samples of allocations or of counters stand for no time.
    let mut recording = recording();
    async_profiler(
        &mut recording,
        &[("event", "cache-misses"), ("interval", "1000")],
    );
    assert_eq!(Profile::from_recording(recording).unit(), Unit::Samples);
}

/// Up to 4.1 it writes settings without a value.
#[test]
fn async_profiler_is_known_by_settings_without_values() {
    for named in [false, true] {
        let mut recording = recording();
        let text = |text: &str| Value::Text(text.into());
        let nothing = [("name", text("cstack")), ("value", Value::Null)];
        recording.events.push(event("jdk.ActiveSetting", &nothing));
        recording.events.push(setting("event", "cpu"));
        let version = match named {
            true => {
                let name = [("name", text("async-profiler 2.9"))];
                recording.events.push(event("jdk.ActiveRecording", &name));
                "async-profiler 2.9"
            }
            false => {
                recording.events.push(setting("jstackdepth", "2048"));
                "async-profiler"
            }
        };
        let profile = Profile::from_recording(recording);
        assert_eq!(profile.info().engine, version);
        assert_eq!(profile.total().sum, 80_000_000);
        assert_eq!(profile.info().measured, Measured::CpuTime);
    }
    assert!(EVENTS.contains(&"jdk.ActiveRecording"));
}

#[test]
fn settings_of_the_jdk_name_no_other_recorder() {
    let mut recording = recording();
    for (name, value) in [("enabled", "true"), ("period", "20 ms"), ("threshold", "0")] {
        recording.events.push(setting(name, value));
    }
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.info().engine, "");
    assert_eq!(profile.info().measured, Measured::Java);
    assert_eq!(profile.unit(), Unit::Samples);
}

/// Two of the eight samples run, the others sleep.
fn asleep(recording: &mut Recording) {
    for (place, sample) in recording.samples.iter_mut().enumerate() {
        sample.state = match place % 4 {
            0 => ThreadState::Runnable,
            _ => ThreadState::Sleeping,
        };
    }
}

#[test]
fn execution_samples_of_a_wall_clock_are_no_cpu_time() {
    let mut recording = recording();
    asleep(&mut recording);
    async_profiler(
        &mut recording,
        &[("event", "wall"), ("interval", "7000000")],
    );
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.info().measured, Measured::Wall);
    assert_eq!((profile.samples().len(), profile.looks().len()), (2, 6));
    assert_eq!(profile.total().sum, 14_000_000);
    assert_eq!(profile.info().mode, "wall");
}

#[test]
fn samples_of_two_clocks_are_separated_by_state() {
    let mut recording = recording();
    asleep(&mut recording);
    // Of CPU time are those without a state.
    recording.samples[0].state = ThreadState::Other;
    let settings = [("event", "cpu"), ("interval", "1000000"), ("wall", "0")];
    async_profiler(&mut recording, &settings);
    let profile = Profile::from_recording(recording);
    assert_eq!((profile.samples().len(), profile.looks().len()), (1, 6));
    assert_eq!(profile.total().sum, 1_000_000);
    assert_eq!(profile.looks()[0].weight_ns, 50_000_000, "the default");
    assert_eq!(profile.info().mode, "cpu,wall");
    let left = [("jdk.ExecutionSample".to_owned(), 1)];
    assert_eq!(profile.info().other_events, left);
}

#[test]
fn events_that_are_no_clock_are_named() {
    let mut recording = recording();
    async_profiler(&mut recording, &[("event", "page-faults")]);
    let info = Profile::from_recording(recording).info().clone();
    assert_eq!(info.measured, Measured::Event("page-faults".to_owned()));
    assert_eq!(info.mode, "page-faults");
}

#[test]
fn samples_without_stacks_are_reported() {
    let warnings = |without: usize| {
        let mut recording = recording();
        for sample in recording.samples.iter_mut().take(without) {
            sample.stack = u32::MAX;
        }
        Profile::from_recording(recording).warnings().join("\n")
    };
    assert_eq!(warnings(7), "");
    assert!(warnings(8).contains("no sample has a stack"));
    assert!(
        Profile::from_recording(Recording::default())
            .warnings()
            .is_empty()
    );
}

#[test]
fn samples_in_native_methods_are_no_cpu_time() {
    let mut recording = recording();
    for sample in &mut recording.samples {
        sample.kind = SampleKind::Native;
    }
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.info().measured, Measured::Native);
    assert!(!profile.info().measured.is_of_processors());
    assert_eq!(profile.samples().len(), 8);
}

#[test]
fn sleeping_threads_of_an_unknown_recorder_are_a_wall_clocks() {
    let mut recording = recording();
    asleep(&mut recording);
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.info().measured, Measured::Wall);
    assert_eq!(profile.samples().len(), 2);
    let left = [("jdk.ExecutionSample".to_owned(), 6)];
    assert_eq!(profile.info().other_events, left);
}

/// The JDK's samples have no weights, whatever ddprof says of its own.
#[test]
fn ddprof_takes_precedence_over_the_jdks_recorder() {
    let mut recording = recording();
    for sample in recording.samples.iter_mut().skip(3) {
        sample.kind = SampleKind::DatadogCpu;
    }
    for (cpu_ns, version) in [(9_000_000, "1.22.0"), (0, "1.23.0")] {
        recording.events.push(event(
            "datadog.DatadogProfilerConfig",
            &[
                ("cpuInterval", Value::DurationNs(cpu_ns)),
                ("version", Value::Text(version.into())),
            ],
        ));
    }
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.info().sample_event, "datadog.ExecutionSample");
    assert_eq!(profile.total().sum, 5 * 9_000_000);
    let left = [("jdk.ExecutionSample".to_owned(), 3)];
    assert_eq!(profile.info().other_events, left);
}

#[test]
fn objects_in_buffers_stand_for_these() {
    let object = |name: &str, fields: &[(&str, i64)]| {
        let mut all = vec![
            ("objectClass", Value::Text("a.B".into())),
            ("eventThread", Value::Thread(0)),
        ];
        all.extend(
            fields
                .iter()
                .map(|(name, value)| (*name, Value::Int(*value))),
        );
        event(name, &all)
    };
    let inside = [("tlabSize", 1000), ("allocationSize", 16)];
    let inside = object("jdk.ObjectAllocationInNewTLAB", &inside);
    let outside = object(
        "jdk.ObjectAllocationOutsideTLAB",
        &[("allocationSize", 500)],
    );
    let newer = object("jdk.ObjectAllocationSample", &[("weight", 70)]);
    for name in [&inside.name, &outside.name] {
        assert!(EVENTS.contains(&&**name), "{name}");
    }
    let bytes = |events: &[&GenericEvent]| {
        let recording = Recording {
            events: events.iter().map(|event| (*event).clone()).collect(),
            ..recording()
        };
        let profile = Profile::from_recording(recording);
        let all = profile.allocations().iter();
        all.map(|it| (it.bytes, it.size)).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&[&inside, &outside]), [(1000, 16), (500, 500)]);
    assert_eq!(bytes(&[&newer, &inside]), [(70, 0)], "nothing counts twice");
}

#[test]
fn waits_of_other_recorders_stand_for_themselves() {
    let mut recording = recording();
    let fields = [
        ("duration", Value::DurationNs(21_000_000)),
        ("monitorClass", Value::Text("a.Ledger".into())),
        ("eventThread", Value::Thread(0)),
        ("stackTrace", Value::Stack(0)),
    ];
    recording
        .events
        .push(event("jdk.JavaMonitorEnter", &fields));
    let profile = Profile::from_recording(recording);
    let waits = profile.monitor_waits();
    assert_eq!((waits.len(), waits[0].weight_ns), (1, 21_000_000));
    assert_eq!(profile.lock_classes()[0].name, "a.Ledger");
}

#[test]
fn collections_have_their_causes() {
    let mut recording = recording();
    for (cause, ns) in [("System.gc()", 70), ("Allocation Failure", 20)] {
        let fields = [
            ("cause", Value::Text(cause.into())),
            ("sumOfPauses", Value::DurationNs(ns)),
        ];
        recording
            .events
            .push(event("jdk.GarbageCollection", &fields));
    }
    let call = [("stackTrace", Value::Stack(0))];
    recording.events.push(event("jdk.SystemGC", &call));
    for name in ["jdk.GarbageCollection", "jdk.SystemGC"] {
        assert!(EVENTS.contains(&name), "{name}");
    }
    let profile = Profile::from_recording(recording);
    let asked = profile.asked_collections().unwrap();
    assert_eq!((asked.asked, asked.all), (1, 2));
    assert_eq!((asked.asked_ns, asked.all_ns), (70, 90));
    assert_eq!(profile.collection_calls().len(), 1);
}

#[test]
fn wall_samples_have_causes_by_state_and_frames() {
    let mut recording = recording();
    on_the_wall(&mut recording, SampleKind::WallClock, 3);
    async_profiler(&mut recording, &[("event", "wall"), ("wall", "10000000")]);
    let profile = Profile::from_recording(recording);
    let each = 2 * 3 * 10_000_000;
    let expected = ["lock", "monitor", "running", "sleep"].map(|cause| (cause.to_owned(), each));
    assert_eq!(causes(&profile), expected);
    assert_eq!(
        (profile.samples().len(), profile.info().mode.as_str()),
        (2, "wall")
    );
    assert_eq!(profile.info().other_events, []);
}

#[test]
fn ddprof_says_its_intervals_itself() {
    let mut recording = recording();
    on_the_wall(&mut recording, SampleKind::DatadogWall, 1);
    for sample in recording.samples.iter_mut().step_by(4) {
        sample.kind = SampleKind::DatadogCpu;
    }
    recording.events.push(event(
        "datadog.DatadogProfilerConfig",
        &[
            ("cpuInterval", Value::DurationNs(9_000_000)),
            ("wallInterval", Value::DurationNs(50_000_000)),
            ("version", Value::Text("1.22.0".into())),
        ],
    ));
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.total().sum, 18_000_000);
    let waits = causes(&profile)
        .iter()
        .filter(|(cause, _)| cause != "running")
        .count();
    assert_eq!((waits, profile.looks().len()), (3, 6));
    assert_eq!(profile.info().mode, "cpu,wall");
}

/// Three ticks of 50 ms are one event: from the first one on it lasts two of them.
#[test]
fn looks_in_a_row_of_async_profiler_last_as_long() {
    let mut recording = recording();
    on_the_wall(&mut recording, SampleKind::WallClock, 3);
    async_profiler(&mut recording, &[("wall", "50000000")]);
    let profile = Profile::from_recording(recording);
    let looks = profile.looks().iter();
    let times: Vec<_> = looks
        .map(|look| (look.duration_ns, look.weight_ns))
        .collect();
    assert!(!times.is_empty());
    assert!(
        times.iter().all(|it| *it == (100_000_000, 150_000_000)),
        "{times:?}"
    );
}

#[test]
fn looks_without_interval_are_reported_unweighted() {
    let mut recording = recording();
    on_the_wall(&mut recording, SampleKind::WallClock, 3);
    let profile = Profile::from_recording(recording);
    assert_eq!((profile.unit(), profile.total().sum), (Unit::Samples, 6));
    assert!(!profile.has_wall());
    assert_eq!(
        profile.info().other_events,
        [("profiler.WallClockSample".to_owned(), 6)]
    );
}

#[test]
fn loaded_classes_have_names_loaders_and_times() {
    let loaded = |class: &str, loader: Value, thread, ns| {
        let fields = [
            ("startTime", Value::TimeNs(0)),
            ("duration", Value::DurationNs(ns)),
            ("eventThread", thread),
            ("stackTrace", Value::Null),
            ("loadedClass", Value::Text(class.into())),
            ("definingClassLoader", loader),
        ];
        event("jdk.ClassLoad", &fields)
    };
    let app = [
        ("type".into(), Value::Text("app.Loader".into())),
        ("name".into(), Value::Null),
    ];
    let recording = Recording {
        events: vec![
            loaded("app.Main", Value::Struct(app.into()), Value::Thread(0), 70),
            loaded("app.Base", Value::Null, Value::Null, 30),
        ],
        ..Recording::default()
    };
    assert!(EVENTS.contains(&"jdk.ClassLoad"));
    let profile = Profile::from_recording(recording);
    let loads = profile.stretches().of::<ClassLoad>();
    let times: Vec<u64> = loads.iter().map(|load| load.duration_ns).collect();
    assert_eq!(times, [70, 30]);
    let told = |load: &Stretch| {
        let text = |fact: &Fact| match fact {
            Fact::Text(name) => profile.names().text(*name).to_owned(),
            Fact::Thread(thread) => format!("{thread:?}"),
            other => panic!("{other:?}"),
        };
        load.facts.iter().map(text).collect::<Vec<_>>()
    };
    assert_eq!(told(&loads[0]), ["app.Main", "app.Loader", "Some(0)"]);
    assert_eq!(told(&loads[1]), ["app.Base", "", "None"]);
    assert_eq!(profile.standing(), [], "other threads went on");
}

/// Lost samples of the JDK's recorder count as losses of a profile of CPU samples, and of a profile
/// without other data.
#[test]
fn samples_lost_by_the_jdk_are_reported() {
    let lost = |samples| {
        let fields = [("lostSamples", Value::Int(samples))];
        event("jdk.CPUTimeSamplesLost", &fields)
    };
    let losses = |mut recording: Recording| {
        recording.events.extend([lost(3), lost(4)]);
        let profile = Profile::from_recording(recording);
        let losses = profile.losses().iter();
        let is_named = |text: &str| text.contains("jdk.CPUTimeSamplesLost");
        let told = losses.map(|it| (it.samples, it.weight_ns, is_named(&it.cause)));
        told.collect::<Vec<_>>()
    };
    let mut of_cpu_time = recording();
    for sample in &mut of_cpu_time.samples {
        sample.kind = SampleKind::CpuTime;
    }
    assert_eq!(losses(of_cpu_time), [(7, 0, true)]);
    assert_eq!(losses(recording()), []);
    assert_eq!(losses(Recording::default()), [(7, 0, true)]);
    assert!(EVENTS.contains(&"jdk.CPUTimeSamplesLost"));
}

/// A wait of 30 ms of the first thread, 40 ms after the one before.
fn wait(recording: &mut Recording, name: &str, stack: u32, more: &[(&str, Value)]) {
    let fields = [
        ("duration", Value::DurationNs(30_000_000)),
        ("eventThread", Value::Thread(0)),
        ("stackTrace", Value::Stack(stack)),
    ];
    let mut event = event(name, &[&fields, more].concat());
    event.time_ns = recording.events.len() as u64 * 40_000_000;
    recording.events.push(event);
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// One wait of each kind. The stacks of most events begin below the method that waits.
fn waits(recording: &mut Recording) {
    let stack_of = |place: usize| recording.samples[place].stack;
    let [program, lock] = [stack_of(0), stack_of(2)];
    let monitor = [
        ("monitorClass", text("a.Ledger")),
        ("address", Value::Int(0xab)),
        ("previousOwner", Value::Thread(0)),
    ];
    wait(recording, "jdk.JavaMonitorEnter", program, &monitor);
    wait(recording, "jdk.JavaMonitorWait", program, &monitor[..1]);
    let parked = [("parkedClass", text("a.Sync"))];
    wait(recording, "jdk.ThreadPark", lock, &parked);
    wait(recording, "jdk.ThreadPark", program, &[]);
    wait(recording, "jdk.ThreadSleep", program, &[]);
    let peer = [
        ("host", text("db")),
        ("address", text("10.0.0.7")),
        ("port", Value::Int(5432)),
        ("bytesRead", Value::Int(100)),
    ];
    wait(recording, "jdk.SocketRead", program, &peer);
    wait(
        recording,
        "jdk.FileWrite",
        program,
        &[("path", text("/tmp/x"))],
    );
}

#[test]
fn waits_of_the_jdk_have_cause_detail_owner_and_duration() {
    let mut recording = recording();
    recording
        .samples
        .iter_mut()
        .for_each(|it| it.weight_ns = None);
    waits(&mut recording);
    let profile = Profile::from_recording(recording);
    assert!(profile.has_wall());
    let told = |look: &dwell_profile::Look| {
        let detail = look.detail.map_or("", |id| profile.names().text(id));
        (
            profile.names().text(look.cause).to_owned(),
            detail.to_owned(),
        )
    };
    let told: Vec<_> = profile.looks().iter().map(told).collect();
    let pair = |cause: &str, detail: &str| (cause.to_owned(), detail.to_owned());
    let expected = [
        pair("monitor", "a.Ledger@ab"),
        pair("object-wait", "a.Ledger"),
        pair("lock", "a.Sync"),
        pair("park", ""),
        pair("sleep", ""),
        pair("socket", "peer 10.0.0.7:5432"),
        pair("file", "/tmp/x"),
    ];
    assert_eq!(told, expected);
    for look in profile.looks() {
        assert_eq!(
            (look.weight_ns, look.duration_ns, look.count),
            (30_000_000, 30_000_000, 1)
        );
    }
    let owners: Vec<_> = profile.looks().iter().map(|look| look.owner).collect();
    assert_eq!(owners, [Some(0), None, None, None, None, None, None]);
    let classes: Vec<_> = profile
        .lock_classes()
        .into_iter()
        .map(|it| it.name)
        .collect();
    assert_eq!(classes.len(), 2, "{classes:?}");
    let titles: Vec<_> = profile.event_tables().iter().map(|it| it.title).collect();
    assert_eq!(titles, ["Sockets by time", "Files by time"]);
}

#[test]
fn settings_say_the_period_and_the_threshold_of_waits() {
    let mut recording = recording();
    recording
        .samples
        .iter_mut()
        .for_each(|it| it.weight_ns = None);
    wait(&mut recording, "jdk.ThreadSleep", 0, &[]);
    for (id, name) in [
        (7, "jdk.ThreadSleep"),
        (8, "jdk.ExecutionSample"),
        (9, "jdk.Other"),
    ] {
        recording.types.insert(id, name.into());
    }
    for (id, name, value) in [
        (7, "threshold", "10 ms"),
        (8, "period", "5 ms"),
        (9, "threshold", "3 s"),
    ] {
        let mut of_type = setting(name, value);
        of_type.fields.push(("id".into(), Value::Int(id)));
        recording.events.push(of_type);
    }
    let profile = Profile::from_recording(recording);
    let waits = profile.info().event_waits.unwrap();
    assert_eq!(
        (waits.threshold_ns, waits.period_ns),
        (10_000_000, 5_000_000)
    );
    // Eight samples that are only counted stand for a period each in the wall time.
    let expected = [
        ("running".to_owned(), 40_000_000),
        ("sleep".to_owned(), 30_000_000),
    ];
    assert_eq!(causes(&profile), expected);
}

#[test]
fn wall_clock_of_another_profiler_takes_precedence_over_events() {
    let mut recording = recording();
    recording
        .samples
        .iter_mut()
        .for_each(|it| it.weight_ns = None);
    on_the_wall(&mut recording, SampleKind::WallClock, 1);
    async_profiler(
        &mut recording,
        &[("event", "wall"), ("interval", "1000000")],
    );
    wait(&mut recording, "jdk.ThreadPark", 0, &[]);
    recording.counts.insert("jdk.ThreadPark".into(), 1);
    let profile = Profile::from_recording(recording);
    assert_eq!(profile.info().event_waits, None);
    assert_eq!(profile.looks().len(), 6);
    let held = [("jdk.ThreadPark".to_owned(), 1)];
    assert_eq!(profile.info().held_events, held, "it is only counted");
}

#[test]
fn safepoints_of_the_jdk_have_their_operations() {
    let mut recording = recording();
    let begun = [
        ("duration", Value::DurationNs(4)),
        ("safepointId", Value::Int(3)),
        ("totalThreadCount", Value::Int(11)),
    ];
    recording.events.push(event("jdk.SafepointBegin", &begun));
    for (id, name, ns) in [(3, "G1CollectFull", 50), (0, "HandshakeAllThreads", 9)] {
        let fields = [
            ("duration", Value::DurationNs(ns)),
            ("operation", text(name)),
            ("safepointId", Value::Int(id)),
        ];
        recording
            .events
            .push(event("jdk.ExecuteVMOperation", &fields));
    }
    let profile = Profile::from_recording(recording);
    let [stop] = profile.safepoints() else {
        panic!("{:?}", profile.safepoints());
    };
    assert_eq!(profile.names().text(stop.operation), "G1CollectFull");
    assert_eq!(
        (stop.reaching_ns, stop.operation_ns, stop.threads),
        (4, 50, 11)
    );
}

#[test]
fn traced_events_of_the_jdk_are_summed_by_name_and_place() {
    let mut recording = recording();
    let program = recording.samples[0].stack;
    let thrown = [
        ("thrownClass", text("a.Fault")),
        ("stackTrace", Value::Stack(program)),
    ];
    recording
        .events
        .push(event("jdk.JavaExceptionThrow", &thrown));
    recording
        .events
        .push(event("jdk.JavaExceptionThrow", &thrown));
    // Errors are among the exceptions.
    recording.events.push(event("jdk.JavaErrorThrow", &thrown));
    for (second, throwables) in [(1, 5), (3, 9)] {
        let throwables = [("throwables", Value::Int(throwables))];
        let mut count = event("jdk.ExceptionStatistics", &throwables);
        count.time_ns = second * 1_000_000_000;
        recording.events.push(count);
    }
    let pinned = [
        ("duration", Value::DurationNs(30)),
        ("pinnedReason", text("Native frame on stack")),
    ];
    recording
        .events
        .push(event("jdk.VirtualThreadPinned", &pinned));
    let object = Value::Struct([("type".into(), text("a.Kept"))].into());
    let kept = [
        ("object", object),
        ("objectSize", Value::Int(64)),
        ("objectAge", Value::DurationNs(7)),
    ];
    recording.events.push(event("jdk.OldObjectSample", &kept));
    for calls in [3, 5] {
        let timing = [
            ("method", Value::Method(0)),
            ("invocations", Value::Int(calls)),
            ("average", Value::DurationNs(10)),
            ("maximum", Value::DurationNs(20)),
        ];
        recording.events.push(event("jdk.MethodTiming", &timing));
    }
    let profile = Profile::from_recording(recording);
    let thrown = profile.thrown().unwrap();
    assert_eq!((thrown.all, thrown.per_second), (9, Some(2.0)));
    let tables = profile.event_tables();
    let rows: Vec<_> = tables.iter().flat_map(|it| it.rows.clone()).collect();
    let row = |name: &str, cells: &[u64]| (name.to_owned(), cells.to_vec());
    let expected = [
        row("a.Fault in app.Main.run", &[2]),
        row("Native frame on stack", &[1, 30, 30]),
        row("a.Kept", &[1, 64, 7]),
        row("app.Main.run", &[5, 50, 10, 20]),
    ];
    assert_eq!(rows, expected);
    assert!(tables[0].note.contains("counted 9 "), "{}", tables[0].note);
}
