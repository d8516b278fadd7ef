//! Reads recordings: this crate's and the JDK's own, by the metadata they carry. Everything is
//! bounds-checked and bounded by the size of the input; no input makes it panic. It reads a slice,
//! or chunk by chunk from what can be read and sought; it opens no file.

mod absorb;
mod chunk;
pub mod chunk_parts;
mod constant_pools;
mod cursor;
mod details;
mod error;
mod header;
mod intern;
mod memo;
mod merge;
mod metadata;
mod model;
mod parallel;
mod resolve;
mod samples;
mod shared;
mod stacks;
mod tables;
mod threads;
mod told;
mod values;

pub use error::Error;
pub use header::ChunkInfo;
pub use merge::{BINS_MIN, BINS_NS};
pub use model::{
    Context, GenericEvent, Method, Recording, Sample, SampleKind, Stack, StackFrame, Thread,
    Unread, Value, Wall, choices_of_both,
};
pub use stacks::{StackNode, Stacks};
pub use told::{Cell, Fields, Form, Told, stored};

use crate::writer::HEADER_BYTES;
use merge::Merger;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::AtomicU64;
use tables::Tables;

/// Warnings that are kept; a broken file could have one for every few bytes.
const WARNINGS_MAX: usize = 100;

/// The parts to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Which events besides samples.
    pub events: EventFilter<'a>,
    /// Of more samples than this, those that say the same within a bin of time become one; `None`:
    /// none do. See [`Recording::bin_ns`].
    pub samples_max: Option<usize>,
    /// Additional threads that read chunks in [`parse_from`]; 0 for none. The result does not
    /// depend on it.
    pub threads: usize,
    /// Counts the bytes of events that have been read, for progress; `None`: nothing counts.
    pub progress: Option<&'a AtomicU64>,
}

/// Chooses events by name. Samples are always read.
#[derive(Debug, Clone, Copy, Default)]
pub enum EventFilter<'a> {
    /// All events.
    #[default]
    All,
    /// Only those with one of these names, or whose name begins with one that ends in a dot.
    Only(&'a [&'a str]),
}

impl EventFilter<'_> {
    fn wants(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names
                .iter()
                .any(|wanted| name == *wanted || wanted.ends_with('.') && name.starts_with(wanted)),
        }
    }
}

/// Reads a recording with all its events. See [`parse_with`].
///
/// # Errors
/// When the input is not a recording or nothing in it can be read.
pub fn parse(bytes: &[u8]) -> Result<Recording, Error> {
    parse_with(bytes, &Options::default())
}

/// Reads a recording. [`Recording::warnings`] lists unreadable data, which is left out.
///
/// # Errors
/// When the input is not a recording or nothing in it can be read.
pub fn parse_with(bytes: &[u8], options: &Options<'_>) -> Result<Recording, Error> {
    let mut reading = Reading::new(options);
    reading.bytes(bytes, 0)?;
    reading.finish(bytes.len() as u64)
}

/// Reads a recording chunk by chunk. One chunk of the input is in memory at a time; after a damaged
/// chunk, all remaining input is.
///
/// # Errors
/// When the input cannot be read, with [`Error`] inside when it is not a recording or nothing in
/// it can be read.
pub fn parse_from(input: &mut (impl Read + Seek), options: &Options<'_>) -> io::Result<Recording> {
    let length = input.seek(SeekFrom::End(0))?;
    let mut reading = Reading::new(options);
    reading.tables.merger.lasts(lasts(input, length)?);
    let mut bytes = Vec::new();
    let mut offset = match options.threads {
        0 => 0,
        threads => parallel::read(input, length, threads, &mut reading)?,
    };
    while offset < length || offset == 0 {
        let size = whole_chunk(input, offset, length)?.unwrap_or(length - offset);
        input.seek(SeekFrom::Start(offset))?;
        bytes.clear();
        input.take(size).read_to_end(&mut bytes)?;
        reading.bytes(&bytes, offset as usize).map_err(invalid)?;
        // A chunk is longer than its header, so this makes progress.
        offset = offset.saturating_add(size.max(1));
    }
    reading.finish(length).map_err(invalid)
}

