//! Tests of the ELF reader on images built here, field by field.

use super::*;
use proptest::prelude::*;

/// A symbol to be written: name, type and binding, section, address, size.
pub(super) struct Sym(
    pub(super) &'static str,
    pub(super) u8,
    pub(super) u16,
    pub(super) u64,
    pub(super) u64,
);

pub(super) const FUNC: u8 = 2;
const OBJECT: u8 = 1;
const IFUNC: u8 = 10;
pub(super) const GLOBAL: u8 = 1 << 4;
const WEAK: u8 = 2 << 4;
pub(super) const TEXT: u16 = 1;

const BASE: u64 = 0x40_0000;
const TEXT_OFFSET: u64 = 0x1000;
pub(super) const TEXT_SVMA: u64 = BASE + TEXT_OFFSET;
const TEXT_LEN: u64 = 0x800;

#[derive(Default)]
pub(super) struct Image {
    pub(super) segments: Vec<(u32, u32, u64, u64, u64)>,
    sections: Vec<(&'static str, u32, u64, Vec<u8>, u32)>,
}

impl Image {
    /// A read-only segment with the headers and an executable one.
    pub(super) fn new() -> Image {
        let mut image = Image::default();
        image.segments.push((1, 4, 0, BASE, 0x1000));
        image
            .segments
            .push((1, 5, TEXT_OFFSET, TEXT_SVMA, TEXT_LEN));
        image
    }

    pub(super) fn section(
        mut self,
        name: &'static str,
        kind: u32,
        svma: u64,
        data: Vec<u8>,
    ) -> Image {
        self.sections.push((name, kind, svma, data, 0));
        self
    }

