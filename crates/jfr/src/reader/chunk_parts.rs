//! Cuts a chunk of dwell between two flushes, so that each event is in one part only. A part is a
//! chunk that any tool can read. Besides its own events it has the constants and the events that
//! describe the recording or complete later events.

use super::chunk::{RawEvent, Survey, Walk};
use super::details::Part;
use super::error::Error;
use super::header::{ChunkInfo, find_chunk};
use super::metadata::{Class, Types};
use crate::schema::id;
use crate::wire::{put_framed, put_varint};
use crate::writer::HEADER_BYTES;
use std::collections::{BTreeSet, HashMap};

const METADATA: u64 = id::METADATA as u64;
const CHECKPOINT: u64 = id::CHECKPOINT as u64;
/// Names the recorder. Its presence in the types shows that dwell wrote the chunk.
const RECORDING: &str = "dwell.Recording";
/// Events that describe the recording, the process or a request: a part has all of them up to its
/// end. They count nothing.
const DESCRIBING: [&str; 6] = [
    RECORDING,
    "dwell.Endpoint",
    "jdk.ActiveSetting",
    "jdk.CPUInformation",
    "jdk.JVMInformation",
    "jdk.OSInformation",
];

/// The end of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flush {
    /// Its place in the chunk.
    pub offset: u64,
    /// Its time in nanoseconds since the epoch.
    pub time_ns: u64,
}

/// The header of a chunk of which `there` bytes are there; `None` if the chunk is not whole.
#[must_use]
pub fn whole_header(header: &[u8], there: u64) -> Option<ChunkInfo> {
    let size = ChunkInfo::promised(header, there)?;
    let info = ChunkInfo::read(header, 0).ok()?;
    Some(ChunkInfo {
        size,
        complete: true,
        absent: 0,
        ..info
    })
}

/// The place of the first readable header in these bytes.
#[must_use]
pub fn find_header(bytes: &[u8]) -> Option<usize> {
    find_chunk(bytes, 0)
}

/// The ends of the flushes of a chunk, in ascending order. The last one is the end of the chunk;
/// a chunk of another recorder has only that.
///
/// # Errors
/// When the bytes are not one whole chunk.
pub fn flushes(chunk: &[u8]) -> Result<Vec<Flush>, Error> {
    let (info, types) = surveyed(chunk)?;
    let end = Flush {
        offset: info.size,
        time_ns: info.start_ns.saturating_add(info.duration_ns),
    };
    let mut found = Vec::new();
    if is_ours(&types) {
        let mut walk = Walk::new(chunk, &info);
        while let Some(event) = walk.next()? {
            if event.type_id == CHECKPOINT {
                let mut body = event.body;
                let time_ns = info.time_ns(body.varint()?);
                let offset = (event.body.offset() + event.body.remaining()) as u64;
                found.push(Flush { offset, time_ns });
            }
        }
        found.retain(|it| it.offset < end.offset);
    }
    found.push(end);
    Ok(found)
}

/// Whether dwell wrote a whole chunk.
///
/// # Errors
/// When the bytes are not one whole chunk.
pub fn is_of_dwell(chunk: &[u8]) -> Result<bool, Error> {
    Ok(is_ours(&surveyed(chunk)?.1))
}

/// The part of a chunk between two flushes, from the end of the one at `from` (0: the beginning of
/// the chunk) to the end of the other, as a chunk of its own. `time_ns` is the time of its
/// beginning.
///
/// # Errors
/// When the bytes are not one whole chunk.
pub fn part(chunk: &[u8], from: u64, to: &Flush, time_ns: u64) -> Result<Vec<u8>, Error> {
    let (info, types) = surveyed(chunk)?;
    if from <= HEADER_BYTES as u64 && to.offset >= info.size {
        return Ok(chunk.get(..info.end()).unwrap_or(chunk).to_vec());
    }
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let to_offset = usize::try_from(to.offset).unwrap_or(usize::MAX);
    let kept = kept_before(chunk, &info, &types, from)?;
    let mut out = Copied {
        bytes: vec![0; HEADER_BYTES],
        metadata: 0,
        checkpoint: 0,
    };
    let mut walk = Walk::new(chunk, &info);
    while let Some(event) = walk.next()? {
        if event.offset >= to_offset {
            break;
        }
        match event.type_id {
            METADATA => {
                out.metadata = out.bytes.len();
                out.raw(chunk, &event);
            }
            CHECKPOINT => out.checkpoint(&event)?,
            _ if event.offset >= from || kept.contains(&event.offset) => out.raw(chunk, &event),
            _ => {}
        }
    }
    Ok(out.finish(&info, time_ns, to.time_ns))
}

