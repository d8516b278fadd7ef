//! ELF reading and address arithmetic on real images: this process's own, and JVMs.

mod common;

use std::os::unix::fs::FileExt;

use dwell_native::elf::{Elf, read_parts};
use dwell_native::maps::{self, Backing, Module};
use object::elf::{STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSymbol};

#[test]
fn symbols_and_build_ids_agree_with_another_reading() {
    let all = common::jvm_libraries()
        .into_iter()
        .chain(common::mapped_libraries());
    for path in all {
        let data = std::fs::read(&path).unwrap();
        let elf = Elf::parse(&data).unwrap();
        let theirs = ElfFile64::<LittleEndian>::parse(&*data).unwrap();
        assert_eq!(
            elf.build_id(),
            theirs.build_id().unwrap(),
            "{}",
            path.display()
        );

        let symbols = elf.symbols();
        let is_stripped = theirs.symbol_table().is_none();
        let listed = if is_stripped {
            theirs.dynamic_symbols()
        } else {
            theirs.symbols()
        };
        let mut checked = 0;
        for symbol in listed {
            let kind = symbol.elf_symbol().st_type();
            let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
            if !is_function || !symbol.is_definition() || symbol.name_bytes() == Ok(b"") {
                continue;
            }
            let offset = u32::try_from(symbol.address() - elf.base_svma()).unwrap();
            let found = symbols.lookup(offset).unwrap();
            assert_eq!(
                found.offset,
                offset,
                "{}: {}",
                path.display(),
                symbol.name().unwrap()
            );
            checked += 1;
        }
        assert!(checked > 0, "{} has functions", path.display());
        assert!(
            symbols.heap_bytes() <= symbols.len() * 12,
            "12 bytes a symbol"
        );
    }
}

#[test]
fn the_jvm_exports_its_structure_tables() {
    for path in common::jvm_libraries() {
        let data = std::fs::read(&path).unwrap();
        let elf = Elf::parse(&data).unwrap();
        let found = elf.find_symbol(b"gHotSpotVMStructs").unwrap();
        assert!(
            found.len == 8 && !found.is_function,
            "{}: {found:?}",
            path.display()
        );
        assert!(
            elf.find_symbol(b"JVM_GetInterfaceVersion")
                .is_some_and(|s| s.is_function)
                || elf
                    .find_symbol(b"JVM_CurrentTimeMillis")
                    .is_some_and(|s| s.is_function)
        );
        assert_eq!(elf.find_symbol(b"gHotSpotVMStruct"), None);
    }
}

/// The file as a tool leaves it that removes the section headers.
fn without_section_headers(data: &[u8]) -> Vec<u8> {
    let mut cut = data.to_vec();
    let at = u64::from_le_bytes(*data[40..].first_chunk().unwrap()) as usize;
    cut.truncate(at);
    cut[40..48].fill(0); // where they are
    cut[60..64].fill(0); // their number, and that of the names
    cut
}

#[test]
fn library_without_section_headers_keeps_exports_and_rules() {
    let mut compared = 0;
    let all = common::jvm_libraries()
        .into_iter()
        .chain(common::mapped_libraries());
    for path in all {
        let data = std::fs::read(&path).unwrap();
        let cut = without_section_headers(&data);
        let read_cut = |offset: u64, into: &mut [u8]| {
            let from = cut.get(offset as usize..).unwrap_or(&[]);
            let from = from.get(..into.len());
            from.map(|from| into.copy_from_slice(from)).is_some()
        };
        let read = read_parts(cut.len(), &mut { read_cut }).unwrap();
        let (whole, cut) = (Elf::parse(&data).unwrap(), Elf::parse(&read).unwrap());
        assert!(cut.section(b".dynsym").is_none());
        assert_eq!(cut.build_id(), whole.build_id());

        let theirs = ElfFile64::<LittleEndian>::parse(&*data).unwrap();
        let symbols = cut.symbols();
        for symbol in theirs.dynamic_symbols() {
            let kind = symbol.elf_symbol().st_type();
            if kind != STT_FUNC || !symbol.is_definition() {
                continue;
            }
            let offset = u32::try_from(symbol.address() - cut.base_svma()).unwrap();
            assert_eq!(symbols.lookup(offset).unwrap().offset, offset);
            let name = symbol.name_bytes().unwrap();
            assert_eq!(cut.find_symbol(name), whole.find_symbol(name));
            compared += 1;
        }

        // Rules of hand-written code may be in `.debug_frame` only, which is not loaded.
        let rows = whole.unwind_table().unwrap().into_rows();
        let is_in_debug = whole.section(b".debug_frame").is_some();
        if !is_in_debug {
            assert_eq!(cut.unwind_table().unwrap().into_rows(), rows);
            assert_eq!(cut.direct().is_some(), whole.direct().is_some());
        }
        for row in rows.iter().step_by(997) {
            let rule = whole.rule_at(row.offset);
            assert_eq!(cut.rule_at(row.offset), rule, "{}", path.display());
        }
    }
    assert!(compared > 1000, "{compared}");
}

fn module_around(address: u64, text: &[u8]) -> Module {
    let all = maps::modules(maps::parse(text).map(|mapping| mapping.unwrap()));
    let covers = |module: &Module| {
        module
            .executable
            .iter()
            .any(|range| range.addresses.contains(&address))
    };
    all.into_iter().find(covers).unwrap()
}

