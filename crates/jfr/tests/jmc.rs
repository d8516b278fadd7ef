//! The parser of JDK Mission Control reads our files and sees in them what the JDK's own reader
//! sees: every field of every event. See `java/verify`.

mod common;

use common::hostile::hostile_file;
use common::jdk::{Folder, jdks};
use common::{Demo, EPOCH_NS, append, clock, demo_file};
use dwell_jfr::writer::ChunkClock;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SAMPLES: &str = "event jdk.ExecutionSample";

/// The program that compares; the first call downloads and compiles what is missing.
fn program() -> &'static str {
    static JAR: OnceLock<PathBuf> = OnceLock::new();
    let jar = JAR.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut build = Command::new(root.join("java/build.sh"));
        let output = build.arg("--jmc").output().expect("java/build.sh");
        let reason = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "no parser to test with: {reason}");
        root.join("target/java/dwell-verify-jmc.jar")
    });
    jar.to_str().expect("a plain path")
}

/// The content of a file for Mission Control, by the words before the number at the end of each
/// line. It must equal the JDK's. On the oldest and the newest JDK that it runs on.
fn seen_alike(file: &Path) -> BTreeMap<String, u64> {
    let mut jdks = jdks();
    jdks.retain(|jdk| jdk.version >= 17);
    assert!(!jdks.is_empty(), "a JDK of at least 17 is needed");
    let ends = [&jdks[0], &jdks[jdks.len() - 1]];
    let [first, last] = ends.map(|jdk| {
        let text = jdk.run("java", &["-jar", program(), &file.to_string_lossy()]);
        let entry = |line: &str| {
            let (name, number) = line.rsplit_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        let found: Option<BTreeMap<_, _>> = text.lines().map(entry).collect();
        found.unwrap_or_else(|| panic!("JDK {}: {text}", jdk.version))
    });
    assert_eq!(first, last);
    first
}

#[test]
fn mission_control_reads_written_file() {
    let folder = Folder::new("jmc");
    for rounds in [1, 3] {
        let path = folder.write("demo.jfr", &demo_file(rounds));
        let seen = seen_alike(&path);
        let rounds = rounds as u64;
        assert_eq!(seen[SAMPLES], 4 * rounds, "{seen:?}");
        for event in ["Recording", "Lost", "Failures", "Self", "Gap", "CpuLoad"] {
            assert_eq!(seen[&format!("event dwell.{event}")], 1, "{seen:?}");
        }
        // One of the four has no stack, and is not in the tree.
        assert_eq!(seen["tree_samples"], 3 * rounds);
    }
}

/// Each chunk begins a little later: Mission Control takes chunks that begin at the same nanosecond
/// for the same chunk.
#[test]
fn mission_control_reads_chunks_with_different_clocks() {
    let folder = Folder::new("jmc-chunks");
    let mut file = Vec::new();
    let rates = [1_000_000_000, 1_000_000_000, 24_000_000, 1000, 3];
    for (later, ticks_per_second) in (0..).zip(rates) {
        let start = file.len();
        let mut demo = Demo::new(ChunkClock {
            epoch_ns: EPOCH_NS + later,
            ticks_per_second,
            ..clock()
        });
        for _ in 0..2 {
            demo.round();
            let now = demo.now();
            append(&mut file, start, demo.writer(), now);
        }
    }
    let seen = seen_alike(&folder.write("chunks.jfr", &file));
    assert_eq!(seen[SAMPLES], 8 * rates.len() as u64);
    assert_eq!(seen["event dwell.Gap"], rates.len() as u64);
}

#[test]
fn hostile_names_do_not_stop_mission_control() {
    let (samples, file) = hostile_file();
    let folder = Folder::new("jmc-hostile");
    let seen = seen_alike(&folder.write("hostile.jfr", &file));
    assert_eq!(seen[SAMPLES], samples);
    // The last one has no stack.
    assert_eq!(seen["tree_samples"], samples - 1);
}
