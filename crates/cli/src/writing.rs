//! Writes files that the user or dwell named. A file is complete or absent, readable by its owner
//! only, and never replaces a file that is being read or recorded to.

use anyhow::{Context, Result, bail};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of written files, which contain the program's arguments.
const MODE: u32 = 0o600;
/// Maximum number of links in a row, that of the kernel.
const LINKS_MAX: usize = 40;
/// Other users may create files in the directory.
const OTHERS_WRITE: u32 = 0o002;
/// Only a file's owner may replace it in the directory.
const STICKY: u32 = 0o1000;

/// The origin of a file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// The user: links are followed.
    ByUser,
    /// dwell: a link of this name is accidental, and is replaced.
    ByDwell,
}

/// Identity of a file. Mounts and hard links give one file several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    /// Identity of an open file.
    pub fn of(file: &File) -> io::Result<Identity> {
        Ok(Identity::from(&file.metadata()?))
    }

    /// Identity of the regular file at a path.
    pub fn at(path: &Path) -> Option<Identity> {
        let data = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
        Some(Identity::from(&data))
    }
}

impl From<&Metadata> for Identity {
    fn from(data: &Metadata) -> Identity {
        Identity {
            device: data.dev(),
            inode: data.ino(),
        }
    }
}

/// A file that is being written. Its place stays unchanged until [`Output::commit`]. Dropped before
/// that, it leaves no trace.
#[derive(Debug)]
pub struct Output {
    file: File,
    /// The file's temporary name; `None` if it has no name.
    temporary: Option<PathBuf>,
    /// Its final place; `None` for a device or a pipe, which is written directly.
    place: Option<PathBuf>,
}

impl Output {
    /// Begins a file at this place.
    ///
    /// # Errors
    /// One line that names the file, if it cannot be written there.
    pub fn begin(path: &Path, named: Named) -> Result<Output> {
        let text = || format!("writing {}", shown(path));
        let place = resolve(path, named)?;
        if named == Named::ByUser
            && std::fs::metadata(path).is_ok_and(|data| !data.is_file() && !data.is_dir())
        {
            let file = open_for_writing(path).with_context(text)?;
            return Ok(Output {
                file,
                temporary: None,
                place: None,
            });
        }
        match std::fs::symlink_metadata(&place) {
            Ok(data) if data.is_dir() => bail!("writing {}: is a directory", shown(path)),
            Ok(data) if named == Named::ByDwell && !data.is_file() && !data.is_symlink() => {
                bail!("writing {}: not a plain file", shown(path))
            }
            // A file that cannot be opened stays, even if it could be replaced.
            Ok(data) if data.is_file() => drop(open_for_writing(&place).with_context(text)?),
            _ => {}
        }
        let (file, temporary) = make_beside(&place).with_context(text)?;
        Ok(Output {
            file,
            temporary,
            place: Some(place),
        })
    }

