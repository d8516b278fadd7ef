//! Recordings of the JDK itself, made here: the reader has to find in them what `jfr summary` and
//! the JDK's consumer API find.

mod common;

use common::jdk::{Folder, Jdk, jdks};
use dwell_jfr::reader::{self, Recording, Sample, SampleKind, Value};
use dwell_jfr::{FrameKind, ThreadState};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn program(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/java")
        .join(name);
    path.to_string_lossy().into_owned()
}

/// A recording of `Busy`, two seconds long.
fn record(jdk: &Jdk, folder: &Folder) -> PathBuf {
    let path = folder.0.join(format!("jdk{}.jfr", jdk.version));
    let cpu_time = if jdk.version >= 25 {
        ",jdk.CPUTimeSample#enabled=true"
    } else {
        ""
    };
    let file = path.to_string_lossy();
    let option = format!("-XX:StartFlightRecording=settings=profile,filename={file}{cpu_time}");
    jdk.run(
        "java",
        &["-Xlog:disable", &option, &program("Busy.java"), "2000"],
    );
    path
}

fn read(jdk: &Jdk, path: &Path) -> Recording {
    let recording = reader::parse(&std::fs::read(path).unwrap()).unwrap();
    // JDKs leave out the constants of threads that end; `jfr print` shows them as "N/A".
    let mut warnings = recording.warnings.iter();
    let expected = warnings
        .all(|text| text.starts_with("threads, methods or stacks that something refers to"));
    assert!(expected, "JDK {}: {:?}", jdk.version, recording.warnings);
    recording
}

/// The sample as `Dump.java` shows it, without its time.
fn shown(recording: &Recording, sample: &Sample) -> String {
    let thread = recording.thread(sample).unwrap();
    let name = thread.java_name.as_deref().unwrap_or("null");
    let mut line = format!("{}|", sample.state.name());
    line += &match thread.os_tid {
        // It is not there.
        0 => "-|-|-|".to_owned(),
        tid => format!("{tid}|{}|{name}|", thread.java_tid),
    };
    let stack = recording.stack(sample).unwrap();
    line += &format!("{}", stack.truncated);
    for frame in &stack.frames {
        let method = recording.method(frame).unwrap();
        let kind = frame.kind.name();
        let (class, name, descriptor) = (&method.class, &method.name, &method.descriptor);
        line += &format!(
            "|{class}.{name}{descriptor}:{}:{}:{kind}",
            frame.line, frame.bci
        );
    }
    line
}

/// Time and text of the samples that `Dump.java` finds.
fn dumped(jdk: &Jdk, path: &Path) -> Vec<(u64, String)> {
    let text = jdk.run("java", &[&program("Dump.java"), &path.to_string_lossy()]);
    let lines = text.lines().filter_map(|line| line.strip_prefix("sample "));
    lines
        .map(|line| {
            let fields: Vec<_> = line.splitn(8, '|').collect();
            let [time, tid, java_tid, name, state, weight, failure, stack] = fields[..] else {
                panic!("{line}");
            };
            assert_eq!((weight, failure), ("-", "-"));
            // The JDK also samples threads that begin: they are new.
            let state = ThreadState::from_name(state).name();
            (
                time.parse().unwrap(),
                format!("{state}|{tid}|{java_tid}|{name}|{stack}"),
            )
        })
        .collect()
}

#[test]
fn recordings_of_every_jdk_are_read_as_the_jdk_reads_them() {
    for jdk in jdks().iter().filter(|jdk| jdk.version >= 11) {
        let folder = Folder::new(&format!("jdk{}", jdk.version));
        let path = record(jdk, &folder);
        let recording = read(jdk, &path);
        counts_are_those_of_summary(jdk, &path, &recording);
        samples_are_those_of_the_consumer_api(jdk, &path, &recording);
        samples_lie_in_the_busy_loop(jdk, &recording);
        events_have_their_values(jdk, &recording);
    }
}

fn counts_are_those_of_summary(jdk: &Jdk, path: &Path, recording: &Recording) {
    let mut summary = jdk.summary(path);
    let internal = ["jdk.metadata", "jdk.checkpoint"];
    summary.retain(|name, _| !internal.contains(&&*name.to_lowercase()));
    let counts = recording
        .counts
        .iter()
        .map(|(name, count)| (name.to_string(), *count));
    let counts: BTreeMap<_, _> = counts.collect();
    assert_eq!(counts, summary, "JDK {}", jdk.version);
    let read = recording.samples.len() + recording.events.len();
    assert_eq!(
        read as u64,
        counts.values().sum::<u64>(),
        "JDK {}",
        jdk.version
    );
}

fn samples_are_those_of_the_consumer_api(jdk: &Jdk, path: &Path, recording: &Recording) {
    let mut expected = dumped(jdk, path);
    let samples = recording
        .samples
        .iter()
        .filter(|s| s.kind == SampleKind::Execution);
    let mut found: Vec<_> = samples
        .map(|sample| (sample.time_ns, shown(recording, sample)))
        .collect();
    expected.sort();
    found.sort();
    assert!(!found.is_empty(), "JDK {}", jdk.version);
    assert_eq!(found.len(), expected.len(), "JDK {}", jdk.version);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found.1, expected.1, "JDK {}", jdk.version);
        // The JDK converts ticks with floating-point numbers.
        assert!(found.0.abs_diff(expected.0) <= 1000, "JDK {}", jdk.version);
    }
}

fn samples_lie_in_the_busy_loop(jdk: &Jdk, recording: &Recording) {
    let busy = |sample: &&Sample| {
        recording.stack(sample).unwrap().frames.iter().any(|frame| {
            let method = recording.method(frame).unwrap();
            &*method.name == "recurse" && &*method.class == "Busy"
        })
    };
    let in_loop: Vec<_> = recording.samples.iter().filter(busy).collect();
    assert!(!in_loop.is_empty(), "JDK {}", jdk.version);
    for sample in &in_loop {
        assert_eq!(
            recording.thread(sample).unwrap().java_name.as_deref(),
            Some("main")
        );
        let frames = &recording.stack(sample).unwrap().frames;
        assert!(frames.iter().all(|frame| frame.kind != FrameKind::Other));
    }
    let cpu = recording
        .samples
        .iter()
        .filter(|sample| sample.kind == SampleKind::CpuTime);
    let weights: Vec<_> = cpu.map(|sample| sample.weight_ns).collect();
    assert_eq!(weights.is_empty(), jdk.version < 25, "JDK {}", jdk.version);
    assert!(
        weights.iter().all(|weight| weight.is_some_and(|ns| ns > 0)),
        "{weights:?}"
    );
}

fn events_have_their_values(jdk: &Jdk, recording: &Recording) {
    let information = recording.events_named("jdk.JVMInformation").next().unwrap();
    let arguments = information.text("jvmArguments").unwrap();
    assert!(
        arguments.contains("StartFlightRecording"),
        "JDK {}: {arguments}",
        jdk.version
    );
    assert!(information.int("pid").is_some_and(|pid| pid > 0));
    let start = information.int("jvmStartTime").unwrap() as u64;
    assert!(recording.chunks[0].start_ns.abs_diff(start) < 600_000_000_000);
    for sleep in recording.events_named("jdk.ThreadSleep") {
        assert!(matches!(
            sleep.get("duration"),
            Some(Value::DurationNs(1_000_000..))
        ));
        assert!(matches!(sleep.get("eventThread"), Some(Value::Thread(_))));
        assert!(matches!(sleep.get("stackTrace"), Some(Value::Stack(_))));
    }
}
