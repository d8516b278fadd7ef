//! Cuts a recording of dwell into slices of time, each a recording of its own, while it grows and
//! its older part is dropped. Each event is in one slice. Reads files, and writes none.

use dwell_jfr::reader::ChunkInfo;
use dwell_jfr::reader::chunk_parts::{self, Flush, find_header, flushes, part, whole_header};
use dwell_jfr::writer::HEADER_BYTES;
use dwell_ship::Position;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// A slice ends when its events have this many bytes, whatever its time.
const SLICE_MAX: u64 = 32 << 20;
/// The largest chunk that is read. dwell writes chunks of 64 MiB by default.
const CHUNK_MAX: u64 = 2 << 30;
/// The most chunks of a file.
const CHUNKS_MAX: usize = 1_000_000;

/// The length of a slice that has the whole recording.
pub const ALL: Duration = Duration::MAX;

/// A part of a recording, as a recording.
#[derive(Debug)]
pub struct Slice {
    /// Its bytes.
    pub jfr: Vec<u8>,
    /// Begin and end in nanoseconds since the epoch.
    pub from_ns: u64,
    pub to_ns: u64,
    /// The place behind it.
    pub position: Position,
}

/// When a slice ends.
#[derive(Clone, Copy, Debug)]
pub struct Until {
    /// Its length.
    pub every: Duration,
    /// Whether a shorter last slice is given as well.
    pub is_last: bool,
    /// Whether the recording has ended, so that bytes of an unfinished chunk are all there is.
    pub has_ended: bool,
}

/// Where a slice is cut.
struct Limits {
    from_ns: u64,
    due_ns: u64,
    bytes_max: u64,
    is_last: bool,
}

/// A chunk in one of the files.
#[derive(Clone, Debug)]
struct Chunk {
    file: usize,
    at: u64,
    info: ChunkInfo,
    is_whole: bool,
}

impl Chunk {
    fn id(&self) -> (u64, u64) {
        (self.info.start_ns, self.info.start_ticks)
    }

    fn end_ns(&self) -> u64 {
        self.info.start_ns.saturating_add(self.info.duration_ns)
    }
}

/// The content of a chunk, kept for the next slice of it.
struct Loaded {
    id: (u64, u64),
    size: u64,
    bytes: Vec<u8>,
    /// Only the end, if the chunk is not whole or damaged. Then it is not cut.
    flushes: Vec<Flush>,
    is_readable: bool,
}

/// The state of one recording.
pub struct Slices {
    source: u64,
    position: Option<Position>,
    loaded: Option<Loaded>,
    /// Begin of the next slice, for its position.
    begin: Option<(Position, u64)>,
    has_lost_place: bool,
}

impl Slices {
    /// Begins at a position of the source.
    pub fn new(source: u64, position: Option<Position>) -> Slices {
        Slices {
            source,
            position,
            loaded: None,
            begin: None,
            has_lost_place: false,
        }
    }

