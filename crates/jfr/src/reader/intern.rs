//! A table of distinct values that are referred to by place.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

/// Keeps each value once, in the order of first appearance.
pub(crate) struct Interner<T> {
    items: Vec<T>,
    /// Place plus one of the next item with the same hash.
    next: Vec<u32>,
    /// Place plus one of the last item with that hash.
    heads: HashMap<u64, u32>,
    hasher: RandomState,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            next: Vec::new(),
            heads: HashMap::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The place of the value, which is added if it is new.
    pub(crate) fn place(&mut self, value: T) -> u32 {
        let hash = self.hasher.hash_one(&value);
        let head = self.heads.get(&hash).copied().unwrap_or(0);
        let mut link = head;
        while let Some(place) = link.checked_sub(1) {
            if self.items.get(place as usize) == Some(&value) {
                return place;
            }
            link = self.next.get(place as usize).copied().unwrap_or(0);
        }
        // A file cannot refer to 2^32 values in memory that a process has; the last place is kept.
        let place = u32::try_from(self.items.len()).unwrap_or(u32::MAX - 1);
        self.items.push(value);
        self.next.push(head);
        self.heads.insert(hash, place + 1);
        place
    }

    pub(crate) fn into_items(self) -> Vec<T> {
        self.items
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
    fn values_with_the_same_hash_are_told_apart() {
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
}
