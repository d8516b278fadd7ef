//! Sets of Java objects as the JDK keeps its virtual threads: `ConcurrentHashMap.newKeySet()`, read
//! bucket by bucket from outside the VM (java.base, java/util/concurrent/ConcurrentHashMap.java).
//!
//! During the reads, a collector may move the objects and the program may change the set. Nothing
//! here can crash or run forever. The caller must check the class of each result.

use super::continuation::reference;
use super::layout::{ABSENT, Layout, present};
use crate::memory::{Fault, Memory};

/// Offsets in the classes of the collection, in bytes; [`ABSENT`] if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetFields {
    /// `ConcurrentHashMap$CollectionView.map`.
    pub map: u64,
    /// `ConcurrentHashMap.table`.
    pub table: u64,
    /// `ConcurrentHashMap$Node.hash`.
    pub hash: u64,
    /// `ConcurrentHashMap$Node.key`.
    pub key: u64,
    /// `ConcurrentHashMap$Node.next`.
    pub next: u64,
    /// `ConcurrentHashMap$TreeBin.first`.
    pub first: u64,
    /// `ConcurrentHashMap$ForwardingNode.nextTable`.
    pub next_table: u64,
    /// The length of an array of references.
    pub length: u64,
    /// Its first element.
    pub elements: u64,
}

impl SetFields {
    /// No offset is known.
    pub const EMPTY: SetFields = SetFields {
        map: ABSENT,
        table: ABSENT,
        hash: ABSENT,
        key: ABSENT,
        next: ABSENT,
        first: ABSENT,
        next_table: ABSENT,
        length: ABSENT,
        elements: ABSENT,
    };

    /// Whether all offsets are known.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let all = [
            self.map,
            self.table,
            self.hash,
            self.key,
            self.next,
            self.first,
            self.next_table,
            self.length,
            self.elements,
        ];
        all.into_iter().all(present)
    }
}

/// The buckets of a set at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    array: u64,
    len: u32,
}

impl Buckets {
    /// Number of buckets; 0 for a set that never had an element.
    #[must_use]
    pub const fn len(&self) -> u32 {
        self.len
    }

    /// Whether the set has no buckets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// `MAXIMUM_CAPACITY`.
const BUCKETS_MAX: u32 = 1 << 30;
/// Maximum number of elements of a bucket: more than eight are rare and become a tree.
const CHAIN_MAX: u32 = 256;
/// `MOVED`: the bucket was moved to the next table, which is twice as large.
const MOVED: i32 = -1;
/// `TREEBIN`.
const TREE: i32 = -2;

/// Reads sets.
pub struct Sets<'a, M: Memory> {
    /// The process's memory.
    pub mem: &'a M,
    /// HotSpot's layout.
    pub layout: &'a Layout,
    /// The offsets of the collections.
    pub fields: &'a SetFields,
}

