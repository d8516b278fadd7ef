//! Bodies on disk that wait to be sent, in a directory of one receiver and one process.
//!
//! The name of a file has the order of the body and the position in its source behind it: so a body
//! and the position are stored at once, by a rename. A sent body is truncated, not removed, while
//! its position is the last one of its source. This module sends nothing.

use crate::Error;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The first line of a file.
const MAGIC: &str = "dwell-spool 1";
/// The ending of a file.
const ENDING: &str = ".body";
const TEMPORARY: &str = ".new";
const LOCK: &str = "lock";
/// Positions that are kept of sources without bodies; above it the oldest are forgotten.
const SOURCES_MAX: usize = 10_000;

/// The method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// POST.
    Post,
    /// PUT.
    Put,
}

impl Method {
    fn word(self) -> &'static str {
        match self {
            Method::Post => "POST",
            Method::Put => "PUT",
        }
    }
}

/// A request without host and credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The type of the bytes.
    pub content_type: String,
    /// Whether the bytes are packed with gzip for the transport.
    pub is_gzip: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// A place in a source behind which nothing is in the spool yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Which source.
    pub source: u64,
    /// The chunk: two clocks at its beginning.
    pub chunk: (u64, u64),
    /// The place in the chunk.
    pub offset: u64,
}

/// A file of the spool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    number: u64,
    position: Position,
    /// Its length; 0: sent or dropped.
    len: u64,
}

impl Entry {
    fn name(&self) -> String {
        let Position {
            source,
            chunk: (ns, ticks),
            offset,
        } = self.position;
        let number = self.number;
        format!("{number:016x}-{source:016x}-{ns:016x}-{ticks:016x}-{offset:x}{ENDING}")
    }

    fn parse(name: &str, len: u64) -> Option<Entry> {
        let words = name.strip_suffix(ENDING)?.split('-');
        let words: Option<Vec<u64>> = words.map(|it| u64::from_str_radix(it, 16).ok()).collect();
        let [number, source, ns, ticks, offset] = words?[..] else {
            return None;
        };
        let position = Position {
            source,
            chunk: (ns, ticks),
            offset,
        };
        let entry = Entry {
            number,
            position,
            len,
        };
        // The same name in another form would be another file.
        (entry.name() == name).then_some(entry)
    }
}

/// The outcome of adding a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Bodies that were dropped for lack of room, the new one included.
    pub dropped: u64,
    /// Whether the new one alone is larger than the spool.
    pub is_too_large: bool,
}

/// Writes a file that did not exist, and syncs it.
type WriteFile = Box<dyn FnMut(&Path, &[u8]) -> io::Result<()>>;

/// The spool.
pub struct Spool {
    dir: PathBuf,
    bytes_max: u64,
    entries: BTreeMap<u64, Entry>,
    write: WriteFile,
    /// Held until the end.
    _lock: File,
}

impl std::fmt::Debug for Spool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spool").field("dir", &self.dir).finish()
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

impl Spool {
    /// Opens the spool in a directory, which is created for this user only.
    ///
    /// # Errors
    /// One line that names the directory.
    pub fn open(dir: &Path, bytes_max: u64) -> Result<Spool, Error> {
        Spool::open_with(dir, bytes_max, Box::new(write_file))
    }

