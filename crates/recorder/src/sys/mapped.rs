//! A file mapped for reading, or bytes that stand for one.

use std::ffi::CString;
use std::io;

/// Files larger than this are not mapped; the largest libraries seen have a few hundred MiB.
const LEN_MAX: i64 = 4 << 30;

/// Read-only contents of a file.
pub enum MappedFile {
    /// Mapped; only the pages that are touched take memory.
    Mapped {
        /// First byte.
        start: *const u8,
        /// Bytes.
        len: usize,
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
            map(fd, stat.st_size as usize)
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

    /// The contents.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: `map` succeeded with this start and length, and drop has not run.
            MappedFile::Mapped { start, len } => unsafe {
                std::slice::from_raw_parts(*start, *len)
            },
            MappedFile::Owned(bytes) => bytes,
        }
    }
}

fn map(fd: i32, len: usize) -> io::Result<MappedFile> {
    let none = std::ptr::null_mut();
    // SAFETY: a fresh private read-only mapping of an open file; nothing else is replaced.
    let start = unsafe { libc::mmap(none, len, libc::PROT_READ, libc::MAP_PRIVATE, fd, 0) };
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
            // SAFETY: the mapping was made in `map` with this start and length; nobody holds a
            // slice of it any more, because slices borrow self.
            unsafe { libc::munmap(start.cast_mut().cast(), len) };
        }
    }
}