    /// Adds a symbol table of `kind` (2: symtab, 11: dynsym) and its strings.
    pub(super) fn symbols(mut self, kind: u32, symbols: &[Sym]) -> Image {
        let mut table = vec![0; 24];
        let mut names = vec![0];
        for Sym(name, info, section, value, size) in symbols {
            table.extend((names.len() as u32).to_le_bytes());
            table.extend([*info, 0]);
            table.extend(section.to_le_bytes());
            table.extend(value.to_le_bytes());
            table.extend(size.to_le_bytes());
            names.extend(name.bytes());
            names.push(0);
        }
        let link = self.sections.len() as u32 + 2;
        self.sections.push((".symbols", kind, 0, table, link));
        self.sections.push((".names", 3, 0, names, 0));
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut file = vec![0; 64 + 56 * self.segments.len()];
        file[..20].copy_from_slice(&[
            0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0x3e, 0,
        ]);
        for (i, (kind, flags, offset, vaddr, len)) in self.segments.iter().enumerate() {
            let at = 64 + 56 * i;
            file[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            file[at + 4..at + 8].copy_from_slice(&flags.to_le_bytes());
            for (field, value) in [(8, offset), (16, vaddr), (32, len), (40, len)] {
                file[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        file.resize(0x2000, 0);
        let mut names = vec![0];
        let mut headers = vec![0; 64];
        let shstrtab = (".shstrtab", 3, 0, Vec::new(), 0);
        for (name, kind, svma, data, link) in self.sections.iter().chain([&shstrtab]) {
            let name_at = names.len() as u32;
            names.extend(name.bytes());
            names.push(0);
            let data = if *name == ".shstrtab" { &names } else { data };
            headers.extend(name_at.to_le_bytes());
            headers.extend(kind.to_le_bytes());
            for value in [0, *svma, file.len() as u64, data.len() as u64] {
                headers.extend(value.to_le_bytes());
            }
            headers.extend(link.to_le_bytes());
            headers.resize(headers.len() + 20, 0);
            file.extend(data);
        }
        let shoff = file.len() as u64;
        file.extend(&headers);
        file[20..24].copy_from_slice(&1u32.to_le_bytes());
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[40..48].copy_from_slice(&shoff.to_le_bytes());
        let count = self.sections.len() as u16 + 2;
        for (at, value) in [
            (52, 64u16),
            (54, 56),
            (56, self.segments.len() as u16),
            (58, 64),
            (60, count),
            (62, count - 1),
        ] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        file
    }
}

/// The function symbols as (name, offset, length).
fn listed(symbols: &Symbols<'_>) -> Vec<(String, u32, u32)> {
    let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
    symbols
        .iter()
        .map(|symbol| (text(symbol.name), symbol.offset, symbol.len))
        .collect()
}

fn expected(symbols: &[(&str, u32, u32)]) -> Vec<(String, u32, u32)> {
    symbols
        .iter()
        .map(|(name, offset, len)| ((*name).to_string(), *offset, *len))
        .collect()
}

#[test]
fn headers_give_segments_base_and_text() {
    let bytes = Image::new().bytes();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(elf.base_svma(), BASE);
    assert_eq!(elf.text_ranges(), vec![TEXT_SVMA..TEXT_SVMA + TEXT_LEN]);
    let text = elf.segments()[1];
    assert!(text.is_executable && !text.is_writable);
    assert_eq!(elf.build_id(), None);
    assert!(elf.symbols().is_empty());
    assert!(elf.eh_frame().is_none());
    assert!(elf.unwind_table().unwrap().rows().is_empty());
}

const PAGE: u64 = 4096;

#[test]
fn the_bias_comes_from_the_segment_that_was_mapped() {
    let bytes = Image::new().bytes();
    let elf = Elf::parse(&bytes).unwrap();
    let load = 0x7f00_0000_0000;
    assert_eq!(
        elf.bias(TEXT_OFFSET, load + TEXT_OFFSET, PAGE),
        Some(load - BASE)
    );
    assert_eq!(elf.bias(0, load, PAGE), Some(load - BASE));
    // An offset beyond the file, and a program loaded below its own addresses.
    assert_eq!(elf.bias(TEXT_OFFSET + TEXT_LEN, load, PAGE), None);
    assert_eq!(elf.bias(0, 0, PAGE), Some(BASE.wrapping_neg()));
}

#[test]
fn a_page_shared_by_two_segments_belongs_to_the_executable_one() {
    let mut image = Image::new();
    // Text begins in the middle of the page where the headers end, one page higher in memory.
    image.segments[0].4 = 0x300;
    image.segments[1] = (1, 5, 0x300, BASE + 0x1300, 0x500);
    let bytes = image.bytes();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(elf.bias(0, BASE + 0x1000, PAGE), Some(0));
}

#[test]
fn larger_pages_begin_further_before_a_segment() {
    let mut image = Image::new();
    // Text is 68 KiB into the file, and 64 KiB further away in memory.
    image.segments[1] = (1, 5, 0x1_1000, BASE + 0x2_1000, 0x500);
    let bytes = image.bytes();
    let elf = Elf::parse(&bytes).unwrap();
    let of = |file_offset, page_bytes| {
        let start = BASE + 0x1_0000 + file_offset;
        elf.bias(file_offset, start, page_bytes)
    };
    assert_eq!(of(0x1_1000, 4 << 10), Some(0));
    assert_eq!(of(0x1_0000, 4 << 10), None, "a page before the text");
    assert_eq!(of(0x1_0000, 16 << 10), Some(0));
    assert_eq!(of(0x1_0000, 64 << 10), Some(0));
}

#[test]
fn non_elf_image_is_refused() {
    let good = Image::new().bytes();
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Elf::parse(&bytes).map(|_| ()).unwrap_err()
    };
    assert_eq!(with(0, b'X'), Error::NotElf64);
    assert_eq!(with(4, 1), Error::NotElf64, "32-bit");
    assert_eq!(with(5, 2), Error::NotElf64, "big-endian");
    assert_eq!(with(39, 0xff), Error::BadProgramHeaders, "outside the file");
    assert_eq!(with(57, 0x10), Error::BadProgramHeaders, "too many");
    assert_eq!(with(56, 0), Error::NoLoadSegment);
    assert_eq!(Elf::parse(b"").map(|_| ()).unwrap_err(), Error::NotElf64);
    assert_eq!(
        Error::NotElf64.to_string(),
        "not a 64-bit little-endian ELF file"
    );
}

#[test]
fn a_build_id_is_found_by_segment_or_section() {
    let property = [4, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, b'G', b'N', b'U', 0];
    let id = [
        4, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0, 0xab, 0xcd, 0xef, 0,
    ];
    let notes = [&property[..], &id].concat();
    let in_section = Image::new()
        .section(".note.gnu.build-id", 7, 0, notes.clone())
        .bytes();
    assert_eq!(
        Elf::parse(&in_section).unwrap().build_id(),
        Some(&[0xab, 0xcd, 0xef][..])
    );

    let mut in_segment = Image::new();
    in_segment
        .segments
        .push((4, 4, 0x1800, 0, notes.len() as u64));
    let mut bytes = in_segment.bytes();
    bytes[0x1800..0x1800 + notes.len()].copy_from_slice(&notes);
    assert_eq!(
        Elf::parse(&bytes).unwrap().build_id(),
        Some(&[0xab, 0xcd, 0xef][..])
    );
    // An id that claims to be longer than its segment.
    bytes[0x1800 + property.len() + 4] = 200;
    assert_eq!(Elf::parse(&bytes).unwrap().build_id(), None);
}

#[test]
fn best_of_several_names_is_kept() {
    let at = TEXT_SVMA;
    let bytes = Image::new()
        .symbols(
            2,
            &[
                Sym("__libc_open", FUNC | GLOBAL, TEXT, at, 16),
                Sym("open64", FUNC | GLOBAL, TEXT, at, 16),
                Sym("open", FUNC | GLOBAL, TEXT, at, 16),
                Sym("opec", FUNC | WEAK, TEXT, at, 16),
                Sym("op", FUNC, TEXT, at, 16),
                Sym("o", FUNC | GLOBAL, TEXT, at, 0),
                Sym("x", GLOBAL, TEXT, at, 16),
            ],
        )
        .bytes();
    let symbols = Elf::parse(&bytes).unwrap().symbols();
    assert_eq!(listed(&symbols), expected(&[("open", 0x1000, 16)]));
}

#[test]
fn only_functions_in_the_text_count() {
    let at = TEXT_SVMA;
    let bytes = Image::new()
        .symbols(
            2,
            &[
                Sym("function", FUNC, TEXT, at, 16),
                Sym("variant", IFUNC | GLOBAL, TEXT, at + 16, 16),
                Sym("label", GLOBAL, TEXT, at + 32, 0),
                Sym("$x", 0, TEXT, at + 33, 0),
                Sym(".L1", 0, TEXT, at + 34, 0),
                Sym("", FUNC, TEXT, at + 35, 1),
                Sym("data", OBJECT | GLOBAL, TEXT, at + 36, 1),
                Sym("undefined", FUNC | GLOBAL, 0, at + 37, 1),
                Sym("absolute", FUNC | GLOBAL, 0xfff1, at + 38, 1),
                Sym("elsewhere", FUNC | GLOBAL, TEXT, BASE, 1),
                Sym("liar", FUNC, TEXT, at + TEXT_LEN - 8, 1 << 40),
            ],
        )
        .bytes();
    let symbols = Elf::parse(&bytes).unwrap().symbols();
    let names = [
        ("function", 0x1000, 16),
        ("variant", 0x1010, 16),
        ("label", 0x1020, 0x7d8),
        ("liar", 0x17f8, 8),
    ];
    assert_eq!(listed(&symbols), expected(&names));
}

#[test]
fn lookup_finds_the_innermost_function() {
    let at = TEXT_SVMA;
    let bytes = Image::new()
        .symbols(
            2,
            &[
                Sym("outer", FUNC, TEXT, at, 0x100),
                Sym("inner", FUNC, TEXT, at + 0x20, 0x10),
                Sym("open_ended", FUNC, TEXT, at + 0x200, 0),
                Sym("last@@V_1.0", FUNC | GLOBAL, TEXT, at + 0x300, 4),
            ],
        )
        .bytes();
    let elf = Elf::parse(&bytes).unwrap();
    let (borrowed, owned) = (elf.symbols(), elf.symbols().into_owned());
    let cases = [
        (0xfff, None),
        (0x1000, Some("outer")),
        (0x101f, Some("outer")),
        (0x1020, Some("inner")),
        (0x102f, Some("inner")),
        (0x1030, Some("outer")),
        (0x10ff, Some("outer")),
        (0x1100, None),
        (0x1200, Some("open_ended")),
        (0x12ff, Some("open_ended")),
        (0x1300, Some("last")),
        (0x1304, None),
        (u32::MAX, None),
    ];
    let offsets = cases.map(|(offset, _)| offset);
    let index = elf.symbol_index();
    let batch: Vec<_> = offsets.iter().map(|o| elf.symbol_at(&index, *o)).collect();
    for ((offset, name), in_batch) in cases.into_iter().zip(batch) {
        let found = borrowed.lookup(offset);
        assert_eq!(
            found.map(|symbol| symbol.name),
            name.map(str::as_bytes),
            "{offset:#x}"
        );
        assert_eq!(owned.lookup(offset), found);
        assert_eq!(in_batch, found);
    }
    assert_eq!(listed(&owned), listed(&borrowed));
}

#[test]
fn a_stripped_file_has_its_dynamic_symbols() {
    let full = Image::new()
        .symbols(11, &[Sym("exported", FUNC | GLOBAL, TEXT, TEXT_SVMA, 8)])
        .symbols(2, &[Sym("local", FUNC, TEXT, TEXT_SVMA + 8, 8)]);
    let mut stripped = Image::new();
    stripped.sections = full.sections.iter().take(2).cloned().collect();
    let names = |image: &Image| {
        let bytes = image.bytes();
        listed(&Elf::parse(&bytes).unwrap().symbols())
    };
    assert_eq!(names(&full), expected(&[("local", 0x1008, 8)]));
    assert_eq!(names(&stripped), expected(&[("exported", 0x1000, 8)]));
}

#[test]
fn one_symbol_is_found_by_name() {
    let bytes = Image::new()
        .symbols(11, &[Sym("exported", OBJECT | GLOBAL, TEXT, BASE + 8, 8)])
        .symbols(
            2,
            &[
                Sym("exported", OBJECT | GLOBAL, TEXT, 1, 1),
                Sym("exported_more", FUNC, TEXT, 2, 2),
                Sym("missing", FUNC | GLOBAL, 0, 3, 3),
                Sym("versioned@V_1", FUNC, TEXT, TEXT_SVMA, 4),
            ],
        )
        .bytes();
    let elf = Elf::parse(&bytes).unwrap();
    let exported = Definition {
        svma: BASE + 8,
        len: 8,
        is_function: false,
    };
    assert_eq!(elf.find_symbol(b"exported"), Some(exported));
    let versioned = Definition {
        svma: TEXT_SVMA,
        len: 4,
        is_function: true,
    };
    assert_eq!(elf.find_symbol(b"versioned"), Some(versioned));
    assert_eq!(elf.find_symbol(b"missing"), None);
    assert_eq!(elf.find_symbol(b"export"), None);
}

#[test]
fn exported_thread_local_variables_are_found_by_name() {
    const TLS: u8 = 6;
    let symbols = [
        Sym("context", OBJECT | GLOBAL, TEXT, BASE, 8),
        Sym("context", TLS | GLOBAL, 0, 0, 8),
        Sym("context_v1", TLS | GLOBAL, 5, 0x20, 8),
        Sym("context", TLS | GLOBAL, 5, 0x18, 8),
    ];
    let bytes = Image::new().symbols(11, &symbols).bytes();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(elf.find_thread_local(b"context"), Some(0x18));
    assert_eq!(elf.find_thread_local(b"context_v1"), Some(0x20));
    assert_eq!(elf.find_thread_local(b"context_v"), None);
    let bytes = Image::new().symbols(2, &symbols).bytes();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(
        elf.find_thread_local(b"context"),
        None,
        "it is not exported"
    );
}

#[test]
fn names_that_overlap_cannot_fill_the_memory() {
    // 64 symbols; their names are the suffixes of one long string.
    let long = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklm";
    let mut bytes = Image::new()
        .symbols(2, &[Sym(long, FUNC | GLOBAL, TEXT, TEXT_SVMA, 1)])
        .bytes();
    let strings = 0x2000 + 48;
    assert_eq!(&bytes[strings..strings + 4], b"\0abc");
    // Replaces the table by one symbol per suffix, at the end of the file.
    let table = bytes.len() as u64;
    for i in 0..64u64 {
        bytes.extend((1 + i as u32).to_le_bytes());
        bytes.extend([FUNC | GLOBAL, 0, 1, 0]);
        bytes.extend((TEXT_SVMA + i).to_le_bytes());
        bytes.extend(1u64.to_le_bytes());
    }
    let shoff = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
    bytes[shoff + 64 + 24..shoff + 64 + 32].copy_from_slice(&table.to_le_bytes());
    bytes[shoff + 64 + 32..shoff + 64 + 40].copy_from_slice(&(64u64 * 24).to_le_bytes());
    let symbols = Elf::parse(&bytes).unwrap().symbols();
    assert_eq!(symbols.len(), 64);
    let owned = symbols.into_owned();
    assert_eq!(owned.len(), 1);
    assert_eq!(owned.lookup(0x1000).unwrap().name, long.as_bytes());
}

/// An image with both symbol tables, a build id and non-empty unwind sections.
fn full_image() -> Vec<u8> {
    let note = [&[4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0][..], b"GNU\0abcd"].concat();
    Image::new()
        .symbols(11, &[Sym("exported", FUNC | GLOBAL, TEXT, TEXT_SVMA, 64)])
        .symbols(
            2,
            &[
                Sym("inner", FUNC, TEXT, TEXT_SVMA + 8, 8),
                Sym("versioned@V_1", FUNC | WEAK, TEXT, TEXT_SVMA + 0x100, 4),
                Sym("resolved", IFUNC, TEXT, TEXT_SVMA + 0x200, 0),
                Sym("data", OBJECT, TEXT, BASE + 8, 8),
            ],
        )
        .section(".note.gnu.build-id", 7, BASE + 0x200, note)
        .section(
            ".eh_frame",
            1,
            BASE + 0x300,
            vec![8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        )
        .bytes()
}

proptest! {
    #[test]
    fn damaged_images_cause_no_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        in_headers in any::<bool>(),
        cut in any::<prop::sample::Index>(),
        is_cut in prop::bool::weighted(0.2),
        offsets in prop::collection::vec(0..0x3000u32, 0..12),
    ) {
        let mut bytes = full_image();
        // The bytes between the segments' headers and the sections are zero.
        let places: Vec<usize> = match in_headers {
            true => (4..64 + 2 * 56).collect(),
            false => (0x2000..bytes.len()).collect(),
        };
        for (at, value) in damage {
            bytes[places[at.index(places.len())]] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        let Ok(elf) = Elf::parse(&bytes) else {
            return Ok(());
        };
        let _ = (elf.build_id(), elf.text_ranges(), elf.eh_frame(), elf.unwind_table());
        let _ = (elf.bias(TEXT_OFFSET, 0x7f00_0000_1000, PAGE), elf.find_symbol(b"exported"));
        let _ = elf.direct();
        let symbols = elf.symbols();
        prop_assert!(symbols.iter().map(|symbol| symbol.offset).is_sorted_by(|a, b| a < b));
        let index = elf.symbol_index();
        for offset in &offsets {
            let in_batch = elf.symbol_at(&index, *offset);
            let found = symbols.lookup(*offset);
            prop_assert_eq!(found, in_batch);
            prop_assert!(found.is_none_or(|s| s.offset <= *offset && *offset - s.offset < s.len));
        }
        prop_assert!(symbols.into_owned().heap_bytes() <= 16 * bytes.len());
    }
}

#[test]
fn the_image_that_gets_damaged_is_a_whole_one() {
    let bytes = full_image();
    let elf = Elf::parse(&bytes).unwrap();
    assert_eq!(elf.build_id(), Some(&b"abcd"[..]));
    assert_eq!(elf.symbols().lookup(0x1008).unwrap().name, b"inner");
    assert!(elf.eh_frame().is_some());
}
