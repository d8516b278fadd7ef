//! Reads one chunk in two passes over its events: first metadata and constants, then the other
//! events. The passes find constants without the chain of checkpoints. A chunk that was cut off, or
//! whose header was never completed, therefore gives everything up to the cut.

use super::constant_pools::Pools;
use super::cursor::Cursor;
use super::details::{Details, Part};
use super::error::Error;
use super::header::ChunkInfo;
use super::metadata::{Class, Types};
use super::model::Recording;
use super::resolve::Resolver;
use super::samples::SamplePlan;
use super::tables::Tables;
use super::values::Values;
use super::{Options, warn};
use crate::schema::id;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const METADATA: u64 = id::METADATA as u64;
const CHECKPOINT: u64 = id::CHECKPOINT as u64;

/// Progress is counted in steps of this size, because threads share the counter.
const PROGRESS_BYTES: usize = 1 << 16;

/// Walks over the events of a chunk.
pub(super) struct Walk<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

/// An event that is not decoded.
pub(super) struct RawEvent<'a> {
    pub(super) offset: usize,
    pub(super) type_id: u64,
    /// The bytes after the type.
    pub(super) body: Cursor<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(file: &'a [u8], info: &ChunkInfo) -> Self {
        Self {
            file,
            at: info.body(),
            end: info.end(),
        }
    }

    /// The next event; `None` at the end of the chunk, an error where it cannot go on.
    pub(super) fn next(&mut self) -> Result<Option<RawEvent<'a>>, Error> {
        if self.at >= self.end {
            return Ok(None);
        }
        let event = event_at(self.file, self.at, self.end)?;
        self.at = event.body.offset() + event.body.remaining();
        Ok(Some(event))
    }
}

fn event_at(file: &[u8], offset: usize, end: usize) -> Result<RawEvent<'_>, Error> {
    let mut cursor = Cursor::new(file, offset, end);
    let size = cursor.varint()?;
    let event_end = usize::try_from(size)
        .ok()
        .and_then(|size| offset.checked_add(size));
    match event_end {
        Some(event_end) if event_end > end => Err(Error::Truncated { offset: end }),
        Some(event_end) if event_end > cursor.offset() => {
            let mut body = Cursor::new(file, cursor.offset(), event_end);
            let type_id = body.varint()?;
            Ok(RawEvent {
                offset,
                type_id,
                body,
            })
        }
        _ => Err(Error::Malformed {
            offset,
            what: "an event of impossible size",
        }),
    }
}

/// The treatment of the events of a type.
struct EventType<'a> {
    class: &'a Class,
    sample: Option<SamplePlan<'a>>,
    /// The part that the event has in completing others.
    part: Option<Part>,
    keep: bool,
    count: u64,
    unreadable: u64,
}

/// Reads the chunk into `out`. Gives the place where the next chunk may begin, and how long this
/// one lasted, or why there was nothing to read it by.
pub(crate) fn read(
    file: &[u8],
    info: &ChunkInfo,
    options: &Options<'_>,
    tables: &mut Tables,
    out: &mut Recording,
) -> (usize, Result<u64, Error>) {
    let survey = Survey::new(file, info);
    let end = if info.complete {
        info.end()
    } else {
        survey.end
    };
    let types = match survey.types(file, info) {
        Ok(types) => types,
        Err(error) => return (end, Err(error)),
    };
    tell_end(info, &survey, tables.base, out);
    let mut pools = Pools::default();
    for checkpoint in survey.checkpoints {
        if let Err(error) = pools.add(&types, checkpoint) {
            let error = error.moved(tables.base);
            warn(out, format!("some constants are left out: {error}"));
        }
    }
    pools.finish();
    let mut resolver = Resolver::new(file, info, &types, &pools, tables);
    let last_ns = read_events(file, survey.end, options, &mut resolver, out);
    if resolver.missing > 0 {
        let missing = resolver.missing;
        warn(
            out,
            format!(
                "threads, methods or stacks that something refers to and the file lacks: {missing}"
            ),
        );
    }
    let read_ns = last_ns.saturating_sub(info.start_ns);
    let lasted_ns = match survey.stopped.is_some() || info.absent > 0 {
        // The header's duration includes the missing bytes.
        true if info.complete => read_ns.min(info.duration_ns),
        true => read_ns,
        false if info.complete => info.duration_ns,
        false => info.duration_ns.max(read_ns),
    };
    (end, Ok(lasted_ns))
}

