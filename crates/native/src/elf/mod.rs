//! Reads the parts of a 64-bit little-endian ELF image that a profiler needs: build id, load
//! segments, unwind sections, symbols.
//!
//! The image is a slice: a mapped file, a file read into memory, or the vdso in memory. This module
//! must not open files. It borrows from the image wherever it can.
//!
//! Read next: [`Symbols`] in `symbols`, then `debug` for stripped libraries and `dynamic` for those
//! without section headers.

mod bare;
mod debug;
mod dynamic;
mod parts;
mod symbols;

use std::fmt;
use std::ops::Range;

use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64, Sym64};
use object::read::elf::FileHeader as _;
use object::{LittleEndian as LE, ReadRef};

pub use debug::ReadAt;
pub use parts::{Parts, fill_parts, read_parts};
pub use symbols::{Definition, Symbol, SymbolIndex, Symbols};

use crate::unwind::{self, Direct, Rule, Section, UnwindTable};

/// Maximum number of program headers accepted; real files have about a dozen.
pub const SEGMENTS_MAX: usize = 256;
/// Maximum number of section headers read. Objects built with `-ffunction-sections` may have more,
/// but are not of interest here.
pub const SECTIONS_MAX: usize = 65_536;
/// Load segments are mapped in units of this many bytes.
const PAGE_BYTES: u64 = 4096;
/// Code bytes for each byte of unwind sections. Tables of compilers take a tenth of the code; a
/// file with less than this has code without tables.
const CODE_FOR_TABLES: u64 = 256;

/// Whether unwind sections of this length can cover the code.
fn is_covered(code_bytes: u64, table_bytes: u64) -> bool {
    code_bytes <= table_bytes.saturating_mul(CODE_FOR_TABLES)
}

/// Why a file cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Not a 64-bit little-endian ELF image.
    NotElf64,
    /// The program headers lie outside the file or are too many.
    BadProgramHeaders,
    /// There is no load segment, so addresses have no meaning.
    NoLoadSegment,
    /// The unwind sections could not be compiled.
    Unwind(unwind::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotElf64 => write!(f, "not a 64-bit little-endian ELF file"),
            Error::BadProgramHeaders => write!(f, "ELF program headers are damaged or too many"),
            Error::NoLoadSegment => write!(f, "ELF file has no load segment"),
            Error::Unwind(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<unwind::Error> for Error {
    fn from(error: unwind::Error) -> Error {
        Error::Unwind(error)
    }
}

/// One `PT_LOAD` segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address in the file's own address space.
    pub vaddr: u64,
    /// Bytes in memory.
    pub mem_len: u64,
    /// Offset of its contents in the file.
    pub file_offset: u64,
    /// Bytes in the file.
    pub file_len: u64,
    /// Whether it is mapped executable.
    pub is_executable: bool,
    /// Whether it is mapped writable.
    pub is_writable: bool,
}

/// A parsed image that borrows its bytes.
#[derive(Clone, Debug)]
pub struct Elf<'data> {
    data: &'data [u8],
    program_headers: &'data [ProgramHeader64<LE>],
    section_headers: &'data [SectionHeader64<LE>],
    section_names: &'data [u8],
    segments: Vec<Segment>,
}

impl<'data> Elf<'data> {
    /// Reads the headers. Missing or damaged section headers are not an error: they are not needed
    /// for a stripped file or the vdso.
    ///
    /// # Errors
    /// The reason why the image is unusable, see [`Error`].
    pub fn parse(data: &'data [u8]) -> Result<Elf<'data>, Error> {
        let header = FileHeader64::<LE>::parse(data).map_err(|_| Error::NotElf64)?;
        if !header.is_little_endian() {
            return Err(Error::NotElf64);
        }
        let program_headers = header
            .program_headers(LE, data)
            .map_err(|_| Error::BadProgramHeaders)?;
        if program_headers.len() > SEGMENTS_MAX {
            return Err(Error::BadProgramHeaders);
        }
        let segments = load_segments(program_headers);
        if segments.is_empty() {
            return Err(Error::NoLoadSegment);
        }
        let section_headers = header.section_headers(LE, data).unwrap_or(&[]);
        let section_headers = section_headers
            .get(..section_headers.len().min(SECTIONS_MAX))
            .unwrap_or(&[]);
        let mut image = Elf {
            data,
            program_headers,
            section_headers,
            section_names: &[],
            segments,
        };
        let names_index = header.shstrndx(LE, data).ok().map(|index| index as usize);
        if let Some(names) = names_index.and_then(|index| section_headers.get(index)) {
            image.section_names = image.contents(names).unwrap_or(&[]);
        }
        Ok(image)
    }

    /// The same with only its segments, for callers that only compute addresses.
    #[must_use]
    pub fn without_contents(self) -> Elf<'static> {
        Elf {
            data: &[],
            program_headers: &[],
            section_headers: &[],
            section_names: &[],
            segments: self.segments,
        }
    }

