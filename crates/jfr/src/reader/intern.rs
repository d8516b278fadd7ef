//! A table of distinct values that are referred to by place.

use crate::hash::Seeds;
use std::hash::{BuildHasher, Hash};

/// Keeps each value once, in the order of first appearance.
pub(crate) struct Interner<T> {
    /// With their hashes.
    items: Vec<(u64, T)>,
    /// By hash, with free ones between; a power of two of them.
    slots: Vec<Slot>,
    seeds: Seeds,
}

/// A place plus one, and bits of the hash, so that values elsewhere are seldom compared in vain.
#[derive(Clone, Copy, Default)]
struct Slot {
    link: u32,
    tag: u32,
}

/// Bits of a hash that do not choose the slot, in tables of the usual size.
const fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self::with(Seeds::default())
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The place of the value, which is added if it is new.
    pub(crate) fn place(&mut self, value: T) -> u32 {
        let hash = self.seeds.hash_one(&value);
        match self.find(hash, |item| *item == value) {
            Some(place) => place,
            None => self.add(hash, value),
        }
    }
}

impl<T> Interner<T> {
    /// An empty table whose hashes are those of another one.
    pub(crate) fn with(seeds: Seeds) -> Self {
        Self {
            items: Vec::new(),
            slots: Vec::new(),
            seeds,
        }
    }

    /// Random seeds of hashes of numbers, so that an attacker cannot choose numbers with equal
    /// hashes: see [`mixed`](crate::hash::mixed).
    pub(crate) fn seeds(&self) -> [u64; 2] {
        self.seeds.0
    }

    /// The place of the value that has this hash and is the same.
    pub(crate) fn find(&self, hash: u64, is_same: impl Fn(&T) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        // Half of the slots are free.
        loop {
            let found = self.slots.get(slot)?;
            let place = found.link.checked_sub(1)?;
            if found.tag == tag(hash) {
                let item = self.items.get(place as usize);
                if item.is_some_and(|(known, item)| *known == hash && is_same(item)) {
                    return Some(place);
                }
            }
            slot = (slot + 1) & mask;
        }
    }

    /// Adds a value that is new; its place.
    pub(crate) fn add(&mut self, hash: u64, value: T) -> u32 {
        // A file cannot refer to 2^32 values in memory that a process has; the last place is kept.
        let place = u32::try_from(self.items.len()).unwrap_or(u32::MAX - 1);
        self.items.push((hash, value));
        if self.items.len() * 2 > self.slots.len() {
            let slots = (self.items.len() * 4).next_power_of_two();
            self.slots = vec![Slot::default(); slots];
            for at in 0..self.items.len() {
                self.link(at);
            }
        } else {
            self.link(place as usize);
        }
        place
    }

    fn link(&mut self, at: usize) {
        let mask = self.slots.len().saturating_sub(1);
        let Some((hash, _)) = self.items.get(at) else {
            return;
        };
        let mut slot = *hash as usize & mask;
        while self.slots.get(slot).is_some_and(|slot| slot.link != 0) {
            slot = (slot + 1) & mask;
        }
        if let Some(to) = self.slots.get_mut(slot) {
            to.link = at as u32 + 1;
            to.tag = tag(*hash);
        }
    }

    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        self.items.get(place as usize).map(|(_, item)| item)
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The values from a place on, and their hashes.
    pub(crate) fn from(&self, place: usize) -> impl Iterator<Item = (u64, &T)> {
        let items = self.items.iter().skip(place);
        items.map(|(hash, item)| (*hash, item))
    }

    pub(crate) fn into_items(self) -> Vec<T> {
        self.items.into_iter().map(|(_, item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_place() {
        let mut table = Interner::default();
        let places: Vec<_> = ["a", "b", "a", "c", "b"]
            .map(|text| table.place(text))
            .into();
        assert_eq!(places, [0, 1, 0, 2, 1]);
        assert_eq!(table.into_items(), ["a", "b", "c"]);
    }

    #[test]
    fn values_with_equal_hashes_stay_distinct() {
        #[derive(PartialEq, Eq, Debug)]
        struct Colliding(u8);
        impl Hash for Colliding {
            fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
        }
        let mut table = Interner::default();
        let places: Vec<_> = [1, 2, 3, 2, 1]
            .map(|value| table.place(Colliding(value)))
            .into();
        assert_eq!(places, [0, 1, 2, 1, 0]);
    }

    #[test]
    fn many_values_keep_their_places() {
        let mut table = Interner::default();
        for round in 0..2 {
            for value in 0..5_000u32 {
                assert_eq!(table.place(value), value, "round {round}");
            }
        }
    }
}
