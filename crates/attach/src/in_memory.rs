//! A library in this process's memory, which a target loads by a path below `/proc`. It needs no
//! directory of the target. Must not be used for another user's target. The kernel would not let it
//! read our memory, and a process of ours that it may read, it may also take over.
//!
//! glibc finds a loaded library again by its path's text, without opening it. So later commands
//! name the same path, although this process has ended by then. The memory's name keeps it. musl
//! opens the path each time.

use crate::deliver::Library;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{self, Write};

/// The kernel's prefix for memory in `/proc/PID/maps`.
const MEMORY: &str = "/memfd:";
/// Another thread may take the descriptor's number in between.
const TRIES_MAX: u32 = 16;

/// A library in memory.
#[derive(Debug)]
pub struct Served {
    /// Its path, for processes that see the same pids.
    pub path: String,
    /// The memory; open until the target has loaded it.
    pub memory: OwnedFd,
}

/// Puts the library into memory.
pub(crate) fn serve(library: &Library<'_>) -> io::Result<Served> {
    let make = |path: &str| {
        let name = format!("{path}/{}", library.name);
        rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)
    };
    let path_of = |fd: i32| format!("/proc/{}/fd/{fd}", std::process::id());
    let mut number = make("")?.as_raw_fd();
    for _ in 0..TRIES_MAX {
        let path = path_of(number);
        let memory = make(&path)?;
        if memory.as_raw_fd() == number {
            let mut file = File::from(memory);
            file.write_all(library.bytes)?;
            return Ok(Served {
                path,
                memory: file.into(),
            });
        }
        number = memory.as_raw_fd();
    }
    Err(io::ErrorKind::Interrupted.into())
}

/// The path by which a mapped library was loaded: for memory, the one in its name.
pub(crate) fn loaded_path(mapped: String, name: &str) -> String {
    let path = mapped.strip_prefix(MEMORY).and_then(|path| {
        let path = path.strip_suffix(name)?.strip_suffix('/')?;
        path.starts_with("/proc/").then(|| path.to_owned())
    });
    path.unwrap_or(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::procfs;

    #[test]
    fn memory_is_found_by_its_path_and_again_by_its_name() {
        let library = Library {
            name: "libx.so",
            bytes: b"some code",
        };
        let served = serve(&library).unwrap();
        assert_eq!(std::fs::read(&served.path).unwrap(), library.bytes);
        let name = std::fs::read_link(&served.path).unwrap();
        let line = format!("7f0-7f1 r-xp 0 00:01 7    {}\n", name.display());
        let mapped = procfs::mapped_file(line.as_bytes(), "libx.so").unwrap();
        assert!(mapped.deleted);
        let mapped = mapped.path.into_os_string().into_string().unwrap();
        assert_eq!(loaded_path(mapped, "libx.so"), served.path);
        drop(served.memory);
        for other in [
            "/tmp/.dwell-1/libx.so",
            "/memfd:libx.so",
            "/memfd:x/libx.so",
        ] {
            assert_eq!(loaded_path(other.to_owned(), "libx.so"), other);
        }
    }
}
