//! A JVM that was examined and accepts an attach.
//!
//! Examining only reads. Files for the target (library, reply and recording files) are made as the
//! target's user, below the target's root.

use crate::Error;
use crate::client::{self, Client};
use crate::credentials::Credentials;
use crate::deliver::{self, Library};
use crate::discover::{Evidence, Jvm, local_passwd, user_name};
use crate::hidden;
use crate::hsperf::PerfData;
use crate::in_memory::{self, Served};
use crate::options::{self, AttachFlags};
use crate::process::Process;
use crate::processor;
use crate::procfs::{self, Machine, Mapped};
use crate::protocol::{LoadResult, Reply};
use crate::root::Root;
use crate::scratch::{self, Listener, Scratch};
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

/// Default time limit for the listener. It must suffice on a slow machine, because dwell is used to
/// find out why a machine is slow. The JVM has to start a thread, load a library and read its
/// classes with the CPU time that other processes leave.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a launcher may take to load its libjvm.
const LAUNCH_WAIT: Duration = Duration::from_secs(10);

/// A HotSpot JVM that we have the rights to attach to.
#[derive(Debug)]
pub struct Target {
    process: Process,
    root: Root,
    /// The kernel does not let us look into it ([`hidden`]).
    is_hidden: bool,
    jvm: Jvm,
    flags: AttachFlags,
    credentials: Credentials,
    timeout: Duration,
}

impl Target {
    /// Examines a process; an error if it does not accept an attach. Sends and writes nothing.
    pub fn examine(pid: u32) -> Result<Target, Error> {
        let process = Process::open(pid)?;
        let found = find_libjvm(&process)?;
        let status = process.status()?;
        let credentials = Credentials {
            uid: status.euid,
            gid: status.egid,
        };
        if !credentials.available() {
            let owner = user_name(&local_passwd(), status.euid);
            return Err(Error::NotPermitted { pid, owner });
        }
        let is_hidden = matches!(found, Found::Hidden(_));
        let root = match is_hidden {
            true => Root::own(),
            false => process.root(),
        };
        let root = root.map_err(|error| denied(&process, "its root", error))?;
        if let Found::Open(_, libjvm) = &found {
            processor::check_jvm(pid, &root, &libjvm.path)?;
        }
        let (evidence, libjvm) = match found {
            Found::Open(maps, libjvm) => (Evidence::gather(&process, &maps), Some(libjvm)),
            Found::Hidden(perf) => (Evidence::hidden(&process, perf), None),
        };
        let environ = procfs::nul_words(&process.read("environ").unwrap_or_default());
        let mut flags = AttachFlags::from_process(&evidence.cmdline, &environ);
        flags.apply_settings(evidence.perf.vm_flags.as_deref().unwrap_or(""));
        let vm_args = evidence.perf.vm_args.as_deref().unwrap_or("");
        flags.apply_all(&options::split_words(vm_args));
        let jvm = evidence.jvm(libjvm.as_ref(), &local_passwd());
        let jvm = jvm.ok_or(Error::NoSuchProcess { pid })?;
        Ok(Target {
            process,
            root,
            is_hidden,
            jvm,
            flags,
            credentials,
            timeout: TIMEOUT,
        })
    }

