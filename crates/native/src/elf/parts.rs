//! The parts of a file that [`super::Elf`] asks for. Code and data are most of a large library, and
//! reading them takes longer than all that is done with the rest. Must not open files.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::FileHeader as _;

use super::SECTIONS_MAX;

/// Headers of the file and its segments lie here in every real file.
const HEAD_BYTES: usize = 4096;

/// Reads a file of `len` bytes through `read` (offset, where to; whether it worked): its headers,
/// symbols, notes and unwind sections. All else stays zero. A file without section headers is read
/// as a whole. `None` if something cannot be read.
pub fn read_parts(len: usize, read: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let mut fill = |bytes: &mut Vec<u8>, range: Range<usize>| -> Option<()> {
        let end = range.end.min(len);
        let part = bytes.get_mut(range.start.min(end)..end)?;
        (part.is_empty() || read(range.start as u64, part)).then_some(())
    };
    fill(&mut bytes, 0..HEAD_BYTES)?;
    let Some(table) = section_table(&bytes) else {
        fill(&mut bytes, 0..len)?;
        return Some(bytes);
    };
    fill(&mut bytes, table)?;
    if let Some(names) = section_names(&bytes) {
        fill(&mut bytes, names)?;
    }
    match wanted(&bytes) {
        Some(ranges) => {
            for range in ranges {
                fill(&mut bytes, range)?;
            }
        }
        None => fill(&mut bytes, 0..len)?,
    }
    Some(bytes)
}

/// Where the section headers are.
fn section_table(head: &[u8]) -> Option<Range<usize>> {
    let header = FileHeader64::<LE>::parse(head).ok()?;
    let count = usize::from(header.e_shnum.get(LE));
    // Of files with more than 65279 sections the number is elsewhere: they are no libraries.
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

/// The sections that are of interest; `None` if those do not seem to be all there are.
fn wanted(bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let header = FileHeader64::<LE>::parse(bytes).ok()?;
    let sections = header.section_headers(LE, bytes).ok()?;
    let index = header.shstrndx(LE, bytes).ok()?;
    let names = bytes.get(range_of(sections.get(index as usize)?)?)?;
    let mut has_rules = false;
    let mut ranges = Vec::new();
    for section in sections {
        let at = section.sh_name.get(LE) as usize;
        let is = |name: &[u8]| {
            let rest = names.get(at..).and_then(|names| names.strip_prefix(name));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        let is_rule = is(b".eh_frame") || is(b".debug_frame");
        let is_known = matches!(
            section.sh_type.get(LE),
            elf::SHT_SYMTAB | elf::SHT_DYNSYM | elf::SHT_STRTAB | elf::SHT_NOTE
        );
        if is_rule || is_known || is(b".eh_frame_hdr") {
            has_rules |= is_rule;
            ranges.extend(range_of(section));
        }
    }
    has_rules.then_some(ranges)
}

fn range_of(section: &SectionHeader64<LE>) -> Option<Range<usize>> {
    if section.sh_type.get(LE) == elf::SHT_NOBITS {
        return None;
    }
    let start = usize::try_from(section.sh_offset.get(LE)).ok()?;
    let len = usize::try_from(section.sh_size.get(LE)).ok()?;
    Some(start..start.checked_add(len)?)
}
