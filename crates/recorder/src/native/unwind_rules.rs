//! The unwind rules of one library: looked up one by one in the file's own tables, or compiled as
//! a whole if the tables are not in the form that linkers write.
//!
//! Compiling takes long (milliseconds for a C library, tens of them and megabytes for a runtime's
//! own), and few functions are ever met. Results are cached, because stacks repeat. Must not open
//! files.

use dwell_native::elf::Elf;
use dwell_native::unwind::Direct;
use dwell_signal::Live;
use dwell_walker::native::{Pages, Row, Rule};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// When a library's tables are made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// At once: handlers use them.
    ForHandlers,
    /// On first use: only threads of ours ask for rules.
    AsMet,
}

/// The rules of a library.
#[derive(Default)]
pub struct Table(OnceLock<Rules>);

enum Rules {
    Direct(Searched),
    Whole(Whole),
}

/// Rules in the file's own tables.
struct Searched {
    direct: Direct,
    /// Cached results: the offset in the upper half, its rule in the lower; 0: nothing. Any thread
    /// that looks a rule up writes it, handlers too, so each entry is one word.
    known: Box<[AtomicU64]>,
}

/// All rows.
#[derive(Default)]
struct Whole {
    rows: Box<[Row]>,
    /// See [`Pages`].
    pages: Box<[u32]>,
}

impl Searched {
    /// Maximum number of cached rules, for the largest libraries.
    const KNOWN_MAX: u64 = 4096;
    /// And at least.
    const KNOWN_MIN: u64 = 16;

    fn of(direct: Direct) -> Searched {
        let len = (direct.count() / 4).clamp(Self::KNOWN_MIN, Self::KNOWN_MAX);
        let len = len.next_power_of_two();
        Searched {
            direct,
            known: (0..len).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn rule(&self, offset: u32) -> Rule {
        // Fibonacci hashing: the upper half of the product depends on all bits of the address.
        let hash = u64::from(offset).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let place = hash & (self.known.len() as u64).wrapping_sub(1);
        let known = self.known.get(place as usize);
        let word = known.map_or(0, |known| known.load(Ordering::Relaxed));
        if word != 0 && word >> 32 == u64::from(offset) {
            return Rule::decode(word as u32);
        }
        // Handlers ask, too, and the tables' place is read from a file: loads that may fail.
        let Some(live) = Live::get() else {
            return Rule::Gap;
        };
        let rule = self.direct.rule(&live, offset);
        if let Some(known) = known {
            let word = u64::from(offset) << 32 | u64::from(rule.encode());
            known.store(word, Ordering::Relaxed);
        }
        rule
    }
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
}

impl Rules {
    fn of(elf: &Elf<'_>) -> Rules {
        match elf.direct() {
            Some(direct) if Live::install().is_ok() => Rules::Direct(Searched::of(direct)),
            _ => Rules::Whole(Whole::of(elf)),
        }
    }

    fn rule(&self, offset: u32) -> Rule {
        match self {
            Rules::Direct(searched) => searched.rule(offset),
            Rules::Whole(whole) => whole.rule(offset),
        }
    }
}

impl Table {
    /// Makes the table usable by handlers, unless it is. Not in a handler. The bytes of `elf` must
    /// stay where they are as long as rules are looked up.
    pub fn make_ready(&self, elf: &Elf<'_>) {
        self.0.get_or_init(|| Rules::of(elf));
    }

    /// The rule at `offset` if the table is ready; otherwise no rule is known. Safe in a handler.
    #[must_use]
    pub fn rule(&self, offset: u32) -> Rule {
        self.0.get().map_or(Rule::Gap, |rules| rules.rule(offset))
    }

    /// The rule at `offset`, of a table that is made ready if necessary. Not in a handler.
    #[must_use]
    pub fn rule_read<'e>(&self, offset: u32, elf: impl Fn() -> Option<Elf<'e>>) -> Rule {
        let rules = self.0.get_or_init(|| {
            let elf = elf();
            elf.map_or_else(|| Rules::Whole(Whole::default()), |elf| Rules::of(&elf))
        });
        rules.rule(offset)
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self.0.get() {
            Some(Rules::Direct(searched)) => size_of_val(&*searched.known),
            Some(Rules::Whole(whole)) => size_of_val(&*whole.rows) + size_of_val(&*whole.pages),
            None => 0,
        }
    }
}

/// The number of rows that begin before each page of addresses.
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
    use crate::sys::mapped::LibraryFile;
    use dwell_native::elf::Parts;
    use dwell_walker::native::{SavedRbp, lookup};

    #[test]
    fn a_file_without_a_search_table_is_compiled_as_a_whole() {
        let exe = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let rows = Elf::parse(&exe).unwrap().unwind_table().unwrap();
        // A search table begins with its version.
        let table = Elf::parse(&exe).unwrap().section(b".eh_frame_hdr").unwrap();
        let at = table.data.as_ptr() as usize - exe.as_ptr() as usize;
        let mut damaged = exe.clone();
        damaged[at] = 9;
        let elf = || Elf::parse(&damaged).ok();
        assert!(elf().unwrap().direct().is_none());
        let table = Table::default();
        for row in rows.rows().iter().step_by(211) {
            let found = table.rule_read(row.offset, elf);
            assert_eq!(found, Rule::decode(row.rule));
            assert_eq!(table.rule(row.offset), found);
        }
        assert!(table.bytes() >= size_of_val(rows.rows()));
    }

    /// Far more addresses than places, twice, and several at one place.
    #[test]
    fn remembered_rules_are_those_of_the_file() {
        let exe = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(&exe).unwrap();
        let whole = elf.unwind_table().unwrap();
        let table = Table::default();
        assert_eq!(table.rule(whole.rows()[0].offset), Rule::Gap);
        assert_eq!(table.bytes(), 0);
        table.make_ready(&elf);
        assert!(
            table.bytes() < size_of_val(whole.rows()) / 8,
            "it is not compiled"
        );
        for _ in 0..2 {
            for row in whole.rows().iter().step_by(7) {
                let rule = Rule::decode(row.rule);
                assert_eq!(table.rule(row.offset), rule);
                assert_eq!(table.rule(row.offset), rule);
                assert_eq!(table.rule_read(row.offset, || None), rule);
            }
            for offset in [0, 1, u32::MAX] {
                assert_eq!(table.rule(offset), whole.lookup(offset));
            }
        }
    }

    /// A file that is truncated while its library is in use does not harm a reader of its rules.
    #[test]
    fn never_does_a_truncated_file_break_rules() {
        let exe = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let path = std::env::temp_dir().join(format!("dwell-truncated-{}", std::process::id()));
        std::fs::write(&path, &exe).unwrap();
        let file = LibraryFile::open(path.as_os_str().as_encoded_bytes()).unwrap();
        let mapped = file.read(Parts::All).unwrap();
        let table = Table::default();
        table.make_ready(&Elf::parse(mapped.bytes()).unwrap());
        let rows = Elf::parse(&exe).unwrap().unwind_table().unwrap();
        std::fs::File::create(&path).unwrap();
        for row in rows.rows().iter().step_by(997) {
            assert_eq!(table.rule(row.offset), Rule::decode(row.rule));
        }
        std::fs::remove_file(&path).unwrap();
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
