//! Where things are: the agent, the Java parts, and a directory for each test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The agent's library: `DWELL_AGENT_SO`, or the release build in the target directory of this
/// test.
#[must_use]
pub fn agent() -> PathBuf {
    if let Some(path) = std::env::var_os("DWELL_AGENT_SO") {
        return PathBuf::from(path);
    }
    let exe = std::env::current_exe().expect("the path of this test");
    let beside = exe
        .ancestors()
        .nth(3)
        .map(|target| target.join("release/libdwell.so"));
    let usual = root().join("target/release/libdwell.so");
    beside
        .into_iter()
        .chain([usual])
        .find(|path| path.exists())
        .expect("libdwell.so: cargo build --release -p dwell-agent, or set DWELL_AGENT_SO")
}

/// The agent's library as benches and some tests want it, with its experiments:
/// `DWELL_EXPERIMENT_AGENT_SO`, or a build of its own.
#[must_use]
pub fn experiment_agent() -> PathBuf {
    if let Some(path) = std::env::var_os("DWELL_EXPERIMENT_AGENT_SO") {
        return PathBuf::from(path);
    }
    let path = root().join("target/experiments/release/libdwell.so");
    assert!(
        path.exists(),
        "{} is missing: cargo build --release -p dwell-agent --features experiments \
         --target-dir target/experiments",
        path.display()
    );
    path
}

/// A file that `java/build.sh` makes.
#[must_use]
pub fn java_file(name: &str) -> PathBuf {
    let path = root().join("target/java").join(name);
    assert!(
        path.exists(),
        "{} is missing: java/build.sh makes it",
        path.display()
    );
    path
}

/// The number of the only line of a test program's source that has this text.
#[must_use]
pub fn source_line(class: &str, text: &str) -> i32 {
    let path = root().join(format!("java/testprograms/src/io/dwell/test/{class}.java"));
    let source = std::fs::read_to_string(&path).expect("the test programs' sources");
    let mut lines = (1..)
        .zip(source.lines())
        .filter(|(_, line)| line.contains(text));
    let (number, _) = lines.next().expect(text);
    assert_eq!(lines.next(), None, "{text} is not unique in {class}");
    number
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the repository")
}

/// A new directory for one test, below the system's temporary one; stays if the test fails.
#[derive(Debug)]
pub struct Place {
    /// Its path.
    pub dir: PathBuf,
}

impl Place {
    /// A place named after the test.
    #[must_use]
    pub fn new(test: &str) -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let dir = std::env::temp_dir().join(format!("dwell-e2e-{test}-{pid}-{number}"));
        std::fs::create_dir_all(&dir).expect("a directory for the test");
        Place { dir }
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The same as text, for options.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("a plain path").to_owned()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("files of the failed test: {}", self.dir.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}
