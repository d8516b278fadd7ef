//! Chunk headers: where chunks begin and end. Decides nothing about their contents.

use super::cursor::Cursor;
use super::error::Error;
use crate::writer::HEADER_BYTES;

const MAGIC: &[u8; 4] = b"FLR\0";
/// Flag bit: integers are base-128 numbers.
const COMPRESSED: u8 = 1;
const NANOS_PER_SECOND: i128 = 1_000_000_000;

/// The header of a chunk, and the place of the chunk in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Where the chunk begins in the file.
    pub offset: u64,
    /// Size of what is there of the chunk.
    pub size: u64,
    /// Whether the file has all of the chunk that its header promises.
    pub complete: bool,
    /// Major and minor version of the format.
    pub version: (u16, u16),
    /// When the chunk began, in nanoseconds since the epoch.
    pub start_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The clock's value when the chunk began.
    pub start_ticks: u64,
    /// The clock's rate.
    pub ticks_per_second: u64,
    /// Where the header says that the metadata is, in the file.
    pub(crate) metadata: usize,
    /// Bytes that the header promises and that are not there.
    pub(crate) absent: u64,
}

impl ChunkInfo {
    /// Reads the header at `offset`.
    pub(crate) fn read(file: &[u8], offset: usize) -> Result<Self, Error> {
        let mut cursor = Cursor::new(file, offset, file.len());
        if cursor.take(MAGIC.len()).ok() != Some(MAGIC.as_slice()) {
            return Err(Error::NotJfr { offset });
        }
        let version = (
            u16::from_be_bytes(cursor.array()?),
            u16::from_be_bytes(cursor.array()?),
        );
        if version.0 == 0 {
            return Err(Error::TooOld { offset, version });
        }
        if version.0 != 2 && version.0 != 1 {
            let what = format!("format version {}.{}", version.0, version.1);
            return Err(Error::Unsupported { offset, what });
        }
        let mut words = [0; 7];
        for word in &mut words {
            *word = u64::from_be_bytes(cursor.array()?);
        }
        let [
            size,
            _checkpoint,
            metadata,
            start_ns,
            duration_ns,
            start_ticks,
            rate,
        ] = words;
        let [state, _padding, _, flags] = cursor.array()?;
        if flags & COMPRESSED == 0 {
            let what = "integers of fixed size".to_owned();
            return Err(Error::Unsupported { offset, what });
        }
        let there = file.len() - offset;
        let promised = usize::try_from(size).unwrap_or(usize::MAX);
        // A chunk that is still being written has no size yet: read on as far as it goes.
        let complete = state == 0 && (HEADER_BYTES..=there).contains(&promised);
        let usable = if complete { promised } else { there };
        let absent = match state {
            0 => size.saturating_sub(there as u64),
            _ => 0,
        };
        let metadata = usize::try_from(metadata).unwrap_or(usize::MAX);
        Ok(Self {
            offset: offset as u64,
            size: usable as u64,
            complete,
            version,
            start_ns,
            duration_ns,
            start_ticks,
            ticks_per_second: if rate == 0 {
                NANOS_PER_SECOND as u64
            } else {
                rate
            },
            metadata: offset.saturating_add(metadata),
            absent,
        })
    }

    /// The chunk that begins with this header and has all of the `there` bytes from it on, whatever
    /// the header promises; `None` if it is not a header.
    #[must_use]
    pub fn of_rest(header: &[u8], there: u64) -> Option<Self> {
        let info = Self::read(header, 0).ok()?;
        Some(Self {
            size: there,
            complete: false,
            ..info
        })
    }

    /// The size that a header promises, if so much is `there` from its beginning on.
    pub(crate) fn promised(header: &[u8], there: u64) -> Option<u64> {
        Self::read(header, 0).ok()?;
        let mut cursor = Cursor::new(header, 8, header.len());
        let size = u64::from_be_bytes(cursor.array().ok()?);
        let state = header.get(HEADER_BYTES - 4)?;
        let is_there = (HEADER_BYTES as u64..=there).contains(&size);
        (*state == 0 && is_there).then_some(size)
    }

    /// The same `by` bytes further on.
    pub(crate) fn moved(self, by: usize) -> Self {
        Self {
            offset: self.offset.saturating_add(by as u64),
            metadata: self.metadata.saturating_add(by),
            ..self
        }
    }