    /// The file to write to.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the file at its place. `inputs` are its source files.
    ///
    /// # Errors
    /// One line that names the file. Its place is unchanged.
    pub fn commit(mut self, inputs: &[Identity]) -> Result<()> {
        let Some(place) = self.place.take() else {
            return Ok(());
        };
        let text = || format!("writing {}", shown(&place));
        self.file.sync_all().with_context(text)?;
        // A link here is replaced, except below /proc, where its target is written.
        let is_file = std::fs::symlink_metadata(&place).is_ok_and(|data| data.is_file());
        if is_file || place.starts_with("/proc") {
            check_replaceable(&place, inputs)?;
        }
        if let Some(temporary) = self.temporary.take() {
            match std::fs::rename(&temporary, &place) {
                Ok(()) => return Ok(()),
                Err(_) => drop(std::fs::remove_file(&temporary)),
            }
        }
        write_in_place(&mut self.file, &place).with_context(text)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Opens and locks a file for recording, like the agent. Its content stays until [`truncate`].
///
/// # Errors
/// One line that names the file; also if another recording is being written to it.
pub fn claim(path: &Path, named: Named) -> Result<File> {
    let file = open_to_record(path, named)?;
    if file.metadata().is_ok_and(|data| data.is_file()) {
        check_lock(&file, path)?;
    }
    Ok(file)
}

/// Opens a file for recording, or to check that it is writable. Its content stays.
///
/// # Errors
/// One line that names the file.
pub fn open_to_record(path: &Path, named: Named) -> Result<File> {
    let text = || {
        let shown = shown(path);
        format!("{shown} cannot be written; choose another file with -o")
    };
    let place = resolve(path, named)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(MODE).custom_flags(libc::O_NOCTTY);
    if named == Named::ByDwell {
        options.custom_flags(libc::O_NOCTTY | libc::O_NOFOLLOW);
    }
    let is_device = || std::fs::metadata(&place).is_ok_and(|data| !data.is_file());
    let opened = options.open(&place).or_else(|error| match named {
        // A device without a content to read.
        Named::ByUser if is_device() => open_for_writing(&place),
        _ => Err(error),
    });
    let file = opened.with_context(text)?;
    if file.metadata().with_context(text)?.is_file() {
        check_owner(&file, &place)?;
    }
    Ok(file)
}

/// Empties a claimed file; from now on only its owner can read it.
pub fn truncate(file: &File) -> io::Result<()> {
    let data = file.metadata()?;
    if !data.is_file() {
        return Ok(());
    }
    narrow(file, &data);
    file.set_len(0)
}

/// Moves a finished recording to its place, unless another one is being written there.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    if std::fs::symlink_metadata(to).is_ok_and(|data| data.is_file()) {
        check_replaceable(to, &[])?;
    }
    std::fs::rename(from, to).with_context(|| format!("writing {}", shown(to)))
}

/// Whether only this user and root can replace a file in this directory.
pub fn is_private(dir: &Path) -> bool {
    std::fs::metadata(dir).is_ok_and(|data| {
        let is_open = data.mode() & OTHERS_WRITE != 0 && data.mode() & STICKY == 0;
        !is_open && (data.uid() == crate::sys::user() || data.uid() == 0)
    })
}

/// Whether other users may create files in this directory, so that names in it must be
/// unpredictable.
pub fn is_shared(dir: &Path) -> bool {
    std::fs::metadata(dir).is_ok_and(|data| data.mode() & OTHERS_WRITE != 0)
}

/// Whether the file at a path belongs to this user or root.
pub fn is_own(path: &Path) -> bool {
    std::fs::symlink_metadata(path)
        .is_ok_and(|data| data.is_file() && (data.uid() == crate::sys::user() || data.uid() == 0))
}

/// The final target of a user's path. Does not follow links that another user may have put there;
/// the kernel refuses these as well if `fs.protected_symlinks` is on.
fn resolve(path: &Path, named: Named) -> Result<PathBuf> {
    let mut place = path.to_owned();
    if named == Named::ByDwell {
        return Ok(place);
    }
    for _ in 0..LINKS_MAX {
        let Ok(data) = std::fs::symlink_metadata(&place) else {
            return Ok(place);
        };
        // Links below /proc stand for open files, which have no equivalent path.
        if !data.is_symlink() || place.starts_with("/proc") {
            return Ok(place);
        }
        let dir = folder_of(&place);
        let folder = std::fs::metadata(&dir).with_context(|| shown(&dir))?;
        let owners = [crate::sys::user(), 0, folder.uid()];
        if folder.mode() & OTHERS_WRITE != 0 && !owners.contains(&data.uid()) {
            bail!(
                "{}: a symbolic link of another user; choose another name",
                shown(&place)
            );
        }
        let target = std::fs::read_link(&place).with_context(|| shown(&place))?;
        place = dir.join(target);
    }
    bail!("{}: too many symbolic links", shown(path))
}

