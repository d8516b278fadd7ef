//! JDK Mission Control's parser and the JDK's reader see the same in recordings of ours, and what
//! our reader sees. See `java/verify`.

use dwell_e2e::{Jdk, Place, Starter, View, both, each, turn};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program that compares; the first call downloads and compiles what is missing.
fn program() -> &'static Path {
    static JAR: OnceLock<PathBuf> = OnceLock::new();
    JAR.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut build = Command::new(root.join("java/build.sh"));
        let output = build.arg("--jmc").output().expect("java/build.sh");
        let reason = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "no parser to test with: {reason}");
        root.join("target/java/dwell-verify-jmc.jar")
    })
}

/// The content of a file for Mission Control, by the words before the number at the end of each
/// line. It must equal the JDK's.
fn seen_alike(jdk: &Jdk, file: &Path) -> BTreeMap<String, u64> {
    let mut command = Command::new(jdk.tool("java"));
    let output = command
        .arg("-jar")
        .args([program(), file])
        .env_remove("JAVA_TOOL_OPTIONS")
        .output()
        .expect("java");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).expect("ASCII");
    let entry = |line: &str| {
        let (name, number) = line.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    let found: Option<BTreeMap<_, _>> = text.lines().map(entry).collect();
    found.unwrap_or_else(|| panic!("{text}"))
}

/// Records a program and compares what is in the file; the recording for more.
fn check(jdk: &Jdk, name: &str, arguments: &str, options: &str) -> View {
    let place = Place::new("jmc");
    let file = place.path("m.jfr");
    let mut program = Starter::new(jdk, &place, name).with(arguments).start();
    program.tell(&format!("start,{options},file={}", file.display()));
    let _ = program.work();
    program.tell("stop");
    program.end();
    let view = View::read(&file);
    let seen = seen_alike(jdk, &file);
    let samples = view.recording.samples.len() as u64;
    println!("JDK {} {name}: {seen:?}", jdk.feature);
    assert!(samples > 100, "{samples}");
    assert_eq!(seen["event jdk.ExecutionSample"], samples);
    for event in ["dwell.Recording", "dwell.Self", "dwell.CpuLoad"] {
        let count = view.recording.events_named(event).count() as u64;
        assert_eq!(seen[&format!("event {event}")], count, "{event}");
    }
    // Its tree of stacks has all samples that have one.
    let with_stack = || view.samples().filter(|s| !s.stack.frames.is_empty());
    assert_eq!(seen["tree_samples"], with_stack().count() as u64);
    view
}

#[test]
fn mission_control_reads_recording_of_several_chunks() {
    each(&turn(&both()), |jdk| {
        let view = check(
            jdk,
            "Steady60",
            "seconds=3 threads=2 cpu_ms=5000",
            "cpu=150us,chunksize=256k",
        );
        let chunks = view.recording.chunks.len();
        assert!(chunks >= 2, "{chunks} chunks");
    });
}

#[test]
fn mission_control_sees_hostile_names() {
    each(&turn(&both()), |jdk| {
        check(jdk, "Hostile", "seconds=3", "cpu=2ms");
    });
}

#[test]
fn mission_control_sees_virtual_threads() {
    let with_virtual_threads: Vec<_> = both().into_iter().filter(|jdk| jdk.feature >= 21).collect();
    each(&with_virtual_threads, |jdk| {
        let view = check(jdk, "VirtualThreads", "seconds=3", "cpu=1ms");
        let is_virtual = |sample: &dwell_e2e::SampleView<'_>| sample.thread().starts_with("vt-");
        assert!(view.samples().any(|sample| is_virtual(&sample)));
    });
}
