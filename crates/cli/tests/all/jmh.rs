//! Benchmarks of JMH: the parts of the profiler without JMH, and `dwell diff` of its directories.

use crate::exports::recording;
use crate::harness::Place;
use crate::harness::common::modern;
use std::path::Path;
use std::process::Command;

#[test]
fn parts_of_the_profiler_for_jmh_pass_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut java = Command::new(modern().java());
    java.args(["-Xshare:auto", "-XX:TieredStopAtLevel=1", "-jar"]);
    let done = java.arg(root.join("target/java/dwell-jmh-tests.jar"));
    let done = done.output().unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success() && out.starts_with("passed "),
        "{done:?}"
    );
}

/// The profiler divides these sums by operations.
#[test]
fn explain_json_has_totals_of_cpu_time_by_kind() {
    let place = Place::new("explain-totals");
    std::fs::write(place.path("a.jfr"), recording(400)).unwrap();
    let done = place.dwell(&["explain", "a.jfr", "--json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let rows = json["totals"]["cpu"].as_array().unwrap();
    let kinds: Vec<&str> = rows
        .iter()
        .map(|row| row["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["program", "GC", "JIT", "VM", "profiler"]);
    assert_eq!(rows[0]["samples"], 400, "{rows:?}");
    assert!(rows[1..].iter().all(|row| row["ns"] == 0), "{rows:?}");
    assert_eq!(json["totals"]["allocated"], serde_json::Value::Null);
}

/// Two directories with a benchmark in common, whose forks differ in number.
fn directories(test: &str) -> Place {
    let place = Place::new(test);
    for (name, samples) in [
        ("before/a.B.both-avgt.jfr", 200),
        ("before/a.B.both-avgt-fork2.jfr", 200),
        ("before/a.B.old-avgt.jfr", 100),
        ("after/a.B.both-avgt.jfr", 600),
        ("after/a.B.new-avgt.jfr", 100),
        ("after/notes.txt", 100),
    ] {
        std::fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        std::fs::write(place.path(name), recording(samples)).unwrap();
    }
    place
}

#[test]
fn diff_of_directories_compares_common_benchmarks() {
    let place = directories("diff-directories");
    let done = place.dwell(&["diff", "before/", "after"]).exits(0);
    let count = |part: &str| done.out.matches(part).count();
    for line in [
        "== a.B.both-avgt",
        "only in before/: a.B.old-avgt",
        "only in after: a.B.new-avgt",
    ] {
        assert!(done.out.lines().any(|it| it == line), "{line}: {done:?}");
    }
    // The forks are one recording.
    assert_eq!((count("== "), count("(2 forks): ")), (1, 1), "{done:?}");
    assert!(done.out.contains(", 400 samples, "), "{done:?}");
    assert!(done.out.contains(", 600 samples, "), "{done:?}");
    // No page is written.
    assert_eq!(place.files(), ["after", "before"]);
    let json = place.dwell(&["diff", "before", "after", "--json"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["benchmarks"][0]["name"], "a.B.both-avgt");
    assert_eq!(json["benchmarks"][0]["diff"]["per"], "second");
    assert_eq!(json["onlyA"], serde_json::json!(["a.B.old-avgt"]));
    assert_eq!(json["onlyB"], serde_json::json!(["a.B.new-avgt"]));
}

/// Per second, 400 samples of two forks are 200 in each, and 600 are three times as much.
#[test]
fn diff_of_directories_divides_forks_by_their_common_time() {
    let place = directories("diff-forks");
    let diff = |limit: &str, code| {
        let args = ["diff", "before", "after", "--fail-on", limit];
        place.dwell(&args).exits(code)
    };
    let failed = diff("cpu>5%", 3);
    let expected = "dwell: a.B.both-avgt: --fail-on cpu>5%: failed: CPU time, +200.0 %";
    assert!(failed.error().starts_with(expected), "{failed:?}");
    diff("cpu>250%", 0);
}

#[test]
fn diff_of_directories_goes_on_after_a_damaged_recording() {
    let place = directories("diff-damaged");
    std::fs::write(place.path("before/a.B.new-avgt.jfr"), "no recording").unwrap();
    let done = place.dwell(&["diff", "before", "after"]).exits(1);
    assert!(done.out.contains("== a.B.both-avgt\n"), "{done:?}");
    assert!(done.err.contains("dwell: a.B.new-avgt: "), "{done:?}");
    assert!(
        done.err.contains("1 of 2 benchmarks could not be compared"),
        "{done:?}"
    );
}

#[test]
fn diff_of_directories_refuses_meaningless_options() {
    let place = directories("diff-refused");
    std::fs::create_dir(place.path("empty")).unwrap();
    for (words, code, part) in [
        (
            &["before", "after/a.B.new-avgt.jfr"][..],
            2,
            "before is a directory, but after/",
        ),
        (
            &["after/notes.txt", "before"],
            2,
            "before is a directory, but after/notes.txt is not",
        ),
        (
            &["before", "after", "-o", "x.html"],
            2,
            "--output is for two recordings",
        ),
        (
            &["before", "after", "-e", "live"],
            2,
            "--event is for two recordings",
        ),
        (
            &["before", "after", "--per", "request"],
            2,
            "--per request is for two",
        ),
        (
            &["before", "empty"],
            1,
            "empty: no recording (*.jfr) is in it",
        ),
    ] {
        let done = place.dwell(&[&["diff"], words].concat()).exits(code);
        assert!(done.error().contains(part), "{words:?}: {done:?}");
        assert_eq!(done.out, "", "{words:?}");
    }
}
