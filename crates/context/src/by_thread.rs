//! Maps a thread id to its record: buckets of one cache line. Each entry holds the place of a
//! record and some bits of the id. Entries are set and cleared by single stores, so readers need no
//! lock: they check the id in the record itself.

use crate::record::Record;
use crate::sync::{AtomicU32, Ordering};

/// Entries of a bucket: a cache line.
pub const BUCKET: usize = 16;
/// Bits of an entry that hold the record's place plus one. The other bits are from the id.
const PLACE_BITS: u32 = 21;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;
/// Records a table can name.
pub const RECORDS_MAX: usize = (1 << 20) as usize;

/// The table.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    entries: &'a [AtomicU32],
    /// Number of buckets minus one.
    mask: u64,
}

impl<'a> Table<'a> {
    /// A table in zeroed entries: a power of two of buckets.
    #[must_use]
    pub fn new(entries: &'a [AtomicU32]) -> Option<Table<'a>> {
        let buckets = entries.len().checked_div(BUCKET)?;
        if !buckets.is_power_of_two() {
            return None;
        }
        let mask = (buckets as u64).checked_sub(1)?;
        Some(Table { entries, mask })
    }

    /// Ids are assigned in sequence. Without mixing, they are spread evenly, and a program with few
    /// threads touches few pages.
    #[inline]
    fn bucket(&self, id: u64) -> &'a [AtomicU32] {
        let first = ((id & self.mask) as usize).wrapping_mul(BUCKET);
        self.entries
            .get(first..first.wrapping_add(BUCKET))
            .unwrap_or(&[])
    }

    #[inline]
    fn tag(&self, id: u64) -> u32 {
        let above = id.wrapping_shr(self.mask.count_ones()) as u32;
        above << PLACE_BITS
    }

    /// The place of the record of `id`; `record` gives the record at a place.
    #[inline]
    #[must_use]
    pub fn find<'r>(&self, id: u64, record: impl Fn(u32) -> Option<Record<'r>>) -> Option<u32> {
        let tag = self.tag(id);
        for entry in self.bucket(id) {
            let value = entry.load(Ordering::Acquire);
            let place = (value & PLACE_MASK).checked_sub(1);
            if let Some(place) = place
                && value & !PLACE_MASK == tag
                && record(place).is_some_and(|record| record.id() == id)
            {
                return Some(place);
            }
        }
        None
    }

    /// Adds an entry for the record at `place` under `id`; false if the bucket is full.
    #[must_use]
    pub fn insert(&self, id: u64, place: u32) -> bool {
        let value = self.tag(id) | (place.wrapping_add(1) & PLACE_MASK);
        self.bucket(id).iter().any(|entry| {
            let free = entry.load(Ordering::Relaxed) == 0;
            free && entry
                .compare_exchange(0, value, Ordering::Release, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Removes the entry of the record at `place`.
    pub fn remove(&self, id: u64, place: u32) {
        let value = self.tag(id) | (place.wrapping_add(1) & PLACE_MASK);
        for entry in self.bucket(id) {
            if entry
                .compare_exchange(value, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
        }
    }
}
