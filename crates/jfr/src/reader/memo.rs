//! Decoded constants of a chunk, so that each is decoded once.

use super::constant_pools::Pools;
use std::collections::HashMap;

/// Places in a table, by type and key of a constant.
#[derive(Default)]
pub(crate) struct Memo {
    /// Places plus one, by the type's place and the constant's.
    known: Vec<Vec<u32>>,
    /// Those of keys that the chunk does not have.
    others: HashMap<(usize, u64), u32>,
}

impl Memo {
    /// The decoded form of the constant.
    pub(crate) fn get(&self, pools: &Pools, class: usize, key: u64) -> Option<u32> {
        match pools.place(class, key) {
            Some(at) => self.known.get(class)?.get(at)?.checked_sub(1),
            None => self.others.get(&(class, key)).copied(),
        }
    }

    /// The same by the constant's place among those of its type, where that is known.
    pub(crate) fn at(&self, class: usize, place: u64) -> Option<u32> {
        let known = self.known.get(class)?;
        known.get(usize::try_from(place).ok()?)?.checked_sub(1)
    }

    /// Remembers it.
    pub(crate) fn set(&mut self, pools: &Pools, class: usize, key: u64, place: u32) {
        let Some(at) = pools.place(class, key) else {
            self.others.insert((class, key), place);
            return;
        };
        if self.known.len() <= class {
            self.known.resize_with(class + 1, Vec::new);
        }
        if let Some(known) = self.known.get_mut(class) {
            if known.is_empty() {
                known.resize(pools.len(class), 0);
            }
            if let Some(known) = known.get_mut(at) {
                *known = place.saturating_add(1);
            }
        }
    }
}
