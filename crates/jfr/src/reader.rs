//! Reads recordings: this crate's and the JDK's own, by the metadata they carry. Everything is
//! bounds-checked and bounded by the size of the input; no input makes it panic. It reads a slice,
//! not a file.

mod chunk;
mod cursor;
mod error;
mod header;
mod intern;
mod metadata;
mod model;
mod pools;
mod resolve;
mod samples;
mod values;

pub use error::Error;
pub use header::ChunkInfo;
pub use model::{
    Context, GenericEvent, Method, Recording, Sample, SampleKind, Stack, StackFrame, Thread, Value,
};

use resolve::Tables;

/// Warnings that are kept; a broken file could have one for every few bytes.
const WARNINGS_MAX: usize = 100;

/// What to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// Which events besides samples.
    pub events: EventFilter<'a>,
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

/// Reads a recording. What cannot be read is left out and told in [`Recording::warnings`].
///
/// # Errors
/// When the input is not a recording or nothing in it can be read.
pub fn parse_with(bytes: &[u8], options: &Options<'_>) -> Result<Recording, Error> {
    let mut out = Recording::default();
    let mut tables = Tables::default();
    let mut first_error = None;
    let mut offset = 0;
    while offset < bytes.len() || offset == 0 {
        // Every chunk is longer than its header, so this makes progress.
        let (end, error) = match ChunkInfo::read(bytes, offset) {
            Ok(info) => {
                let (end, read) = chunk::read(bytes, &info, options, &mut tables, &mut out);
                if read.is_ok() {
                    out.chunks.push(info);
                }
                (end, read.err())
            }
            Err(error @ Error::NotJfr { .. }) if offset == 0 => return Err(error),
            Err(error) => (offset + 1, Some(error)),
        };
        if let Some(error) = error {
            warn(
                &mut out,
                format!("the chunk at offset {offset} is left out: {error}"),
            );
            first_error.get_or_insert(error);
        }
        offset = next_chunk(bytes, end, &mut out);
    }
    match first_error {
        Some(error) if out.chunks.is_empty() => return Err(error),
        _ => {}
    }
    out.threads = tables.threads.into_items();
    out.methods = tables.methods.into_items();
    out.stacks = tables.stacks.into_items();
    out.failures = tables.failures.into_items();
    out.texts = tables.texts.into_items();
    out.contexts = tables.contexts.into_items();
    out.walls = tables.walls;
    Ok(out)
}

/// Where the next chunk begins at or after `end`, or the end of the input.
fn next_chunk(bytes: &[u8], end: usize, out: &mut Recording) -> usize {
    let next = header::find_chunk(bytes, end).unwrap_or(bytes.len());
    let skipped = next.saturating_sub(end);
    if skipped > 0 {
        warn(
            out,
            format!("{skipped} bytes from offset {end} on belong to no chunk"),
        );
    }
    next
}

fn warn(out: &mut Recording, warning: String) {
    if out.warnings.len() < WARNINGS_MAX {
        out.warnings.push(warning);
    }
}
