//! Prints properties of an ELF file as the readers see it: sizes, build times, odd rows. A tool for
//! developers; the numbers in the documentation come from it.
//!
//! `cargo run --release -p dwell-native --example describe -- /path/to/libjvm.so`

use std::time::Instant;

use dwell_native::elf::Elf;
use dwell_native::unwind::Rule;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let data = std::fs::read(&path)?;
        let elf = Elf::parse(&data)?;
        let started = Instant::now();
        let table = elf.unwind_table()?;
        let table_us = started.elapsed().as_micros();
        let rows = table.rows();
        println!("{path}: build id {:02x?}", elf.build_id().unwrap_or(&[]));
        println!(
            "  unwind: {} rows, {} bytes, {table_us} us",
            rows.len(),
            size_of_val(rows)
        );
        println!("  {:?}", table.stats());
        let count = |rule: Rule| rows.iter().filter(|r| r.rule == rule.encode()).count();
        println!(
            "  merged rows: gap {}, plt {}, signal {}, end {}, unsupported {}",
            count(Rule::Gap),
            count(Rule::Plt),
            count(Rule::SignalFrame),
            count(Rule::End),
            count(Rule::Unsupported)
        );
        let started = Instant::now();
        let symbols = elf.symbols();
        let symbols_us = started.elapsed().as_micros();
        let borrowed_bytes = symbols.heap_bytes();
        let (count, owned) = (symbols.len(), symbols.into_owned());
        println!(
            "  symbols: {count}, {symbols_us} us, {borrowed_bytes} bytes; owned {} in {} bytes",
            owned.len(),
            owned.heap_bytes()
        );
    }
    Ok(())
}
