//! The JDK's own readers, which share no code with the writer.

use crate::{Jdk, java_file};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The content of a recording for the JDK's `RecordingFile`; see `java/verify`.
#[derive(Debug, Default)]
pub struct Verified {
    /// Number of events by name.
    pub events: BTreeMap<String, u64>,
    /// Lines such as `total`: sum of weights and number of samples.
    pub tallies: BTreeMap<String, (u64, u64)>,
    /// Tables (`thread`, `under`, ...): sum of weights and number of samples by name.
    pub tables: BTreeMap<String, BTreeMap<String, (u64, u64)>>,
}

/// Reads a recording with the JDK's reader.
///
/// # Panics
/// When the JDK cannot read it.
#[must_use]
pub fn verify(jdk: &Jdk, file: &Path, more: &[&str]) -> Verified {
    let mut command = Command::new(jdk.tool("java"));
    command
        .arg("-jar")
        .arg(java_file("dwell-verify.jar"))
        .arg(file)
        .args(["--top", "0"]);
    let output = command
        .args(more)
        .env_remove("JAVA_TOOL_OPTIONS")
        .output()
        .expect("java");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).expect("ASCII");
    let mut found = Verified::default();
    for line in text.lines() {
        let number = |text: &str| {
            text.parse::<u64>()
                .unwrap_or_else(|e| panic!("{line}: {e}"))
        };
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["event", name, count] => {
                found.events.insert(name.to_owned(), number(count));
            }
            ["weighted" | "squares", _] | ["depth_min_median_max", ..] => {}
            [tally, weight, count] => {
                found
                    .tallies
                    .insert(tally.to_owned(), (number(weight), number(count)));
            }
            [table, name, weight, count] => {
                let table = found.tables.entry(table.to_owned()).or_default();
                table.insert(name.to_owned(), (number(weight), number(count)));
            }
            _ => panic!("{line}"),
        }
    }
    found
}

/// Runs the JDK's `jfr` tool, which must succeed. Returns its output.
#[must_use]
pub fn jfr_tool(jdk: &Jdk, arguments: &[&str], file: &Path) -> String {
    let mut command = Command::new(jdk.tool("jfr"));
    let output = command.args(arguments).arg(file).output().expect("jfr");
    assert!(output.status.success(), "jfr {arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
