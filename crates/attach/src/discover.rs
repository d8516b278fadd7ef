//! The JVMs of this machine, and data about each that can be read without disturbing it.
//!
//! Only `/proc` and files are read. Data from a target's files (performance data, `release`) are
//! for display; no decision about safety depends on them alone.

use crate::credentials::Credentials;
use crate::hidden;
use crate::hsperf::{self, PerfData};
use crate::options;
use crate::passwd;
use crate::process::Process;
use crate::procfs::{self, Machine, Mapped};
use crate::root::Root;
use crate::version;
use std::io;

const PASSWD_BYTES_MAX: u64 = 4 << 20;
const RELEASE_BYTES_MAX: u64 = 64 << 10;
const LIBJVM_BYTES_MAX: u64 = 128 << 20;
/// `JAVA_HOME/jre/lib/amd64/server/libjvm.so` (JDK 8) is the deepest known place.
const PARENTS_MAX: usize = 5;

/// A JVM as `ps` shows it. Texts are safe to print on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jvm {
    /// The number in our pid namespace.
    pub pid: u32,
    /// The number in the JVM's own pid namespace.
    pub ns_pid: u32,
    /// Effective user id.
    pub uid: u32,
    /// Name of that user here, or the number.
    pub user: String,
    /// JDK version such as `25.0.3`; `Mono` for a Mono program.
    pub version: Option<String>,
    /// Main class, jar or module.
    pub main: Option<String>,
    /// Main class or jar with the program's arguments.
    pub command: Option<String>,
    /// Time since the process started.
    pub uptime_ms: Option<u64>,
    /// Whether it is in another pid or mount namespace (a container).
    pub foreign: bool,
    /// Whether we may attach to it. If not, version and main are guesses from its command line.
    pub readable: bool,
}

/// All visible JVMs, by pid.
pub fn list() -> io::Result<Vec<Jvm>> {
    let passwd = local_passwd();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        // Processes may exit during the scan; those that cannot be read are skipped.
        let Ok(process) = Process::open(pid) else {
            continue;
        };
        if let Some(jvm) = look_at(&process, &passwd) {
            found.push(jvm);
        }
    }
    found.sort_by_key(|jvm| jvm.pid);
    Ok(found)
}

fn look_at(process: &Process, passwd: &[u8]) -> Option<Jvm> {
    match process.read("maps") {
        Ok(maps) => match procfs::machine(&maps) {
            Machine::HotSpot(libjvm) => Evidence::gather(process, &maps).jvm(Some(&libjvm), passwd),
            Machine::Mono => Evidence::outside(process).mono(passwd),
            Machine::None | Machine::OpenJ9 => None,
        },
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let status = process.status().ok()?;
            if let Some(perf) = hidden::perf_data(process, &status) {
                return Evidence::hidden(process, perf).jvm(None, passwd);
            }
            options::is_launcher(&status.name)
                .then(|| Evidence::outside(process).jvm(None, passwd))?
        }
        Err(_) => None,
    }
}

/// Our `/etc/passwd`, or an empty text.
pub(crate) fn local_passwd() -> Vec<u8> {
    let root = Root::own();
    root.and_then(|root| root.read("/etc/passwd", PASSWD_BYTES_MAX))
        .unwrap_or_default()
}

/// The name of a user here, or the number.
pub(crate) fn user_name(passwd: &[u8], uid: u32) -> String {
    passwd::lookup(passwd, uid).map_or_else(|| uid.to_string(), |(name, _)| name)
}

/// The files that a process sees, read with its user's rights. The process chooses their paths,
/// which must not lead root to files that this user may not read.
struct Files {
    root: Root,
    credentials: Credentials,
}

impl Files {
    fn of(process: &Process) -> Option<Files> {
        let status = process.status().ok()?;
        Some(Files {
            root: process.root().ok()?,
            credentials: Credentials {
                uid: status.euid,
                gid: status.egid,
            },
        })
    }

    /// At most `bytes_max` bytes of a regular file.
    fn read(&self, path: &str, bytes_max: u64) -> Option<Vec<u8>> {
        let read = || self.root.read(path, bytes_max);
        self.credentials.run(read).ok()?.ok()
    }
}

/// The data read from one process.
pub(crate) struct Evidence<'a> {
    process: &'a Process,
    files: Option<Files>,
    pub(crate) perf: PerfData,
    pub(crate) cmdline: Vec<String>,
    readable: bool,
}

