//! Files below another process's root directory.
//!
//! A container decides what its paths mean, and a symbolic link in it must never lead us to a file
//! of the host. So the kernel resolves every path with that root as `/` (`openat2`). If that call
//! is missing, paths are resolved component by component without following links.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::io::{self, Read};

/// A root directory, held open.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
}

impl Root {
    pub(crate) fn new(fd: OwnedFd) -> Root {
        Root { fd }
    }

    /// Our own root directory.
    pub(crate) fn own() -> io::Result<Root> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Root::new(rustix::fs::open("/", flags, Mode::empty())?))
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Opens `path` (absolute, in the target) with this directory as `/`.
    pub(crate) fn open(&self, path: &str, flags: OFlags, mode: u32) -> io::Result<OwnedFd> {
        let mode = if flags.contains(OFlags::CREATE) {
            Mode::from(mode)
        } else {
            Mode::empty()
        };
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match rustix::fs::openat2(&self.fd, path, flags, mode, resolve) {
            Err(Errno::NOSYS) => self.open_stepwise(path, flags, mode),
            other => Ok(other?),
        }
    }

    fn open_stepwise(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.contains(&"..") {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let last = parts.pop().unwrap_or(".");
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir = rustix::fs::openat(&self.fd, ".", step, Mode::empty())?;
        for part in parts {
            dir = rustix::fs::openat(&dir, part, step, Mode::empty())?;
        }
        Ok(rustix::fs::openat(
            &dir,
            last,
            flags | OFlags::NOFOLLOW,
            mode,
        )?)
    }

    /// Opens a directory for creating files in it.
    pub(crate) fn open_dir(&self, path: &str) -> io::Result<OwnedFd> {
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY, 0)
    }

    /// Opens a regular file for reading, and no other kind. The file's creator chose its kind, and
    /// opening a device or a pipe has effects even without a read.
    pub(crate) fn open_regular(&self, path: &str) -> io::Result<OwnedFd> {
        let found = self.open(path, OFlags::PATH, 0)?;
        let mode = rustix::fs::fstat(&found)?.st_mode;
        if FileType::from_raw_mode(mode) != FileType::RegularFile {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        // Reopens it by its descriptor, because another file may have the name by now.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(fd_path(&found), flags, Mode::empty())?)
    }

    /// Reads at most `bytes_max` bytes of a regular file.
    pub(crate) fn read(&self, path: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        read_regular(self.open_regular(path)?, bytes_max)
    }
}

/// Reads at most `bytes_max` bytes from a descriptor of a regular file.
pub(crate) fn read_regular(fd: OwnedFd, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = std::fs::File::from(fd);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A path of a descriptor in our own process.
pub(crate) fn fd_path(fd: impl AsFd) -> String {
    format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn temp_root(name: &str) -> (std::path::PathBuf, Root) {
        let path = std::env::temp_dir().join(format!("dwell-root-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("etc")).unwrap();
        std::fs::write(path.join("etc/passwd"), "inside").unwrap();
        let dir = std::fs::File::open(&path).unwrap();
        (path, Root::new(dir.into()))
    }

    #[test]
    fn links_are_resolved_inside() {
        let (path, root) = temp_root("links");
        symlink("/etc/passwd", path.join("absolute")).unwrap();
        symlink("../../../../etc/passwd", path.join("etc/up")).unwrap();
        for name in ["/absolute", "/etc/up", "/../etc/passwd", "/etc/passwd"] {
            assert_eq!(root.read(name, 100).unwrap(), b"inside", "{name}");
        }
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn the_stepwise_way_refuses_links_and_parents() {
        let (path, root) = temp_root("steps");
        symlink("/etc", path.join("link")).unwrap();
        let open = |name: &str| root.open_stepwise(name, OFlags::RDONLY, Mode::empty());
        assert!(open("/etc/passwd").is_ok());
        assert!(open("/link/passwd").is_err());
        assert!(open("/etc/../etc/passwd").is_err());
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (path, root) = temp_root("kinds");
        let pipe = path.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        symlink("/pipe", path.join("link")).unwrap();
        symlink("/etc/passwd", path.join("release")).unwrap();
        // Opening the pipe for writing blocks until another thread opens it for reading.
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::File::options().write(true).open(pipe).map(drop)
        });
        let moment = std::time::Duration::from_millis(100);
        std::thread::sleep(moment);
        for name in ["/etc", "/pipe", "/link", "/none"] {
            assert!(root.read(name, 100).is_err(), "{name}");
        }
        std::thread::sleep(moment);
        assert!(!writer.is_finished(), "the pipe was opened");
        drop(std::fs::File::open(&pipe).unwrap());
        writer.join().unwrap().unwrap();
        assert_eq!(root.read("/release", 4).unwrap(), b"insi");
        std::fs::remove_dir_all(path).unwrap();
    }
}
