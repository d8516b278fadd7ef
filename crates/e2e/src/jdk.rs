//! The JDKs of this machine, one for each feature release.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// One JDK.
#[derive(Debug, Clone)]
pub struct Jdk {
    /// Feature release: 8, 11, 17, ...
    pub feature: u32,
    /// Its home.
    pub home: PathBuf,
}

impl Jdk {
    /// A tool of its `bin` that attaches to a JVM. On a busy machine it may need longer than its
    /// default timeout of 5 or 10 s.
    #[must_use]
    pub fn attaching(&self, name: &str) -> Command {
        let mut command = Command::new(self.tool(name));
        command.arg("-J-Dsun.tools.attach.attachTimeout=120000");
        command
    }

    /// A tool of its `bin`.
    #[must_use]
    pub fn tool(&self, name: &str) -> PathBuf {
        self.home.join("bin").join(name)
    }
}

/// Whether everything is to be tried (`./test --all`), however long it takes, and not only what the
/// gate has time for.
#[must_use]
pub fn is_whole() -> bool {
    std::env::var_os("DWELL_TEST_ALL").is_some()
}

/// Those of `all` whose turn it is: one in the gate, another one with each commit, and all of them
/// where everything is tried.
#[must_use]
pub fn turn<T: Clone>(all: &[T]) -> Vec<T> {
    if is_whole() {
        return all.to_vec();
    }
    the_one_at(all, number_of_turn())
}

/// The same for another choice than the JDK, such as a collector. It changes when each of the two
/// JDKs of the gate has had its turn, so that all pairs come.
#[must_use]
pub fn turn_beside_jdk<T: Clone>(all: &[T]) -> Vec<T> {
    if is_whole() {
        return all.to_vec();
    }
    the_one_at(all, number_of_turn() / 2)
}

fn number_of_turn() -> usize {
    let turn = std::env::var("DWELL_TEST_TURN").ok();
    turn.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn the_one_at<T: Clone>(all: &[T], number: usize) -> Vec<T> {
    let one = all.get(number % all.len().max(1));
    one.cloned().into_iter().collect()
}

/// Whether tests are to use this feature release: one of `DWELL_TEST_JDKS`, or any.
fn is_asked_for(feature: u32) -> bool {
    std::env::var("DWELL_TEST_JDKS").map_or(true, |all| {
        all.split(',').any(|one| one.trim() == feature.to_string())
    })
}

/// All JDKs below `DWELL_JDKS` (or its default place), `JAVA_HOME` and `/usr/lib/jvm`, or those of
/// them that `DWELL_TEST_JDKS` names.
#[must_use]
pub fn jdks() -> &'static [Jdk] {
    static FOUND: OnceLock<Vec<Jdk>> = OnceLock::new();
    FOUND.get_or_init(find)
}

/// The JDKs 17 and 25, which every machine that runs these tests must have.
#[must_use]
pub fn both() -> Vec<&'static Jdk> {
    let found: Vec<_> = jdks()
        .iter()
        .filter(|jdk| matches!(jdk.feature, 17 | 25))
        .collect();
    assert_eq!(
        found.len(),
        2,
        "JDK 17 and 25 are needed; set DWELL_JDKS or JAVA_HOME"
    );
    found
}

/// Those of at least this feature release.
#[must_use]
pub fn since(feature: u32) -> Vec<&'static Jdk> {
    let found: Vec<_> = jdks().iter().filter(|jdk| jdk.feature >= feature).collect();
    assert!(
        !found.is_empty(),
        "a JDK of at least {feature} is needed; set DWELL_JDKS"
    );
    found
}

/// Runs a test on each JDK and prints its name. The failure is reported at the end, so that one bad
/// JDK does not hide the others.
pub fn each(jdks: &[&Jdk], test: impl Fn(&Jdk)) {
    let mut failed = Vec::new();
    for jdk in jdks {
        println!("--- JDK {}", jdk.feature);
        let run = std::panic::AssertUnwindSafe(|| test(jdk));
        if std::panic::catch_unwind(run).is_err() {
            failed.push(jdk.feature);
        }
    }
    assert!(failed.is_empty(), "failed on JDK {failed:?}, see above");
}

fn find() -> Vec<Jdk> {
    let set = |name| std::env::var_os(name).map(PathBuf::from);
    let cache = set("DWELL_JDKS").or_else(|| Some(set("HOME")?.join(".cache/dwell-jdks")));
    let mut homes: Vec<PathBuf> = set("JAVA_HOME").into_iter().collect();
    for dir in cache.into_iter().chain([PathBuf::from("/usr/lib/jvm")]) {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        homes.extend(entries.map(|entry| entry.path()));
    }
    let mut found: Vec<Jdk> = Vec::new();
    for home in homes.iter().filter_map(|home| home.canonicalize().ok()) {
        let Some(feature) = feature_of(&home) else {
            continue;
        };
        if is_asked_for(feature) && found.iter().all(|jdk| jdk.feature != feature) {
            found.push(Jdk { feature, home });
        }
    }
    found.sort_by_key(|jdk| jdk.feature);
    found
}

/// From the `release` file or, in its absence, from the JVM.
fn feature_of(home: &Path) -> Option<u32> {
    let java = home.join("bin/java");
    if !java.exists() {
        return None;
    }
    let release = std::fs::read_to_string(home.join("release")).unwrap_or_default();
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION=\""));
    if let Some(version) = line {
        return dwell_attach::version::feature(version.trim_end_matches('"'));
    }
    let output = Command::new(java).arg("-version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    dwell_attach::version::feature(text.split('"').nth(1)?)
}
