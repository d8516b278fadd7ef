//! Any bytes as an ELF image: every question can be asked of it, and lookups agree.
#![no_main]

use dwell_native::elf::Elf;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(elf) = Elf::parse(data) else {
        return;
    };
    let _ = (
        elf.build_id(),
        elf.text_ranges(),
        elf.eh_frame(),
        elf.unwind_table(),
    );
    let _ = (elf.bias(0x1000, 0x7f00_0000_1000, 4096), elf.find_symbol(b"main"));
    if let Some(direct) = elf.direct() {
        for offset in [0, 1, 0x1000, 0x1001, 0xffff, u32::MAX] {
            let _ = direct.rule_in(data, offset);
        }
    }
    let symbols = elf.symbols();
    let offsets = [0, 1, 0x1000, 0x1001, 0xffff, u32::MAX];
    let index = elf.symbol_index();
    let batch: Vec<_> = offsets.iter().map(|o| elf.symbol_at(&index, *o)).collect();
    for (offset, in_batch) in offsets.into_iter().zip(batch) {
        assert_eq!(symbols.lookup(offset), in_batch);
        if let Some(symbol) = in_batch {
            assert!(symbol.offset <= offset && offset - symbol.offset < symbol.len);
        }
    }
    let listed: Vec<_> = symbols.iter().map(|symbol| symbol.offset).collect();
    assert!(listed.is_sorted_by(|a, b| a < b));
    let owned = symbols.into_owned();
    assert!(owned.heap_bytes() <= 16 * data.len());
});
