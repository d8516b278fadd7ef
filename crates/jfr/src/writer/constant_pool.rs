//! A constant pool under construction: values interned by their encoded bytes. It knows nothing of
//! what the bytes mean; the key of a value is its place plus one, 0 stays the null reference.

use crate::hash::Seeds;
use crate::wire::put_varint;
use std::collections::HashMap;
use std::hash::BuildHasher;

/// Values are appended to one buffer and found again through a hash table of chains, so that a
/// value costs its bytes plus about 30 and comparing it is one `memcmp`.
pub(crate) struct Pool {
    type_id: u8,
    /// Keys begin above this one.
    base: u32,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    heads: HashMap<u64, u32, Seeds>,
    hasher: Seeds,
    /// How many entries are in the file already.
    flushed: usize,
}

struct Entry {
    end: usize,
    /// Key of the next entry with the same hash; 0: none.
    next: u32,
}

impl Pool {
    pub(crate) fn new(type_id: u8) -> Self {
        Self::above(type_id, 0)
    }

    /// A pool whose keys begin above `base`.
    pub(crate) fn above(type_id: u8, base: u32) -> Self {
        Self {
            type_id,
            base,
            bytes: Vec::new(),
            entries: Vec::new(),
            heads: HashMap::default(),
            hasher: Seeds::default(),
            flushed: 0,
        }
    }

    /// The key of the value, which is added if it is new. 0 when the keys are used up.
    pub(crate) fn intern(&mut self, value: &[u8]) -> u32 {
        let hash = self.hasher.hash_one(value);
        let head = self.heads.get(&hash).copied().unwrap_or(0);
        let mut key = head;
        while key != 0 {
            if self.value(key) == Some(value) {
                return key;
            }
            key = self.entry(key).map_or(0, |entry| entry.next);
        }
        let next = u32::try_from(self.entries.len() + 1).ok();
        let Some(key) = next.and_then(|next| next.checked_add(self.base)) else {
            return 0;
        };
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry {
            end: self.bytes.len(),
            next: head,
        });
        self.heads.insert(hash, key);
        key
    }

    /// Whether there is anything that the file does not have.
    pub(crate) fn has_pending(&self) -> bool {
        self.flushed < self.entries.len()
    }

    /// Appends what the file does not have: type, count, and then key and value of each.
    pub(crate) fn write_pending(&mut self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self.type_id));
        put_varint(out, (self.entries.len() - self.flushed) as u64);
        for place in self.flushed..self.entries.len() {
            let key = self.base + place as u32 + 1;
            put_varint(out, u64::from(key));
            out.extend_from_slice(self.value(key).unwrap_or_default());
        }
        self.flushed = self.entries.len();
    }

    /// Heap memory, without the allocator's own.
    pub(crate) fn memory_bytes(&self) -> usize {
        // hashbrown: one control byte a slot, at most 7/8 full.
        let slot = size_of::<(u64, u32)>() + 1;
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.heads.capacity() * slot * 8 / 7
    }

    fn entry(&self, key: u32) -> Option<&Entry> {
        let place = key.checked_sub(self.base)?.checked_sub(1)?;
        self.entries.get(place as usize)
    }

    /// The largest key in use.
    pub(crate) fn last_key(&self) -> u32 {
        self.base + self.entries.len() as u32
    }

    fn value(&self, key: u32) -> Option<&[u8]> {
        let start = self
            .entry(key.saturating_sub(1))
            .map_or(0, |entry| entry.end);
        self.bytes.get(start..self.entry(key)?.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_key_and_only_new_ones_are_written() {
        let mut pool = Pool::new(9);
        assert!(!pool.has_pending());
        assert_eq!(pool.intern(b"a"), 1);
        assert_eq!(pool.intern(b""), 2);
        assert_eq!(pool.intern(b"a"), 1);
        let mut out = Vec::new();
        pool.write_pending(&mut out);
        assert_eq!(out, [9, 2, 1, b'a', 2]);
        assert!(!pool.has_pending());
        assert_eq!(pool.intern(b"bc"), 3);
        assert_eq!(pool.intern(b""), 2);
        out.clear();
        pool.write_pending(&mut out);
        assert_eq!(out, [9, 1, 3, b'b', b'c']);
    }

    #[test]
    fn values_with_equal_hashes_stay_distinct() {
        let mut pool = Pool::new(9);
        pool.intern(b"one");
        let hash = pool.hasher.hash_one(b"two".as_slice());
        pool.heads.insert(hash, 1); // as if "one" had the hash of "two"
        assert_eq!(pool.intern(b"two"), 2);
        assert_eq!(pool.intern(b"two"), 2);
        assert_eq!(pool.entries[1].next, 1);
    }

    /// Vectors double, and a table of the standard library has slots of 17 bytes for one in seven
    /// eighths of a power of two.
    #[test]
    fn memory_counts_vectors_and_tables() {
        let mut pool = Pool::new(9);
        for number in 0..1024u64 {
            pool.intern(&number.to_le_bytes());
        }
        let values = 1024 * (8 + size_of::<Entry>());
        let table = 2048 * 17;
        let (least, most) = (values + table, values + table + table / 64);
        let memory = pool.memory_bytes();
        assert!((least..most).contains(&memory), "{memory} of {least}");
    }
}