/// Says where a chunk is not whole.
fn tell_end(info: &ChunkInfo, survey: &Survey<'_>, base: usize, out: &mut Recording) {
    let at = info.offset + base as u64;
    let text = match &survey.stopped {
        Some(error) if info.complete => {
            let left = info.end().saturating_sub(survey.end);
            out.unread.stretch(survey.end + base, info.end() + base);
            let error = error.clone().moved(base);
            format!("the last {left} bytes of the chunk at offset {at} are left out: {error}")
        }
        // The bytes after its last whole event are reported with those that belong to no chunk.
        Some(error) => {
            let error = error.clone().moved(base);
            format!("the chunk at offset {at} is incomplete: {error}")
        }
        None if !info.complete && info.absent > 0 => {
            let absent = info.absent;
            format!("the chunk at offset {at} is incomplete: {absent} bytes are missing")
        }
        None if !info.complete => format!("the chunk at offset {at} was never finished"),
        None => return,
    };
    out.unread.chunks += 1;
    warn(out, text);
}

/// The first walk.
pub(super) struct Survey<'a> {
    metadata: Option<Cursor<'a>>,
    checkpoints: Vec<Cursor<'a>>,
    end: usize,
    stopped: Option<Error>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(file: &'a [u8], info: &ChunkInfo) -> Self {
        let mut survey = Self {
            metadata: None,
            checkpoints: Vec::new(),
            end: 0,
            stopped: None,
        };
        let mut walk = Walk::new(file, info);
        loop {
            match walk.next() {
                Ok(Some(event)) => match event.type_id {
                    METADATA => survey.metadata = Some(event.body),
                    CHECKPOINT => survey.checkpoints.push(event.body),
                    _ => {}
                },
                Ok(None) => break,
                Err(error) => {
                    survey.stopped = Some(error);
                    break;
                }
            }
        }
        survey.end = walk.at.min(info.end());
        survey
    }

    /// The metadata that the header names, or else the last that was passed. Where a chunk that
    /// was never finished ends is not known: behind what was passed lies perhaps another one, and
    /// what many headers name would be read for each of them.
    pub(super) fn types(&self, file: &'a [u8], info: &ChunkInfo) -> Result<Types, Error> {
        let end = match info.complete {
            true => info.end(),
            false => self.end,
        };
        let named = event_at(file, info.metadata, end).ok();
        let named = named.filter(|event| event.type_id == METADATA && event.offset >= info.body());
        if let Some(types) = named.and_then(|event| Types::read(event.body).ok()) {
            return Ok(types);
        }
        match self.metadata {
            Some(metadata) => Types::read(metadata),
            None => Err(Error::Truncated { offset: info.end() }),
        }
    }
}

/// The second walk. Gives the time of the last event that was read.
fn read_events<'a>(
    file: &'a [u8],
    end: usize,
    options: &Options<'_>,
    resolver: &mut Resolver<'a>,
    out: &mut Recording,
) -> u64 {
    let mut last_ns = 0;
    let mut event_types = event_types(resolver.types, options);
    let (mut values, mut details) = (Values::default(), Details::default());
    let mut unknown = 0_u64;
    let at = resolver.info.body();
    let mut walk = Walk { file, at, end };
    let mut counted = at;
    while let Ok(Some(event)) = walk.next() {
        if walk.at - counted >= PROGRESS_BYTES {
            count_progress(options, &mut counted, walk.at);
        }
        if event.type_id == METADATA || event.type_id == CHECKPOINT {
            continue;
        }
        let Some(event_type) = event_types.get_mut(event.type_id) else {
            unknown += 1;
            continue;
        };
        event_type.count += 1;
        let read = read_event(
            event_type,
            event.body,
            resolver,
            &mut values,
            &mut details,
            out,
        );
        let read = read.map(|time_ns| last_ns = last_ns.max(time_ns));
        event_type.unreadable += u64::from(read.is_err());
    }
    count_progress(options, &mut counted, walk.at);
    if unknown > 0 {
        let what = "events of types that the file does not describe";
        warn(out, format!("{what}: {unknown}"));
    }
    // In the same order whenever the file is read.
    let read = event_types.list.into_iter();
    for (id, event_type) in read.filter(|(_, event_type)| event_type.count > 0) {
        let EventType {
            class,
            count,
            unreadable,
            ..
        } = event_type;
        *out.counts.entry(Arc::clone(&class.name)).or_default() += count;
        out.types.insert(id, Arc::clone(&class.name));
        if unreadable > 0 {
            warn(
                out,
                format!("events {} that cannot be read: {unreadable}", class.name),
            );
        }
    }
    last_ns
}

