//! Rules found in code: compared with those of the unwind sections of the same files, and in files
//! without such sections.

mod common;

use dwell_native::elf::{Elf, read_parts};
use dwell_native::unwind::{Code, Input, Rule, SavedRbp, Section, UnwindTable};
use object::{LittleEndian, Object, ObjectSection};
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;

/// Bytes of `.text` by what its code says, compared with the tables.
#[derive(Debug, Default)]
struct Agreement {
    same: u32,
    other: u32,
    unknown: u32,
}

/// The rules of a file's code, as if it had no tables, and the range of their offsets.
fn from_code(elf: &Elf<'_>, data: &[u8]) -> (UnwindTable, std::ops::Range<u32>) {
    let file = object::read::elf::ElfFile64::<LittleEndian>::parse(data).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let base = elf.base_svma();
    let section = Section {
        data: text.data().unwrap(),
        svma: text.address(),
    };
    let symbols = elf.symbols();
    let entries = symbols.iter().map(|symbol| base + u64::from(symbol.offset));
    let code = Code {
        sections: vec![section],
        entries: entries.collect(),
    };
    let input = Input {
        base_svma: base,
        ..Input::default()
    };
    let start = u32::try_from(section.svma - base).unwrap();
    let end = start + u32::try_from(section.data.len()).unwrap();
    (UnwindTable::build_with(&input, &code).unwrap(), start..end)
}

fn compare(data: &[u8]) -> Agreement {
    let elf = Elf::parse(data).unwrap();
    let tables = elf.unwind_table().unwrap();
    let (code, range) = from_code(&elf, data);
    let mut found = Agreement::default();
    for offset in range {
        match (tables.lookup(offset), code.lookup(offset)) {
            // Two ways to say one thing.
            (Rule::Gap, _) | (Rule::Fp { .. }, Rule::Sp { .. }) => {}
            (_, Rule::Gap) => found.unknown += 1,
            // A restored rbp is still at its place, too.
            (Rule::Sp { cfa_bytes: a, .. }, Rule::Sp { cfa_bytes: b, .. }) if a == b => {
                found.same += 1;
            }
            (a, b) if a == b => found.same += 1,
            _ => found.other += 1,
        }
    }
    found
}

/// About 1 % differs: cold parts, and padding behind calls that do not return.
#[test]
fn code_has_the_rules_of_its_tables() {
    let own = std::env::current_exe().unwrap();
    let libraries = common::mapped_libraries().into_iter();
    for path in libraries.filter(|path| *path != own) {
        let found = compare(&std::fs::read(&path).unwrap());
        println!("{}: {found:?}", path.display());
        assert!(found.other <= found.same / 25, "{found:?}");
        assert!(found.unknown <= found.same / 2, "{found:?}");
    }
}

const SOURCE: &str = "
int outside(int);
__attribute__((noinline)) int work(int a) { return outside(outside(a) + a) + a; }
int many(int a) { return work(a) + outside(a * 3) + work(a + 1) + outside(a * 5) + work(a + 2)
    + outside(a * 7) + work(a + 3) + outside(a * 9) + work(a + 4) + outside(a * 11) + work(a + 5)
    + outside(a * 13) + work(a + 6) + outside(a * 15) + work(a + 7) + outside(a * 17); }";

/// A library of a few hundred bytes of code, as musl is compiled.
fn compiled(name: &str, options: &[&str]) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, library) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, SOURCE).unwrap();
    let mut cc = Command::new("cc");
    cc.args([
        "-Os",
        "-fPIC",
        "-shared",
        "-nostdlib",
        "-fomit-frame-pointer",
    ]);
    let cc = cc.args(options).arg("-o").args([&library, &source]);
    assert!(cc.status().unwrap().success());
    std::fs::read(library).unwrap()
}

#[test]
fn file_without_tables_has_rules_from_its_code() {
    // The linker makes tables for the stubs of calls into other libraries.
    let bare = [
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-fno-plt",
    ];
    let data = compiled("bare.so", &bare);
    let elf = Elf::parse(&data).unwrap();
    assert!(elf.direct().is_none(), "there is no table to search");
    let table = elf.unwind_table().unwrap();
    let symbols = elf.symbols();
    let entry = Rule::Sp {
        cfa_bytes: 8,
        rbp: SavedRbp::Same,
    };
    for name in [&b"work"[..], b"many"] {
        let function = symbols.iter().find(|symbol| symbol.name == name).unwrap();
        assert_eq!(table.lookup(function.offset), entry);
        let rules = (0..32).map(|into| table.lookup(function.offset + into));
        let is_pushed = |rule| matches!(rule, Rule::Sp { cfa_bytes, .. } if cfa_bytes >= 16);
        assert!(rules.into_iter().any(is_pushed), "it saves a register");
    }
    // Its code is among the parts that are read.
    let read = read_parts(data.len(), &mut |at, part| {
        let at = usize::try_from(at).unwrap();
        part.copy_from_slice(&data[at..at + part.len()]);
        true
    });
    let again = Elf::parse(&read.unwrap()).unwrap().unwind_table().unwrap();
    assert_eq!(again.rows(), table.rows());
}

#[test]
fn file_with_tables_has_only_their_rules() {
    let data = compiled("tables.so", &["-fasynchronous-unwind-tables"]);
    let elf = Elf::parse(&data).unwrap();
    assert!(elf.direct().is_some());
    assert!(elf.unwind_table().unwrap().stats().fdes >= 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes that are no code give some rows, in order and inside of the section.
    #[test]
    fn any_bytes_give_rows_in_order(
        data in prop::collection::vec(any::<u8>(), 0..600),
        entries in prop::collection::vec(0u64..0x2000, 0..8),
    ) {
        let end = 0x1000 + data.len() as u64;
        let section = Section { data: &data, svma: 0x1000 };
        let code = Code { sections: vec![section], entries };
        let table = UnwindTable::build_with(&Input::default(), &code).unwrap();
        prop_assert!(table.rows().is_sorted_by(|a, b| a.offset < b.offset));
        let inside = |offset: u32| (0x1000..=end).contains(&u64::from(offset));
        prop_assert!(table.rows().iter().all(|row| inside(row.offset)));
    }
}
