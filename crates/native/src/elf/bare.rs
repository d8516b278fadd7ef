//! Code that the unwind sections of a file do not cover: whether there is such code, and the
//! entries of its functions. Must not interpret instructions.

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, Rela64};
use object::read::elf::FileHeader as _;

use super::{Elf, is_covered};
use crate::unwind::{Code, Section};

impl<'data> Elf<'data> {
    /// The code for which the unwind sections are too short; without code if they are not.
    pub(super) fn bare_code(&self) -> Code<'data> {
        if self.has_tables_for_code() {
            return Code::default();
        }
        let executable = self.segments.iter().filter(|s| s.is_executable);
        let sections = executable.filter_map(|s| {
            Some(Section {
                data: self.file_bytes(s.file_offset, s.file_len)?,
                svma: s.vaddr,
            })
        });
        let symbols = self.symbols();
        let base = self.base_svma();
        let named = symbols.iter().map(|symbol| base + u64::from(symbol.offset));
        Code {
            sections: sections.collect(),
            entries: named.chain(self.entry()).chain(self.pointers()).collect(),
        }
    }

    /// Whether the unwind sections are long enough for the code.
    pub(super) fn has_tables_for_code(&self) -> bool {
        let executable = self.segments.iter().filter(|s| s.is_executable);
        let code = executable.fold(0u64, |sum, s| sum.saturating_add(s.file_len));
        let debug = self.section(b".debug_frame");
        let tables = self.eh_frame().into_iter().chain(debug);
        is_covered(code, tables.map(|section| section.data.len() as u64).sum())
    }

    /// Where the program begins.
    fn entry(&self) -> Option<u64> {
        let header = FileHeader64::<LE>::parse(self.data).ok()?;
        Some(header.e_entry.get(LE))
    }

    /// Addresses in pointers that the loader adjusts. Some are of functions.
    fn pointers(&self) -> impl Iterator<Item = u64> {
        let lists = self.section_headers.iter();
        let lists = lists.filter(|header| header.sh_type.get(LE) == elf::SHT_RELA);
        let entries = lists.flat_map(|header| {
            let bytes = self.contents(header).unwrap_or(&[]);
            let count = bytes.len() / size_of::<Rela64<LE>>();
            let entries = object::pod::slice_from_bytes::<Rela64<LE>>(bytes, count);
            entries.map_or(&[][..], |(entries, _)| entries)
        });
        entries
            .filter(|entry| entry.r_type(LE, false) == elf::R_X86_64_RELATIVE)
            .map(|entry| entry.r_addend.get(LE) as u64)
    }
}
