//! The kernel's data about the machine on which a process runs: the processors that the process may
//! run on, and its control group's limit. For this process or another one.

pub mod cgroup;
pub mod limit;
pub mod processors;
pub mod small_files;
mod sys;
pub mod throttled;
pub mod used;

use std::path::PathBuf;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// This process.
    Own,
    /// Another process, by its pid in our namespace.
    Of(u32),
}

impl Whose {
    /// A file of the process in `/proc` (proc(5)).
    fn file(self, name: &str) -> PathBuf {
        match self {
            Whose::Own => format!("/proc/self/{name}"),
            Whose::Of(pid) => format!("/proc/{pid}/{name}"),
        }
        .into()
    }

    fn pid(self) -> u32 {
        match self {
            Whose::Own => std::process::id(),
            Whose::Of(pid) => pid,
        }
    }
}
