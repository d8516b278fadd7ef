//! The recordings to send: which files they are, whether they go on, and their next part. Files of
//! a recording are opened by their names each time, as the agent replaces them.

use super::slices::{self, Slice, Slices, Until};
use crate::agent::Agent;
use crate::{find, recording};
use anyhow::{Context, Result, bail};
use dwell_attach::Target;
use dwell_jfr::redact::Secrets;
use dwell_profile::{EVENTS, Profile};
use dwell_ship::{Position, Spool};
use std::ffi::OsStr;
use std::fs::{File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// A file that was written within this time is not asked whether it is locked: the question is a
/// short lock, and a recorder that begins at that moment would refuse the file.
const FRESH: Duration = Duration::from_secs(2);
/// Without locks, a file that has not changed for this time has ended.
const STILL: Duration = Duration::from_secs(90);
/// Both files of a bounded recording follow each other within this time.
const NEXT_NS: u64 = 60_000_000_000;
/// Attempts to open both files between two replacements.
const OPENS_MAX: usize = 5;
const RECORDING: &str = "jfr";
/// Ending of the older file of a bounded recording, and of the one that is about to begin.
const OLDER: &str = "1.jfr";
const NEXT: &str = ".next.jfr";

/// How the files of a recording are opened.
enum Opener {
    Here(PathBuf),
    /// In the file system of a JVM in a container.
    There(Rc<Target>, PathBuf),
}

impl Opener {
    fn path(&self) -> &Path {
        match self {
            Opener::Here(path) | Opener::There(_, path) => path,
        }
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        match self {
            Opener::Here(_) => File::open(path),
            Opener::There(target, _) => {
                let path = path.to_str().unwrap_or_default();
                target.open_file(path).map_err(io::Error::other)
            }
        }
    }
}

/// How a recording is read.
enum Reading {
    /// Not known yet: it has no whole chunk.
    Unknown,
    /// A recording of dwell, in slices.
    Slices(Slices),
    /// Another one, as a whole once it has ended.
    Whole,
}

/// A part to send.
pub struct Part {
    pub profile: Profile,
    /// Recordings of dwell as they are.
    pub jfr: Option<Vec<u8>>,
    pub from_ns: u64,
    pub to_ns: u64,
    pub position: Position,
    slice: Option<Slice>,
}

/// A recording.
pub struct Source {
    id: u64,
    opener: Opener,
    /// Open files, the older one first.
    files: Vec<File>,
    is_bounded: bool,
    /// Found in a directory, where other recorders may still write it.
    is_found: bool,
    reading: Reading,
    is_done: bool,
}

/// A request for the next part.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub every: Duration,
    /// Take what is there, whether the recording goes on or not.
    pub is_last: bool,
    /// The same also of unfinished recordings of other tools.
    pub is_once: bool,
    pub secrets: &'a Secrets,
}

impl Source {
    fn new(opener: Opener, key: &str) -> Source {
        Source {
            id: hash(key.as_bytes()),
            opener,
            files: Vec::new(),
            is_bounded: false,
            is_found: false,
            reading: Reading::Unknown,
            is_done: false,
        }
    }

    /// The recording in a file.
    pub fn of_file(path: &Path) -> Source {
        let place = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let key = place.to_string_lossy().into_owned();
        Source::new(Opener::Here(path.to_owned()), &key)
    }

    /// The same for one that was found in a directory.
    pub fn found(path: &Path) -> Source {
        Source {
            is_found: true,
            ..Source::of_file(path)
        }
    }

    /// The recording that goes on in a JVM.
    pub fn of_jvm(jvm: &OsStr) -> Result<Source> {
        let Some(jvm) = jvm.to_str() else {
            bail!("{}: no such file", recording::shown(Path::new(jvm)))
        };
        let agent = Agent::loaded(find::target(jvm)?)?;
        let pid = agent.target().jvm().pid;
        let status = agent.command("status")?;
        let is_running = status.get("state") != Some("stopped");
        let Some(file) = status.get("file").filter(|_| is_running) else {
            bail!("JVM {pid} is not being recorded; begin with: dwell start {pid}");
        };
        let path = PathBuf::from(file);
        if agent.target().shares_files() {
            return Ok(Source::of_file(&path));
        }
        let key = format!("JVM {pid} {file}");
        let target = Rc::new(find::target(&pid.to_string())?);
        Ok(Source::new(Opener::There(target, path), &key))
    }

