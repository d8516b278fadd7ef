//! A file mapped for reading, or bytes that stand for one.

use std::ffi::CString;
use std::io;

/// Files larger than this are not mapped; the largest libraries seen have a few hundred MiB.
const LEN_MAX: i64 = 4 << 30;

/// What a file was when it was opened: where it is kept, how long it is, when its contents and what
/// else is known of it were changed (stat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    place: (u64, u64),
    len: i64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(stat: &libc::stat) -> Stamp {
        Stamp {
            place: (stat.st_dev, stat.st_ino),
            len: stat.st_size,
            written: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Whether the file is at `path` and has been written since. (If another one is there now, the
    /// file itself is what it was: it cannot be written by a path that it has no more. As long as
    /// it is mapped no other file has its number.)
    #[must_use]
    pub fn is_written(&self, path: &[u8]) -> bool {
        let Ok(path) = CString::new(path) else {
            return false;
        };
        // SAFETY: zeroed is a valid stat, which stat fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: path is a C string and stat a valid place for the result.
        let ok = unsafe { libc::stat(path.as_ptr(), &raw mut stat) } == 0;
        let now = Stamp::of(&stat);
        ok && now.place == self.place && now != *self
    }
}

/// Read-only contents of a file.
pub enum MappedFile {
    /// Mapped; only the pages that are touched take memory.
    Mapped {
        /// First byte.
        start: *const u8,
        /// Bytes.
        len: usize,
        /// What the file was then.
        stamp: Stamp,
    },
    /// Held on the heap.
    Owned(Vec<u8>),
}

// SAFETY: the mapping is private and read-only, and lives until drop; sharing it is sharing
// `&[u8]`.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps the file at `path`.
    ///
    /// # Errors
    /// Whatever opening or mapping it answers; an empty or enormous file is invalid input.
    pub fn open(path: &[u8]) -> io::Result<MappedFile> {
        let path = CString::new(path).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: open takes a C string; the descriptor is closed below on every path.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: zeroed is a valid stat, which fstat fills.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fd is open and stat is a valid place for the result.
        let ok = unsafe { libc::fstat(fd, &raw mut stat) } == 0;
        let regular = stat.st_mode & libc::S_IFMT == libc::S_IFREG;
        let result = if ok && regular && (1..=LEN_MAX).contains(&stat.st_size) {
            map(fd, Stamp::of(&stat))
        } else {
            Err(io::ErrorKind::InvalidInput.into())
        };
        // SAFETY: fd was opened here and is not used again; a mapping does not need it.
        unsafe { libc::close(fd) };
        result
    }

    /// Bytes that are not in a file.
    #[must_use]
    pub fn owned(bytes: Vec<u8>) -> MappedFile {
        MappedFile::Owned(bytes)
    }

    /// What the file was when it was opened, if it is one.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        match self {
            MappedFile::Mapped { stamp, .. } => Some(*stamp),
            MappedFile::Owned(_) => None,
        }
    }

    /// The contents.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: `map` succeeded with this start and length, and drop has not run.
            MappedFile::Mapped { start, len, .. } => unsafe {
                std::slice::from_raw_parts(*start, *len)
            },
            MappedFile::Owned(bytes) => bytes,
        }
    }
}

fn map(fd: i32, stamp: Stamp) -> io::Result<MappedFile> {
    let len = stamp.len as usize;
    let none = std::ptr::null_mut();
    // SAFETY: a fresh private read-only mapping of an open file; nothing else is replaced.
    let start = unsafe { libc::mmap(none, len, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(MappedFile::Mapped {
        start: start.cast(),
        len,
        stamp,
    })
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let MappedFile::Mapped { start, len, .. } = *self {
            // SAFETY: the mapping was made in `map` with this start and length; nobody holds a
            // slice of it any more, because slices borrow self.
            unsafe { libc::munmap(start.cast_mut().cast(), len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_file_is_what_it_was_until_it_is_written() {
        let dir = std::env::temp_dir().join(format!("dwell-mapped-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (path, other) = (dir.join("it"), dir.join("other"));
        let bytes = path.as_os_str().as_bytes();
        std::fs::write(&path, b"some text").unwrap();
        let file = MappedFile::open(bytes).unwrap();
        let stamp = file.stamp().unwrap();
        assert!(!stamp.is_written(bytes));
        assert_eq!(file.bytes(), b"some text");
        // As long as before, and with the same time.
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        // Times are those of the kernel's tick, 10 ms at most.
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(&path, b"more text").unwrap();
        let renewed = std::fs::File::options().write(true).open(&path).unwrap();
        renewed.set_modified(written).unwrap();
        assert!(stamp.is_written(bytes), "it was changed later");
        let stamp = MappedFile::open(bytes).unwrap().stamp().unwrap();
        std::fs::write(&path, b"longer text").unwrap();
        assert!(stamp.is_written(bytes), "another length");
        let stamp = MappedFile::open(bytes).unwrap().stamp().unwrap();
        std::fs::write(&other, b"more text").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!stamp.is_written(bytes), "another file");
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(!stamp.is_written(bytes), "none");
        assert!(!stamp.is_written(b"a\0b"));
        assert!(MappedFile::owned(vec![1]).stamp().is_none());
    }
}
