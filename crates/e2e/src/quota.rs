//! A control group with a quota of processor time, where this user may make one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const PERIOD_US: u64 = 100_000;
/// The largest weights: others that want to run must not leave it less than its quota, where it
/// would never be held back.
const WEIGHTS: [(&str, &str); 2] = [("cpu.shares", "262144"), ("cpu.weight", "10000")];
/// Where each version of control groups has processors.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"];

/// A group; it goes when dropped, if no process is left in it.
pub struct Quota {
    folder: PathBuf,
}

impl Quota {
    /// One that may use so many processors.
    ///
    /// # Errors
    /// Returns the kernel's error if the quota cannot be made.
    pub fn new(processors: f64) -> io::Result<Quota> {
        let mut error = io::ErrorKind::NotFound.into();
        for root in ROOTS {
            match Quota::below(Path::new(root), (processors * PERIOD_US as f64) as u64) {
                Ok(quota) => return Ok(quota),
                Err(its) => error = its,
            }
        }
        Err(error)
    }

    fn below(root: &Path, quota_us: u64) -> io::Result<Quota> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = root.join(format!("dwell-test-{}-{number}", std::process::id()));
        fs::create_dir(&folder)?;
        let quota = Quota { folder };
        if quota.file("cpu.cfs_quota_us").exists() {
            fs::write(quota.file("cpu.cfs_period_us"), PERIOD_US.to_string())?;
            fs::write(quota.file("cpu.cfs_quota_us"), quota_us.to_string())?;
        } else {
            // Without a controller for processors the file is not there, and must not be made.
            let mut limit = fs::OpenOptions::new();
            let mut limit = limit.write(true).open(quota.file("cpu.max"))?;
            io::Write::write_all(&mut limit, format!("{quota_us} {PERIOD_US}").as_bytes())?;
        }
        for (name, weight) in WEIGHTS {
            if quota.file(name).exists() {
                fs::write(quota.file(name), weight)?;
            }
        }
        Ok(quota)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Puts a process into it, with all its threads.
    pub fn take(&self, pid: u32) {
        fs::write(self.file("cgroup.procs"), pid.to_string()).expect("the group takes it");
    }

    /// For how long its threads have been held back, counted on each processor, in ns.
    #[must_use]
    pub fn throttled_ns(&self) -> u64 {
        let text = fs::read_to_string(self.file("cpu.stat")).expect("its account");
        let number = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
        };
        let ns = number("throttled_time ");
        ns.or_else(|| Some(number("throttled_usec ")? * 1000))
            .expect("a time")
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
