//! The separate debug file of a stripped library: its possible places, the check that it belongs to
//! the library, and its function symbols. The caller opens files. Must not use a file that does not
//! match: wrong names are worse than none.

use std::ops::Range;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, SectionHeader64, Sym64};
use object::read::elf::FileHeader as _;

use super::parts::{range_of, section_table};
use super::{Elf, Symbols, build_id_in_notes};

/// The directory in which distributions install debug files.
const DEBUG_ROOT: &str = "/usr/lib/debug";
/// Longest build id; SHA-1 has 20 bytes.
const BUILD_ID_BYTES_MAX: usize = 64;
/// Longest note section; a build id takes 36 bytes.
const NOTE_BYTES_MAX: usize = 4096;
/// Maximum number of note sections read; real files have about three.
const NOTES_MAX: usize = 16;
/// Longest symbol table and longest table of its names: 5 million symbols.
const TABLE_BYTES_MAX: usize = 128 << 20;
/// Longest file for which a checksum is computed, which takes about a second.
const CHECKED_BYTES_MAX: u64 = 512 << 20;
/// Bytes read at a time for the checksum.
const CHECKED_PART_BYTES: usize = 64 << 10;

/// A file that is read by position.
pub trait ReadAt {
    /// Length in bytes.
    fn file_len(&self) -> u64;
    /// Fills `into` with the bytes at `offset`; false unless all of them can be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool;
}

/// The contents of `.gnu_debuglink`.
struct Link<'data> {
    /// File name without directories.
    name: &'data [u8],
    /// Checksum of the whole debug file.
    crc: u32,
}

impl Elf<'_> {
    /// The function symbols of the separate debug file of this library, which is mapped from
    /// `path`. `open` is called for each possible place. `None` if the library has a symbol table
    /// of its own, or no debug file that matches.
    ///
    /// A debug file matches if both files have the same build id. If one of them lacks a build id,
    /// the checksum in `.gnu_debuglink` decides.
    pub fn debug_symbols<F: ReadAt>(
        &self,
        path: &[u8],
        open: &mut dyn FnMut(&[u8]) -> Option<F>,
    ) -> Option<Symbols<'static>> {
        let table = self.symbol_table(elf::SHT_SYMTAB);
        if table.is_some_and(|(symbols, _)| symbols.len() > 1) {
            return None;
        }
        let mut places = self.debug_paths(path).into_iter();
        places.find_map(|place| self.symbols_in(&open(&place)?))
    }

    /// Possible places of the debug file, the most likely one first.
    fn debug_paths(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let mut places = Vec::new();
        let id = self.build_id().unwrap_or(&[]);
        if let (Some((first, rest)), true) = (id.split_first(), id.len() <= BUILD_ID_BYTES_MAX) {
            let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
            places.push(format!("{DEBUG_ROOT}/.build-id/{first:02x}/{rest}.debug").into_bytes());
        }
        let slash = path.iter().rposition(|byte| *byte == b'/');
        let folder = slash.and_then(|slash| path.get(..=slash));
        let folder = folder.filter(|folder| folder.starts_with(b"/"));
        if let (Some(Link { name, .. }), Some(folder)) = (self.debug_link(), folder) {
            places.push([folder, name].concat());
            places.push([folder, b".debug/", name].concat());
            places.push([DEBUG_ROOT.as_bytes(), folder, name].concat());
        }
        places
    }

    fn debug_link(&self) -> Option<Link<'_>> {
        let data = self.section(b".gnu_debuglink")?.data;
        let name = data.split(|byte| *byte == 0).next()?;
        let is_plain = !name.is_empty() && !name.contains(&b'/') && name != b"..";
        let crc = data.get((name.len() + 1).next_multiple_of(4)..)?;
        let crc = u32::from_le_bytes(*crc.first_chunk()?);
        is_plain.then_some(Link { name, crc })
    }

    fn symbols_in(&self, file: &impl ReadAt) -> Option<Symbols<'static>> {
        let head = read(file, 0..size_of::<FileHeader64<LE>>())?;
        let header = FileHeader64::<LE>::parse(head.as_slice()).ok()?;
        if !header.is_little_endian() {
            return None;
        }
        let table = read(file, section_table(&head)?)?;
        let count = table.len() / size_of::<SectionHeader64<LE>>();
        let (sections, _) = object::pod::slice_from_bytes(&table, count).ok()?;
        if !self.is_matched_by(file, sections) {
            return None;
        }
        let symbols = sections
            .iter()
            .find(|section| section.sh_type.get(LE) == elf::SHT_SYMTAB)?;
        let names = sections.get(symbols.sh_link.get(LE) as usize)?;
        let (symbols, names) = (contents(file, symbols)?, contents(file, names)?);
        let count = symbols.len() / size_of::<Sym64<LE>>();
        let (symbols, _) = object::pod::slice_from_bytes(&symbols, count).ok()?;
        // The addresses of both files are the same, but the headers of a debug file may be wrong.
        let symbols = self.symbols_of(symbols, names);
        (!symbols.is_empty()).then_some(symbols)
    }

    fn is_matched_by(&self, file: &impl ReadAt, sections: &[SectionHeader64<LE>]) -> bool {
        let notes = sections
            .iter()
            .filter(|section| section.sh_type.get(LE) == elf::SHT_NOTE);
        let mut notes = notes
            .filter(|section| section.sh_size.get(LE) <= NOTE_BYTES_MAX as u64)
            .take(NOTES_MAX)
            .filter_map(|section| contents(file, section));
        let id = notes.find_map(|notes| build_id_in_notes(&notes).map(<[u8]>::to_vec));
        match (self.build_id(), id) {
            (Some(own), Some(id)) => own == id,
            _ => {
                let link = self.debug_link();
                link.is_some_and(|link| checksum(file) == Some(link.crc))
            }
        }
    }
}