    /// Where the events begin.
    pub(crate) fn body(&self) -> usize {
        self.offset as usize + HEADER_BYTES
    }

    /// Where the chunk ends.
    pub(crate) fn end(&self) -> usize {
        (self.offset + self.size) as usize
    }

    /// Nanoseconds since the epoch for a value of the chunk's clock, even one before its start.
    pub(crate) fn time_ns(&self, ticks: u64) -> u64 {
        let since = i128::from(ticks.wrapping_sub(self.start_ticks).cast_signed());
        let ns = since * NANOS_PER_SECOND / i128::from(self.ticks_per_second);
        let ns = i128::from(self.start_ns) + ns;
        u64::try_from(ns).unwrap_or(if ns < 0 { 0 } else { u64::MAX })
    }

    /// Nanoseconds for a number of ticks.
    pub(crate) fn span_ns(&self, ticks: i64) -> i64 {
        let ns = i128::from(ticks) * NANOS_PER_SECOND / i128::from(self.ticks_per_second);
        i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX })
    }
}

/// The next place at or after `from` where a readable header stands.
pub(crate) fn find_chunk(file: &[u8], from: usize) -> Option<usize> {
    let tail = file.get(from..)?;
    tail.windows(MAGIC.len())
        .enumerate()
        .filter(|(_, window)| window == MAGIC)
        .map(|(place, _)| from + place)
        .find(|&offset| ChunkInfo::read(file, offset).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{ChunkClock, ChunkWriter};

    fn chunk(ticks_per_second: u64) -> Vec<u8> {
        let clock = ChunkClock {
            epoch_ns: 5_000_000_000,
            start_ticks: 100,
            ticks_per_second,
        };
        ChunkWriter::new(clock).flush(100 + ticks_per_second)
    }

    #[test]
    fn a_header_comes_back() {
        let file = chunk(3);
        let info = ChunkInfo::read(&file, 0).unwrap();
        assert_eq!((info.size, info.complete), (file.len() as u64, true));
        assert_eq!(info.version, (2, 1));
        assert_eq!(
            (info.start_ns, info.duration_ns),
            (5_000_000_000, 1_000_000_000)
        );
        assert_eq!((info.start_ticks, info.ticks_per_second), (100, 3));
    }

    #[test]
    fn files_of_oracles_older_recorder_name_it() {
        let mut file = chunk(3);
        file[4..8].copy_from_slice(&[0, 0, 0, 9]);
        let error = ChunkInfo::read(&file, 0).unwrap_err().to_string();
        assert!(
            error.contains("format 0.9 of the recorder of Oracle's"),
            "{error}"
        );
        assert!(error.contains("JDK Mission Control opens"), "{error}");
        file[4..8].copy_from_slice(&[0, 3, 0, 0]);
        let error = ChunkInfo::read(&file, 0).unwrap_err().to_string();
        assert!(error.contains("format version 3.0"), "{error}");
    }

    #[test]
    fn ticks_become_time_before_and_after_the_start() {
        let info = ChunkInfo::read(&chunk(3), 0).unwrap();
        assert_eq!(info.time_ns(103), 6_000_000_000);
        assert_eq!(info.time_ns(97), 4_000_000_000);
        assert_eq!(info.time_ns(100 - 30), 0);
        assert_eq!(info.span_ns(-3), -1_000_000_000);
        assert_eq!(
            info.span_ns(i64::MAX),
            3_074_457_345_618_258_602_333_333_333_i128.min(i128::from(i64::MAX)) as i64
        );
    }

    #[test]
    fn cut_chunk_ends_at_the_cut() {
        let file = chunk(3);
        let info = ChunkInfo::read(&file[..100], 0).unwrap();
        assert_eq!((info.size, info.complete), (100, false));
        assert!(ChunkInfo::read(&file[..67], 0).is_err());
        assert_eq!(ChunkInfo::read(&file, 1), Err(Error::NotJfr { offset: 1 }));
        assert_eq!(ChunkInfo::read(&[], 0), Err(Error::NotJfr { offset: 0 }));
    }

    #[test]
    fn the_next_chunk_is_found_behind_garbage() {
        let mut file = b"FLR\0FLR\0 torn".to_vec();
        let start = file.len();
        file.extend(chunk(3));
        assert_eq!(find_chunk(&file, 0), Some(start));
        assert_eq!(find_chunk(&file, start + 1), None);
        assert_eq!(find_chunk(&file, file.len() + 1), None);
    }
}