/// The chunk's header and types.
fn surveyed(chunk: &[u8]) -> Result<(ChunkInfo, Types), Error> {
    let info = ChunkInfo::read(chunk, 0)?;
    if !info.complete {
        return Err(Error::Truncated {
            offset: chunk.len(),
        });
    }
    let types = Survey::new(chunk, &info).types(chunk, &info)?;
    Ok((info, types))
}

fn is_ours(types: &Types) -> bool {
    types.events().any(|(_, class)| &*class.name == RECORDING)
}

/// The role of a type for the events after it.
enum Role {
    Describes,
    Completes(Part),
}

impl Role {
    fn of(class: &Class) -> Option<Role> {
        if DESCRIBING.contains(&&*class.name) {
            return Some(Role::Describes);
        }
        Part::of(class).filter(Part::tells).map(Role::Completes)
    }
}

/// The places of the events before `from` that a part needs: those that describe, and the last
/// event of each type and thread that completes others.
fn kept_before(
    chunk: &[u8],
    info: &ChunkInfo,
    types: &Types,
    from: usize,
) -> Result<BTreeSet<usize>, Error> {
    let roles: HashMap<u64, (&Class, Role)> = types
        .events()
        .filter_map(|(id, class)| Some((id, (class, Role::of(class)?))))
        .collect();
    let (mut kept, mut last) = (BTreeSet::new(), HashMap::new());
    let mut walk = Walk::new(chunk, info);
    while let Some(event) = walk.next()? {
        if event.offset >= from {
            break;
        }
        match roles.get(&event.type_id) {
            Some((_, Role::Describes)) => {
                kept.insert(event.offset);
            }
            Some((class, Role::Completes(part))) => {
                let thread = part.thread_of(types, class, event.body)?;
                last.insert((event.type_id, thread), event.offset);
            }
            None => {}
        }
    }
    kept.extend(last.into_values());
    Ok(kept)
}

/// The bytes of a part.
struct Copied {
    bytes: Vec<u8>,
    /// Places of the metadata and of the last checkpoint; 0: none yet.
    metadata: usize,
    checkpoint: usize,
}

impl Copied {
    fn raw(&mut self, chunk: &[u8], event: &RawEvent<'_>) {
        let end = event.body.offset() + event.body.remaining();
        let bytes = chunk.get(event.offset..end).unwrap_or_default();
        self.bytes.extend_from_slice(bytes);
    }

    /// Copies a checkpoint, which has its distance to the one before.
    fn checkpoint(&mut self, event: &RawEvent<'_>) -> Result<(), Error> {
        let mut body = event.body;
        let (ticks, duration, _) = (body.varint()?, body.varint()?, body.varint()?);
        let rest = body.take(body.remaining())?;
        let delta = match self.checkpoint {
            0 => 0,
            before => before.wrapping_sub(self.bytes.len()) as u64,
        };
        self.checkpoint = self.bytes.len();
        let mut copy = Vec::with_capacity(rest.len() + 32);
        for number in [CHECKPOINT, ticks, duration, delta] {
            put_varint(&mut copy, number);
        }
        copy.extend_from_slice(rest);
        put_framed(&mut self.bytes, &copy);
        Ok(())
    }

    /// Writes the header. The clock of the part begins where its time does.
    fn finish(mut self, info: &ChunkInfo, start_ns: u64, end_ns: u64) -> Vec<u8> {
        let since_ns = start_ns.saturating_sub(info.start_ns);
        let ticks = u128::from(since_ns) * u128::from(info.ticks_per_second) / 1_000_000_000;
        let ticks = u64::try_from(ticks).unwrap_or(u64::MAX);
        // Times stay exact: the beginning is that of a whole number of ticks.
        let start_ticks = info.start_ticks.saturating_add(ticks);
        let start_ns = info.time_ns(start_ticks);
        let words = [
            self.bytes.len() as u64,
            self.checkpoint as u64,
            self.metadata as u64,
            start_ns,
            end_ns.saturating_sub(start_ns),
            start_ticks,
            info.ticks_per_second,
        ];
        let (major, minor) = info.version;
        let fields = (b"FLR\0".iter().copied())
            .chain(major.to_be_bytes())
            .chain(minor.to_be_bytes())
            .chain(words.into_iter().flat_map(u64::to_be_bytes))
            .chain([0, 0, 0, 1]); // state "finished", padding, flags: base-128 integers
        for (byte, value) in self.bytes.iter_mut().zip(fields) {
            *byte = value;
        }
        self.bytes
    }
}

#[cfg(test)]
#[path = "chunk_parts_tests.rs"]
mod tests;
