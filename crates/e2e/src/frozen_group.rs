//! A control group whose processes can be frozen, where this user may make one.

use std::fs;
use std::io::{self, Error};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The freezer of version 1.
const FIRST: &str = "/sys/fs/cgroup/freezer";
/// Where groups of version 2 are, alone and next to version 1.
const SECOND: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// A process freezes within this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(10);

/// A group; it is thawed and goes when dropped, if no process is left in it.
pub struct FrozenGroup {
    folder: PathBuf,
    /// Its version is 1.
    is_first: bool,
}

impl FrozenGroup {
    /// A group without processes.
    ///
    /// # Errors
    /// Returns the kernel's error if no such group can be made.
    pub fn new() -> io::Result<FrozenGroup> {
        let mut made = FrozenGroup::below(Path::new(FIRST), true);
        for root in SECOND {
            made = made.or_else(|_| FrozenGroup::below(Path::new(root), false));
        }
        made
    }

    fn below(root: &Path, is_first: bool) -> io::Result<FrozenGroup> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = root.join(format!("dwell-frozen-{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let group = FrozenGroup { folder, is_first };
        match group.order().exists() {
            true => Ok(group),
            false => Err(Error::other(format!("{} has no freezer", root.display()))),
        }
    }

    fn order(&self) -> PathBuf {
        let name = if self.is_first {
            "freezer.state"
        } else {
            "cgroup.freeze"
        };
        self.folder.join(name)
    }

    /// Puts a process into it, with all its threads.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn take(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    /// Freezes its processes; returns when all their threads are frozen.
    ///
    /// # Panics
    /// If they do not freeze.
    pub fn freeze(&self) {
        let word = if self.is_first { "FROZEN" } else { "1" };
        fs::write(self.order(), word).expect("the group freezes");
        let began = Instant::now();
        while !self.is_frozen() {
            assert!(began.elapsed() < PATIENCE, "it does not freeze");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn is_frozen(&self) -> bool {
        let read = |name| fs::read_to_string(self.folder.join(name)).unwrap_or_default();
        match self.is_first {
            true => read("freezer.state").trim() == "FROZEN",
            false => read("cgroup.events").lines().any(|line| line == "frozen 1"),
        }
    }

    /// Lets its processes go on.
    pub fn thaw(&self) {
        let word = if self.is_first { "THAWED" } else { "0" };
        let _ = fs::write(self.order(), word);
    }
}

impl Drop for FrozenGroup {
    fn drop(&mut self) {
        self.thaw();
        let _ = fs::remove_dir(&self.folder);
    }
}