impl<'a> Evidence<'a> {
    /// All data of a process whose maps could be read.
    pub(crate) fn gather(process: &'a Process, maps: &[u8]) -> Evidence<'a> {
        let files = Files::of(process);
        let perf = files
            .as_ref()
            .and_then(|files| perf_data(files, maps))
            .unwrap_or_default();
        Evidence {
            files,
            perf,
            readable: true,
            ..Evidence::outside(process)
        }
    }

    /// The data of a JVM of ours that the kernel does not let us look into.
    pub(crate) fn hidden(process: &'a Process, perf: PerfData) -> Evidence<'a> {
        Evidence {
            perf,
            readable: true,
            ..Evidence::outside(process)
        }
    }

    /// The data that every user may read.
    fn outside(process: &'a Process) -> Evidence<'a> {
        let cmdline = procfs::nul_words(&process.read("cmdline").unwrap_or_default());
        Evidence {
            process,
            files: None,
            perf: PerfData::default(),
            cmdline,
            readable: false,
        }
    }

    /// The description for display; `None` if the process has exited.
    pub(crate) fn jvm(&self, libjvm: Option<&Mapped>, passwd: &[u8]) -> Option<Jvm> {
        let status = self.process.status().ok()?;
        let command = self
            .perf
            .java_command
            .as_deref()
            .filter(|text| !text.trim().is_empty());
        let main = command
            .and_then(options::main_from_java_command)
            .or_else(|| options::main_from_cmdline(&self.cmdline));
        Some(Jvm {
            pid: self.process.pid(),
            ns_pid: status.ns_pid,
            uid: status.euid,
            user: user_name(passwd, status.euid),
            version: match libjvm {
                Some(libjvm) => self.version(libjvm),
                None => self.running_version(),
            },
            command: command.map(procfs::printable).or_else(|| main.clone()),
            main,
            uptime_ms: self.process.uptime_ms(),
            foreign: is_foreign(self.process),
            readable: self.readable,
        })
    }

    /// The same for a Mono program.
    fn mono(self, passwd: &[u8]) -> Option<Jvm> {
        let words = self.cmdline.get(1..).unwrap_or(&[]);
        let main = options::main_of_mono(words).map(|main| procfs::printable(&main));
        let mut found = self.jvm(None, passwd)?;
        found.version = Some("Mono".to_owned());
        found.command.clone_from(&main);
        found.main = main.or(found.main);
        found.readable = true;
        Some(found)
    }

    fn version(&self, libjvm: &Mapped) -> Option<String> {
        let running = || self.running_version();
        // After an upgrade in place, the version of the files on disk differs from the running one.
        if libjvm.deleted {
            return running();
        }
        self.release(libjvm).or_else(running).or_else(|| {
            let bytes = self
                .files
                .as_ref()?
                .read(libjvm.path.to_str()?, LIBJVM_BYTES_MAX)?;
            version::from_libjvm(&bytes)
        })
    }

    fn running_version(&self) -> Option<String> {
        self.perf.java_version.as_deref().map(procfs::printable)
    }

    fn release(&self, libjvm: &Mapped) -> Option<String> {
        let files = self.files.as_ref()?;
        libjvm
            .path
            .ancestors()
            .skip(1)
            .take(PARENTS_MAX)
            .find_map(|dir| {
                let text = files.read(dir.join("release").to_str()?, RELEASE_BYTES_MAX)?;
                version::from_release(&text)
            })
    }
}

/// The performance data file that the process has mapped.
fn perf_data(files: &Files, maps: &[u8]) -> Option<PerfData> {
    let mapped = procfs::mapped_in(maps, "hsperfdata_")?;
    // The kernel's path may be one from outside a chroot, but HotSpot always uses /tmp.
    let path = std::path::Path::new(&mapped.path);
    let file = path.file_name()?.to_str()?;
    let dir = path.parent()?.file_name()?.to_str()?;
    let bytes = files.read(&format!("/tmp/{dir}/{file}"), hsperf::SIZE_MAX as u64)?;
    hsperf::parse(&bytes)
}

fn is_foreign(process: &Process) -> bool {
    let Ok(own) = Process::open(std::process::id()) else {
        return false;
    };
    ["pid", "mnt"].iter().any(
        |name| match (own.namespace(name), process.namespace(name)) {
            (Ok(own), Ok(theirs)) => own != theirs,
            _ => false,
        },
    )
}
