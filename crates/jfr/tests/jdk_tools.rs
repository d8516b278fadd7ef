//! The JDK's own tools as the oracle of the writer: every JDK that is found has to read our files.

mod common;

use common::hostile::hostile_file;
use common::jdk::{Folder, jdks};
use common::{DEMO_DETAILS, DEMO_EVENTS, Demo, EPOCH_NS, START_TICKS, append, clock, demo_file};
use dwell_jfr::writer::{ChunkClock, Sample};
use std::path::{Path, PathBuf};

const SAMPLES: &str = "jdk.ExecutionSample";

fn dump_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java/Dump.java")
}

#[test]
fn summary_and_print_show_every_event_after_every_flush() {
    let folder = Folder::new("flushes");
    for jdk in &jdks() {
        for rounds in 1..=3 {
            let path = folder.write("demo.jfr", &demo_file(rounds));
            let counts = jdk.summary(&path);
            assert_eq!(counts[SAMPLES], 4 * rounds as u64, "JDK {}", jdk.version);
            assert_eq!(counts["dwell.Recording"], 1);
            let text = jdk.run("jfr", &["print", &path.to_string_lossy()]);
            let events = text
                .lines()
                .filter(|line| line.ends_with(" {") && !line.starts_with(' '));
            assert_eq!(
                events.count(),
                DEMO_EVENTS + DEMO_DETAILS + 4 * rounds,
                "JDK {}",
                jdk.version
            );
        }
    }
}

#[test]
fn print_shows_names_units_and_frames() {
    let folder = Folder::new("print");
    let path = folder.write("demo.jfr", &demo_file(1));
    for jdk in jdks().iter().filter(|jdk| jdk.version >= 17) {
        let text = jdk.run("jfr", &["print", &path.to_string_lossy()]);
        for expected in [
            "com.acme.Work.inner(int, long[][], String) line: 42",
            "com.acme.Main.main(String[]) line: 7",
            "Main.lambda$main$0()",
            "libjvm.so.G1ParScanThreadState::trim_queue(unsigned)()",
            "(kernel).futex_wait_queue()",
            "main \"quoted\" \u{2615}\" (javaThreadId = 1)",
            "\"GC Thread#0\" (osThreadId = 101)",
            "weight = 10.0 ms",
            "failure = \"no frame pointer\"",
            "carrier = \"ForkJoinPool-1-worker-1\" (javaThreadId = 30)",
            "state = \"STATE_OFF_CPU\"",
            "duration = 1.50 s",
            "bytes = 120.6 kB",
            "description = \"a model with Gr\u{fc}\u{df}e\"",
        ] {
            assert!(
                text.contains(expected),
                "JDK {}: no {expected:?} in\n{text}",
                jdk.version
            );
        }
    }
}

#[test]
fn views_rank_methods_and_list_events() {
    let folder = Folder::new("view");
    let path = folder.write("demo.jfr", &demo_file(2));
    let path = path.to_string_lossy();
    for jdk in jdks().iter().filter(|jdk| jdk.version >= 21) {
        let text = jdk.run("jfr", &["view", "--width", "150", "hot-methods", &path]);
        let row = text
            .lines()
            .find(|line| line.starts_with("com.acme.Work.inner("));
        let columns: Vec<_> = row.unwrap_or_default().split_whitespace().collect();
        let tail = &columns[columns.len().saturating_sub(2)..];
        assert_eq!(tail, ["2", "25.00%"], "JDK {}:\n{text}", jdk.version);
        let text = jdk.run("jfr", &["view", "--width", "250", "dwell.Recording", &path]);
        assert!(
            text.contains("perf_event_paranoid is 1"),
            "JDK {}:\n{text}",
            jdk.version
        );
    }
}

#[test]
fn metadata_carries_labels_and_units() {
    let folder = Folder::new("metadata");
    let path = folder.write("demo.jfr", &demo_file(1));
    for jdk in jdks() {
        let text = jdk.run("jfr", &["metadata", &path.to_string_lossy()]);
        for expected in [
            "@Name(\"dwell.Self\")",
            "@Label(\"Profiler Cost\")",
            "@Category({\"Java Virtual Machine\", \"Profiling\"})",
            "@Timespan(\"NANOSECONDS\")",
            "Thread sampledThread;",
        ] {
            assert!(
                text.contains(expected),
                "JDK {}: no {expected:?}",
                jdk.version
            );
        }
    }
}

