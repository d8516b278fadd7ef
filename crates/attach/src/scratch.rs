//! Files that a target writes for us: an answer, or a recording that we copy.
//!
//! Each file is in a directory of its own, and both are removed together. A target that writes
//! after we have given up finds no directory, and leaves nothing behind. Runs with the target's
//! effective user and group; touches only files that it has made.

use crate::deliver::TEMPORARY;
use crate::root::{Root, fd_path};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::File;
use std::io;
use std::time::{Duration, SystemTime};

/// A directory older than this is left over: no command takes that long.
const STALE_AFTER: Duration = Duration::from_secs(600);
const ENTRIES_MAX: usize = 10_000;
/// Maximum number of removals if the file is created again during the removal.
const REMOVALS_MAX: u32 = 100;

/// A file made in the target's temporary directory, open for reading.
#[derive(Debug)]
pub struct Scratch {
    /// Absolute path in the target.
    pub path: String,
    /// Open for reading and writing.
    pub file: File,
}

/// A Unix socket in the target's temporary directory, which listens.
#[derive(Debug)]
pub struct Listener {
    /// Absolute path in the target.
    pub path: String,
    /// Accepts connections that keep the ends of messages (`SOCK_SEQPACKET`).
    pub socket: OwnedFd,
}

/// Makes a socket `NAME/FILE` in the first temporary directory that accepts it.
pub(crate) fn listen(root: &Root, name: &str, file: &str) -> io::Result<Listener> {
    let mut reason = io::Error::from(io::ErrorKind::NotFound);
    for place in TEMPORARY {
        let listening = root
            .open_dir(place)
            .and_then(|base| listen_in(&base, name, file));
        match listening {
            Ok(socket) => {
                return Ok(Listener {
                    path: format!("{place}/{name}/{file}"),
                    socket,
                });
            }
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

fn listen_in(base: &OwnedFd, name: &str, file: &str) -> io::Result<OwnedFd> {
    /// Connections that wait to be accepted.
    const WAITING_MAX: i32 = 1024;
    rustix::fs::mkdirat(base, name, Mode::RWXU)?;
    let listen = || {
        let dir = open_own(base, name)?;
        // The kernel resolves the path's first part to the directory that we hold.
        let address = SocketAddrUnix::new(format!("{}/{file}", fd_path(&dir)))?;
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, WAITING_MAX)?;
        Ok(socket)
    };
    let made = listen();
    if made.is_err() {
        let _ = remove_from(base, name, file, &[]);
    }
    made
}

/// Makes an empty file `NAME/FILE` in the first temporary directory that accepts it.
pub(crate) fn make(root: &Root, name: &str, file: &str) -> io::Result<Scratch> {
    let mut reason = io::Error::from(io::ErrorKind::NotFound);
    for place in TEMPORARY {
        match root
            .open_dir(place)
            .and_then(|base| make_in(&base, name, file))
        {
            Ok(made) => {
                return Ok(Scratch {
                    path: format!("{place}/{name}/{file}"),
                    file: File::from(made),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

fn make_in(base: &OwnedFd, name: &str, file: &str) -> io::Result<OwnedFd> {
    rustix::fs::mkdirat(base, name, Mode::RWXU)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = open_own(base, name)
        .and_then(|dir| rustix::fs::openat(&dir, file, flags, Mode::RUSR | Mode::WUSR));
    if made.is_err() {
        let _ = rustix::fs::unlinkat(base, name, AtFlags::REMOVEDIR);
    }
    Ok(made?)
}

fn open_own(base: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(base, name, flags, Mode::empty())
}

/// Removes a file of [`make`], by its path, and other files in its directory.
pub(crate) fn remove(root: &Root, path: &str, others: &[&str]) -> io::Result<()> {
    let parts = path.rsplit_once('/').and_then(|(dir, file)| {
        dir.rsplit_once('/')
            .map(|(place, name)| (place, name, file))
    });
    let Some((place, name, file)) = parts else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    remove_from(&root.open_dir(place)?, name, file, others)
}

fn remove_from(base: &OwnedFd, name: &str, file: &str, others: &[&str]) -> io::Result<()> {
    let dir = open_own(base, name)?;
    for _ in 0..REMOVALS_MAX {
        for file in [&file].into_iter().chain(others) {
            match rustix::fs::unlinkat(&dir, *file, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        match rustix::fs::unlinkat(base, name, AtFlags::REMOVEDIR) {
            // The target has just written a file.
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            other => return Ok(other?),
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

/// Removes left-over directories of the same user, with their `file`, whose command was killed.
/// Their names are `PREFIX` and sixteen hexadecimal digits. Best effort: nothing depends on it.
pub(crate) fn remove_forgotten(root: &Root, prefix: &str, file: &str, uid: u32) {
    for place in TEMPORARY {
        let Ok(base) = root.open_dir(place) else {
            continue;
        };
        let Ok(entries) = rustix::fs::Dir::read_from(&base) else {
            continue;
        };
        for entry in entries.flatten().take(ENTRIES_MAX) {
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let is_ours = name.strip_prefix(prefix).is_some_and(|digits| {
                digits.len() == 16 && digits.bytes().all(|b| b.is_ascii_hexdigit())
            });
            let stat = || rustix::fs::statat(&base, name, AtFlags::SYMLINK_NOFOLLOW);
            if is_ours && stat().is_ok_and(|stat| is_forgotten(&stat, uid)) {
                let _ = remove_from(&base, name, file, &[]);
            }
        }
    }
}

fn is_forgotten(stat: &Stat, uid: u32) -> bool {
    let age = u64::try_from(stat.st_mtime).ok().and_then(|seconds| {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .ok()
    });
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
        && stat.st_uid == uid
        && age.is_some_and(|age| age > STALE_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A directory that serves as root for one test.
    struct World(PathBuf);

    impl World {
        fn new(name: &str) -> World {
            let path =
                std::env::temp_dir().join(format!("dwell-scratch-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("tmp")).unwrap();
            World(path)
        }

        fn root(&self) -> Root {
            Root::new(fs::File::open(&self.0).unwrap().into())
        }

        fn files(&self) -> Vec<String> {
            let entries = fs::read_dir(self.0.join("tmp")).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn make_old(path: &Path) {
        let dir = fs::File::open(path).unwrap();
        dir.set_modified(SystemTime::now() - STALE_AFTER * 2)
            .unwrap();
    }

    #[test]
    fn late_write_finds_no_directory() {
        let world = World::new("late");
        let root = world.root();
        let made = make(&root, "x-1", "answer").unwrap();
        assert_eq!(made.path, "/tmp/x-1/answer");
        let seen = world.0.join("tmp/x-1/answer");
        fs::write(&seen, "ok").unwrap();
        // Other files that the target has made in the directory are removed if they are named.
        fs::write(world.0.join("tmp/x-1/beside"), "x").unwrap();
        assert!(remove(&root, &made.path, &["none"]).is_err());
        remove(&root, &made.path, &["none", "beside"]).unwrap();
        assert!(world.files().is_empty());
        assert!(fs::write(&seen, "late").is_err());
        assert!(remove(&root, &made.path, &[]).is_err());
        assert!(remove(&root, "answer", &[]).is_err());
    }

    #[test]
    fn names_that_are_taken_and_links_are_refused() {
        let world = World::new("taken");
        fs::create_dir(world.0.join("tmp/x-1")).unwrap();
        std::os::unix::fs::symlink("/tmp", world.0.join("tmp/x-2")).unwrap();
        for name in ["x-1", "x-2"] {
            assert!(make(&world.root(), name, "answer").is_err(), "{name}");
            let _ = remove(&world.root(), &format!("/tmp/{name}/none"), &[]);
        }
        assert_eq!(
            world.files(),
            ["x-2"],
            "an empty directory may go, a link not"
        );
    }

    #[test]
    fn only_forgotten_directories_are_removed() {
        let world = World::new("forgotten");
        let root = world.root();
        let [old, fresh] = ["x-0123456789abcdef", "x-fedcba9876543210"];
        let others = ["x-notes", "y-0123456789abcdef", "x-0000000000000000"];
        for name in [old, fresh].into_iter().chain(others) {
            make(&root, name, "answer").unwrap();
        }
        // A directory with other files is not ours.
        fs::write(world.0.join("tmp/x-0000000000000000/more"), "").unwrap();
        for name in [old].into_iter().chain(others) {
            make_old(&world.0.join("tmp").join(name));
        }
        remove_forgotten(&root, "x-", "answer", Credentials::own().uid + 1);
        assert!(world.files().contains(&old.to_owned()), "of another user");
        remove_forgotten(&root, "x-", "answer", Credentials::own().uid);
        assert_eq!(
            world.files(),
            ["x-0000000000000000", fresh, "x-notes", "y-0123456789abcdef"]
        );
    }
}
