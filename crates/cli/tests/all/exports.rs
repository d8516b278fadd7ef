//! Profiles for other tools, and comparisons in builds: `convert --pprof` and `--firefox`, `diff
//! --markdown`, `diff --fail-on`.

use crate::harness::common::modern;
use crate::harness::{Place, begin_recording, programs};
use dwell_jfr::writer::{ChunkClock, ChunkWriter, FrameRef, MethodInfo, Sample, ThreadInfo};
use dwell_jfr::{FrameKind, ThreadState};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

const MS: u64 = 1_000_000;
const SECRET: &str = "planted5ecret";

/// A recording of a second with so many samples of 10 ms, of a program with a secret.
pub fn recording(samples: u64) -> Vec<u8> {
    let mut chunk = ChunkWriter::new(ChunkClock {
        epoch_ns: 1_700_000_000_000_000_000,
        start_ticks: 0,
        ticks_per_second: 0,
    });
    let thread = chunk.thread(
        1,
        &ThreadInfo {
            os_name: "worker",
            os_tid: 11,
            java_name: Some("worker"),
            java_tid: 12,
            ..ThreadInfo::default()
        },
    );
    let method = chunk.method(
        1,
        &MethodInfo {
            class: "a/b/C",
            name: "run",
            descriptor: "()V",
            ..MethodInfo::default()
        },
    );
    let frame = FrameRef {
        method,
        line: 7,
        bci: 3,
        kind: FrameKind::C1,
    };
    let stack = chunk.stack(&[frame], false);
    begin_recording(
        &mut chunk,
        &format!("-Ddb.password={SECRET}"),
        &format!("app.jar --password={SECRET}"),
    );
    for number in 0..samples {
        chunk.execution_sample(&Sample {
            ticks: number * 1000 * MS / samples,
            thread,
            stack,
            state: ThreadState::Runnable,
            weight_ns: 10 * MS,
            ..Sample::default()
        });
    }
    let mut file = chunk.flush(1000 * MS);
    let header = chunk.header();
    file[..header.len()].copy_from_slice(&header);
    file
}

/// The numbers at the ends of the lines.
fn sum(collapsed: &str) -> u64 {
    let numbers = collapsed.lines().filter_map(|line| line.rsplit_once(' '));
    numbers
        .map(|(_, number)| number.parse::<u64>().unwrap())
        .sum()
}