/// A function of this program whose address the next test looks for.
#[inline(never)]
fn landmark() -> u32 {
    std::hint::black_box(7)
}

#[test]
fn an_address_of_this_process_leads_to_its_symbol_and_rule() {
    let address = landmark as *const () as u64;
    let module = module_around(address, &common::own_maps());
    assert_eq!(module.backing, Backing::File);
    assert!(!module.is_deleted);
    let path = String::from_utf8(module.path.clone()).unwrap();
    assert_eq!(
        std::path::Path::new(&path),
        std::env::current_exe().unwrap()
    );

    let data = std::fs::read(path).unwrap();
    let elf = Elf::parse(&data).unwrap();
    let placements = module.placements(&elf, 4096);
    assert_eq!(placements.len(), 1, "{placements:?}");
    let offset = u32::try_from(address - placements[0].base).unwrap();
    let symbols = elf.symbols();
    let symbol = symbols.lookup(offset).unwrap();
    let name = std::str::from_utf8(symbol.name).unwrap();
    assert!(
        name.contains("real_images") && name.contains("landmark"),
        "{name}"
    );
    let defined = elf.find_symbol(symbol.name).unwrap();
    assert_eq!(defined.svma.wrapping_add(placements[0].bias), address);
    let table = elf.unwind_table().unwrap();
    let entry = dwell_native::unwind::Rule::Sp {
        cfa_bytes: 8,
        rbp: dwell_native::unwind::SavedRbp::Same,
    };
    assert_eq!(
        table.lookup(offset),
        entry,
        "on entry nothing but the return address is pushed"
    );
    assert_eq!(landmark(), 7);
}

#[test]
fn the_vdso_is_read_from_memory() {
    let text = common::own_maps();
    let modules = maps::modules(maps::parse(&text).map(|mapping| mapping.unwrap()));
    let vdso = modules
        .iter()
        .find(|module| module.backing == Backing::Vdso)
        .unwrap();
    let range = vdso.executable[0].addresses.clone();
    let mut image = vec![0; (range.end - range.start) as usize];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut image, range.start).unwrap();

    let elf = Elf::parse(&image).unwrap();
    assert_eq!(vdso.placements(&elf, 4096)[0].base, range.start);
    let function = elf.find_symbol(b"__vdso_clock_gettime").unwrap();
    assert!(function.is_function);
    let table = elf.unwind_table().unwrap();
    let rule = table.lookup(u32::try_from(function.svma - elf.base_svma()).unwrap());
    assert!(
        matches!(rule, dwell_native::unwind::Rule::Sp { cfa_bytes: 8, .. }),
        "{rule:?}"
    );
}

#[test]
fn eh_frame_is_found_without_section_headers() {
    let all = common::jvm_libraries()
        .into_iter()
        .chain(common::mapped_libraries());
    for path in all {
        let mut data = std::fs::read(&path).unwrap();
        let with_sections = Elf::parse(&data).unwrap().unwind_table().unwrap();
        // e_shoff, e_shnum, e_shstrndx
        data[40..48].fill(0);
        data[60..64].fill(0);
        let elf = Elf::parse(&data).unwrap();
        assert!(elf.section(b".eh_frame").is_none());
        let without = elf.unwind_table().unwrap();
        assert_eq!(without.rows(), with_sections.rows(), "{}", path.display());
    }
}

#[test]
fn parts_of_a_file_give_the_results_of_the_whole() {
    let all = common::jvm_libraries()
        .into_iter()
        .chain(common::mapped_libraries());
    for path in all {
        let data = std::fs::read(&path).unwrap();
        let mut count = 0;
        let mut read = |at: u64, to: &mut [u8]| {
            let from = &data[at as usize..at as usize + to.len()];
            to.copy_from_slice(from);
            count += to.len();
            true
        };
        let parts = read_parts(data.len(), &mut read).unwrap();
        assert!(count < data.len(), "{}: {count}", path.display());
        let (whole, parts) = (Elf::parse(&data).unwrap(), Elf::parse(&parts).unwrap());
        assert_eq!(whole.build_id(), parts.build_id());
        assert_eq!(whole.segments(), parts.segments());
        let names = |elf: &Elf<'_>| -> Vec<_> {
            let all = elf.symbols();
            all.iter()
                .map(|it| (it.offset, it.len, it.name.to_vec()))
                .collect()
        };
        assert_eq!(names(&whole), names(&parts), "{}", path.display());
        let table = whole.unwind_table().unwrap();
        assert_eq!(table.rows(), parts.unwind_table().unwrap().rows());
        // Where a single lookup finds a rule, it equals that of the table.
        let mut found = 0;
        for row in table.rows().iter().step_by(97) {
            for offset in [row.offset, row.offset.saturating_add(3)] {
                if let Some(rule) = parts.rule_at(offset) {
                    assert_eq!(rule, table.lookup(offset), "{} {offset:#x}", path.display());
                    found += 1;
                }
            }
        }
        assert!(
            found * 97 > table.rows().len(),
            "{}: {found}",
            path.display()
        );
    }
}
