//! A JVM of our own user that the kernel does not let us look into: it has a capability that we do
//! not have, or is not dumpable. Its maps, root and environment belong to root.
//!
//! HotSpot answers its own user all the same: the attach protocol needs only the `/tmp` that we
//! share. A JVM is recognised by its performance data file, or by its name and the signals that it
//! catches. Only reads.

use crate::credentials::Credentials;
use crate::hsperf::{self, PerfData};
use crate::options::is_launcher;
use crate::process::Process;
use crate::procfs::{Status, printable};
use crate::root::{Root, read_regular};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

const PREFIX: &str = "hsperfdata_";
const ENTRIES_MAX: usize = 100_000;
/// The kernel rounds a process's start, and a file's time, down to its tick.
const ROUNDED: Duration = Duration::from_secs(1);

/// The performance data of such a JVM, from the `/tmp` that we share with it, as far as there is
/// any; `None` if it is of another user, in a container, or not certainly HotSpot.
pub(crate) fn perf_data(process: &Process, status: &Status) -> Option<PerfData> {
    let is_own = status.euid == Credentials::own().uid && status.egid == Credentials::own().gid;
    if !is_own || status.ns_pid != process.pid() || !status.catches_quit() {
        return None;
    }
    let age = Duration::from_millis(process.uptime_ms()?);
    let started = SystemTime::now().checked_sub(age)?.checked_sub(ROUNDED)?;
    let found = find(&Root::own().ok()?, status, started);
    // Without a name for its user, HotSpot makes no such file.
    found.or_else(|| is_hotspot(status).then(PerfData::default))
}

/// Whether a process is HotSpot by its name and the signals that it catches: the one with which it
/// suspends threads is, and OpenJ9 catches SIGABRT, for its dumps.
fn is_hotspot(status: &Status) -> bool {
    const SIGABRT_BIT: u64 = 1 << 5;
    const SIGUSR2_BIT: u64 = 1 << 11;
    is_launcher(&status.name)
        && status.catches_quit()
        && status.signals_caught & (SIGABRT_BIT | SIGUSR2_BIT) == SIGUSR2_BIT
}

/// The file that the JVM of this status has made since it `started`. One of its number may have
/// been left by another process.
fn find(root: &Root, status: &Status, started: SystemTime) -> Option<PerfData> {
    let tmp = root.open_dir("/tmp").ok()?;
    let entries = rustix::fs::Dir::read_from(&tmp).ok()?;
    let names = entries.flatten().take(ENTRIES_MAX);
    names.into_iter().find_map(|entry| {
        let name = entry.file_name().to_str().ok()?;
        name.starts_with(PREFIX).then_some(())?;
        let file = open_file(&tmp, name, status)?;
        let modified = std::fs::File::from(file.try_clone().ok()?)
            .metadata()
            .ok()?;
        let is_of_it = modified.modified().ok()? >= started;
        let bytes = is_of_it.then(|| read_regular(file, hsperf::SIZE_MAX as u64));
        hsperf::parse(&bytes?.ok()?)
    })
}

/// `DIR/PID`, without following links, if that user owns both.
fn open_file(tmp: &OwnedFd, dir: &str, status: &Status) -> Option<OwnedFd> {
    let is_owned = |fd: &OwnedFd, kind| {
        rustix::fs::fstat(fd).is_ok_and(|stat| {
            stat.st_uid == status.euid && FileType::from_raw_mode(stat.st_mode) == kind
        })
    };
    let stat = rustix::fs::statat(tmp, dir, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (stat.st_uid == status.euid).then_some(())?;
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = flags | OFlags::PATH | OFlags::DIRECTORY;
    let dir = rustix::fs::openat(tmp, dir, folder, Mode::empty()).ok()?;
    is_owned(&dir, FileType::Directory).then_some(())?;
    let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK;
    let file = rustix::fs::openat(&dir, status.ns_pid.to_string(), flags, Mode::empty()).ok()?;
    is_owned(&file, FileType::RegularFile).then_some(file)
}

/// The library of this file name in the JVM's own list of what it has loaded, the reply to
/// `jcmd VM.dynlibs`.
pub(crate) fn in_reply(text: &str, name: &str) -> Option<PathBuf> {
    crate::procfs::mapped_file(text.as_bytes(), name).map(|mapped| mapped.path)
}

/// Why such a process of the user's own is refused.
pub(crate) fn advice(what: &str, reason: &dyn std::fmt::Display) -> String {
    printable(&format!(
        "{what}: {reason}; it has a capability that you do not have, and neither its name nor a \
         file in /tmp shows that it is a JVM"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn status(euid: u32) -> Status {
        let text = format!(
            "Name:\tjava\nState:\tS\nTgid:\t7\nUid:\t0\t{euid}\nGid:\t0\t0\nNSpid:\t7\n\
             SigCgt:\t4\n"
        );
        Status::parse(text.as_bytes()).unwrap()
    }

    /// The start of a performance data file without entries.
    const EMPTY: [u8; 32] = {
        let mut bytes = [0; 32];
        (bytes[0], bytes[1], bytes[2], bytes[3]) = (0xca, 0xfe, 0xc0, 0xc0);
        (bytes[4], bytes[5]) = (1, 2);
        bytes
    };

    #[test]
    fn only_a_new_file_of_the_user_proves_a_jvm() {
        let path = std::env::temp_dir().join(format!("dwell-hidden-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("tmp/hsperfdata_me")).unwrap();
        let root = || Root::new(std::fs::File::open(&path).unwrap().into());
        let (long_ago, me) = (SystemTime::UNIX_EPOCH, Credentials::own().uid);
        assert_eq!(find(&root(), &status(me), long_ago), None, "there is none");
        let file = path.join("tmp/hsperfdata_me/7");
        std::fs::write(path.join("data"), EMPTY).unwrap();
        symlink(path.join("data"), &file).unwrap();
        assert_eq!(find(&root(), &status(me), long_ago), None, "a link");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, EMPTY).unwrap();
        let found = find(&root(), &status(me), long_ago);
        assert_eq!(found, Some(PerfData::default()));
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(find(&root(), &status(me), later), None, "left over");
        assert_eq!(find(&root(), &status(me + 1), long_ago), None, "of another");
        std::fs::write(&file, b"nonsense").unwrap();
        assert_eq!(find(&root(), &status(me), long_ago), None, "no such data");
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn hotspot_is_known_by_name_and_signals() {
        let of = |name: &str, caught: u64| {
            let mut status = status(0);
            (status.name, status.signals_caught) = (name.to_owned(), caught);
            is_hotspot(&status)
        };
        // As JDK 8 to 28 show it, and as OpenJ9 does.
        assert!(of("java", 0x2000_0001_8100_5ccf) && of("java", 0x804));
        assert!(!of("java", 0x824) && !of("java", 0x800) && !of("java", 4));
        assert!(!of("sleep", 0x804));
    }

    #[test]
    fn library_is_found_in_the_jvms_own_list() {
        let text = "Dynamic libraries:\n\
                    7f430ce00000-7f430d051000 r--p 00000000 fe:00 315152  /tmp/.dwell-1/libx.so\n\
                    7f430f000000-7f4310000000 rw-p 00000000 00:00 0 \n";
        let found = in_reply(text, "libx.so");
        assert_eq!(found, Some(PathBuf::from("/tmp/.dwell-1/libx.so")));
        assert_eq!(in_reply(text, "liby.so"), None);
        assert_eq!(
            in_reply("java.lang.IllegalArgumentException", "libx.so"),
            None
        );
    }
}
