//! The recording on disk: one file of chunks, appended and made readable at every flush.
//!
//! A full disk loses no more than it must. Bytes that could not be written wait in memory, up to a
//! bound. Beyond it their chunk is dropped. When there is room again, a new chunk begins that
//! records how long the gap was and what data fell into it.

use crate::sys::{fds, process};
use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Maximum number of bytes that wait for room on the disk.
pub const WAITING_MAX: usize = 4 << 20;

/// Mode of recordings: they contain the command line of the program.
const MODE: u32 = 0o600;

/// The result of an attempt to write.
#[derive(Debug, PartialEq, Eq)]
pub enum Written {
    /// All data is in the file and the header is right.
    All,
    /// No data is lost yet: the bytes wait.
    Waiting(io::ErrorKind),
    /// Too many bytes waited: the unwritten part of the chunk is lost.
    GivenUp,
}

/// A recording file that a chunk is being appended to.
pub struct RecordingFile {
    path: PathBuf,
    file: File,
    chunk_start: u64,
    written: u64,
    waiting: Vec<u8>,
    /// Whether the file is new, and empty.
    is_new: bool,
}

impl RecordingFile {
    /// Creates the file; an existing one is replaced only if it is a plain file that no other
    /// recording is being written to. It is locked until it is closed (flock(2)), where the file
    /// system has locks.
    ///
    /// # Errors
    /// Any error of creating the file; `ResourceBusy` if another recording is being written to it.
    pub fn create(path: &Path) -> io::Result<RecordingFile> {
        let mut file = RecordingFile::open(path)?;
        match file.begin() {
            Ok(()) => Ok(file),
            Err(error) => {
                file.discard();
                Err(error)
            }
        }
    }

    /// Like [`RecordingFile::create`], but an existing file is not changed before
    /// [`RecordingFile::begin`].
    ///
    /// # Errors
    /// As there.
    pub fn open(path: &Path) -> io::Result<RecordingFile> {
        let refuse = |why| Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        // Not even opened: that alone has effects on a device. Below, the file must be unchanged.
        if std::fs::symlink_metadata(path).is_ok_and(|m| !m.is_file()) {
            return refuse("not a plain file");
        }
        let mut options = OpenOptions::new();
        options
            .truncate(false)
            .read(true)
            .write(true)
            .mode(MODE)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY);
        let (file, is_new) = match options.clone().create_new(true).open(path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                (options.create(true).open(path)?, false)
            }
            Err(error) => return Err(error),
        };
        let data = file.metadata()?;
        if !data.is_file() {
            return refuse("not a plain file");
        }
        if may_be_anothers(&data, path) {
            return refuse("another user may have put this file there");
        }
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                "another recording is being written to it; %p in a name is the process's number",
            ));
        }
        let file = fds::move_up(file).unwrap_or_else(|file| file);
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        Ok(RecordingFile {
            path,
            file,
            chunk_start: 0,
            written: 0,
            waiting: Vec::new(),
            is_new,
        })
    }

    /// Empties the file: from here on it belongs to this recording.
    ///
    /// # Errors
    /// Any error of the file system; the file is as before.
    pub fn begin(&mut self) -> io::Result<()> {
        #[cfg(test)]
        crate::testing::may_fail(crate::testing::Step::File)?;
        let data = self.file.metadata()?;
        self.file.set_len(0)?;
        if data.permissions().mode() & 0o777 & !MODE != 0 && data.uid() == process::user() {
            let _ = self.file.set_permissions(Permissions::from_mode(MODE));
        }
        self.is_new = false;
        Ok(())
    }

    /// The recording does not begin after all: a new file is removed.
    pub fn discard(self) {
        if self.is_new {
            let _ = std::fs::remove_file(&self.path);
        }
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

    /// Whether the file is still empty.
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

    /// Cuts off a half-written tail. Readers other than ours would report a damaged file, and the
    /// tail may take the room that is missing.
    fn cut(&self) {
        // Shrinking needs no room. If it fails nevertheless, our reader stops at the header's
        // length.
        let _ = self.file.set_len(self.written);
    }

    /// Begins the next chunk at the end of the file.
    pub fn next_chunk(&mut self) {
        self.chunk_start = self.written;
    }

    /// Continues in an empty file of the same name; this one is kept as `previous`.
    ///
    /// # Errors
    /// Any error of making the new file. The files then are as before.
    pub fn rotate(&mut self, previous: &Path) -> io::Result<()> {
        let next_path = self.path.with_extension("next.jfr");
        let mut next = RecordingFile::create(&next_path)?;
        let give_up = |error| {
            let _ = std::fs::remove_file(&next_path);
            Err(error)
        };
        match std::fs::rename(&self.path, previous) {
            Ok(()) => {}
            // The file was removed or moved.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return give_up(error),
        }
        if let Err(error) = std::fs::rename(&next_path, &self.path) {
            let _ = std::fs::rename(previous, &self.path);
            return give_up(error);
        }
        next.path = std::mem::take(&mut self.path);
        *self = next;
        Ok(())
    }
}