impl<M: Memory> Sets<'_, M> {
    /// The buckets of a set.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read, or is no set.
    pub fn buckets(&self, set: u64) -> Result<Buckets, Fault> {
        let map = self.reference(set, self.fields.map)?;
        let table = self.reference(map, self.fields.table)?;
        self.table(table)
    }

    /// The bucket of the virtual thread with this id: `VirtualThread.hashCode` is the id, and the
    /// map spreads it (`ConcurrentHashMap.spread`). `None` without buckets.
    #[must_use]
    pub fn bucket_of(buckets: &Buckets, id: u64) -> Option<u32> {
        let hash = id as u32;
        let mask = buckets.len.checked_sub(1)?;
        Some((hash ^ (hash >> 16)) & mask)
    }

    /// Visits the elements of a bucket.
    ///
    /// # Errors
    /// [`Fault`] if one cannot be read.
    pub fn elements(
        &self,
        buckets: &Buckets,
        index: u32,
        visit: &mut dyn FnMut(u64),
    ) -> Result<(), Fault> {
        let node = self.node(buckets, index)?;
        if node == 0 || self.hash(node)? != MOVED {
            return self.chain(node, visit);
        }
        let next = self.table(self.reference(node, self.fields.next_table)?)?;
        for index in [index, index.wrapping_add(buckets.len)] {
            let node = self.node(&next, index)?;
            // If two moves are under way, the second one is left for the next read.
            if node != 0 && self.hash(node)? != MOVED {
                self.chain(node, visit)?;
            }
        }
        Ok(())
    }

    fn chain(&self, first: u64, visit: &mut dyn FnMut(u64)) -> Result<(), Fault> {
        let mut node = first;
        if node != 0 && self.hash(node)? == TREE {
            node = self.reference(node, self.fields.first)?;
        }
        for _ in 0..CHAIN_MAX {
            if node == 0 {
                break;
            }
            let key = self.reference(node, self.fields.key)?;
            if key != 0 {
                visit(key);
            }
            node = self.reference(node, self.fields.next)?;
        }
        Ok(())
    }

    fn table(&self, array: u64) -> Result<Buckets, Fault> {
        if array == 0 {
            return Ok(Buckets::default());
        }
        let len = self.mem.u32(array.wrapping_add(self.fields.length))?;
        if !len.is_power_of_two() || len > BUCKETS_MAX {
            return Err(Fault { addr: array });
        }
        Ok(Buckets { array, len })
    }

    fn node(&self, buckets: &Buckets, index: u32) -> Result<u64, Fault> {
        if index >= buckets.len {
            return Err(Fault {
                addr: buckets.array,
            });
        }
        let narrow = self.layout.extra.chunk.narrow_oops;
        let at = self.fields.elements + u64::from(index) * if narrow { 4 } else { 8 };
        self.reference(buckets.array, at)
    }

    fn hash(&self, node: u64) -> Result<i32, Fault> {
        self.mem.i32(node.wrapping_add(self.fields.hash))
    }

    fn reference(&self, object: u64, offset: u64) -> Result<u64, Fault> {
        if object == 0 {
            return Err(Fault { addr: 0 });
        }
        reference(self.mem, self.layout, object.wrapping_add(offset))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    const FIELDS: SetFields = SetFields {
        map: 8,
        table: 8,
        hash: 0,
        key: 8,
        next: 16,
        first: 24,
        next_table: 24,
        length: 8,
        elements: 16,
    };
    const SET: u64 = 0x1000;
    const MAP: u64 = 0x2000;
    const TABLE: u64 = 0x3000;
    const NEXT: u64 = 0x4000;

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes()).collect()
    }

    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        layout.extra.chunk.narrow_oops = false;
        layout
    }

    fn shown(mem: &Bytes, index: u32) -> Result<Vec<u64>, Fault> {
        let layout = layout();
        let sets = Sets {
            mem,
            layout: &layout,
            fields: &FIELDS,
        };
        let buckets = sets.buckets(SET)?;
        let mut found = Vec::new();
        sets.elements(&buckets, index, &mut |key| found.push(key))?;
        Ok(found)
    }

    fn set() -> Bytes {
        let mut mem = Bytes::at(SET, &words(&[0, MAP]));
        mem.add(MAP, &words(&[0, TABLE]));
        mem
    }

    #[test]
    fn chains_trees_and_moved_buckets_show_their_elements() {
        let mut mem = set();
        let hash = |value: i32| u64::from(value as u32);
        mem.add(TABLE, &words(&[0, 4, 0x100, 0, 0x200, 0x300]));
        mem.add(0x100, &words(&[5, 0xa, 0x140]));
        mem.add(0x140, &words(&[5, 0xb, 0]));
        mem.add(0x200, &words(&[hash(TREE), 0, 0, 0x240]));
        mem.add(0x240, &words(&[5, 0xc, 0x280]));
        mem.add(0x280, &words(&[5, 0xd, 0]));
        mem.add(0x300, &words(&[hash(MOVED), 0, 0, NEXT]));
        mem.add(NEXT, &words(&[0, 8, 0, 0, 0, 0x400, 0, 0, 0, 0x440]));
        mem.add(0x400, &words(&[3, 0xe, 0]));
        mem.add(0x440, &words(&[7, 0xf, 0]));
        assert_eq!(shown(&mem, 0), Ok([0xa, 0xb].to_vec()));
        assert_eq!(shown(&mem, 1), Ok(Vec::new()));
        assert_eq!(shown(&mem, 2), Ok([0xc, 0xd].to_vec()));
        assert_eq!(shown(&mem, 3), Ok([0xe, 0xf].to_vec()));
        assert!(shown(&mem, 4).is_err(), "there is no such bucket");
    }

    #[test]
    fn bucket_follows_from_the_id() {
        let of = |len: u32, id: u64| Sets::<Bytes>::bucket_of(&Buckets { array: 8, len }, id);
        assert_eq!(of(64, 5), Some(5));
        assert_eq!(of(64, 64 + 5), Some(5));
        // The upper half of the hash is mixed in.
        assert_eq!(of(64, 0x3_0001), Some(2));
        assert_eq!(of(1, 77), Some(0));
        assert_eq!(of(0, 77), None);
    }

    #[test]
    fn garbage_ends_and_says_so() {
        // A cyclic chain.
        let mut mem = set();
        mem.add(TABLE, &words(&[0, 1, 0x100]));
        mem.add(0x100, &words(&[5, 0xa, 0x100]));
        assert_eq!(shown(&mem, 0).map(|all| all.len()), Ok(CHAIN_MAX as usize));
        // A table with an impossible length.
        let mut mem = set();
        mem.add(TABLE, &words(&[0, 3, 0, 0, 0]));
        assert!(shown(&mem, 0).is_err());
        // An unreadable bucket.
        let mut mem = set();
        mem.add(TABLE, &words(&[0, 1, 0x100]));
        assert!(shown(&mem, 0).is_err());
        // A set without a map; and a set that never had an element.
        assert!(shown(&Bytes::at(SET, &words(&[0, 0])), 0).is_err());
        let mut mem = Bytes::at(SET, &words(&[0, MAP]));
        mem.add(MAP, &words(&[0, 0]));
        assert!(shown(&mem, 0).is_err(), "it has no bucket");
    }
}