    /// The load segments in the order of the file (ascending addresses in every real file).
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Lowest address, rounded down to a page. Offsets within the module count from it, and it is
    /// mapped at the module's load address.
    #[must_use]
    pub fn base_svma(&self) -> u64 {
        self.segments.iter().map(|s| s.vaddr).min().unwrap_or(0) & !(PAGE_BYTES - 1)
    }

    /// The difference between an address in the process and the address in this file, if file
    /// offset `file_offset` is mapped at `start` (both of the same executable mapping). A mapping
    /// begins with a whole page, of `page_bytes`.
    ///
    /// `None` if no load segment has that offset.
    #[must_use]
    pub fn bias(&self, file_offset: u64, start: u64, page_bytes: u64) -> Option<u64> {
        let covers = |s: &&Segment| {
            let first = s.file_offset & !page_bytes.wrapping_sub(1);
            s.file_len > 0 && file_offset >= first && file_offset < s.file_offset + s.file_len
        };
        // A page shared by two segments is in the file range of both; the executable one is the
        // right one.
        let segment = (self
            .segments
            .iter()
            .filter(|s| s.is_executable)
            .find(covers))
        .or_else(|| self.segments.iter().find(covers))?;
        let svma = segment
            .vaddr
            .wrapping_sub(segment.file_offset)
            .wrapping_add(file_offset);
        Some(start.wrapping_sub(svma))
    }

    /// Address ranges of the executable segments.
    #[must_use]
    pub fn text_ranges(&self) -> Vec<Range<u64>> {
        let executable = self.segments.iter().filter(|s| s.is_executable);
        executable
            .map(|s| s.vaddr..s.vaddr.saturating_add(s.mem_len))
            .collect()
    }

    /// The GNU build id, if there is one.
    #[must_use]
    pub fn build_id(&self) -> Option<&'data [u8]> {
        let in_segments = (self.program_headers.iter())
            .filter(|header| header.p_type.get(LE) == elf::PT_NOTE)
            .filter_map(|header| self.file_bytes(header.p_offset.get(LE), header.p_filesz.get(LE)));
        let in_section = self
            .section(b".note.gnu.build-id")
            .map(|section| section.data);
        in_segments.chain(in_section).find_map(build_id_in_notes)
    }

    /// A section's contents and address; `None` if absent, empty in the file, or compressed.
    #[must_use]
    pub fn section(&self, name: &[u8]) -> Option<Section<'data>> {
        let header = self
            .section_headers
            .iter()
            .find(|header| self.is_named(header, name))?;
        if header.sh_flags.get(LE).contains(elf::SHF_COMPRESSED) {
            return None;
        }
        Some(Section {
            data: self.contents(header)?,
            svma: header.sh_addr.get(LE),
        })
    }

    /// `.eh_frame`, from the section headers, or else from the program headers. In the second case
    /// other bytes of the segment may follow the section.
    #[must_use]
    pub fn eh_frame(&self) -> Option<Section<'data>> {
        self.section(b".eh_frame").or_else(|| {
            let svma = unwind::eh_frame_svma(self.loaded_eh_frame_hdr()?).ok()?;
            Some(Section {
                data: self.loaded_bytes(svma)?,
                svma,
            })
        })
    }

    fn eh_frame_hdr(&self) -> Option<Section<'data>> {
        self.section(b".eh_frame_hdr")
            .or_else(|| self.loaded_eh_frame_hdr())
    }

    fn loaded_eh_frame_hdr(&self) -> Option<Section<'data>> {
        let header = (self.program_headers.iter())
            .find(|header| header.p_type.get(LE) == elf::PT_GNU_EH_FRAME)?;
        Some(Section {
            data: self.file_bytes(header.p_offset.get(LE), header.p_filesz.get(LE))?,
            svma: header.p_vaddr.get(LE),
        })
    }

    /// Compiles the unwind sections. For code that they do not cover, as in musl's libc, the rules
    /// are found in the code.
    ///
    /// # Errors
    /// [`Error::Unwind`].
    pub fn unwind_table(&self) -> Result<UnwindTable, Error> {
        let text = self.text_ranges();
        let input = unwind::Input {
            base_svma: self.base_svma(),
            eh_frame: self.eh_frame(),
            debug_frame: self.section(b".debug_frame"),
            text: &text,
        };
        Ok(UnwindTable::build_with(&input, &self.bare_code())?)
    }

    /// The unwind rule at `offset` from [`Elf::base_svma`], from the file's own search table,
    /// without compiling the other rules. `None` if only [`Elf::unwind_table`] has the answer.
    #[must_use]
    pub fn rule_at(&self, offset: u32) -> Option<Rule> {
        let text = self.text_ranges();
        let direct = Direct::unchecked(&self.searched(&text)?)?;
        match direct.rule_in(self.data, offset) {
            Rule::Gap | Rule::Unsupported => None,
            rule => Some(rule),
        }
    }

    /// Finds rules one by one without compiling the table, if the results equal those of
    /// [`Elf::unwind_table`]: the search table is complete, and the file has no other rules.
    /// Valid while the bytes of this file stay at their addresses.
    #[must_use]
    pub fn direct(&self) -> Option<Direct> {
        let other = self.section(b".debug_frame");
        if other.is_some_and(|other| !other.data.is_empty()) || !self.has_tables_for_code() {
            return None;
        }
        let text = self.text_ranges();
        let mut searched = self.searched(&text)?;
        if self.section(b".eh_frame").is_none() {
            searched.eh_frame.data = unwind::up_to_terminator(searched.eh_frame.data);
        }
        Direct::of(&searched)
    }

    fn searched<'t>(&self, text: &'t [Range<u64>]) -> Option<unwind::Searched<'t>>
    where
        'data: 't,
    {
        Some(unwind::Searched {
            base_svma: self.base_svma(),
            header: self.eh_frame_hdr()?,
            eh_frame: self.eh_frame()?,
            text,
        })
    }

    /// Contents of the file from address `svma` to the end of its segment.
    fn loaded_bytes(&self, svma: u64) -> Option<&'data [u8]> {
        let segment = (self.segments.iter()).find(|s| {
            svma.checked_sub(s.vaddr)
                .is_some_and(|into| into < s.file_len)
        })?;
        let into = svma - segment.vaddr;
        self.file_bytes(
            segment.file_offset.checked_add(into)?,
            segment.file_len - into,
        )
    }

    fn file_bytes(&self, offset: u64, len: u64) -> Option<&'data [u8]> {
        self.data.read_bytes_at(offset, len).ok()
    }

    fn contents(&self, header: &SectionHeader64<LE>) -> Option<&'data [u8]> {
        if header.sh_type.get(LE) == elf::SHT_NOBITS {
            return None;
        }
        self.file_bytes(header.sh_offset.get(LE), header.sh_size.get(LE))
    }

    fn is_named(&self, header: &SectionHeader64<LE>, name: &[u8]) -> bool {
        let at = header.sh_name.get(LE) as usize;
        let rest = self
            .section_names
            .get(at..)
            .and_then(|names| names.strip_prefix(name));
        rest.is_some_and(|rest| rest.first() == Some(&0))
    }

    /// The symbols and names of the section of `kind`, which must be a symbol table. Exported ones
    /// are also found without section headers.
    fn symbol_table(&self, kind: elf::SectionType) -> Option<(&'data [Sym64<LE>], &'data [u8])> {
        let found = self
            .section_headers
            .iter()
            .find(|h| h.sh_type.get(LE) == kind);
        let Some(header) = found else {
            let is_exported = kind == elf::SHT_DYNSYM;
            return is_exported.then(|| self.dynamic_symbols()).flatten();
        };
        let names = self.section_headers.get(header.sh_link.get(LE) as usize)?;
        let bytes = self.contents(header)?;
        let count = bytes.len() / size_of::<Sym64<LE>>();
        let (symbols, _) = object::pod::slice_from_bytes(bytes, count).ok()?;
        Some((symbols, self.contents(names)?))
    }
}