    /// Whether the last place is no longer in the recording; once for each time.
    pub fn take_lost_place(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_place)
    }

    /// The place behind the last slice.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }

    /// Keeps that a slice has been stored.
    pub fn passed(&mut self, slice: &Slice) {
        self.position = Some(slice.position);
        self.begin = Some((slice.position, slice.to_ns));
    }

    /// The next slice of files that follow each other, if it is complete.
    ///
    /// # Errors
    /// Those of reading the files.
    pub fn next(&mut self, files: &[File], until: Until) -> io::Result<Option<Slice>> {
        let chunks = chunks(files, until.has_ended)?;
        let (first, offset) = self.place(&chunks);
        let Some(rest) = chunks.get(first..).filter(|rest| !rest.is_empty()) else {
            self.loaded = None;
            return Ok(None);
        };
        let from_ns = self.begin_ns(files, rest, offset)?;
        let every_ns = u64::try_from(until.every.as_nanos()).unwrap_or(u64::MAX);
        let due_ns = from_ns.saturating_add(every_ns);
        let end_ns = rest.last().map_or(0, Chunk::end_ns);
        let bytes: u64 = rest.iter().map(|it| it.info.size).sum();
        let bytes_max = if until.every == ALL {
            u64::MAX
        } else {
            SLICE_MAX
        };
        if !until.is_last && end_ns < due_ns && bytes - offset < bytes_max {
            self.loaded = None;
            return Ok(None);
        }
        let limits = Limits {
            from_ns,
            due_ns,
            bytes_max,
            is_last: until.is_last,
        };
        self.cut(files, rest, offset, &limits)
    }

    /// The chunk with the next event, and the place in it.
    fn place(&mut self, chunks: &[Chunk]) -> (usize, u64) {
        let Some(position) = self.position else {
            return (0, 0);
        };
        let Some(found) = chunks.iter().position(|it| it.id() == position.chunk) else {
            // Another recording, or the chunk was dropped: the remaining ones are newer.
            if !chunks.is_empty() {
                self.position = None;
                self.has_lost_place = true;
            }
            return (0, 0);
        };
        let is_over = chunks
            .get(found)
            .is_some_and(|it| position.offset >= it.info.size);
        match is_over {
            true => (found + 1, 0),
            false => (found, position.offset),
        }
    }

    /// The time of the next event: of the flush before it.
    fn begin_ns(&mut self, files: &[File], rest: &[Chunk], offset: u64) -> io::Result<u64> {
        let Some(chunk) = rest.first() else {
            return Ok(0);
        };
        if offset == 0 {
            return Ok(chunk.info.start_ns);
        }
        if let (Some((known, ns)), Some(position)) = (self.begin, self.position)
            && known == position
        {
            return Ok(ns);
        }
        let flushes = &self.load(files, chunk)?.flushes;
        let before = flushes.iter().rev().find(|it| it.offset <= offset);
        Ok(before.map_or(chunk.info.start_ns, |it| it.time_ns))
    }

    /// Cuts where the slice is due, or, if it is the last one, at the end.
    fn cut(
        &mut self,
        files: &[File],
        rest: &[Chunk],
        offset: u64,
        limits: &Limits,
    ) -> io::Result<Option<Slice>> {
        let source = self.source;
        let (mut jfr, mut end) = (Vec::new(), None);
        let mut taken = 0;
        for (place, chunk) in rest.iter().enumerate() {
            let (from, begin_ns) = match place {
                0 => (offset, limits.from_ns),
                _ => (0, chunk.info.start_ns),
            };
            let loaded = self.load(files, chunk)?;
            let is_due = |it: &&Flush| {
                let bytes = taken + it.offset.saturating_sub(from);
                it.offset > from && (it.time_ns >= limits.due_ns || bytes >= limits.bytes_max)
            };
            let due = loaded.flushes.iter().find(is_due).copied();
            let Some(to) = due.or(loaded.flushes.last().copied()) else {
                continue;
            };
            match loaded.is_readable {
                true => jfr.extend(part(&loaded.bytes, from, &to, begin_ns).map_err(invalid)?),
                false if from == 0 => jfr.extend_from_slice(&loaded.bytes),
                // Its beginning is sent, and what follows has no end.
                false => {}
            }
            taken += to.offset.saturating_sub(from);
            let position = Position {
                source,
                chunk: chunk.id(),
                offset: to.offset,
            };
            end = Some((position, to.time_ns));
            if due.is_some() {
                break;
            }
            if place + 1 == rest.len() && !limits.is_last {
                return Ok(None);
            }
        }
        Ok(end.map(|(position, to_ns)| Slice {
            jfr,
            from_ns: limits.from_ns,
            to_ns: to_ns.max(limits.from_ns),
            position,
        }))
    }

    /// Reads a chunk and finds its flushes.
    fn load(&mut self, files: &[File], chunk: &Chunk) -> io::Result<&Loaded> {
        let (id, size) = (chunk.id(), chunk.info.size);
        let known = self.loaded.take();
        let loaded = match known.filter(|it| (it.id, it.size) == (id, size)) {
            Some(loaded) => loaded,
            None => {
                if size > CHUNK_MAX {
                    return Err(io::Error::other("a chunk of the recording is too large"));
                }
                let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
                let file = files.get(chunk.file).ok_or(io::ErrorKind::NotFound)?;
                file.read_exact_at(&mut bytes, chunk.at)?;
                if chunk.is_whole {
                    // The agent rewrites the header: this is the one of the bytes that were there.
                    set_size(&mut bytes, size, chunk.info.duration_ns);
                }
                let found = flushes(&bytes).ok();
                let end = || Flush {
                    offset: size,
                    time_ns: chunk.end_ns(),
                };
                Loaded {
                    id,
                    size,
                    bytes,
                    is_readable: found.is_some(),
                    flushes: found.unwrap_or_else(|| vec![end()]),
                }
            }
        };
        Ok(self.loaded.insert(loaded))
    }
}