/// Whether another user can have made this file, or given one of ours this second name, to read or
/// destroy what we write. That is possible in a directory in which all users may write.
fn may_be_anothers(data: &Metadata, path: &Path) -> bool {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Ok(folder) = std::fs::metadata(folder) else {
        return false;
    };
    let is_shared = folder.mode() & 0o002 != 0;
    let is_owned = [process::user(), folder.uid()].contains(&data.uid());
    is_shared && (!is_owned || data.nlink() > 1)
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
    fn directory_is_not_replaced() {
        let dir = path("dir");
        std::fs::create_dir_all(&dir).unwrap();
        assert!(RecordingFile::create(&dir).is_err());
        std::fs::remove_dir(dir).unwrap();
    }

    #[test]
    fn file_of_another_recording_is_not_replaced() {
        let path = path("two");
        let mut first = RecordingFile::create(&path).unwrap();
        assert_eq!(first.append(b"hhAA", b"h1"), Written::All);
        let error = RecordingFile::create(&path).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        assert!(error.to_string().contains("%p"), "{error}");
        assert_eq!(first.append(b"BB", b"h2"), Written::All);
        assert_eq!(std::fs::read(&path).unwrap(), b"h2AABB");
        // A renamed file does not conflict. A closed one does not either.
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
    fn recording_is_readable_by_its_owner_only() {
        let path = path("modes");
        for _ in 0..2 {
            drop(RecordingFile::create(&path).unwrap());
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            std::fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn links_and_files_of_others_are_refused_in_shared_folders() {
        let dir = path("shared");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::set_permissions(&dir, Permissions::from_mode(0o1777)).unwrap();
        let precious = path("precious");
        std::fs::write(&precious, "before").unwrap();
        std::os::unix::fs::symlink(&precious, dir.join("link")).unwrap();
        std::fs::hard_link(&precious, dir.join("hard")).unwrap();
        let refused = |name: &str| RecordingFile::create(&dir.join(name)).err().unwrap();
        for name in ["link", "hard"] {
            assert_eq!(refused(name).kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(std::fs::read(&precious).unwrap(), b"before");
        if process::user() == 0 {
            let theirs = dir.join("theirs");
            std::fs::write(&theirs, "x").unwrap();
            std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
            assert!(refused("theirs").to_string().contains("another user"));
        } else {
            println!("not tried: only root can make another user's file");
        }
        drop(RecordingFile::create(&dir.join("new")).unwrap());
        std::fs::remove_dir_all(dir).unwrap();
        std::fs::remove_file(precious).unwrap();
    }

    #[test]
    fn failed_rotation_leaves_the_files_as_they_were() {
        let dir = path("rotate");
        std::fs::create_dir_all(&dir).unwrap();
        let (path, previous) = (dir.join("a.jfr"), dir.join("a.1.jfr"));
        let mut file = RecordingFile::create(&path).unwrap();
        assert_eq!(file.append(b"one", b"o"), Written::All);
        // A folder of the name is no file.
        for obstacle in [dir.join("a.next.jfr"), previous.clone()] {
            std::fs::create_dir(&obstacle).unwrap();
            assert!(file.rotate(&previous).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), b"one");
            std::fs::remove_dir(&obstacle).unwrap();
            assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
        }
        file.rotate(&previous).unwrap();
        assert_eq!(file.append(b"two", b"t"), Written::All);
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read(&previous).unwrap(), b"one");
        // Another program has moved it away.
        std::fs::remove_file(&path).unwrap();
        file.rotate(&previous).unwrap();
        assert_eq!(file.append(b"three", b"t"), Written::All);
        assert_eq!(std::fs::read(file.path()).unwrap(), b"three");
        std::fs::remove_dir_all(dir).unwrap();
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
