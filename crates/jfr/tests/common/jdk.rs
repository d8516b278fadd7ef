//! Finds the JDKs of this machine and runs their tools. A test that needs a JDK prints that it is
//! skipped if the machine has no JDK.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A JDK with the `jfr` tool.
#[derive(Debug, Clone)]
pub struct Jdk {
    pub home: PathBuf,
    pub version: u32,
}

/// One JDK per feature release with `bin/jfr`, from `DWELL_JDKS` (homes, or folders of homes, split
/// by ':'), `JAVA_HOME` and `/usr/lib/jvm`, oldest first.
pub fn jdks() -> Vec<Jdk> {
    let mut candidates = Vec::new();
    for root in std::env::var("DWELL_JDKS").unwrap_or_default().split(':') {
        candidates.push(PathBuf::from(root));
        candidates.extend(children(Path::new(root)));
    }
    candidates.extend(std::env::var_os("JAVA_HOME").map(PathBuf::from));
    candidates.extend(children(Path::new("/usr/lib/jvm")));
    let mut found = BTreeMap::new();
    for home in candidates {
        if let Some(version) = feature_release(&home).filter(|version| is_asked_for(*version)) {
            found.entry(version).or_insert(Jdk { home, version });
        }
    }
    if found.is_empty() {
        println!("skipped: no JDK with bin/jfr found (JAVA_HOME, DWELL_JDKS, /usr/lib/jvm)");
    }
    found.into_values().collect()
}

/// Whether tests are to use this feature release: one of `DWELL_TEST_JDKS`, or any.
fn is_asked_for(feature: u32) -> bool {
    std::env::var("DWELL_TEST_JDKS").map_or(true, |all| {
        all.split(',').any(|one| one.trim() == feature.to_string())
    })
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn feature_release(home: &Path) -> Option<u32> {
    if home.as_os_str().is_empty() || !home.join("bin/jfr").exists() {
        return None;
    }
    let release = std::fs::read_to_string(home.join("release")).ok()?;
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("JAVA_VERSION=\""))?;
    let line = line.strip_prefix("1.").unwrap_or(line);
    let digits: String = line.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

impl Jdk {
    /// Runs a tool of the JDK and gives its standard output; anything but success is a failure.
    pub fn run(&self, tool: &str, arguments: &[&str]) -> String {
        let output = Command::new(self.home.join("bin").join(tool))
            .args(arguments)
            .env_remove("JAVA_TOOL_OPTIONS")
            .env_remove("JDK_JAVA_OPTIONS")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap_or_else(|e| panic!("{tool} of {}: {e}", self.home.display()));
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{tool} {arguments:?} of JDK {} failed:\n{stdout}\n{stderr}",
            self.version
        );
        stdout
    }

    /// Event counts by name as `jfr summary` prints them, without zeros.
    pub fn summary(&self, file: &Path) -> BTreeMap<String, u64> {
        let text = self.run("jfr", &["summary", &file.to_string_lossy()]);
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("===="))
            .skip(1);
        rows.filter_map(|row| {
            let mut columns = row.split_whitespace();
            let name = columns.next()?.to_owned();
            let count: u64 = columns.next()?.parse().ok()?;
            (count > 0).then_some((name, count))
        })
        .collect()
    }
}

/// A folder of this test run, removed when dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dwell-jfr-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