#[test]
fn consumer_api_reads_written_file() {
    let folder = Folder::new("api");
    let path = folder.write("demo.jfr", &demo_file(1));
    let expected = [
        "7000000|100|1|main \"quoted\" \u{2615}|STATE_RUNNABLE|10000000|null|false\
         |com.acme.Work.inner(I[[JLjava/lang/String;)D:42:17:Inlined\
         |com.acme.Main.main([Ljava/lang/String;)V:7:3:JIT compiled",
        "8000000|0|44||STATE_RUNNABLE|10000000|null|true\
         |Main.lambda$main$0()Ljava/lang/Object;:9:1:Interpreted\
         |com.acme.Work.inner(I[[JLjava/lang/String;)D:43:0:C1 compiled",
        "9000000|101|0|null|STATE_OFF_CPU|10000000|null|false\
         |(kernel).futex_wait_queue()V:0:0:Kernel\
         |libjvm.so.G1ParScanThreadState::trim_queue(unsigned)()V:0:0:VM",
        "10000000|102|30|ForkJoinPool-1-worker-1|STATE_RUNNABLE|10000000|no frame pointer|no stack",
    ];
    for jdk in jdks().iter().filter(|jdk| jdk.version >= 17) {
        let program = dump_program();
        let arguments = [&*program.to_string_lossy(), &*path.to_string_lossy()];
        let text = jdk.run("java", &arguments);
        let samples: Vec<_> = text
            .lines()
            .filter_map(|l| l.strip_prefix("sample "))
            .collect();
        assert_eq!(
            samples.len(),
            expected.len(),
            "JDK {}:\n{text}",
            jdk.version
        );
        for (sample, expected) in samples.into_iter().zip(expected) {
            // Later JDKs give -1 for "no such thread id".
            let sample = sample
                .replace("|-1|44|", "|0|44|")
                .replace("|101|-1|", "|101|0|");
            let (time, rest) = sample.split_once('|').unwrap();
            let (after_second, expected) = expected.split_once('|').unwrap();
            let second = EPOCH_NS / 1_000_000_000 * 1_000_000_000;
            assert_eq!(
                time.parse(),
                after_second.parse().map(|ns: u64| second + ns)
            );
            assert_eq!(rest, expected, "JDK {}", jdk.version);
        }
    }
}

#[test]
fn chunks_in_a_row_and_clocks_of_any_rate_lose_nothing() {
    let folder = Folder::new("chunks");
    let mut file = Vec::new();
    let rates = [
        1_000_000_000,
        2_999_999_999,
        999_999_937,
        24_000_000,
        1000,
        3,
        0,
    ];
    for ticks_per_second in rates {
        let start = file.len();
        let mut demo = Demo::new(ChunkClock {
            ticks_per_second,
            ..clock()
        });
        for at in [START_TICKS - 5, START_TICKS, START_TICKS + 123_456_789] {
            demo.writer().execution_sample(&Sample {
                ticks: at,
                ..Sample::default()
            });
        }
        append(&mut file, start, demo.writer(), START_TICKS);
        append(&mut file, start, demo.writer(), START_TICKS);
    }
    let path = folder.write("chunks.jfr", &file);
    for jdk in jdks().iter().filter(|jdk| jdk.version >= 17) {
        let program = dump_program();
        let arguments = [
            &*program.to_string_lossy(),
            &*path.to_string_lossy(),
            "counts",
        ];
        let text = jdk.run("java", &arguments);
        let expected = format!("count {SAMPLES} {}", 3 * rates.len());
        assert!(
            text.lines().any(|line| line == expected),
            "JDK {}:\n{text}",
            jdk.version
        );
        let gaps = format!("count dwell.Gap {}", rates.len());
        assert!(
            text.lines().any(|line| line == gaps),
            "JDK {}:\n{text}",
            jdk.version
        );
    }
}

#[test]
fn hostile_names_do_not_stop_the_tools() {
    let (samples, file) = hostile_file();
    let folder = Folder::new("hostile");
    let path = folder.write("hostile.jfr", &file);
    let path = path.to_string_lossy();
    for jdk in jdks().iter().filter(|jdk| jdk.version >= 17) {
        let text = jdk.run("jfr", &["print", &path]);
        let events = text.lines().filter(|line| *line == "jdk.ExecutionSample {");
        assert_eq!(events.count() as u64, samples, "JDK {}", jdk.version);
        if jdk.version >= 21 {
            jdk.run("jfr", &["view", "hot-methods", &path]);
        }
        jdk.run("jfr", &["print", "--json", &path]);
    }
}
