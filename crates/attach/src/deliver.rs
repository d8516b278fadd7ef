//! Putting a file (the agent's library) where a JVM can load it.
//!
//! dwell never loads a library that another user could have written. Its directory and file must
//! belong to the target's user (or root, or us). Other users must not be able to write to either or
//! to replace them, and the bytes are compared with ours. One exception: a pod's volume as `/tmp`,
//! which all users of the pod may write to. Directories mounted `noexec` are skipped.

use crate::root::{Root, read_regular};
use crate::{Error, credentials::Credentials, processor};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatVfsMountFlags};
use rustix::io::Errno;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Temporary directories of a target, best first.
pub(crate) const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Directories of other builds are removed once they are this old.
const STALE_AFTER: Duration = Duration::from_secs(24 * 3600);
const PREFIX: &str = ".dwell-";
const ENTRIES_MAX: usize = 10_000;

/// A library to be placed.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// File name, such as `libx.so`.
    pub name: &'a str,
    /// The file's bytes.
    pub bytes: &'a [u8],
}

impl Library<'_> {
    /// Name of the directory for exactly these bytes.
    fn dir_name(&self) -> String {
        // FNV-1a: only a name, because the file found under it is compared byte by byte.
        let hash = self
            .bytes
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{PREFIX}{hash:016x}")
    }
}

/// Places a library for JVMs that we start ourselves.
pub fn place_locally(library: &Library<'_>) -> Result<PathBuf, Error> {
    processor::check_library(library.name, library.bytes)?;
    let local = |reason| Error::Local {
        path: PathBuf::from("/tmp"),
        reason,
    };
    let root = Root::own().map_err(local)?;
    let home = std::env::var("HOME").ok();
    let places = candidates(None, &root, home.as_deref());
    put(&root, &places, library, Credentials::own().uid)
        .map(PathBuf::from)
        .map_err(|tried| Error::NoPlaceHere { tried })
}

/// Directories to try, as paths in the target: temporary ones, its working directory, its home.
pub(crate) fn candidates(
    working_dir: Option<(OwnedFd, String)>,
    root: &Root,
    home: Option<&str>,
) -> Vec<String> {
    let mut places: Vec<String> = TEMPORARY.iter().map(|&dir| dir.to_owned()).collect();
    // The kernel's path of the working directory counts only if it is the same in the target's
    // root.
    let working = working_dir.and_then(|(fd, path)| {
        let named = root.open_dir(&path).ok()?;
        same_file(
            &rustix::fs::fstat(&fd).ok()?,
            &rustix::fs::fstat(&named).ok()?,
        )
        .then_some(path)
    });
    places.extend(working);
    places.extend(home.filter(|path| path.starts_with('/')).map(str::to_owned));
    let mut seen = HashSet::new();
    places.retain(|place| seen.insert(place.clone()));
    places
}

fn same_file(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Puts the library into the first directory that accepts it. The error lists the ones tried.
pub(crate) fn put(
    root: &Root,
    places: &[String],
    library: &Library<'_>,
    uid: u32,
) -> Result<String, String> {
    let mut tried = Vec::new();
    for place in places {
        match put_into(root, place, library, uid) {
            Ok(path) => return Ok(path),
            Err(reason) => tried.push(format!("{place}: {reason}")),
        }
    }
    Err(tried.join("; "))
}

fn put_into(root: &Root, place: &str, library: &Library<'_>, uid: u32) -> Result<String, String> {
    let text = |error: io::Error| error.to_string();
    let base = root.open_dir(place).map_err(text)?;
    let stat = |fd| rustix::fs::fstat(fd).map_err(|error| text(error.into()));
    let (top, here) = (stat(root.as_fd())?, stat(base.as_fd())?);
    check_base(&base, uid, is_volume(place, &here, &top))?;
    let name = library.dir_name();
    let dir = open_or_make(&base, &name, uid)?;
    ensure_file(&dir, library, uid).map_err(text)?;
    remove_stale(&base, &name, library.name, uid);
    Ok(format!(
        "{}/{name}/{}",
        place.trim_end_matches('/'),
        library.name
    ))
}

/// Whether a temporary directory is a volume of its own that belongs to root, as an `emptyDir` of
/// Kubernetes: all may write to it, and it has no sticky bit. Only the pod's containers reach it,
/// and they trust each other with the program's temporary files anyway.
fn is_volume(place: &str, here: &Stat, top: &Stat) -> bool {
    TEMPORARY.contains(&place) && here.st_dev != top.st_dev && here.st_uid == 0
}

/// In a directory that all users may write to, without the sticky bit, others can replace files.
fn check_base(base: &OwnedFd, uid: u32, is_volume: bool) -> Result<(), String> {
    let mounted = rustix::fs::fstatvfs(base).map_err(|error| error.to_string())?;
    if mounted.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err("mounted noexec".to_owned());
    }
    let stat = rustix::fs::fstat(base).map_err(|error| error.to_string())?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let shared = mode.intersects(Mode::WGRP | Mode::WOTH) && !mode.contains(Mode::SVTX);
    if shared && !is_volume {
        return Err("others may replace files in it".to_owned());
    }
    if !trusted(stat.st_uid, uid) {
        return Err(format!("owned by user id {}", stat.st_uid));
    }
    Ok(())
}

