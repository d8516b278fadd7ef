//! The unwind rules of one library: all of them, or those of the pages that were met.
//!
//! Compiling a whole library takes long (tens of milliseconds and megabytes for a runtime's own),
//! and few of its pages are ever met; but only a whole table can be used in a handler, where
//! nothing can be compiled. A table of pages is made whole as well once handlers begin to ask. Must
//! not open files.

use dwell_native::elf::Elf;
use dwell_walker::native::{Pages, Row, Rule, lookup};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How tables are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// As a whole, at once: handlers use them.
    Whole,
    /// Page by page, when one is met: they are asked by threads of ours only.
    AsMet,
}

/// The rules of a library.
pub enum Table {
    /// All.
    Whole(Whole),
    /// Those of the pages that were met.
    AsMet(AsMet),
}

/// All rows.
#[derive(Default)]
pub struct Whole {
    rows: Box<[Row]>,
    /// See [`Pages`].
    pages: Box<[u32]>,
}

/// The rows of some pages.
#[derive(Default)]
pub struct AsMet {
    pages: Mutex<FxHashMap<u32, Box<[Row]>>>,
    /// Where the file has no search table to go by: all rows.
    whole: OnceLock<Option<Whole>>,
    /// All rows, once handlers ask as well.
    for_handlers: OnceLock<Whole>,
    bytes: AtomicUsize,
}

impl Whole {
    fn of(elf: &Elf<'_>) -> Whole {
        let Ok(table) = elf.unwind_table() else {
            return Whole::default();
        };
        let rows = table.into_rows();
        let pages = pages(&rows);
        Whole { rows, pages }
    }

    fn rule(&self, offset: u32) -> Rule {
        Pages(&self.pages).lookup(&self.rows, offset)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.rows) + size_of_val(&*self.pages)
    }
}

impl AsMet {
    fn rule<'e>(&self, offset: u32, elf: impl Fn() -> Option<Elf<'e>>) -> Rule {
        if let Some(whole) = self.for_handlers.get() {
            return whole.rule(offset);
        }
        let whole = self.whole.get_or_init(|| {
            let elf = elf()?;
            let searched = elf.has_whole_search_table();
            (!searched).then(|| Whole::of(&elf))
        });
        if let Some(whole) = whole {
            return whole.rule(offset);
        }
        let page = offset >> Pages::BITS;
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = pages.entry(page).or_insert_with(|| {
            let begin = page << Pages::BITS;
            let end = begin.saturating_add(1 << Pages::BITS);
            let rows = elf().and_then(|elf| elf.rows_within(begin..end));
            let rows = rows.unwrap_or_default();
            let bytes = size_of_val(&*rows) + size_of::<(u32, Box<[Row]>)>();
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            rows
        });
        lookup(rows, offset)
    }
}

impl Default for Table {
    /// One without rules.
    fn default() -> Table {
        Table::Whole(Whole::default())
    }
}

impl Table {
    /// The table of a file.
    #[must_use]
    pub fn of(elf: &Elf<'_>, tables: Tables) -> Table {
        match tables {
            Tables::Whole => Table::Whole(Whole::of(elf)),
            Tables::AsMet => Table::AsMet(AsMet::default()),
        }
    }

    /// The rule at `offset` if the table is whole; else nothing is known. Safe in a handler: reads
    /// one atomic word before the rows.
    #[must_use]
    pub fn rule(&self, offset: u32) -> Rule {
        match self {
            Table::Whole(whole) => whole.rule(offset),
            Table::AsMet(met) => {
                let whole = met.for_handlers.get();
                whole.map_or(Rule::Gap, |whole| whole.rule(offset))
            }
        }
    }

    /// Makes the table whole, if it is not. Not in a handler.
    pub fn make_whole(&self, elf: &Elf<'_>) {
        if let Table::AsMet(met) = self {
            met.for_handlers.get_or_init(|| Whole::of(elf));
        }
    }

    /// The rule at `offset`, read from the file if need be. Not in a handler.
    #[must_use]
    pub fn rule_read<'e>(&self, offset: u32, elf: impl Fn() -> Option<Elf<'e>>) -> Rule {
        match self {
            Table::Whole(whole) => whole.rule(offset),
            Table::AsMet(met) => met.rule(offset, elf),
        }
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Table::Whole(whole) => whole.bytes(),
            Table::AsMet(met) => {
                let wholes = [
                    met.whole.get().and_then(Option::as_ref),
                    met.for_handlers.get(),
                ];
                let wholes = wholes.into_iter().flatten().map(Whole::bytes);
                met.bytes.load(Ordering::Relaxed) + wholes.sum::<usize>()
            }
        }
    }
}

/// For each page of addresses, how many rows begin before it.
fn pages(rows: &[Row]) -> Box<[u32]> {
    let last = rows.last().map_or(0, |row| row.offset);
    let mut begun = 0;
    (0..=last >> Pages::BITS)
        .map(|page| {
            let rest = rows.get(begun..).unwrap_or(&[]);
            let begin = page << Pages::BITS;
            begun += rest.iter().take_while(|row| row.offset < begin).count();
            begun as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::native::SavedRbp;

    #[test]
    fn a_file_without_a_search_table_is_compiled_as_a_whole() {
        let exe = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let rows = Elf::parse(&exe).unwrap().unwind_table().unwrap();
        // Section names are read by their headers: without that one, no search table is found.
        let name = b".eh_frame_hdr\0";
        let at = exe.windows(name.len()).rposition(|it| it == name).unwrap();
        let mut damaged = exe.clone();
        damaged[at + 1] = b'E';
        let elf = || Elf::parse(&damaged).ok();
        assert!(!elf().unwrap().has_whole_search_table());
        let table = Table::of(&elf().unwrap(), Tables::AsMet);
        for row in rows.rows().iter().step_by(211) {
            let found = table.rule_read(row.offset, elf);
            assert_eq!(found, Rule::decode(row.rule));
        }
        assert!(table.bytes() >= size_of_val(rows.rows()));
    }

    #[test]
    fn rows_are_found_through_their_pages() {
        let row = |offset| Row {
            offset,
            rule: Rule::Sp {
                cfa_bytes: offset % 4096 / 8 * 8 + 8,
                rbp: SavedRbp::Same,
            }
            .encode(),
        };
        let tables: [&[u32]; 5] = [
            &[],
            &[0],
            &[4096],
            &[5, 4095, 4096, 20_000, 20_001],
            &[8192, 8200, 70_000],
        ];
        for offsets in tables {
            let rows: Vec<Row> = offsets.iter().map(|offset| row(*offset)).collect();
            let pages = pages(&rows);
            for offset in (0..80_000).chain([u32::MAX]) {
                let found = Pages(&pages).lookup(&rows, offset);
                assert_eq!(found, lookup(&rows, offset), "{offset} in {offsets:?}");
            }
        }
    }
}
