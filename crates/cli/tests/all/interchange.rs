//! Other tools read the outputs of `dwell convert`, with equal sums.

use crate::harness::common::modern;
use crate::harness::{Place, programs};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Distance between two points of an export.
const INTERVAL_NS: u64 = 2_000_000;
/// The program that is recorded.
const MAIN: &str = "io.dwell.test.Allocations";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Another reader; the first call downloads it.
fn reader(option: &str, jar: &str) -> PathBuf {
    let mut build = Command::new(root().join("java/build.sh"));
    let output = build.arg(option).output().expect("java/build.sh");
    let reason = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "no reader to test with: {reason}");
    root().join("target/java").join(jar)
}

/// The output of a jar.
fn run(java: &Path, jar: &Path, options: &[&str]) -> String {
    let mut command = Command::new(java);
    command.arg("-jar").arg(jar).args(options);
    let output = command.env_remove("JAVA_TOOL_OPTIONS").output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The numbers at the ends of the lines.
fn sum(collapsed: &str) -> u64 {
    let numbers = collapsed.lines().filter_map(|line| line.rsplit_once(' '));
    numbers
        .map(|(_, number)| number.parse::<u64>().unwrap())
        .sum()
}

/// The recording itself, as the agent wrote it: the same number of samples, the same bytes.
fn recording_itself(place: &Place, java: &Path, jfrconv: &Path) {
    let [input, out] = ["ours.jfr", "direct.collapsed"].map(|name| place.path(name));
    let files = [input.to_str().unwrap(), out.to_str().unwrap()];
    let ways: [(&[&str], &[&str]); 2] = [
        (&[], &["--unit", "samples"]),
        (&["--alloc", "--total"], &["-e", "alloc", "--unit", "bytes"]),
    ];
    for (theirs, ours) in ways {
        let options = [&["-o", "collapsed"], theirs, &files].concat();
        run(java, jfrconv, &options);
        let read = std::fs::read_to_string(&out).unwrap();
        let args = [&["convert", "ours.jfr", "--collapsed"], ours].concat();
        let own = sum(&place.dwell(&args).exits(0).out);
        println!("{theirs:?}: {own}");
        assert!(own > 100);
        assert_eq!(sum(&read), own);
        assert!(read.contains("io/dwell/test/Allocations.kind_"), "{read}");
    }
}

#[test]
fn other_tools_read_exports_with_equal_sums() {
    let place = Place::new("interchange");
    let java = modern().java();
    let record = [
        "record",
        "-i",
        "2ms",
        "-e",
        "cpu,wall,alloc",
        "--alloc",
        "64k",
        "-o",
        "ours",
    ];
    let jar = programs();
    let (java_path, jar) = (java.to_str().unwrap(), jar.to_str().unwrap());
    let program = [java_path, "-cp", jar, MAIN, "mib=64"];
    place
        .dwell(&[&record[..], &["--"], &program].concat())
        .exits(0);
    place
        .dwell(&["convert", "ours.jfr", "-o", "theirs.jfr"])
        .exits(0);

    let jfrconv = reader("--jfrconv", "jfrconv/jfr-converter-4.5.jar");
    recording_itself(&place, &java, &jfrconv);
    let [input, out] = ["theirs.jfr", "theirs.collapsed"].map(|name| place.path(name));
    let files = [input.to_str().unwrap(), out.to_str().unwrap()];
    let seen = |options: &[&str]| {
        let all = [&["-o", "collapsed", "--dot"], options, &files].concat();
        run(&java, &jfrconv, &all);
        std::fs::read_to_string(&out).unwrap()
    };
    let own = |options: &[&str]| {
        let args = [&["convert", "ours.jfr", "--collapsed"], options].concat();
        sum(&place.dwell(&args).exits(0).out)
    };
    for event in ["cpu", "wall"] {
        let theirs = seen(&[&format!("--{event}")]);
        let (points, ns) = (sum(&theirs), own(&["-e", event, "--unit", "ns"]));
        println!("{event}: {points} points of theirs, {ns} ns of ours");
        // Points at equal distances.
        assert!(points > 100 && (points * INTERVAL_NS).abs_diff(ns) <= INTERVAL_NS);
        assert!(
            theirs.contains("io.dwell.test.Allocations.kind_"),
            "{theirs}"
        );
    }
    let theirs = seen(&["--alloc", "--total"]);
    assert_eq!(sum(&theirs), own(&["-e", "alloc", "--unit", "bytes"]));
    let is_class = |line: &str| line.contains(".kind_longs1m_") && line.contains(";long[]_");
    assert!(theirs.lines().any(is_class), "{theirs}");

    // The JDK's own reader and that of Mission Control agree on every event.
    let compare = reader("--jmc", "dwell-verify-jmc.jar");
    let counts = run(&java, &compare, &files[..1]);
    for event in [
        "jdk.ExecutionSample",
        "profiler.WallClockSample",
        "jdk.ObjectAllocationSample",
    ] {
        let line = format!("event {event} ");
        assert!(counts.lines().any(|it| it.starts_with(&line)), "{counts}");
    }
    assert!(!counts.contains("dwell."), "{counts}");
}
