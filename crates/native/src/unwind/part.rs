//! The rows of a part of a library, by the search table of `.eh_frame_hdr`: few pages of a large
//! library are ever met, and compiling all takes a hundred times as long. Must not interpret rules.

use std::ops::Range;

use dwell_walker::native::Row;

use super::fdes;
use super::merge::Functions;
use super::{Input, Searched, Section, Stats};

/// Bytes before the first entry: version, three encodings, the address of `.eh_frame`, the number
/// of entries.
const HEAD_BYTES: usize = 12;
/// Encodings of that address (anything of 4 bytes), of the number, and of the entries: as every
/// linker writes them.
const FOUR_BYTES: [u8; 2] = [0x03, 0x0b];
const COUNT_ENCODING: u8 = 0x03;
const ENTRY_ENCODING: u8 = 0x3b;

/// The search table: two offsets from the header's address each, of a function and of its FDE.
struct SearchTable<'a> {
    entries: &'a [[u8; 8]],
    svma: u64,
}

impl<'a> SearchTable<'a> {
    /// `None` if it is not as every linker writes it.
    fn parse(header: Section<'a>) -> Option<SearchTable<'a>> {
        let (head, rest) = header.data.split_first_chunk::<HEAD_BYTES>()?;
        let [1, pointer, COUNT_ENCODING, ENTRY_ENCODING, .., a, b, c, d] = *head else {
            return None;
        };
        let count = u32::from_le_bytes([a, b, c, d]) as usize;
        let (entries, _) = rest.as_chunks::<8>();
        FOUR_BYTES.contains(&(pointer & 0x0f)).then_some(())?;
        Some(SearchTable {
            entries: entries.get(..count)?,
            svma: header.svma,
        })
    }

    fn addresses(&self, entry: &[u8; 8]) -> (u64, u64) {
        let [a, b, c, d, e, f, g, h] = *entry;
        let at = |bytes| i64::from(i32::from_le_bytes(bytes));
        let at = |bytes| self.svma.wrapping_add_signed(at(bytes));
        (at([a, b, c, d]), at([e, f, g, h]))
    }

    fn is_sorted(&self) -> bool {
        let starts = self.entries.iter().map(|entry| self.addresses(entry).0);
        starts.is_sorted_by(|a, b| a < b)
    }
}

/// Whether the search table has all functions of `.eh_frame`, one after the other, so that
/// [`rows`] gives the rows of the whole table.
#[must_use]
pub fn is_whole(input: &Searched<'_>) -> bool {
    let Some(table) = SearchTable::parse(input.header) else {
        return false;
    };
    fdes::count(&build(input)) == Some(table.entries.len()) && table.is_sorted()
}

/// The rows for the addresses `offsets`, as the whole table has them; the first begins there or
/// later. `None` if that cannot be said; always some where [`is_whole`] has said so, unless the
/// file is damaged.
#[must_use]
pub fn rows(input: &Searched<'_>, offsets: Range<u32>) -> Option<Box<[Row]>> {
    let table = SearchTable::parse(input.header)?;
    let svma = |offset: u32| input.base_svma.checked_add(u64::from(offset));
    let (begin, end) = (svma(offsets.start)?, svma(offsets.end)?);
    let starts = |entry: &[u8; 8]| table.addresses(entry).0;
    let upto = table
        .entries
        .partition_point(|entry| starts(entry) <= begin);
    let before_end = table.entries.partition_point(|entry| starts(entry) < end);
    // With the one that covers the beginning, one before that, by which a gap is known or an
    // overlap, and one after the end, with which padding before it goes.
    let some = upto.saturating_sub(2)..(before_end + 1).min(table.entries.len());
    let mut functions = Functions::default();
    let mut stats = Stats::default();
    let build = build(input);
    let into = table.entries.get(some)?.iter().map(|entry| {
        let into = table.addresses(entry).1.checked_sub(input.eh_frame.svma)?;
        usize::try_from(into).ok()
    });
    let into: Vec<usize> = into.collect::<Option<_>>()?;
    fdes::some(&build, &into, &mut functions, &mut stats).ok()?;
    let rows = functions.into_rows();
    let first = rows.partition_point(|row| row.offset <= offsets.start);
    let last = rows.partition_point(|row| row.offset < offsets.end);
    let mut part = rows.get(first.saturating_sub(1)..last)?.to_vec();
    if let Some(row) = part.first_mut() {
        row.offset = row.offset.max(offsets.start);
    }
    Some(part.into_boxed_slice())
}

fn build<'a>(input: &Searched<'a>) -> Input<'a> {
    Input {
        base_svma: input.base_svma,
        eh_frame: Some(input.eh_frame),
        debug_frame: None,
        text: input.text,
    }
}
