//! Recordings of the JDK's recorder, made here. The commands read them, and report present and
//! missing data.

use crate::harness::common::jdks;
use crate::harness::{Place, record_by_the_jdk, record_traced_by};

/// Stacks by event, and the error for a missing event.
fn check_stacks(place: &Place, stacks: &str) {
    // The same to standard output, and to a name without a known ending.
    let convert = |more: &[&str]| {
        let args = [&["convert", "jdk.jfr", "--collapsed"], more].concat();
        place.dwell(&args)
    };
    assert_eq!(convert(&[]).exits(0).out, stacks);
    convert(&["-o", "stacks"]).exits(0);
    assert_eq!(
        std::fs::read_to_string(place.path("stacks")).unwrap(),
        stacks
    );
    let of_main = ["--thread", "main"];
    assert!(!convert(&of_main).exits(0).out.is_empty());
    let of_none = ["-e", "cpu", "--thread", "nobody"];
    let empty = convert(&of_none).exits(0);
    assert_eq!(empty.out, "");
    assert!(empty.error().contains("--thread nobody"), "{empty:?}");
    let no_wall = convert(&["-e", "wall", "--thread", "main"]).exits(1);
    // The remedy names the settings of the JDK's recorder, and its limits.
    assert!(no_wall.error().contains("jdk.ThreadPark"), "{no_wall:?}");
    let no_objects = convert(&["-e", "live"]).exits(1);
    assert!(
        no_objects.error().contains("jdk.OldObjectSample"),
        "{no_objects:?}"
    );
}

#[test]
fn jdk_recording_works_with_all_commands() {
    let place = Place::new("foreign");
    record_by_the_jdk(&place);
    let report = place.dwell(&["report", "jdk.jfr", "--text"]).exits(0).out;
    assert!(report.contains("Busy.recurse"), "{report}");
    place
        .dwell(&["convert", "jdk.jfr", "-o", "jdk.collapsed"])
        .exits(0);
    let stacks = std::fs::read_to_string(place.path("jdk.collapsed")).unwrap();
    assert!(stacks.contains("Busy.main;Busy.recurse;"), "{stacks}");
    check_stacks(&place, &stacks);
    let explained = place.dwell(&["explain", "jdk.jfr"]).exits(0).out;
    // The number of samples depends on the machine, and with too few a rule has no finding. Which
    // of the two methods is first depends on the JDK's sampler, which samples where it can walk.
    let hot = ["are in Busy.recurse", "are in Busy.main"];
    assert!(
        explained.contains("hot-path") || hot.iter().any(|it| explained.contains(it)),
        "{explained}"
    );
    // The JDK samples Java code only, so the compilers' activity does not matter. If loading
    // classes takes long, the finding names the JVM's start instead.
    for lacks in [
        "cpu-starvation: the recording has no wall time",
        "warm-up: the recording ",
    ] {
        let lacks = format!("not enough data: {lacks}");
        assert!(explained.contains(&lacks), "{explained}");
    }
    let differences = place
        .dwell(&["diff", "jdk.jfr", "jdk.jfr", "--json"])
        .exits(0)
        .out;
    assert!(
        !differences.contains("\"significant\": true"),
        "{differences}"
    );
    // The page is next to the second recording.
    let told = place.dwell(&["diff", "jdk.jfr", "jdk.jfr"]).exits(0).out;
    assert!(told.ends_with("\njdk-against-jdk.html\n"), "{told}");
    let page = std::fs::read_to_string(place.path("jdk-against-jdk.html")).unwrap();
    assert!(page.contains("Content-Security-Policy"));
    place
        .dwell(&["diff", "jdk.jfr", "jdk.jfr", "--text"])
        .exits(0);
    // An unreadable file gives one line with the remedy.
    std::fs::write(place.path("packed.jfr"), [0x04, 0x22, 0x4d, 0x18]).unwrap();
    let packed = place.dwell(&["report", "packed.jfr", "--text"]).exits(1);
    assert!(packed.error().contains("unlz4 packed.jfr"), "{packed:?}");
}

/// The line of a text that ends so.
#[track_caller]
fn line<'t>(text: &'t str, end: &str) -> &'t str {
    let line = text.lines().find(|line| line.ends_with(end));
    line.unwrap_or_else(|| panic!("no line ends with {end}:\n{text}"))
}

#[test]
fn waits_of_the_jdks_recorder_are_tables_and_findings() {
    for jdk in jdks().iter().filter(|jdk| jdk.feature >= 17) {
        let place = Place::new(&format!("traced-{}", jdk.feature));
        record_traced_by(jdk, &place);
        let report = place
            .dwell(&["report", "traced.jfr", "--text"])
            .exits(0)
            .out;
        for wait in [
            "monitor: Traced.enterMonitor, java.lang.Object",
            "lock: Traced.takeLock, ReentrantLock$NonfairSync",
            "object-wait: Traced.awaitSignal, java.lang.Object",
            "sleep: Traced.main",
            "sleep: Traced.answer",
        ] {
            line(&report, wait);
        }
        assert!(report.contains("socket: Traced.ask, peer "), "{report}");
        assert!(report.contains("file: Traced.main, "), "{report}");
        let held = "held 100.0 % of it by main, which ran";
        assert!(report.contains(held), "{report}");
        assert!(
            report.contains("threshold (10 ms) are not in the file"),
            "{report}"
        );
        let thrown = line(&report, "  java.lang.IllegalStateException in Traced.fail");
        assert!(thrown.starts_with("          50 "), "{thrown}");
        let file = line(&report, "  transferred.bin").split_whitespace();
        let file: Vec<&str> = file.take(5).collect();
        assert_eq!(file, ["20", "10.0", "MiB", "10.0", "MiB"]);
        assert!(report.contains("Sockets by time"), "{report}");
        assert!(report.contains("\nsafepoints "), "{report}");
        if jdk.feature >= 25 {
            let traced = line(&report, " Traced.takeLock");
            assert!(report.contains("Traced methods by time"), "{traced}");
            let timed = report.split("Timed methods by time").nth(1).unwrap_or("");
            let timed = line(timed, "  Traced.awaitSignal");
            assert!(timed.starts_with("           1 "), "{timed}");
        }
        // Waits of a second are contention, whatever the other samples show.
        let explained = place.dwell(&["explain", "traced.jfr"]).exits(0).out;
        let words: Vec<&str> = explained.split_whitespace().collect();
        let explained = words.join(" ");
        let found = "a monitor (synchronized) of java.lang.Object";
        assert!(explained.contains(found), "{explained}");
        assert!(
            explained.contains("waits: Waits shorter than"),
            "{explained}"
        );
    }
}
