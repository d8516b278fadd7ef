//! Parts of a library's file in memory of our own, or bytes that stand for one. The file itself is
//! never mapped: truncating it would remove its pages, and end the process.

use dwell_native::elf::{Parts, ReadAt, fill_parts};
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Files larger than this are not read; the largest libraries seen have a few hundred MiB.
const LEN_MAX: u64 = 4 << 30;

/// The state of a file when it was opened: where it is kept, how long it is, when its contents and
/// its other attributes were changed (stat(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    place: (u64, u64),
    len: u64,
    written: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(data: &Metadata) -> Stamp {
        Stamp {
            place: (data.dev(), data.ino()),
            len: data.len(),
            written: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }

    /// Whether the file is at `path` and has been written since. (If another file is there now,
    /// the file itself is unchanged: it cannot be written by a path that it no longer has. A file
    /// that got its number since has other times.)
    #[must_use]
    pub fn is_written(&self, path: &[u8]) -> bool {
        let now = std::fs::metadata(path_of(path)).map(|data| Stamp::of(&data));
        now.is_ok_and(|now| now.place == self.place && now != *self)
    }

    /// Whether the file is at `path` and has not been written since.
    #[must_use]
    pub fn is_in_place(&self, path: &[u8]) -> bool {
        let now = std::fs::metadata(path_of(path)).map(|data| Stamp::of(&data));
        now.is_ok_and(|now| now == *self)
    }
}

fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// Read-only contents of a file.
pub enum MappedFile {
    /// Anonymous memory as long as the file; only the parts that were read use memory.
    Mapped {
        /// First byte.
        start: *mut u8,
        /// Bytes.
        len: usize,
    },
    /// Held on the heap.
    Owned(Vec<u8>),
}

// SAFETY: the mapping is private, lives until drop, and is written to only while it is borrowed
// alone; sharing it is sharing `&[u8]`.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

/// A library's file, open.
pub struct LibraryFile {
    file: File,
    stamp: Stamp,
}

impl LibraryFile {
    /// Opens the file at `path`.
    ///
    /// # Errors
    /// Any error of opening it; a file that is not regular, empty or enormous is invalid input.
    pub fn open(path: &[u8]) -> io::Result<LibraryFile> {
        // A path may lead to another kind of file by now: opening it must not wait for it, or have
        // an effect.
        let file = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path_of(path))?;
        let data = file.metadata()?;
        if !data.is_file() || !(1..=LEN_MAX).contains(&data.len()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let stamp = Stamp::of(&data);
        Ok(LibraryFile { file, stamp })
    }

    /// The state of the file when it was opened.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Its device (major, minor) and inode.
    #[must_use]
    pub fn place(&self) -> ((u32, u32), u64) {
        let (device, inode) = self.stamp.place;
        ((libc::major(device), libc::minor(device)), inode)
    }

    /// Whether it is the file of this device (major, minor) and inode.
    #[must_use]
    pub fn is_at(&self, device: (u32, u32), inode: u64) -> bool {
        self.place() == (device, inode)
    }

    /// Whether it begins so.
    #[must_use]
    pub fn begins_with(&self, bytes: &[u8]) -> bool {
        let mut begin = vec![0; bytes.len()];
        self.file.read_exact_at(&mut begin, 0).is_ok() && begin == bytes
    }

    /// Reads these parts of it.
    ///
    /// # Errors
    /// Any error of reading, also if the file has become shorter; or lack of memory.
    pub fn read(&self, parts: Parts) -> io::Result<MappedFile> {
        let mut memory = reserve(self.stamp.len as usize)?;
        let mut read = |at, part: &mut [u8]| self.file.read_exact_at(part, at).is_ok();
        match fill_parts(memory.bytes_mut(), parts, &mut read) {
            Some(()) => Ok(memory),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

impl ReadAt for LibraryFile {
    fn file_len(&self) -> u64 {
        self.stamp.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, offset).is_ok()
    }
}

impl MappedFile {
    /// Bytes that are not in a file.
    #[must_use]
    pub fn owned(bytes: Vec<u8>) -> MappedFile {
        MappedFile::Owned(bytes)
    }

    /// The contents.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: `reserve` succeeded with this start and length, and drop has not run.
            MappedFile::Mapped { start, len } => unsafe {
                std::slice::from_raw_parts(*start, *len)
            },
            MappedFile::Owned(bytes) => bytes,
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            // SAFETY: as above; the memory is writable, and self is borrowed alone.
            MappedFile::Mapped { start, len } => unsafe {
                std::slice::from_raw_parts_mut(*start, *len)
            },
            MappedFile::Owned(bytes) => bytes,
        }
    }
}