fn load_segments(headers: &[ProgramHeader64<LE>]) -> Vec<Segment> {
    let loads = headers
        .iter()
        .filter(|header| header.p_type.get(LE) == elf::PT_LOAD);
    loads
        .map(|header| Segment {
            vaddr: header.p_vaddr.get(LE),
            mem_len: header.p_memsz.get(LE),
            file_offset: header.p_offset.get(LE),
            file_len: header.p_filesz.get(LE),
            is_executable: header.p_flags.get(LE).contains(elf::PF_X),
            is_writable: header.p_flags.get(LE).contains(elf::PF_W),
        })
        .filter(|s| {
            s.mem_len > 0
                && s.vaddr.checked_add(s.mem_len).is_some()
                && s.file_offset.checked_add(s.file_len).is_some()
        })
        .collect()
}

/// Notes are three words (name length, contents length, type), the name, the contents, each part
/// padded to 4 bytes. (Notes padded to 8 exist for properties only; a build id fits both.)
fn build_id_in_notes(mut notes: &[u8]) -> Option<&[u8]> {
    let padded = |len: u32| usize::try_from(len).ok()?.checked_next_multiple_of(4);
    while let Some((header, rest)) = notes.split_at_checked(12) {
        let word = |at: usize| Some(u32::from_le_bytes(*header.get(at..at + 4)?.first_chunk()?));
        let (name_len, desc_len, kind) = (word(0)?, word(4)?, word(8)?);
        let (name, rest) = rest.split_at_checked(padded(name_len)?)?;
        if name == b"GNU\0" && kind == elf::NT_GNU_BUILD_ID.0 {
            return rest.get(..desc_len as usize).filter(|id| !id.is_empty());
        }
        notes = rest.get(padded(desc_len)?..)?;
    }
    None
}

#[cfg(test)]
mod tests;