fn trusted(owner: u32, uid: u32) -> bool {
    owner == uid || owner == 0
}

/// Whether only a trusted user can write to the file that `stat` describes.
fn is_guarded(stat: &Stat, uid: u32) -> bool {
    let mode = Mode::from_raw_mode(stat.st_mode);
    trusted(stat.st_uid, uid) && !mode.intersects(Mode::WGRP | Mode::WOTH)
}

fn open_or_make(base: &OwnedFd, name: &str, uid: u32) -> Result<OwnedFd, String> {
    let public = Mode::from_raw_mode(0o755);
    match rustix::fs::mkdirat(base, name, public) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.to_string()),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir =
        rustix::fs::openat(base, name, flags, Mode::empty()).map_err(|error| error.to_string())?;
    let stat = rustix::fs::fstat(&dir).map_err(|error| error.to_string())?;
    if !is_guarded(&stat, uid) {
        return Err(format!("{name} there belongs to user id {}", stat.st_uid));
    }
    if stat.st_uid == uid {
        // The umask may have removed bits, but the target must be able to enter.
        let _ = rustix::fs::fchmod(&dir, public);
    }
    Ok(dir)
}

fn ensure_file(dir: &OwnedFd, library: &Library<'_>, uid: u32) -> io::Result<()> {
    if holds(dir, library, uid) {
        return Ok(());
    }
    let temporary = format!(".{}-{:016x}", library.name, unforeseen());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o755);
    let file = rustix::fs::openat(dir, &*temporary, flags, mode)?;
    let _ = rustix::fs::fchmod(&file, mode);
    let written = std::fs::File::from(file).write_all(library.bytes);
    let placed =
        written.and_then(|()| Ok(rustix::fs::renameat(dir, &*temporary, dir, library.name)?));
    if placed.is_err() {
        let _ = rustix::fs::unlinkat(dir, &*temporary, AtFlags::empty());
    }
    placed?;
    if holds(dir, library, uid) {
        return Ok(());
    }
    Err(io::Error::other(
        "the library does not read back as it was written",
    ))
}

/// A random number, so that another process that places the same library uses another one.
fn unforeseen() -> u64 {
    // The standard library seeds each of these from the system's random numbers.
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}

/// Whether exactly this library is in `dir`, and no other user can change it.
fn holds(dir: &OwnedFd, library: &Library<'_>, uid: u32) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(dir, library.name, flags, Mode::empty()) else {
        return false;
    };
    let Ok(stat) = rustix::fs::fstat(&file) else {
        return false;
    };
    let readable = Mode::from_raw_mode(stat.st_mode).contains(Mode::RUSR);
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && is_guarded(&stat, uid)
        && readable
        && read_regular(file, library.bytes.len() as u64 + 1)
            .is_ok_and(|bytes| bytes == library.bytes)
}

/// Removes old directories of other builds. Best effort: nothing depends on it.
fn remove_stale(base: &OwnedFd, keep: &str, file_name: &str, uid: u32) {
    let Ok(entries) = rustix::fs::Dir::read_from(base) else {
        return;
    };
    for entry in entries.flatten().take(ENTRIES_MAX) {
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let hash = name.strip_prefix(PREFIX);
        let ours = hash
            .is_some_and(|hash| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()));
        if ours && name != keep && is_stale(base, name, file_name, uid) {
            let _ = rustix::fs::unlinkat(base, format!("{name}/{file_name}"), AtFlags::empty());
            let _ = rustix::fs::unlinkat(base, name, AtFlags::REMOVEDIR);
        }
    }
}