/// Zeroed memory whose pages are allocated when they are written to.
fn reserve(len: usize) -> io::Result<MappedFile> {
    let none = std::ptr::null_mut();
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh private mapping of no file; nothing else is replaced.
    let start = unsafe { libc::mmap(none, len, protection, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(MappedFile::Mapped {
        start: start.cast(),
        len,
    })
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        if let MappedFile::Mapped { start, len } = *self {
            // SAFETY: the mapping was made in `reserve` with this start and length; no code holds a
            // slice of it any more, because slices borrow self.
            unsafe { libc::munmap(start.cast(), len) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_changes_only_when_file_is_written() {
        let dir = std::env::temp_dir().join(format!("dwell-mapped-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (path, other) = (dir.join("it"), dir.join("other"));
        let bytes = path.as_os_str().as_bytes();
        std::fs::write(&path, b"some text").unwrap();
        let file = LibraryFile::open(bytes).unwrap();
        let stamp = file.stamp();
        assert!(!stamp.is_written(bytes));
        assert_eq!(file.read(Parts::All).unwrap().bytes(), b"some text");
        let is = std::fs::metadata(&path).unwrap();
        let device = (libc::major(is.dev()), libc::minor(is.dev()));
        assert!(file.is_at(device, is.ino()) && !file.is_at(device, is.ino() + 1));
        assert!(!file.is_at((device.0, device.1 + 1), is.ino()));
        assert!(file.begins_with(b"some") && !file.begins_with(b"Some"));
        assert!(!file.begins_with(b"some text and more"));
        // The same length as before, and the same time.
        let written = std::fs::metadata(&path).unwrap().modified().unwrap();
        // File times have the resolution of the kernel's tick, which may be late.
        let changed = || std::fs::metadata(&path).map(|it| (it.ctime(), it.ctime_nsec()));
        let before = changed().unwrap();
        while changed().unwrap() == before {
            std::fs::write(&path, b"more text").unwrap();
        }
        let renewed = std::fs::File::options().write(true).open(&path).unwrap();
        renewed.set_modified(written).unwrap();
        assert!(stamp.is_written(bytes), "it was changed later");
        let stamp = LibraryFile::open(bytes).unwrap().stamp();
        std::fs::write(&path, b"longer text").unwrap();
        assert!(stamp.is_written(bytes), "another length");
        let stamp = LibraryFile::open(bytes).unwrap().stamp();
        std::fs::write(&other, b"more text").unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(!stamp.is_written(bytes), "another file");
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(!stamp.is_written(bytes), "none");
        assert!(!stamp.is_written(b"a\0b"));
    }

    #[test]
    fn never_does_a_truncated_file_crash_its_reader() {
        let path = std::env::temp_dir().join(format!("dwell-short-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
        let file = LibraryFile::open(path.as_os_str().as_bytes()).unwrap();
        let exports = file.read(Parts::Exports).unwrap();
        let all = file.read(Parts::All).unwrap();
        File::create(&path).unwrap();
        // The bytes already read are there; no more can be read.
        assert!(exports.bytes().iter().any(|byte| *byte != 0));
        let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        assert!(sum(all.bytes()) > sum(exports.bytes()));
        assert!(file.read(Parts::All).is_err() && file.read(Parts::Exports).is_err());
        assert!(LibraryFile::open(path.as_os_str().as_bytes()).is_err());
        std::fs::remove_file(&path).unwrap();
        assert!(LibraryFile::open(b"/dev/zero").is_err() && LibraryFile::open(b"/tmp").is_err());
    }
}
