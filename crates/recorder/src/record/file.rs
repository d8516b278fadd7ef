//! The recording on disk: one file of chunks, appended and made readable at every flush.
//!
//! A full disk loses no more than it must: bytes that could not be written wait in memory, up to a
//! bound; beyond it their chunk is given up, and when there is room again a new chunk begins that
//! says how long the gap was and what fell into it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that wait at most for room on the disk.
pub const WAITING_MAX: usize = 4 << 20;

/// What an attempt to write gave.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// All is in the file and the header is right.
    All,
    /// Nothing lost yet: the bytes wait.
    Waiting(io::ErrorKind),
    /// Too many bytes waited: the chunk's unwritten part is gone.
    GivenUp,
}

/// A recording file that a chunk is being appended to.
pub struct RecordingFile {
    path: PathBuf,
    file: File,
    chunk_start: u64,
    written: u64,
    waiting: Vec<u8>,
}

impl RecordingFile {
    /// Creates the file; an existing one is replaced only if it is a plain file that no other
    /// recording is being written to. It is locked until it is closed (flock(2)), where the file
    /// system has locks.
    ///
    /// # Errors
    /// Whatever creating it answers; `ResourceBusy` if another recording is being written to it.
    pub fn create(path: &Path) -> io::Result<RecordingFile> {
        if std::fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "not a plain file",
            ));
        }
        let mut options = OpenOptions::new();
        options
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o640);
        let file = options.open(path)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another recording is being written to it; %p in a name is the process's number",
            ));
        }
        file.set_len(0)?;
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(RecordingFile {
            path,
            file,
            chunk_start: 0,
            written: 0,
            waiting: Vec::new(),
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.written
    }

    /// Whether nothing was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// Whether bytes of the chunk wait for room.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Appends `bytes` to the chunk, then writes its header.
    pub fn append(&mut self, bytes: &[u8], header: &[u8]) -> Written {
        self.waiting.extend_from_slice(bytes);
        match self.write(header) {
            Ok(()) => {
                self.waiting = Vec::new();
                Written::All
            }
            Err(error) => {
                self.cut();
                if self.waiting.len() <= WAITING_MAX {
                    return Written::Waiting(error.kind());
                }
                self.waiting = Vec::new();
                Written::GivenUp
            }
        }
    }

    fn write(&mut self, header: &[u8]) -> io::Result<()> {
        self.file.write_all_at(&self.waiting, self.written)?;
        self.file.write_all_at(header, self.chunk_start)?;
        self.written += self.waiting.len() as u64;
        Ok(())
    }

    /// Cuts a half-written tail off: other readers than ours take it for a damaged file, and it may
    /// hold the room that is missing.
    fn cut(&self) {
        // Shrinking needs no room; if it fails all the same, our reader stops at the header's
        // length.
        let _ = self.file.set_len(self.written);
    }

    /// Begins the next chunk at the end of the file.
    pub fn next_chunk(&mut self) {
        self.chunk_start = self.written;
    }

    /// Goes on in another file, which must not exist yet or be a plain file.
    ///
    /// # Errors
    /// Whatever creating it answers; the old file then stays in use.
    pub fn switch(&mut self, path: &Path) -> io::Result<()> {
        *self = RecordingFile::create(path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("dwell-file-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir.join(name)
    }

    #[test]
    fn the_header_is_rewritten_at_the_chunk_start() {
        let path = path("chunks");
        let mut file = RecordingFile::create(&path).unwrap();
        assert_eq!(file.append(b"hhAA", b"h1"), Written::All);
        assert_eq!(file.append(b"BB", b"h2"), Written::All);
        file.next_chunk();
        assert_eq!(file.append(b"hhCC", b"h3"), Written::All);
        assert_eq!(std::fs::read(&path).unwrap(), b"h2AABBh3CC");
        assert_eq!(file.len(), 10);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn something_else_is_not_replaced() {
        let dir = path("dir");
        std::fs::create_dir_all(&dir).unwrap();
        assert!(RecordingFile::create(&dir).is_err());
        std::fs::remove_dir(dir).unwrap();
    }

    #[test]
    fn what_another_recording_is_written_to_is_not_replaced() {
        let path = path("two");
        let mut first = RecordingFile::create(&path).unwrap();
        assert_eq!(first.append(b"hhAA", b"h1"), Written::All);
        let error = RecordingFile::create(&path).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().contains("%p"), "{error}");
        assert_eq!(first.append(b"BB", b"h2"), Written::All);
        assert_eq!(std::fs::read(&path).unwrap(), b"h2AABB");
        // One that is renamed is out of the way, and so is one that is closed.
        let old = path.with_extension("old");
        std::fs::rename(&path, &old).unwrap();
        let second = RecordingFile::create(&path).unwrap();
        drop((first, second));
        let again = RecordingFile::create(&old).unwrap();
        assert_eq!(std::fs::read(again.path()).unwrap(), b"");
        std::fs::remove_file(path).unwrap();
        std::fs::remove_file(old).unwrap();
    }

    #[test]
    fn a_full_disk_waits_then_gives_up() {
        let mut file = RecordingFile::create(&path("full")).unwrap();
        // /dev/full answers every write with ENOSPC.
        file.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(
            file.append(b"x", b"h"),
            Written::Waiting(io::ErrorKind::StorageFull)
        );
        let much = vec![0; WAITING_MAX];
        assert_eq!(file.append(&much, b"h"), Written::GivenUp);
        assert_eq!(file.len(), 0);
        assert!(file.waiting.is_empty());
        std::fs::remove_file(path("full")).unwrap();
    }

    /// The kernel writes as much as fits. A limit of the file's size does the same to one process
    /// only; the child of this test has it.
    #[test]
    fn a_half_written_tail_is_cut_off() {
        let whole = path("half");
        if let Some(path) = std::env::var_os("DWELL_TEST_HALF") {
            let mut file = RecordingFile::create(Path::new(&path)).unwrap();
            assert_eq!(file.append(&[1; 3000], b"h"), Written::All);
            assert!(matches!(
                file.append(&[2; 3000], b"H"),
                Written::Waiting(io::ErrorKind::FileTooLarge)
            ));
            assert_eq!(file.len(), 3000);
            return;
        }
        let name = "record::file::tests::a_half_written_tail_is_cut_off";
        let script = "trap '' XFSZ; ulimit -f 4; exec \"$0\" --exact \"$1\" --nocapture";
        let output = std::process::Command::new("bash")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env("DWELL_TEST_HALF", &whole)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("1 passed"), "{text}");
        let bytes = std::fs::read(&whole).unwrap();
        assert_eq!(bytes.len(), 3000);
        assert_eq!(&bytes[..2], &[b'h', 1]);
        std::fs::remove_file(whole).unwrap();
    }
}
