//! One process, held by a descriptor of its `/proc` directory.
//!
//! The descriptor identifies one process permanently. After that process has exited, reads and
//! signals fail instead of reaching another process with the same number.

use crate::Error;
use crate::procfs::{self, Status};
use crate::root::Root;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Signal;
use std::io::{self, Read};

/// Maximum length of `maps`, `cmdline` or another text, in bytes.
const TEXT_BYTES_MAX: u64 = 32 << 20;

/// A process, identified as long as this value exists.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    dir: OwnedFd,
}

impl Process {
    /// Opens the process; numbers of threads are refused.
    pub fn open(pid: u32) -> Result<Process, Error> {
        let path = format!("/proc/{pid}");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = match rustix::fs::open(path.as_str(), flags, Mode::empty()) {
            Ok(dir) => dir,
            Err(Errno::NOENT) => return Err(Error::NoSuchProcess { pid }),
            Err(error) => return Err(Error::io(pid, path, error)),
        };
        let process = Process { pid, dir };
        let status = process.status()?;
        if status.has_exited() {
            return Err(Error::NoSuchProcess { pid });
        }
        if status.tgid != pid {
            return Err(Error::Thread {
                pid,
                process: status.tgid,
            });
        }
        Ok(process)
    }

    /// The number in our own pid namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Reads a file of the process's `/proc` directory.
    pub(crate) fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.dir, name, flags, Mode::empty())?;
        let mut bytes = Vec::new();
        std::fs::File::from(fd)
            .take(TEXT_BYTES_MAX)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The process's present state.
    pub fn status(&self) -> Result<Status, Error> {
        let pid = self.pid;
        let text = self
            .read("status")
            .map_err(|error| match error.raw_os_error() {
                // ENOENT and ESRCH: the process exited between open and read.
                Some(2 | 3) => Error::NoSuchProcess { pid },
                _ => Error::io(pid, "reading status", error),
            })?;
        Status::parse(&text).ok_or(Error::NoSuchProcess { pid })
    }

    /// Whether the process still runs.
    pub fn is_alive(&self) -> bool {
        self.status().is_ok_and(|status| !status.has_exited())
    }

    /// Start of the process in clock ticks since boot.
    pub(crate) fn start_ticks(&self) -> Option<u64> {
        procfs::state_and_start(&self.read("stat").ok()?).map(|(_, start)| start)
    }

    /// Its age in milliseconds.
    pub(crate) fn uptime_ms(&self) -> Option<u64> {
        let ticks = self.start_ticks()?;
        let started_ms = ticks.checked_mul(1000)? / rustix::param::clock_ticks_per_second().max(1);
        let now_ms = procfs::uptime_ms(&std::fs::read("/proc/uptime").ok()?)?;
        Some(now_ms.saturating_sub(started_ms))
    }

    /// The root directory as the process sees it.
    pub(crate) fn root(&self) -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root::new(rustix::fs::openat(
            &self.dir,
            "root",
            flags,
            Mode::empty(),
        )?))
    }

    /// The working directory, and its path by the kernel.
    pub(crate) fn working_dir(&self) -> io::Result<(OwnedFd, String)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.dir, "cwd", flags, Mode::empty())?;
        let path = rustix::fs::readlinkat(&self.dir, "cwd", Vec::new())?;
        let path = path
            .into_string()
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok((fd, path))
    }

    /// The target of a namespace link (`ns/mnt`, ...): equal texts mean the same namespace.
    pub(crate) fn namespace(&self, name: &str) -> io::Result<Vec<u8>> {
        let path = rustix::fs::readlinkat(&self.dir, format!("ns/{name}"), Vec::new())?;
        Ok(path.into_bytes())
    }

    /// The program's path, if the kernel provides it.
    pub(crate) fn program(&self) -> Option<String> {
        let path = rustix::fs::readlinkat(&self.dir, "exe", Vec::new()).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Asks the JVM to start its attach listener. The caller must check that it catches SIGQUIT.
    pub(crate) fn send_quit(&self) -> Result<(), Error> {
        let pid = self.pid;
        let sent = match rustix::process::pidfd_send_signal(&self.dir, Signal::QUIT) {
            // Kernels before 5.1: by number, as soon after the check as possible.
            Err(Errno::NOSYS | Errno::BADF | Errno::INVAL) => match self.as_number() {
                Some(number) => rustix::process::kill_process(number, Signal::QUIT),
                None => Err(Errno::SRCH),
            },
            other => other,
        };
        match sent {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(Error::Exited { pid }),
            Err(error) => Err(Error::io(pid, "sending SIGQUIT", error)),
        }
    }

    fn as_number(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.pid).ok()?)
    }
}