    /// The same target with another limit for each command.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Target {
        self.timeout = timeout;
        self
    }

    /// The data about the JVM.
    pub fn jvm(&self) -> &Jvm {
        &self.jvm
    }

    /// Whether the process still runs.
    pub fn is_alive(&self) -> bool {
        self.process.is_alive()
    }

    /// Whether the JVM prints a warning when it loads an agent: JDK 21 and later do (JEP 451).
    #[must_use]
    pub fn warns_of_agents(&self) -> bool {
        warns_of_agents(self.jvm.version.as_deref(), self.flags.agents_disabled)
    }

    /// Whether paths mean the same in the target as for us, and files that it makes belong to our
    /// user.
    pub fn shares_files(&self) -> bool {
        let same_root = || {
            let own = Root::own().ok()?;
            let own = rustix::fs::fstat(own.as_fd()).ok()?;
            let theirs = rustix::fs::fstat(self.root.as_fd()).ok()?;
            Some((own.st_dev, own.st_ino) == (theirs.st_dev, theirs.st_ino))
        };
        let same_mounts = || {
            let own = Process::open(std::process::id())
                .ok()?
                .namespace("mnt")
                .ok()?;
            Some(own == self.process.namespace("mnt").ok()?)
        };
        self.credentials == Credentials::own()
            && same_root() == Some(true)
            && same_mounts() == Some(true)
    }

    /// Executes an attach command (`properties`, `jcmd`, `load`, ...).
    pub fn command(&self, command: &str, args: &[&str]) -> Result<Reply, Error> {
        let client = Client {
            process: &self.process,
            root: &self.root,
            ns_pid: self.jvm.ns_pid,
            uid: self.credentials.uid,
            flags: self.flags,
            timeout: self.timeout,
        };
        self.as_target("taking on its user", || client.command(command, args))?
    }

    /// Makes the JVM load an agent library (again) and returns what its entry point returned.
    pub fn load_agent(&self, path: &str, options: &str) -> Result<i32, Error> {
        let pid = self.process.pid();
        if self.flags.agents_disabled == Some(true) {
            return Err(Error::AgentsDisabled { pid });
        }
        let reply = self.command("load", &[path, "true", options])?;
        match reply.load_result() {
            LoadResult::Ran { code } => Ok(code),
            LoadResult::Disabled => Err(Error::AgentsDisabled { pid }),
            LoadResult::Failed { text } if text.is_empty() => Err(Error::LoadFailed {
                pid,
                path: path.to_owned(),
                text: format!("no reason given (code {})", reply.code),
            }),
            LoadResult::Failed { text } => Err(Error::LoadFailed {
                pid,
                path: path.to_owned(),
                text,
            }),
        }
    }

    /// The path of a library of this name that the JVM has loaded already.
    pub fn loaded_library(&self, name: &str) -> Option<String> {
        let path = match self.is_hidden {
            true => {
                let reply = self.command("jcmd", &["VM.dynlibs"]).ok()?;
                hidden::in_reply(&reply.text, name)?
            }
            false => procfs::mapped_file(&self.process.read("maps").ok()?, name)?.path,
        };
        let path = path.into_os_string().into_string().ok()?;
        Some(in_memory::loaded_path(path, name))
    }

    /// Puts a library where the target can load it; returns the path in the target.
    pub fn place(&self, library: &Library<'_>) -> Result<String, Error> {
        processor::check_library(library.name, library.bytes)?;
        let pid = self.process.pid();
        let environ = procfs::nul_words(&self.process.read("environ").unwrap_or_default());
        let home = procfs::variable(&environ, "HOME");
        self.as_target("taking on its user", || {
            let places = deliver::candidates(self.process.working_dir().ok(), &self.root, home);
            deliver::put(&self.root, &places, library, self.credentials.uid)
        })?
        .map_err(|tried| Error::NoPlace { pid, tried })
    }

    /// Holds a library in this process's memory, for a target that no directory serves
    /// ([`Target::place`]). `None` if the target could not read it there, or not find it again: it
    /// has another user or other pids, or musl's loader.
    pub fn serve(&self, library: &Library<'_>) -> Option<Served> {
        let own = Process::open(std::process::id()).ok()?;
        let has_our_pids = own.namespace("pid").ok()? == self.process.namespace("pid").ok()?;
        let maps = self.process.read("maps").ok()?;
        let is_musl = String::from_utf8_lossy(&maps).contains("/ld-musl-");
        if self.credentials != Credentials::own() || !has_our_pids || is_musl {
            return None;
        }
        processor::check_library(library.name, library.bytes).ok()?;
        in_memory::serve(library).ok()
    }

    /// Refuses a process that is stopped and so cannot answer. A caller checks this before it
    /// writes.
    pub fn check_runs(&self) -> Result<(), Error> {
        client::check_runs(&self.process).map(drop)
    }

    /// Makes an empty file `/tmp/NAME/FILE` (or in another temporary directory) that only the
    /// target's user may use.
    pub fn scratch(&self, name: &str, file: &str) -> Result<Scratch, Error> {
        let made = self.as_target("taking on its user", || {
            scratch::make(&self.root, name, file)
        })?;
        made.map_err(|error| Error::io(self.process.pid(), format!("creating /tmp/{name}"), error))
    }

    /// Listens on a socket `/tmp/NAME/FILE` (or in another temporary directory) that only the
    /// target's user may connect to. [`Target::remove_scratch`] removes it.
    pub fn listen(&self, name: &str, file: &str) -> Result<Listener, Error> {
        let made = self.as_target("taking on its user", || {
            scratch::listen(&self.root, name, file)
        })?;
        made.map_err(|error| Error::io(self.process.pid(), format!("creating /tmp/{name}"), error))
    }

    /// Removes a file of [`Target::scratch`]; a later write by the target fails.
    pub fn remove_scratch(&self, path: &str) -> Result<(), Error> {
        self.remove_scratch_with(path, &[])
    }

    /// The same with other files that the target has made in that directory.
    pub fn remove_scratch_with(&self, path: &str, others: &[&str]) -> Result<(), Error> {
        let removed = self.as_target("taking on its user", || {
            scratch::remove(&self.root, path, others)
        })?;
        removed.map_err(|error| Error::io(self.process.pid(), path, error))
    }

    /// Removes the files that killed commands have left: old files of [`Target::scratch`] for the
    /// target's user, whose names are `prefix` and 16 hexadecimal digits.
    pub fn remove_forgotten(&self, prefix: &str, file: &str) -> Result<(), Error> {
        self.as_target("taking on its user", || {
            scratch::remove_forgotten(&self.root, prefix, file, self.credentials.uid);
        })
    }

    /// Opens a regular file of the target for reading.
    pub fn open_file(&self, path: &str) -> Result<File, Error> {
        let opened = self.as_target("taking on its user", || self.root.open_regular(path))?;
        opened
            .map(File::from)
            .map_err(|error| Error::io(self.process.pid(), path, error))
    }

    fn as_target<T: Send>(&self, what: &str, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let pid = self.process.pid();
        self.credentials
            .run(work)
            .map_err(|error| Error::io(pid, what, error))
    }
}

