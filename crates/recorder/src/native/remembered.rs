//! Unwind rules remembered by address: stacks repeat, and a runtime's table alone may have more
//! than a hundred thousand rows to search.

use super::modules::CodeMap;
use dwell_walker::native::{NativeCode, Rule};
use std::cell::Cell;

/// Addresses remembered.
const ENTRIES: usize = 4096;

#[derive(Clone, Copy)]
struct Known {
    pc: u64,
    rule: Option<Rule>,
}

/// What was looked up in one map; not for several threads.
pub struct Rules(Box<[Cell<Known>]>);

impl Default for Rules {
    fn default() -> Rules {
        let nothing = Cell::new(Known { pc: 0, rule: None });
        Rules(vec![nothing; ENTRIES].into_boxed_slice())
    }
}

impl Rules {
    /// Forgets all. Must be called whenever there is a new map.
    pub fn clear(&self) {
        for entry in &self.0 {
            entry.set(Known { pc: 0, rule: None });
        }
    }

    /// The map, with what is remembered of it.
    #[must_use]
    pub fn of<'a>(&'a self, map: &'a CodeMap) -> Remembered<'a> {
        Remembered { rules: self, map }
    }
}

/// A map that is asked only for what is not remembered. Not for handlers.
pub struct Remembered<'a> {
    rules: &'a Rules,
    map: &'a CodeMap,
}

impl NativeCode for Remembered<'_> {
    fn rule(&self, pc: u64) -> Option<Rule> {
        // Fibonacci hashing: the upper half of the product depends on all bits of the address.
        let place = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % ENTRIES;
        let Some(entry) = self.rules.0.get(place) else {
            return self.map.rule_read(pc);
        };
        let known = entry.get();
        if known.pc == pc && pc != 0 {
            return known.rule;
        }
        let rule = self.map.rule_read(pc);
        entry.set(Known { pc, rule });
        rule
    }

    fn is_vm(&self, pc: u64) -> bool {
        self.map.is_vm(pc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Modules, Tables};

    #[test]
    fn remembered_rules_are_those_of_the_map() {
        let map = Modules::new(|_| false, (Tables::Whole, |_| false)).map();
        let rules = Rules::default();
        let first = remembered_rules_are_those_of_the_map as fn() as usize as u64;
        // More addresses than places, each asked for twice.
        for _ in 0..2 {
            for pc in (first..first + 4 * ENTRIES as u64).chain([0, 1, u64::MAX]) {
                assert_eq!(rules.of(&map).rule(pc), map.rule(pc), "{pc:#x}");
                assert_eq!(rules.of(&map).is_vm(pc), map.is_vm(pc));
            }
        }
    }

    #[test]
    fn another_map_is_asked_after_clearing() {
        let map = Modules::new(|_| false, (Tables::AsMet, |_| false)).map();
        let rules = Rules::default();
        let pc = another_map_is_asked_after_clearing as fn() as usize as u64;
        assert!(rules.of(&map).rule(pc).is_some());
        rules.clear();
        assert_eq!(rules.of(&CodeMap::default()).rule(pc), None);
    }
}