/// From the beginning of the first chunk to the end of the last one that headers lead to.
fn lasts(input: &mut (impl Read + Seek), length: u64) -> io::Result<u64> {
    let (mut offset, mut start, mut end) = (0, u64::MAX, 0);
    while offset < length {
        let mut header = Vec::new();
        input.seek(SeekFrom::Start(offset))?;
        (&mut *input)
            .take(HEADER_BYTES as u64)
            .read_to_end(&mut header)?;
        let size = ChunkInfo::promised(&header, length - offset);
        // A chunk is longer than its header, so this makes progress.
        let (Ok(info), Some(size)) = (ChunkInfo::read(&header, 0), size) else {
            break;
        };
        start = start.min(info.start_ns);
        end = end.max(info.start_ns.saturating_add(info.duration_ns));
        offset = offset.saturating_add(size);
    }
    Ok(end.saturating_sub(start))
}

fn invalid(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The size of the chunk at `offset`, if it is whole and what follows is the next one or nothing.
fn whole_chunk(
    input: &mut (impl Read + Seek),
    offset: u64,
    length: u64,
) -> io::Result<Option<u64>> {
    let mut header_at = |at: u64| -> io::Result<Vec<u8>> {
        let mut header = Vec::new();
        input.seek(SeekFrom::Start(at))?;
        (&mut *input)
            .take(HEADER_BYTES as u64)
            .read_to_end(&mut header)?;
        Ok(header)
    };
    let header = header_at(offset)?;
    let Some(size) = ChunkInfo::promised(&header, length - offset) else {
        return Ok(None);
    };
    let end = offset.saturating_add(size);
    let is_whole = end == length || ChunkInfo::read(&header_at(end)?, 0).is_ok();
    Ok(is_whole.then_some(size))
}

/// A recording that is being read.
struct Reading<'o> {
    options: &'o Options<'o>,
    tables: Tables,
    out: Recording,
    first_error: Option<Error>,
}

impl<'o> Reading<'o> {
    fn new(options: &'o Options<'o>) -> Self {
        let mut tables = Tables::default();
        if let Some(most) = options.samples_max {
            tables.merger = Merger::above(most);
        }
        Self {
            options,
            tables,
            out: Recording::default(),
            first_error: None,
        }
    }

    /// Reads a part of a file, of which no samples are put together.
    fn part(options: &'o Options<'o>, tables: Tables) -> Self {
        Self {
            options,
            tables,
            out: Recording::default(),
            first_error: None,
        }
    }

    /// Reads the chunks in these bytes, which lie at `base` in the input.
    fn bytes(&mut self, bytes: &[u8], base: usize) -> Result<(), Error> {
        let mut offset = 0;
        self.tables.base = base;
        while offset < bytes.len() || offset == 0 {
            let mut absent = 0;
            // Every chunk is longer than its header, so this makes progress.
            let (end, error) = match ChunkInfo::read(bytes, offset) {
                Ok(info) => {
                    absent = info.absent;
                    let (tables, out) = (&mut self.tables, &mut self.out);
                    let (end, read) = chunk::read(bytes, &info, self.options, tables, out);
                    if let Ok(duration_ns) = read {
                        let info = ChunkInfo {
                            duration_ns,
                            ..info
                        };
                        self.out.chunks.push(info.moved(base));
                    }
                    (end, read.err())
                }
                Err(error @ Error::NotJfr { .. }) if offset + base == 0 => return Err(error),
                Err(error) => (offset + 1, Some(error)),
            };
            if let Some(error) = error {
                let error = error.moved(base);
                let at = offset + base;
                let text = format!("the chunk at offset {at} is left out: {error}");
                warn(&mut self.out, text);
                self.out.unread.stretch(at, end + base);
                self.out.unread.chunks += 1;
                self.first_error.get_or_insert(error);
            }
            offset = next_chunk(bytes, end, base, &mut self.out);
            if offset >= bytes.len() {
                self.out.unread.absent += absent;
            }
        }
        Ok(())
    }

    fn finish(self, length: u64) -> Result<Recording, Error> {
        let (mut out, tables) = (self.out, self.tables);
        match self.first_error {
            Some(error) if out.chunks.is_empty() => return Err(error),
            _ => {}
        }
        out.unread.finish(length);
        out.bin_ns = tables.merger.bin_ns();
        out.threads = tables.threads.into_items();
        out.methods = tables.methods.into_items();
        out.stacks = tables.stacks.finish();
        out.failures = tables.failures.into_items();
        out.texts = tables.texts.into_items();
        out.contexts = tables.contexts.into_items();
        out.walls = tables.walls;
        out.warnings = condensed(out.warnings);
        threads::unify(&mut out);
        Ok(out)
    }
}

