//! What the kernel tells of the machine on which a process runs: the processors that it may run on,
//! and what its control group may use of them. Of our own process, or of another one.

pub mod cgroup;
pub mod limit;
pub mod processors;
pub mod small_files;
mod sys;
pub mod throttled;
pub mod used;

use std::path::PathBuf;

/// Of which process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The one that asks.
    Own,
    /// Another one, by its number in our namespace.
    Of(u32),
}

impl Whose {
    /// A file of it in `/proc` (proc(5)).
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
