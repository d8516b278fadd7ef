//! The files of a process's control group: the processors that it may use, and how often it was
//! throttled.

use crate::{Whose, small_files};
use dwell_wall::cgroup::{self, Throttling};
use std::path::PathBuf;

/// The location of the files.
#[derive(Clone, Debug)]
pub struct Group {
    is_v2: bool,
    folder: PathBuf,
}

impl Group {
    /// The group of a process, if its files exist. In a container, the kernel's path may be one of
    /// the host. The files are then at the mount's root: those of our own group. Another process is
    /// in that group only if the kernel reports the same path for it.
    #[must_use]
    pub fn of(whose: Whose) -> Option<Group> {
        let text = small_files::read_text(whose.file("cgroup")).ok()?;
        let (is_v2, path) = cgroup::path(&text)?;
        let root = PathBuf::from(if is_v2 {
            "/sys/fs/cgroup"
        } else {
            "/sys/fs/cgroup/cpu"
        });
        let folders = [root.join(path.trim_start_matches('/')), root];
        let folder = folders
            .into_iter()
            .find(|it| it.join("cpu.stat").exists())?;
        Some(Group { is_v2, folder })
    }

    fn read(&self, name: &str) -> Option<String> {
        small_files::read_text(self.folder.join(name)).ok()
    }

    /// Limit in nanoseconds of processor time per second; 0: no limit.
    #[must_use]
    pub fn quota_ns(&self) -> u64 {
        let quota = if self.is_v2 {
            self.read("cpu.max")
                .and_then(|text| cgroup::quota_ns(&text))
        } else {
            let both = self
                .read("cpu.cfs_quota_us")
                .zip(self.read("cpu.cfs_period_us"));
            both.and_then(|(quota, period)| cgroup::quota_v1_ns(&quota, &period))
        };
        quota.unwrap_or(0)
    }

    /// How often the group was throttled until now.
    #[must_use]
    pub fn throttling(&self) -> Throttling {
        let text = self.read("cpu.stat");
        text.and_then(|text| cgroup::throttling(&text))
            .unwrap_or_default()
    }
}