    /// The same, with another way to write a file.
    ///
    /// # Errors
    /// As there.
    pub fn open_with(dir: &Path, bytes_max: u64, write: WriteFile) -> Result<Spool, Error> {
        let shown = dir.display().to_string();
        let fail = |error| Error::File(format!("the spool {shown}"), error);
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(fail)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let lock = options.open(dir.join(LOCK)).map_err(fail)?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(Error::Busy(shown));
        }
        let mut entries = BTreeMap::new();
        for file in std::fs::read_dir(dir).map_err(fail)? {
            let file = file.map_err(fail)?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.ends_with(TEMPORARY) {
                // A write that was cut off.
                std::fs::remove_file(file.path()).map_err(fail)?;
                continue;
            }
            let len = file.metadata().map_err(fail)?.len();
            if let Some(entry) = Entry::parse(name, len) {
                entries.insert(entry.number, entry);
            }
        }
        let mut spool = Spool {
            dir: dir.to_owned(),
            bytes_max,
            entries,
            write,
            _lock: lock,
        };
        spool.forget();
        Ok(spool)
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Number of bodies that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.entries.values().filter(|it| it.len > 0).count()
    }

    /// The place in a source behind which nothing is stored yet.
    #[must_use]
    pub fn position(&self, source: u64) -> Option<Position> {
        let of_source = |it: &&Entry| it.position.source == source;
        let last = self.entries.values().rev().find(of_source)?;
        (last.position.chunk != (0, 0)).then_some(last.position)
    }

    /// Stores a body together with the position behind it. If there is no room, the oldest bodies
    /// are dropped.
    ///
    /// # Errors
    /// Those of the file system. Then nothing is stored.
    pub fn add(&mut self, body: &Body, position: Position) -> io::Result<Added> {
        let mut added = Added::default();
        let mut bytes = packed(body);
        let len = bytes.len() as u64;
        if len > self.bytes_max {
            bytes.clear();
            added = Added {
                dropped: 1,
                is_too_large: true,
            };
        } else {
            while self.bytes().saturating_add(len) > self.bytes_max {
                let Some(oldest) = self.oldest() else { break };
                self.done(&oldest)?;
                added.dropped += 1;
            }
        }
        self.store(&bytes, position)?;
        Ok(added)
    }

    /// Stores a position behind a part of a source that has no body.
    ///
    /// # Errors
    /// Those of the file system. Then nothing is stored.
    pub fn advance(&mut self, position: Position) -> io::Result<()> {
        self.store(&[], position)
    }

    fn store(&mut self, bytes: &[u8], position: Position) -> io::Result<()> {
        let number = self
            .entries
            .last_key_value()
            .map_or(1, |(last, _)| last + 1);
        let entry = Entry {
            number,
            position,
            len: bytes.len() as u64,
        };
        let name = entry.name();
        let temporary = self.dir.join(format!("{name}{TEMPORARY}"));
        let stored = (self.write)(&temporary, bytes)
            .and_then(|()| std::fs::rename(&temporary, self.dir.join(&name)));
        if let Err(error) = stored {
            let _ = std::fs::remove_file(&temporary);
            return Err(error);
        }
        // A directory that cannot be synced keeps the file all the same, unless power fails.
        let _ = File::open(&self.dir).and_then(|dir| dir.sync_all());
        self.entries.insert(number, entry);
        self.forget();
        Ok(())
    }

    /// Whether bodies fill at least half of the spool.
    #[must_use]
    pub fn is_half_full(&self) -> bool {
        self.bytes() >= self.bytes_max / 2
    }

    /// Whether bodies fit without dropping others. Those larger than the spool never do, and need
    /// not wait.
    #[must_use]
    pub fn has_room(&self, bodies: &[Body]) -> bool {
        let len = bodies.iter().map(packed_len).sum();
        len > self.bytes_max || self.bytes().saturating_add(len) <= self.bytes_max
    }

    /// Bytes of the bodies that wait.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.entries.values().map(|it| it.len).sum()
    }

    /// The oldest body that waits.
    #[must_use]
    pub fn oldest(&self) -> Option<Entry> {
        self.entries.values().find(|it| it.len > 0).cloned()
    }

    /// Reads a body; `None` if its file is damaged or gone.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(&self, entry: &Entry) -> io::Result<Option<Body>> {
        match std::fs::read(self.dir.join(entry.name())) {
            Ok(bytes) => Ok(unpacked(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets a body that was sent or dropped. Its position stays.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn done(&mut self, entry: &Entry) -> io::Result<()> {
        let path = self.dir.join(entry.name());
        match OpenOptions::new().write(true).open(&path) {
            Ok(file) => {
                file.set_len(0)?;
                file.sync_all()?;
            }
            // Somebody has removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        if let Some(known) = self.entries.get_mut(&entry.number) {
            known.len = 0;
        }
        self.forget();
        Ok(())
    }

    /// Removes positions that later ones of their source replace, and the oldest of too many.
    fn forget(&mut self) {
        let mut last = BTreeMap::new();
        for entry in self.entries.values() {
            last.insert(entry.position.source, entry.number);
        }
        let is_last = |it: &Entry| last.get(&it.position.source) == Some(&it.number);
        let empty = self.entries.values().filter(|it| it.len == 0);
        let (kept, old): (Vec<&Entry>, Vec<&Entry>) = empty.partition(|it| is_last(it));
        let too_many = kept.len().saturating_sub(SOURCES_MAX);
        let gone = kept.into_iter().take(too_many).chain(old);
        let gone: Vec<u64> = gone.map(|it| it.number).collect();
        for number in gone {
            if let Some(entry) = self.entries.remove(&number) {
                // It says nothing that others do not.
                let _ = std::fs::remove_file(self.dir.join(entry.name()));
            }
        }
    }
}

/// The first lines of a body's file.
fn head(body: &Body) -> String {
    let word = body.method.word();
    let encoding = if body.is_gzip { "gzip" } else { "-" };
    let (target, content_type) = (&body.target, &body.content_type);
    let len = body.bytes.len();
    format!("{MAGIC}\n{word}\n{target}\n{content_type}\n{encoding}\n{len}\n")
}

/// The content of a body's file.
fn packed(body: &Body) -> Vec<u8> {
    let mut bytes = head(body).into_bytes();
    bytes.extend_from_slice(&body.bytes);
    bytes
}

fn packed_len(body: &Body) -> u64 {
    (head(body).len() + body.bytes.len()) as u64
}

/// The body of a file; `None` if the file is damaged.
fn unpacked(bytes: &[u8]) -> Option<Body> {
    let mut parts = bytes.splitn(7, |byte| *byte == b'\n');
    let mut line = || std::str::from_utf8(parts.next()?).ok();
    if line()? != MAGIC {
        return None;
    }
    let method = match line()? {
        "POST" => Method::Post,
        "PUT" => Method::Put,
        _ => return None,
    };
    let (target, content_type) = (line()?.to_owned(), line()?.to_owned());
    let is_gzip = line()? == "gzip";
    let len: usize = line()?.parse().ok()?;
    let bytes = parts.next()?;
    (bytes.len() == len).then(|| Body {
        method,
        target,
        content_type,
        is_gzip,
        bytes: bytes.to_vec(),
    })
}
