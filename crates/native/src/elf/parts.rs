//! The parts of a file that [`super::Elf`] needs. Most of a large library is code and data, and
//! reading these takes longer than processing the other parts. Must not open files.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::FileHeader as _;

use super::{SECTIONS_MAX, is_covered};

/// In every real file, the headers of file and segments are within these first bytes.
const HEAD_BYTES: usize = 4096;

/// Selects the parts to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Headers, notes, and what the file exports.
    Exports,
    /// Also all symbols and the unwind sections.
    All,
}

/// Reads parts of a file of `len` bytes: headers, symbols, notes and unwind sections. `read` takes
/// an offset and a buffer and returns whether it succeeded. Other bytes stay zero. A file without
/// section headers, without sections of these, or with code that they do not cover, is read as a
/// whole. `None` if a read fails.
pub fn read_parts(len: usize, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    fill_parts(&mut bytes, Parts::All, read)?;
    Some(bytes)
}

/// The same into existing memory, which must be zero and as long as the file.
pub fn fill_parts(
    bytes: &mut [u8],
    parts: Parts,
    read: &mut dyn FnMut(u64, &mut [u8]) -> bool,
) -> Option<()> {
    let len = bytes.len();
    let mut fill = |bytes: &mut [u8], range: Range<usize>| -> Option<()> {
        let end = range.end.min(len);
        let part = bytes.get_mut(range.start.min(end)..end)?;
        (part.is_empty() || read(range.start as u64, part)).then_some(())
    };
    fill(bytes, 0..HEAD_BYTES)?;
    // Tools that modify libraries put these headers at the end.
    match segment_table(bytes) {
        Some(segments) => fill(bytes, segments)?,
        None if parts == Parts::Exports => return Some(()),
        None => {}
    }
    let Some(table) = section_table(bytes) else {
        return fill(bytes, 0..len);
    };
    fill(bytes, table)?;
    if let Some(names) = section_names(bytes) {
        fill(bytes, names)?;
    }
    match wanted(bytes, parts) {
        Some(ranges) => {
            for range in ranges {
                fill(bytes, range)?;
            }
        }
        None => fill(bytes, 0..len)?,
    }
    Some(())
}

/// The range of the program headers.
fn segment_table(head: &[u8]) -> Option<Range<usize>> {
    let header = FileHeader64::<LE>::parse(head).ok()?;
    let start = usize::try_from(header.e_phoff.get(LE)).ok()?;
    let count = usize::from(header.e_phnum.get(LE));
    let end = start.checked_add(count * size_of::<ProgramHeader64<LE>>())?;
    Some(start..end)
}

/// The range of the section headers.
pub(super) fn section_table(head: &[u8]) -> Option<Range<usize>> {
    let header = FileHeader64::<LE>::parse(head).ok()?;
    let count = usize::from(header.e_shnum.get(LE));
    // Files with more than 65279 sections have the number elsewhere. They are not libraries.
    if count == 0 || count > SECTIONS_MAX {
        return None;
    }
    let start = usize::try_from(header.e_shoff.get(LE)).ok()?;
    let end = start.checked_add(count * size_of::<SectionHeader64<LE>>())?;
    Some(start..end)
}

fn section_names(bytes: &[u8]) -> Option<Range<usize>> {
    let header = FileHeader64::<LE>::parse(bytes).ok()?;
    let sections = header.section_headers(LE, bytes).ok()?;
    let index = header.shstrndx(LE, bytes).ok()?;
    range_of(sections.get(index as usize)?)
}

/// The sections of interest; `None` if the list seems incomplete.
fn wanted(bytes: &[u8], parts: Parts) -> Option<Vec<Range<usize>>> {
    let header = FileHeader64::<LE>::parse(bytes).ok()?;
    let sections = header.section_headers(LE, bytes).ok()?;
    let index = header.shstrndx(LE, bytes).ok()?;
    let names = bytes.get(range_of(sections.get(index as usize)?)?)?;
    let is_all = parts == Parts::All;
    let (mut code_bytes, mut table_bytes) = (0u64, 0u64);
    let mut has_symbols = false;
    let mut ranges = Vec::new();
    for section in sections {
        let at = section.sh_name.get(LE) as usize;
        let is = |name: &[u8]| {
            let rest = names.get(at..).and_then(|names| names.strip_prefix(name));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        let is_rule = is_all && (is(b".eh_frame") || is(b".debug_frame"));
        has_symbols |= matches!(section.sh_type.get(LE), elf::SHT_DYNSYM | elf::SHT_SYMTAB);
        let is_known = match section.sh_type.get(LE) {
            elf::SHT_DYNSYM | elf::SHT_NOTE => true,
            elf::SHT_STRTAB => is_all || is(b".dynstr"),
            elf::SHT_SYMTAB => is_all,
            _ => is_all && (is(b".eh_frame_hdr") || is(b".gnu_debuglink")),
        };
        if section.sh_flags.get(LE).contains(elf::SHF_EXECINSTR) {
            code_bytes = section.sh_size.get(LE).saturating_add(code_bytes);
        }
        if is_rule {
            table_bytes = section.sh_size.get(LE).saturating_add(table_bytes);
        }
        if is_rule || is_known {
            ranges.extend(range_of(section));
        }
    }
    // Code without rules is read for them.
    let has_rules = !is_all || (table_bytes > 0 && is_covered(code_bytes, table_bytes));
    (has_rules && has_symbols).then_some(ranges)
}

pub(super) fn range_of(section: &SectionHeader64<LE>) -> Option<Range<usize>> {
    if section.sh_type.get(LE) == elf::SHT_NOBITS {
        return None;
    }
    let start = usize::try_from(section.sh_offset.get(LE)).ok()?;
    let len = usize::try_from(section.sh_size.get(LE)).ok()?;
    Some(start..start.checked_add(len)?)
}