/// The next header behind bytes that belong to no chunk.
fn next_header(file: &File, at: u64, there: u64) -> io::Result<Option<u64>> {
    let len = usize::try_from(there.min(CHUNK_MAX)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, at)?;
    let found = find_header(bytes.get(1..).unwrap_or_default());
    Ok(found.map(|place| at + 1 + place as u64))
}

/// Writes size and duration into the header of a chunk.
fn set_size(chunk: &mut [u8], size: u64, duration_ns: u64) {
    const SIZE: usize = 8;
    const DURATION: usize = 40;
    for (place, number) in [(SIZE, size), (DURATION, duration_ns)] {
        if let Some(bytes) = chunk.get_mut(place..place + 8) {
            bytes.copy_from_slice(&number.to_be_bytes());
        }
    }
}

/// The chunks of files in their order, up to the first that is not whole.
fn chunks(files: &[File], has_ended: bool) -> io::Result<Vec<Chunk>> {
    let mut chunks = Vec::new();
    for (file, open) in files.iter().enumerate() {
        let len = open.metadata()?.len();
        let mut at = 0;
        while at < len && chunks.len() < CHUNKS_MAX {
            let mut header = [0; HEADER_BYTES];
            let there = len - at;
            if there < HEADER_BYTES as u64 {
                break;
            }
            open.read_exact_at(&mut header, at)?;
            let whole = whole_header(&header, there);
            let is_whole = whole.is_some();
            // Of a recording that has ended, the last chunk ends with the file.
            let rest = || ChunkInfo::of_rest(&header, there).filter(|_| has_ended);
            let Some(info) = whole.or_else(rest) else {
                match has_ended
                    .then(|| next_header(open, at, there))
                    .transpose()?
                    .flatten()
                {
                    Some(next) => at = next,
                    None => break,
                }
                continue;
            };
            let size = info.size;
            chunks.push(Chunk {
                file,
                at,
                info,
                is_whole,
            });
            at += size;
        }
    }
    Ok(chunks)
}

/// Begin of the first chunk and end of the last one; `None` without a chunk.
pub fn span_ns(file: &File) -> io::Result<Option<(u64, u64)>> {
    let chunks = chunks(std::slice::from_ref(file), false)?;
    let ends = chunks.first().zip(chunks.last());
    Ok(ends.map(|(first, last)| (first.info.start_ns, last.end_ns())))
}

/// Whether a file has the chunk of a position.
pub fn has_chunk(file: &File, position: &Position) -> io::Result<bool> {
    let chunks = chunks(std::slice::from_ref(file), false)?;
    Ok(chunks.iter().any(|it| it.id() == position.chunk))
}

/// Whether dwell wrote a file; `None` if it has no whole chunk yet, or is no recording in JFR.
pub fn is_of_dwell(file: &File) -> io::Result<Option<bool>> {
    let chunks = chunks(std::slice::from_ref(file), false)?;
    let Some(first) = chunks.first() else {
        return Ok(None);
    };
    let mut slices = Slices::new(0, None);
    let loaded = slices.load(std::slice::from_ref(file), first)?;
    // A damaged one is read as a whole.
    Ok(Some(
        chunk_parts::is_of_dwell(&loaded.bytes).unwrap_or(false),
    ))
}

fn invalid(error: dwell_jfr::reader::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
#[path = "slices_tests.rs"]
mod tests;