fn contents(file: &impl ReadAt, section: &SectionHeader64<LE>) -> Option<Vec<u8>> {
    if section.sh_flags.get(LE).contains(elf::SHF_COMPRESSED) {
        return None;
    }
    read(file, range_of(section)?)
}

fn read(file: &impl ReadAt, range: Range<usize>) -> Option<Vec<u8>> {
    let is_inside = range.end as u64 <= file.file_len();
    if !is_inside || range.len() > TABLE_BYTES_MAX {
        return None;
    }
    let mut bytes = vec![0; range.len()];
    file.read_at(range.start as u64, &mut bytes)
        .then_some(bytes)
}

/// CRC-32 of IEEE 802.3 over the whole file.
fn checksum(file: &impl ReadAt) -> Option<u32> {
    let len = file.file_len();
    if len > CHECKED_BYTES_MAX {
        return None;
    }
    let table: [u32; 256] = std::array::from_fn(|byte| {
        (0..8).fold(byte as u32, |crc, _| {
            crc >> 1 ^ 0xedb8_8320 & (crc & 1).wrapping_neg()
        })
    });
    let mut part = vec![0; CHECKED_PART_BYTES];
    let (mut crc, mut at) = (u32::MAX, 0);
    while at < len {
        let left = usize::try_from(len - at).unwrap_or(usize::MAX);
        let part = part.get_mut(..left.min(CHECKED_PART_BYTES))?;
        if !file.read_at(at, part) {
            return None;
        }
        at += part.len() as u64;
        for byte in part {
            let index = usize::from(crc as u8 ^ *byte);
            crc = crc >> 8 ^ table.get(index).copied().unwrap_or(0);
        }
    }
    Some(!crc)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{FUNC, GLOBAL, Image, Sym, TEXT, TEXT_SVMA};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    impl ReadAt for Vec<u8> {
        fn file_len(&self) -> u64 {
            self.len() as u64
        }

        fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
            let from = self.get(offset as usize..).unwrap_or(&[]);
            let from = from.get(..into.len());
            from.map(|from| into.copy_from_slice(from)).is_some()
        }
    }

    const PATH: &[u8] = b"/usr/lib/x/libx.so.1";
    const BY_ID: &str = "/usr/lib/debug/.build-id/61/626364.debug";

    fn note(id: &[u8; 4]) -> Vec<u8> {
        [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0", id].concat()
    }

    fn link(name: &str, crc: u32) -> Vec<u8> {
        let mut link = name.as_bytes().to_vec();
        link.resize((name.len() + 1).next_multiple_of(4), 0);
        link.extend(crc.to_le_bytes());
        link
    }

    /// A library that exports one function.
    fn library(id: Option<&[u8; 4]>, linked: Option<(&str, u32)>) -> Vec<u8> {
        let exported = Sym("exported", FUNC | GLOBAL, TEXT, TEXT_SVMA, 8);
        let mut image = Image::new().symbols(11, &[exported]);
        if let Some(id) = id {
            image = image.section(".note.gnu.build-id", 7, 0, note(id));
        }
        if let Some((name, crc)) = linked {
            image = image.section(".gnu_debuglink", 1, 0, link(name, crc));
        }
        image.bytes()
    }

    /// A debug file that also names a local function.
    fn debug(id: Option<&[u8; 4]>) -> Vec<u8> {
        let exported = Sym("exported", FUNC | GLOBAL, TEXT, TEXT_SVMA, 8);
        let local = Sym("local", FUNC, TEXT, TEXT_SVMA + 0x10, 8);
        let mut image = Image::new().symbols(2, &[local, exported]);
        if let Some(id) = id {
            image = image.section(".note.gnu.build-id", 7, 0, note(id));
        }
        // A debug file does not contain the code, and its headers may be wrong.
        image.segments[1].2 = 0;
        image.bytes()
    }

    /// The name of the local function, and the places that were tried.
    fn found(library: &[u8], files: &[(&str, &Vec<u8>)]) -> (Option<String>, Vec<String>) {
        let files: BTreeMap<&[u8], &Vec<u8>> = (files.iter())
            .map(|(path, file)| (path.as_bytes(), *file))
            .collect();
        let mut asked = Vec::new();
        let elf = Elf::parse(library).unwrap();
        let symbols = elf.debug_symbols(PATH, &mut |path| {
            asked.push(String::from_utf8(path.to_vec()).unwrap());
            files.get(path).map(|file| (*file).clone())
        });
        let name = |symbols: &Symbols<'_>| {
            assert_eq!(symbols.lookup(0x1000).unwrap().name, b"exported");
            let local = symbols.lookup(0x1017).unwrap().name;
            String::from_utf8(local.to_vec()).unwrap()
        };
        (symbols.as_ref().map(name), asked)
    }

    #[test]
    fn debug_file_is_found_by_build_id() {
        let library = library(Some(b"abcd"), None);
        let (name, asked) = found(&library, &[(BY_ID, &debug(Some(b"abcd")))]);
        assert_eq!(name.as_deref(), Some("local"));
        assert_eq!(asked, [BY_ID]);
    }

    #[test]
    fn debug_file_is_found_by_link_in_three_places() {
        let file = debug(None);
        let crc = checksum(&file).unwrap();
        let library = library(None, Some(("libx.debug", crc)));
        let places = [
            "/usr/lib/x/libx.debug",
            "/usr/lib/x/.debug/libx.debug",
            "/usr/lib/debug/usr/lib/x/libx.debug",
        ];
        for place in places {
            let (name, _) = found(&library, &[(place, &file)]);
            assert_eq!(name.as_deref(), Some("local"), "{place}");
        }
        assert_eq!(
            found(&library, &[]),
            (None, places.map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn debug_file_with_another_build_id_is_refused() {
        let other = debug(Some(b"abce"));
        let crc = checksum(&other).unwrap();
        // The build ids differ, so the right checksum does not help.
        let library = library(Some(b"abcd"), Some(("libx.debug", crc)));
        let files = [(BY_ID, &other), ("/usr/lib/x/libx.debug", &other)];
        assert_eq!(found(&library, &files).0, None);
        let right = debug(Some(b"abcd"));
        let files = [(BY_ID, &other), ("/usr/lib/x/.debug/libx.debug", &right)];
        assert_eq!(found(&library, &files).0.as_deref(), Some("local"));
    }

    #[test]
    fn debug_file_with_another_checksum_is_refused() {
        let file = debug(None);
        let crc = checksum(&file).unwrap();
        let with = |crc, file: &Vec<u8>| {
            let library = library(Some(b"abcd"), Some(("libx.debug", crc)));
            found(&library, &[("/usr/lib/x/libx.debug", file)]).0
        };
        assert_eq!(with(crc, &file).as_deref(), Some("local"));
        assert_eq!(with(crc ^ 1, &file), None);
        let mut other = file.clone();
        *other.last_mut().unwrap() ^= 1;
        assert_eq!(with(crc, &other), None);
        // Without a link there is nothing to compare.
        let library = library(Some(b"abcd"), None);
        assert_eq!(found(&library, &[(BY_ID, &file)]).0, None);
    }

    #[test]
    fn checksum_is_the_one_of_gnu_debuglink() {
        assert_eq!(checksum(&b"123456789".to_vec()), Some(0xcbf4_3926));
        assert_eq!(checksum(&Vec::new()), Some(0));
        // Longer than one read.
        assert_eq!(checksum(&vec![b'a'; 65_539]), Some(0x1dab_dc90));
    }

    #[test]
    fn link_with_a_folder_is_refused() {
        for name in ["../libx.debug", "a/b", "", ".."] {
            let library = library(None, Some((name, 0)));
            assert_eq!(found(&library, &[]).1, [""; 0], "{name}");
        }
        let mut cut = Image::new();
        cut = cut.section(".gnu_debuglink", 1, 0, b"libx.debug\0\0\x01\x02".to_vec());
        assert!(found(&cut.bytes(), &[]).1.is_empty());
    }

    #[test]
    fn library_with_symbols_needs_no_debug_file() {
        let local = Sym("own", FUNC, TEXT, TEXT_SVMA, 8);
        let image = Image::new().symbols(2, &[local]);
        let image = image.section(".note.gnu.build-id", 7, 0, note(b"abcd"));
        let (name, asked) = found(&image.bytes(), &[(BY_ID, &debug(Some(b"abcd")))]);
        assert!(name.is_none() && asked.is_empty());
    }

    proptest! {
        #[test]
        fn damaged_debug_files_cause_no_panic(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
            cut in any::<prop::sample::Index>(),
            is_cut in prop::bool::weighted(0.2),
        ) {
            let library = library(Some(b"abcd"), None);
            let mut bytes = debug(Some(b"abcd"));
            // The bytes between the headers and the sections are zero.
            let places: Vec<usize> = (0..64).chain(0x2000..bytes.len()).collect();
            for (at, value) in damage {
                bytes[places[at.index(places.len())]] = value;
            }
            if is_cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            let elf = Elf::parse(&library).unwrap();
            let len = bytes.len();
            let symbols = elf.debug_symbols(PATH, &mut |_| Some(bytes.clone()));
            prop_assert!(symbols.is_none_or(|symbols| symbols.heap_bytes() <= 2 * len));
        }
    }
}