    /// The file with its present data.
    pub fn path(&self) -> &Path {
        self.opener.path()
    }

    /// For people.
    pub fn shown(&self) -> String {
        recording::shown(self.opener.path())
    }

    /// The file's name without its ending.
    pub fn name(&self) -> String {
        let name = self.opener.path().file_stem().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Whether everything is sent and nothing more will come.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Whether the recording drops its oldest data, so that it cannot wait.
    pub fn is_bounded(&self) -> bool {
        self.is_bounded
    }

    /// The last part was not stored, and is given again.
    pub fn take_back(&mut self) {
        self.is_done = false;
    }

    /// Nothing more is taken from it.
    pub fn give_up(&mut self) {
        self.is_done = true;
    }

    /// The next part, if there is one.
    pub fn next(&mut self, of: &Request<'_>, spool: &Spool) -> Result<Option<Part>> {
        if self.is_done {
            return Ok(None);
        }
        let is_there = self.open()?;
        let has_ended = !is_there || self.has_ended(FRESH);
        if matches!(self.reading, Reading::Unknown) {
            self.recognise(spool, has_ended || of.is_once)?;
        }
        match &mut self.reading {
            Reading::Unknown => Ok(None),
            Reading::Whole => {
                let is_found = self.is_found && is_there;
                let has_ended = has_ended && (!is_found || self.has_ended(STILL));
                if !has_ended && !of.is_once {
                    return Ok(None);
                }
                self.is_done = true;
                self.whole(of, spool)
            }
            Reading::Slices(slices) => {
                let until = Until {
                    every: of.every,
                    is_last: has_ended || of.is_last,
                    has_ended,
                };
                let files = in_order(&self.files, slices.position())?;
                let slice = slices.next(files, until);
                let slice = slice.with_context(|| recording::shown(self.opener.path()))?;
                if slices.take_lost_place() {
                    let shown = recording::shown(self.opener.path());
                    note!(
                        "dwell: note: {shown} no longer has the place that was sent last; sending \
                         from its beginning"
                    );
                }
                let Some(slice) = slice else {
                    self.is_done = until.is_last;
                    return Ok(None);
                };
                let recording = recording::parsed_with(&slice.jfr, EVENTS);
                let recording = recording.with_context(|| recording::shown(self.opener.path()))?;
                let mut profile = Profile::from_recording(recording);
                profile.redact(of.secrets);
                Ok(Some(Part {
                    profile,
                    from_ns: slice.from_ns,
                    to_ns: slice.to_ns,
                    position: slice.position,
                    jfr: Some(slice.jfr.clone()),
                    slice: Some(slice),
                }))
            }
        }
    }

    /// Keeps that a part has been stored.
    pub fn passed(&mut self, part: &Part) {
        if let (Reading::Slices(slices), Some(slice)) = (&mut self.reading, &part.slice) {
            slices.passed(slice);
        }
    }

    /// Opens the files that have the names now. False: the names are gone, and the files that were
    /// open are complete.
    fn open(&mut self) -> Result<bool> {
        let path = self.opener.path().to_owned();
        if path.is_dir() {
            bail!("{} is a directory; give a recording in it", self.shown());
        }
        for _ in 0..OPENS_MAX {
            let newer = match self.opener.open(&path) {
                Ok(file) => file,
                Err(_) if !self.files.is_empty() => return Ok(!self.is_gone()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(recording::missing(&path));
                }
                Err(error) => return Err(error).with_context(|| self.shown()),
            };
            let older = self.opener.open(&path.with_extension(OLDER)).ok();
            // The agent may have replaced the files in between.
            let now = self.opener.open(&path).and_then(|file| file.metadata());
            if now.is_ok_and(|now| newer.metadata().is_ok_and(|it| is_same(&it, &now))) {
                self.is_bounded = older.is_some();
                self.files = older.into_iter().chain([newer]).collect();
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Whether the JVM that had the file is gone, or the file was removed.
    fn is_gone(&self) -> bool {
        match &self.opener {
            Opener::Here(_) => true,
            Opener::There(target, _) => !target.is_alive(),
        }
    }

    /// Whether no recorder writes the newer file any more: it is not locked, and has not changed
    /// for this time.
    fn has_ended(&self, still: Duration) -> bool {
        let Some((file, data)) = self
            .files
            .last()
            .and_then(|it| Some((it, it.metadata().ok()?)))
        else {
            return false;
        };
        let changed = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        // A time in the future says nothing.
        let age = SystemTime::now().duration_since(changed).unwrap_or(STILL);
        if age < still {
            return false;
        }
        match file.try_lock_shared() {
            Ok(()) => {
                let _ = file.unlock();
                true
            }
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => age >= STILL,
        }
    }

    /// Finds the recorder of the recording, once that can be known.
    fn recognise(&mut self, spool: &Spool, is_all: bool) -> Result<()> {
        let mut ours = None;
        for file in self.files.iter().rev() {
            ours = ours.or(slices::is_of_dwell(file).with_context(|| self.shown())?);
        }
        match ours {
            Some(true) => {
                let position = spool.position(self.id);
                self.reading = Reading::Slices(Slices::new(self.id, position));
            }
            Some(false) => self.reading = Reading::Whole,
            None if is_all => self.reading = Reading::Whole,
            None => {}
        }
        Ok(())
    }

    /// A recording of another tool, unless it has been stored before.
    fn whole(&self, of: &Request<'_>, spool: &Spool) -> Result<Option<Part>> {
        let Opener::Here(path) = &self.opener else {
            bail!("{}: no recording of dwell", self.shown());
        };
        let data = std::fs::metadata(path).with_context(|| self.shown())?;
        let position = Position {
            source: self.id,
            // It is the same as long as it is not written again.
            chunk: (
                data.mtime_nsec().unsigned_abs() ^ data.ino(),
                data.len().max(1),
            ),
            offset: data.mtime().unsigned_abs(),
        };
        if spool.position(self.id) == Some(position) {
            return Ok(None);
        }
        let profile = recording::load_with(path, of.secrets)?;
        recording::warn_of_unread(&profile, path);
        let info = profile.info();
        let (from_ns, to_ns) = (info.start_ns, info.start_ns + info.duration_ns);
        Ok(Some(Part {
            profile,
            jfr: None,
            from_ns,
            to_ns,
            position,
            slice: None,
        }))
    }
}

/// The files of one recording. An older file may be of an earlier recording.
fn in_order<'f>(files: &'f [File], position: Option<&Position>) -> io::Result<&'f [File]> {
    let [older, newer] = files else {
        return Ok(files);
    };
    let belongs = match (slices::span_ns(older)?, slices::span_ns(newer)?) {
        (Some((_, end)), Some((begin, _))) => {
            begin.saturating_add(NEXT_NS) >= end && begin <= end.saturating_add(NEXT_NS)
        }
        // The newer one has nothing yet.
        (Some(_), None) => match position {
            Some(position) => slices::has_chunk(older, position)?,
            None => false,
        },
        (None, _) => false,
    };
    Ok(match belongs {
        true => files,
        false => std::slice::from_ref(newer),
    })
}

/// Distinguishes a file from itself after it was written again: device, inode, times and length.
pub type Mark = ([u64; 3], [i64; 2]);

/// The mark of a file; `None` if it does not exist.
pub fn mark_of(path: &Path) -> Option<Mark> {
    let data = std::fs::metadata(path).ok()?;
    let times = [data.mtime(), data.mtime_nsec()];
    Some(([data.dev(), data.ino(), data.len()], times))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// The recordings of a directory, in the order of their names.
pub fn in_directory(dir: &Path) -> Result<Vec<PathBuf>> {
    let shown = || recording::shown(dir);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(shown)? {
        let path = entry.with_context(shown)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_recording = path.extension() == Some(OsStr::new(RECORDING))
            && !name.starts_with('.')
            && !name.ends_with(NEXT);
        let newer = name.strip_suffix(&format!(".{OLDER}"));
        let has_newer = newer.is_some_and(|it| dir.join(format!("{it}.{RECORDING}")).is_file());
        if is_recording && !has_newer && path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// FNV-1a, which stays the same in all versions.
pub fn hash(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    bytes.iter().fold(OFFSET, step)
}