/// The evidence that a process is a JVM.
enum Found {
    /// Its mappings, and its libjvm.
    Open(Vec<u8>, Mapped),
    /// Its performance data, as the kernel does not show the mappings.
    Hidden(PerfData),
}

/// Finds out whether a process is a JVM; waits a little for a launcher that has just started.
fn find_libjvm(process: &Process) -> Result<Found, Error> {
    let pid = process.pid();
    let began = Instant::now();
    loop {
        let maps = match process.read("maps") {
            Ok(maps) => maps,
            Err(error) => {
                let perf = hidden::perf_data(process, &process.status()?);
                return match perf {
                    Some(perf) => Ok(Found::Hidden(perf)),
                    None => Err(denied(process, "its memory map", error)),
                };
            }
        };
        match procfs::machine(&maps) {
            Machine::HotSpot(libjvm) => return Ok(Found::Open(maps, libjvm)),
            Machine::OpenJ9 => {
                return Err(Error::NotHotSpot {
                    pid,
                    vm: "Eclipse OpenJ9",
                });
            }
            Machine::Mono => {
                processor::check_mono()?;
                return Err(Error::Mono { pid });
            }
            Machine::None => {}
        }
        let name = process.program().unwrap_or_default();
        let launcher = name.rsplit('/').next().is_some_and(options::is_launcher);
        let status = process.status()?;
        if status.has_exited() {
            return Err(Error::NoSuchProcess { pid });
        }
        if !launcher || began.elapsed() > LAUNCH_WAIT {
            return Err(Error::NotJvm {
                pid,
                name: status.name,
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Explains a refusal of the kernel: another user's process, or one of ours that is protected.
fn denied(process: &Process, what: &str, error: io::Error) -> Error {
    let pid = process.pid();
    let status = match process.status() {
        Ok(status) => status,
        Err(gone) => return gone,
    };
    if error.kind() != io::ErrorKind::PermissionDenied {
        return Error::io(pid, format!("reading {what}"), error);
    }
    // If root is refused, it lacks a right; another user would not help.
    let is_root = rustix::process::geteuid().is_root();
    if status.euid == Credentials::own().uid || is_root {
        return Error::Protected {
            pid,
            owner: status.euid,
            detail: match is_root {
                true => format!("{what}: {error}"),
                false => hidden::advice(what, &error),
            },
        };
    }
    Error::NotPermitted {
        pid,
        owner: user_name(&local_passwd(), status.euid),
    }
}

/// By the version of the JDK, and by what the command line says of `EnableDynamicAgentLoading`.
fn warns_of_agents(version: Option<&str>, agents_disabled: Option<bool>) -> bool {
    let feature = version.and_then(|version| version.split(['.', '-', '+']).next());
    let feature = feature.and_then(|feature| feature.parse::<u32>().ok());
    feature.is_some_and(|feature| feature >= 21) && agents_disabled.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_warned_of_from_jdk_21_on_without_the_flag() {
        for (version, disabled, expected) in [
            (Some("21.0.1"), None, true),
            (Some("25-ea"), None, true),
            (Some("25.0.3"), Some(false), false),
            (Some("17.0.15"), None, false),
            (Some("1.8.0_392"), None, false),
            (Some("Mono"), None, false),
            (None, None, false),
        ] {
            assert_eq!(warns_of_agents(version, disabled), expected, "{version:?}");
        }
    }
}