fn is_stale(base: &OwnedFd, name: &str, file_name: &str, uid: u32) -> bool {
    let dir = rustix::fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW);
    let is_own_dir = dir.is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_uid == uid
    });
    let path = format!("{name}/{file_name}");
    let file = rustix::fs::statat(base, &*path, AtFlags::SYMLINK_NOFOLLOW);
    let written_s = file.ok().and_then(|stat| u64::try_from(stat.st_mtime).ok());
    let age = written_s.and_then(|seconds| {
        SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .ok()
    });
    is_own_dir && age.is_some_and(|age| age > STALE_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::Path;

    const LIBRARY: Library<'_> = Library {
        name: "libx.so",
        bytes: b"\x7fELF, or so we say",
    };

    /// A directory that serves as root for one test.
    struct World {
        path: PathBuf,
        root: Root,
    }

    impl World {
        fn new(name: &str) -> World {
            // /dev/shm and /tmp may be mounted noexec: the build directory can run programs.
            let exe = std::env::current_exe().unwrap();
            let path = exe.with_file_name(format!("place-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("tmp")).unwrap();
            fs::create_dir_all(path.join("home")).unwrap();
            let root = Root::new(fs::File::open(&path).unwrap().into());
            World { path, root }
        }

        fn put(&self, places: &[&str]) -> Result<String, String> {
            let places: Vec<String> = places.iter().map(|&place| place.to_owned()).collect();
            put(&self.root, &places, &LIBRARY, Credentials::own().uid)
        }

        fn host(&self, inside: &str) -> PathBuf {
            self.path.join(inside.trim_start_matches('/'))
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn only_temporary_volumes_of_root_may_lack_the_sticky_bit() {
        let world = World::new("volume");
        let top = rustix::fs::fstat(world.root.as_fd()).unwrap();
        let of = |device: u64, owner: u32| {
            let mut here = top;
            (here.st_dev, here.st_uid) = (device, owner);
            here
        };
        let (same, other) = (top.st_dev, top.st_dev + 1);
        for place in TEMPORARY {
            assert!(is_volume(place, &of(other, 0), &top), "{place}");
            assert!(!is_volume(place, &of(same, 0), &top), "{place}: no volume");
            assert!(!is_volume(place, &of(other, 7), &top), "{place}: of a user");
        }
        assert!(
            !is_volume("/data", &of(other, 0), &top),
            "may be a shared one"
        );
        // The directory itself is checked in any case.
        chmod(&world.path.join("tmp"), 0o777);
        let open = || fs::File::open(world.path.join("tmp")).unwrap().into();
        let uid = Credentials::own().uid;
        assert!(check_base(&open(), uid, false).is_err());
        assert_eq!(check_base(&open(), uid, true), Ok(()));
    }

    #[test]
    fn library_is_placed_once_and_found_again() {
        let world = World::new("once");
        let first = world.put(&["/tmp"]).unwrap();
        assert!(
            first.starts_with("/tmp/.dwell-") && first.ends_with("/libx.so"),
            "{first}"
        );
        let file = world.host(&first);
        assert_eq!(fs::read(&file).unwrap(), LIBRARY.bytes);
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o755, 0o755));
        let inode = fs::metadata(&file).unwrap().ino();
        assert_eq!(world.put(&["/tmp"]).unwrap(), first);
        assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
    }

    #[test]
    fn other_bytes_are_replaced_not_overwritten() {
        let world = World::new("other");
        let file = world.host(&world.put(&["/tmp"]).unwrap());
        let kept = file.with_file_name("kept");
        fs::write(&file, b"another").unwrap();
        fs::hard_link(&file, &kept).unwrap();
        world.put(&["/tmp"]).unwrap();
        assert_eq!(fs::read(&file).unwrap(), LIBRARY.bytes);
        assert_eq!(
            fs::read(&kept).unwrap(),
            b"another",
            "a JVM may have that one mapped"
        );
    }

    #[test]
    fn files_writable_by_others_are_not_used() {
        let world = World::new("writable");
        let file = world.host(&world.put(&["/tmp"]).unwrap());
        let inode = fs::metadata(&file).unwrap().ino();
        chmod(&file, 0o777);
        world.put(&["/tmp"]).unwrap();
        assert_ne!(fs::metadata(&file).unwrap().ino(), inode);
        assert_eq!(mode(&file), 0o755);
    }

    #[test]
    fn planted_directories_and_links_are_skipped() {
        let world = World::new("planted");
        let dir = world.host("tmp").join(LIBRARY.dir_name());
        symlink("/home", &dir).unwrap();
        let path = world.put(&["/tmp", "/home"]).unwrap();
        assert!(path.starts_with("/home/.dwell-"), "{path}");
        fs::remove_file(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        chmod(&dir, 0o777);
        let error = world.put(&["/tmp"]).unwrap_err();
        assert!(error.contains("/tmp: .dwell-"), "{error}");
    }

    #[test]
    fn directories_without_sticky_bit_are_skipped() {
        let world = World::new("sticky");
        chmod(&world.host("tmp"), 0o777);
        let error = world.put(&["/tmp", "/none"]).unwrap_err();
        assert!(error.contains("/tmp: others may replace files"), "{error}");
        assert!(error.contains("/none: No such file"), "{error}");
        chmod(&world.host("tmp"), 0o1777);
        assert!(world.put(&["/tmp"]).is_ok());
    }

    #[test]
    fn only_old_builds_are_removed() {
        let world = World::new("stale");
        let old = world.host("tmp/.dwell-0123456789abcdef");
        let fresh = world.host("tmp/.dwell-fedcba9876543210");
        let foreign = world.host("tmp/.dwell-notes");
        for dir in [&old, &fresh, &foreign] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("libx.so"), b"x").unwrap();
        }
        let yesterday = SystemTime::now() - STALE_AFTER - Duration::from_secs(60);
        for dir in [&old, &foreign] {
            let file = fs::File::options()
                .write(true)
                .open(dir.join("libx.so"))
                .unwrap();
            file.set_modified(yesterday).unwrap();
        }
        world.put(&["/tmp"]).unwrap();
        assert!(!old.exists());
        assert!(fresh.exists() && foreign.exists());
    }
}