/// The directory that a file is in.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Creates a file in the same directory, for a rename. If that directory takes no new files: a file
/// without a name in the temporary directory.
fn make_beside(place: &Path) -> io::Result<(File, Option<PathBuf>)> {
    let make = |path: &Path| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(MODE);
        options.open(path)
    };
    let name = format!(".dwell-{}", crate::agent::random_name());
    let beside = folder_of(place).join(&name);
    match make(&beside) {
        Ok(file) => Ok((file, Some(beside))),
        Err(_) if Identity::at(place).is_some() => {
            let elsewhere = std::env::temp_dir().join(&name);
            let file = make(&elsewhere)?;
            std::fs::remove_file(&elsewhere)?;
            Ok((file, None))
        }
        Err(error) => Err(error),
    }
}

/// Copies a whole file over one that cannot be replaced: a mount, or a file in a directory that
/// takes no new files.
fn write_in_place(from: &mut File, place: &Path) -> io::Result<()> {
    let mut to = open_for_writing(place)?;
    let data = to.metadata()?;
    if !data.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a plain file"));
    }
    check_owner(&to, place).map_err(io::Error::other)?;
    from.seek(SeekFrom::Start(0))?;
    let len = io::copy(from, &mut to)?;
    to.set_len(len)?;
    narrow(&to, &data);
    to.sync_all()
}

/// Opens an existing file without changing it.
fn open_for_writing(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOCTTY);
    options.open(path)
}

/// Refuses a file that is an input, or that is being recorded to.
fn check_replaceable(place: &Path, inputs: &[Identity]) -> Result<()> {
    if Identity::at(place).is_some_and(|it| inputs.contains(&it)) {
        let text = "is the input; choose another name";
        bail!("{}: {text}", shown(place));
    }
    match open_for_writing(place) {
        Ok(file) => check_lock(&file, place),
        Err(_) => Ok(()),
    }
}

/// Locks a file until it is closed, where the file system has locks.
fn check_lock(file: &File, place: &Path) -> Result<()> {
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        bail!(
            "{}: another recording is being written to it; choose another name",
            shown(place)
        );
    }
    Ok(())
}

/// Refuses another user's file in a shared directory, and a file there with a second name, which
/// may be one of ours.
fn check_owner(file: &File, place: &Path) -> Result<()> {
    let (data, dir) = (file.metadata()?, std::fs::metadata(folder_of(place))?);
    if dir.mode() & OTHERS_WRITE == 0 {
        return Ok(());
    }
    if data.uid() != crate::sys::user() && data.uid() != dir.uid() || data.nlink() > 1 {
        bail!(
            "{}: another user may have put this file there; choose another name",
            shown(place)
        );
    }
    Ok(())
}

/// Makes a file readable by its owner only, if this user owns it.
fn narrow(file: &File, data: &Metadata) {
    let mode = data.mode() & 0o777;
    // Another user's file keeps its mode.
    if mode & !MODE != 0 && data.uid() == crate::sys::user() {
        let _ = file.set_permissions(std::fs::Permissions::from_mode(mode & MODE));
    }
}

fn shown(path: &Path) -> String {
    dwell_report::plain(&path.to_string_lossy())
}

/// Writes a file made from `inputs` through `write`. If that fails, there is no file, or the
/// earlier one.
///
/// # Errors
/// One line that names the file.
pub fn write(
    path: &Path,
    named: Named,
    inputs: &[&Path],
    write: impl FnOnce(&mut io::BufWriter<&mut File>) -> io::Result<()>,
) -> Result<()> {
    let inputs: Vec<Identity> = inputs
        .iter()
        .filter_map(|path| Identity::at(path))
        .collect();
    let mut output = Output::begin(path, named)?;
    let mut buffered = io::BufWriter::new(output.file());
    let written = write(&mut buffered).and_then(|()| buffered.flush());
    drop(buffered);
    written.with_context(|| format!("writing {}", shown(path)))?;
    output.commit(&inputs)
}

#[cfg(test)]
#[path = "writing_tests.rs"]
mod tests;