/// The sum of a type of value by `go tool pprof`; `None` without Go.
fn sum_by_go(place: &Place, file: &str, of: &str) -> Option<u64> {
    let mut go = Command::new("go");
    go.args(["tool", "pprof", "-raw"]).arg(place.path(file));
    let Ok(output) = go.output() else {
        println!("skipped: go is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let raw = String::from_utf8(output.stdout).unwrap();
    let (_, samples) = raw.split_once("Samples:\n").unwrap();
    let (samples, _) = samples.split_once("\nLocations\n").unwrap();
    let (types, samples) = samples.split_once('\n').unwrap();
    let names: Vec<&str> = types.split_whitespace().collect();
    let is_it = |name: &&str| name.split(['/', '[']).next() == Some(of);
    let column = names
        .iter()
        .position(is_it)
        .unwrap_or_else(|| panic!("no {of} in {types}"));
    let mut sum = 0;
    for line in samples.lines() {
        let values = line.split(':').next().unwrap().split_whitespace();
        let values: Vec<u64> = values.map_while(|value| value.parse().ok()).collect();
        // Other lines contain labels.
        if values.len() == names.len() {
            sum += values[column];
        }
    }
    Some(sum)
}

#[test]
fn pprof_read_by_go_has_the_sums_of_collapsed_stacks() {
    let place = Place::new("pprof");
    let (java, jar) = (modern().java(), programs());
    let record = [
        "record", "-i", "2ms", "-e", "all", "--alloc", "64k", "-o", "ours", "--",
    ];
    let program = [java.to_str().unwrap(), "-cp", jar.to_str().unwrap()];
    let main = ["io.dwell.test.Allocations", "mib=64"];
    place
        .dwell(&[&record[..], &program, &main].concat())
        .exits(0);
    place
        .dwell(&["convert", "ours.jfr", "-o", "ours.pb.gz"])
        .exits(0);
    let written = std::fs::read(place.path("ours.pb.gz")).unwrap();
    let mut command = place.command(&["convert", "ours.jfr", "--pprof"]);
    assert!(
        command.output().unwrap().stdout == written,
        "another one on standard output"
    );
    for (of, options, least) in [
        ("samples", &["-e", "cpu", "--unit", "samples"][..], 100),
        ("cpu", &["-e", "cpu", "--unit", "ns"], 100 * MS),
        ("wall", &["-e", "wall"], 1000 * MS),
        ("alloc_space", &["-e", "alloc"], 1 << 20),
        ("inuse_space", &["-e", "live"], 0),
        ("delay", &["-e", "lock"], 0),
    ] {
        let args = [&["convert", "ours.jfr", "--collapsed"], options].concat();
        let own = sum(&place.dwell(&args).exits(0).out);
        let Some(theirs) = sum_by_go(&place, "ours.pb.gz", of) else {
            return;
        };
        println!("{of}: {theirs}");
        assert_eq!(theirs, own, "{of}");
        assert!(theirs >= least, "{of}: {theirs}");
    }
}

/// The sums of collapsed stacks by their first frame.
fn sums_by_thread(place: &Place, options: &[&str]) -> BTreeMap<String, u64> {
    let args = [
        &["convert", "ours.jfr", "--collapsed", "--threads"],
        options,
    ]
    .concat();
    let mut sums = BTreeMap::new();
    for line in place.dwell(&args).exits(0).out.lines() {
        let (stack, number) = line.rsplit_once(' ').unwrap();
        let thread = stack.split(';').next().unwrap().to_owned();
        *sums.entry(thread).or_default() += number.parse::<u64>().unwrap();
    }
    sums
}

#[test]
fn firefox_file_has_the_time_of_each_thread_and_cause() {
    let place = Place::new("firefox");
    let (java, jar) = (modern().java(), programs());
    let record = ["record", "-i", "2ms", "-e", "all", "-o", "ours", "--"];
    let program = [java.to_str().unwrap(), "-cp", jar.to_str().unwrap()];
    let main = ["io.dwell.test.LockWaits", "percent=10"];
    place
        .dwell(&[&record[..], &program, &main].concat())
        .exits(0);
    place
        .dwell(&["convert", "ours.jfr", "-o", "ours.json.gz"])
        .exits(0);
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/firefox.mjs");
    let mut node = Command::new("node");
    let read = node.arg(reader).arg(place.path("ours.json.gz")).output();
    let read = read.expect("node, which the build needs as well");
    let errors = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{errors}");
    let read = String::from_utf8(read.stdout).unwrap();
    println!("{read}");
    let mut by_cause: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    for line in read.lines().filter_map(|it| it.strip_prefix("sum\t")) {
        let [thread, cause, ns] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let sums = by_cause.entry(cause).or_default();
        *sums.entry(thread.to_owned()).or_default() += ns.parse::<u64>().unwrap();
    }
    for (cause, theirs) in &by_cause {
        let own = match *cause {
            "running" => sums_by_thread(&place, &["-e", "cpu", "--unit", "ns"]),
            cause => sums_by_thread(&place, &["--cause", cause]),
        };
        assert_eq!(*theirs, own, "{cause}");
    }
    // No cause is missing.
    let all = sums_by_thread(&place, &["-e", "wall"]);
    let ran = sums_by_thread(&place, &["--cause", "running"]);
    let waited = by_cause.iter().filter(|(cause, _)| **cause != "running");
    let waited = waited.flat_map(|(_, sums)| sums.values());
    let own = all.values().sum::<u64>() - ran.values().sum::<u64>();
    assert_eq!(waited.sum::<u64>(), own);
    assert!(
        by_cause["monitor"]
            .keys()
            .any(|it| it.starts_with("waiter-"))
    );
    assert!(read.contains("markers\tMonitor wait\t"), "{read}");
}

#[test]
fn exports_contain_secrets_only_on_request() {
    let place = Place::new("export-secrets");
    std::fs::write(place.path("a.jfr"), recording(10)).unwrap();
    let has_secret = |file: &str, options: &[&str]| {
        let args = [&["convert", "a.jfr", "-o", file], options].concat();
        let mut command = place.command(&args);
        let attributes = format!("region=eu,api.token={SECRET}");
        command.env("OTEL_RESOURCE_ATTRIBUTES", attributes);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let mut bytes = std::fs::read(place.path(file)).unwrap();
        if file.ends_with(".gz") {
            let packed = std::mem::take(&mut bytes);
            let mut unzipped = flate2::read::GzDecoder::new(&packed[..]);
            unzipped.read_to_end(&mut bytes).unwrap();
        }
        let secret = SECRET.as_bytes();
        bytes.windows(secret.len()).any(|window| window == secret)
    };
    for file in ["a.pb.gz", "a.json.gz", "a.otlp", "a.otlp.json"] {
        assert!(!has_secret(file, &[]), "{file}");
        assert!(has_secret(file, &["--no-redact"]), "{file}");
        assert!(!has_secret(file, &["--redact", "hunter"]), "{file}");
    }
}

#[test]
fn files_of_other_formats_are_read_like_recordings() {
    let place = Place::new("imported");
    for (name, samples) in [("a", 400), ("b", 600)] {
        let jfr = format!("{name}.jfr");
        std::fs::write(place.path(&jfr), recording(samples)).unwrap();
        for ending in ["pb.gz", "otlp", "collapsed"] {
            let file = format!("{name}.{ending}");
            place.dwell(&["convert", &jfr, "-o", &file]).exits(0);
        }
    }
    for ending in ["pb.gz", "otlp", "collapsed"] {
        let [a, b] = ["a", "b"].map(|name| format!("{name}.{ending}"));
        let text = place.dwell(&["report", &a, "--text"]).exits(0);
        assert!(text.out.contains("a.b.C.run"), "{text:?}");
        let note = format!("note: {a}: read from ");
        assert!(text.error().contains(&note), "{text:?}");
        place.dwell(&["report", &a, "-o", "a.html"]).exits(0);
        place.dwell(&["explain", &a]).exits(0);
        let stacks = place.dwell(&["convert", &b, "--collapsed"]).exits(0).out;
        assert_eq!(sum(&stacks), 600, "{stacks}");
        // Both files of a kind differ by nothing but the number of samples.
        let diff = place.dwell(&["diff", &a, &b, "--text", "--per", "sample"]);
        assert!(diff.exits(0).out.contains("   a.b.C.run"));
    }
    // A file in no known format is named as before.
    std::fs::write(place.path("c.txt"), "no stacks").unwrap();
    let refused = place.dwell(&["report", "c.txt", "--text"]).exits(1);
    assert!(
        refused
            .error()
            .contains("cannot be read as a JFR recording"),
        "{refused:?}"
    );
}

#[test]
fn diff_exits_with_3_if_a_limit_is_exceeded() {
    let place = Place::new("limits");
    std::fs::write(place.path("a.jfr"), recording(400)).unwrap();
    std::fs::write(place.path("b.jfr"), recording(600)).unwrap();
    let diff = |a: &str, b: &str, options: &[&str], code| {
        let args = [&["diff", a, b], options].concat();
        place.dwell(&args).exits(code)
    };
    let failed = diff("a.jfr", "b.jfr", &["--text", "--fail-on", "cpu>5%"], 3);
    let expected = "--fail-on cpu>5%: failed: CPU time, +50.0 %";
    assert!(failed.error().contains(expected), "{failed:?}");
    assert!(
        failed.out.contains("\nLimits of growth\n  cpu>5%: failed"),
        "{failed:?}"
    );
    let kept = diff("a.jfr", "b.jfr", &["--text", "--fail-on", "cpu>60%"], 0);
    assert!(
        kept.out.contains("  cpu>60%: passed: CPU time, +50.0 %"),
        "{kept:?}"
    );
    diff("b.jfr", "a.jfr", &["--text", "--fail-on", "cpu>0%"], 0);
    diff("a.jfr", "a.jfr", &["--text", "--fail-on", "cpu>0%"], 0);
    // Each limit is tested, and one exceeded limit is enough.
    let both = [
        "--json",
        "--fail-on",
        "cpu>60%",
        "--fail-on",
        "cpu:a.b.*>9%",
    ];
    let json = diff("a.jfr", "b.jfr", &both, 3);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let results: Vec<&str> = (0..2)
        .map(|place| json["limits"][place]["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["passed", "failed"]);
    assert_eq!(place.files(), ["a.jfr", "b.jfr"]);
    // A limit of unrecorded data cannot be tested, which is a failure.
    let without = diff("a.jfr", "b.jfr", &["--text", "--fail-on", "monitor>5%"], 1);
    assert!(
        without.error().contains("one of them has no wall time"),
        "{without:?}"
    );
}

#[test]
fn markdown_has_limits_and_a_page_only_if_it_is_named() {
    let place = Place::new("markdown");
    std::fs::write(place.path("a.jfr"), recording(400)).unwrap();
    std::fs::write(place.path("b.jfr"), recording(600)).unwrap();
    let diff = [
        "diff",
        "a.jfr",
        "b.jfr",
        "--markdown",
        "--fail-on",
        "cpu>5%",
    ];
    let done = place.dwell(&diff).exits(3);
    let heading = "### dwell: `b.jfr` against `a.jfr`\n";
    assert!(done.out.starts_with(heading), "{done:?}");
    assert!(done.out.contains("| `cpu>5%` | **failed** |"), "{done:?}");
    assert_eq!(place.files(), ["a.jfr", "b.jfr"]);
    let with_page = place
        .dwell(&[&diff[..], &["-o", "c.html"]].concat())
        .exits(3);
    assert_eq!(with_page.out, done.out);
    assert_eq!(place.files(), ["a.jfr", "b.jfr", "c.html"]);
}