/// Where the next chunk begins at or after `end`, or the end of the input.
fn next_chunk(bytes: &[u8], end: usize, base: usize, out: &mut Recording) -> usize {
    let next = header::find_chunk(bytes, end).unwrap_or(bytes.len());
    let skipped = next.saturating_sub(end);
    if skipped > 0 {
        let from = end + base;
        out.unread.stretch(from, next + base);
        warn(
            out,
            format!("{skipped} bytes from offset {from} on belong to no chunk"),
        );
    }
    next
}

/// Warnings, of which those that differ in numbers only are one line: it says how many there were.
fn condensed(warnings: Vec<String>) -> Vec<String> {
    let kind = |warning: &str| -> String {
        let kept = warning.chars().filter(|c| !c.is_ascii_digit());
        kept.collect()
    };
    let mut lines: Vec<(String, String, usize)> = Vec::new();
    for warning in warnings {
        let of = kind(&warning);
        match lines.iter_mut().find(|(known, ..)| *known == of) {
            Some((.., count)) => *count += 1,
            None => lines.push((of, warning, 1)),
        }
    }
    let line = |(_, first, count): (String, String, usize)| match count {
        1 => first,
        2 => format!("{first} (and once more like it)"),
        _ => format!("{first} (and {} times more like it)", count - 1),
    };
    lines.into_iter().map(line).collect()
}

fn warn(out: &mut Recording, warning: String) {
    if out.warnings.len() < WARNINGS_MAX {
        out.warnings.push(warning);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{ChunkClock, ChunkWriter};

    /// A chunk from a moment on, and how long it lasts.
    fn chunk(epoch_ns: u64, duration_ns: u64) -> Vec<u8> {
        let clock = ChunkClock {
            epoch_ns,
            start_ticks: 0,
            ticks_per_second: 1_000_000_000,
        };
        let mut writer = ChunkWriter::new(clock);
        let mut file = writer.flush(duration_ns);
        file[..HEADER_BYTES].copy_from_slice(&writer.header());
        file
    }

    #[test]
    fn warnings_that_differ_in_numbers_are_one() {
        let lines = ["a chunk at 7", "another", "a chunk at 12", "a chunk at 3"];
        let lines = condensed(lines.map(str::to_owned).to_vec());
        assert_eq!(
            lines,
            ["a chunk at 7 (and 2 times more like it)", "another"]
        );
        let two = condensed(vec!["at 1".to_owned(), "at 2".to_owned()]);
        assert_eq!(two, ["at 1 (and once more like it)"]);
    }

    #[test]
    fn a_file_lasts_from_its_first_chunk_to_the_end_of_its_last() {
        let second = 1_000_000_000;
        let chunks = [chunk(5 * second, second), chunk(7 * second, 2 * second)];
        let of = |file: Vec<u8>| {
            let length = file.len() as u64;
            lasts(&mut io::Cursor::new(file), length).unwrap()
        };
        assert_eq!(of(chunks[0].clone()), second);
        assert_eq!(of(chunks.concat()), 4 * second);
        // As far as headers lead.
        assert_eq!(of([&chunks[0][..], b"garbage"].concat()), second);
        let cut = chunks.concat().len() - 1;
        assert_eq!(of(chunks.concat()[..cut].to_vec()), second);
        assert_eq!(of(Vec::new()), 0);
    }

    #[test]
    fn progress_ends_with_the_bytes_of_all_chunks() {
        let file = [chunk(0, 1), chunk(5, 1)].concat();
        for threads in [0, 2] {
            let read = AtomicU64::new(0);
            let options = Options {
                threads,
                progress: Some(&read),
                ..Options::default()
            };
            parse_from(&mut io::Cursor::new(&file), &options).unwrap();
            // All but the headers.
            let expected = (file.len() - 2 * HEADER_BYTES) as u64;
            assert_eq!(read.into_inner(), expected, "{threads} threads");
        }
    }
}