/// Adds the bytes since the last time.
fn count_progress(options: &Options<'_>, counted: &mut usize, at: usize) {
    if let Some(progress) = options.progress {
        progress.fetch_add((at - *counted) as u64, Ordering::Relaxed);
    }
    *counted = at;
}

/// Reads an event into `out`, if it is wanted. Gives its time, 0 if it was passed over.
fn read_event<'a>(
    event_type: &EventType<'a>,
    body: Cursor<'a>,
    resolver: &mut Resolver<'a>,
    values: &mut Values,
    details: &mut Details,
    out: &mut Recording,
) -> Result<u64, Error> {
    let class = event_type.class;
    let part = event_type.part.as_ref();
    let part = part.filter(|part| part.tells() || !details.is_empty());
    let thread = match part {
        Some(part) => Some((part, part.thread(resolver, class, body)?)),
        None => None,
    };
    if let Some(plan) = &event_type.sample {
        let mut sample = plan.read(resolver, body)?;
        if let Some((part, thread)) = thread {
            details.complete_sample(part, thread, &mut sample);
        }
        let Tables {
            merger,
            walls,
            contexts,
            ..
        } = &mut *resolver.tables;
        merger.add(sample, &mut out.samples, walls, contexts);
        return Ok(sample.time_ns);
    }
    let tells = part.is_some_and(Part::tells);
    if !event_type.keep && !tells {
        return Ok(0);
    }
    let mut event = values.event(resolver, class, body)?;
    let time_ns = event.time_ns;
    match thread {
        Some((part, thread)) if tells => details.take(part, thread, &event, resolver),
        Some((part, thread)) => details.complete(part, thread, &mut event),
        None => {}
    }
    if tells {
        return Ok(0);
    }
    out.events.push(event);
    Ok(time_ns)
}

/// Types of events by their ids, in ascending order.
struct EventTypes<'a> {
    list: Vec<(u64, EventType<'a>)>,
    /// Places plus one, by id, for small ids; 0 if absent.
    small: Vec<u32>,
}

/// Ids below this are found without searching; the JDK's and ours are.
const SMALL_IDS: u64 = 1 << 14;

impl<'a> EventTypes<'a> {
    fn get_mut(&mut self, id: u64) -> Option<&mut EventType<'a>> {
        let at = match id < SMALL_IDS {
            true => self.small.get(id as usize)?.checked_sub(1)? as usize,
            false => self.list.binary_search_by_key(&id, |(id, _)| *id).ok()?,
        };
        self.list.get_mut(at).map(|(_, event_type)| event_type)
    }
}

fn event_types<'a>(types: &'a Types, options: &Options<'_>) -> EventTypes<'a> {
    let event_type = |(id, class): (u64, &'a Class)| {
        let sample = SamplePlan::new(types, class);
        let keep = options.events.wants(&class.name);
        (
            id,
            EventType {
                class,
                sample,
                part: Part::of(class),
                keep,
                count: 0,
                unreadable: 0,
            },
        )
    };
    let mut list: Vec<_> = types.events().map(event_type).collect();
    list.sort_unstable_by_key(|(id, _)| *id);
    let mut small = Vec::new();
    for (at, (id, _)) in list.iter().enumerate() {
        if *id < SMALL_IDS {
            small.resize(*id as usize + 1, 0);
            if let Some(place) = small.last_mut() {
                *place = at as u32 + 1;
            }
        }
    }
    EventTypes { list, small }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last event of a chunk may end where that does.
    #[test]
    fn events_end_at_the_end_of_a_chunk_at_the_latest() {
        let file = [9, 9, 4, 77, 1, 2, 3, 78, 5];
        let mut walk = Walk {
            file: &file,
            at: 2,
            end: 9,
        };
        let mut next = || {
            let event = walk.next().expect("whole events");
            event.map(|it| (it.offset, it.type_id, it.body.remaining()))
        };
        assert_eq!(next(), Some((2, 77, 2)));
        assert_eq!(next(), Some((6, 78, 1)));
        assert_eq!(next(), None);
        let truncated = |end| matches!(event_at(&file, 6, end), Err(Error::Truncated { .. }));
        assert!(truncated(8) && !truncated(9));
        // A size that does not even hold itself.
        for size in [0, 1] {
            let file = [size, 7, 7];
            assert!(matches!(
                event_at(&file, 0, 3),
                Err(Error::Malformed { .. })
            ));
        }
    }
}
