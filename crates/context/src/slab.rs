//! All records, and the threads that hold them.
//!
//! A record belongs to one logical thread at a time, by the id that the JVM assigns once and never
//! reuses. Several callers may hold the record of one thread (copies of the Java API in several
//! class loaders); the last release frees it. The memory is never unmapped, so a late write can hit
//! a reused record, but nothing other than a record.

use crate::by_thread::{RECORDS_MAX, Table};
use crate::record::{Context, GENERATION, HOLDS, ID, RECORD_WORDS, Record};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

const LOW: u64 = 0xffff_ffff;

/// A hold on a record: its place and the number of its use, so that it can be released only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    /// The record's place.
    pub place: u32,
    /// Number of this use of the record; never 0.
    pub generation: u32,
}

impl Handle {
    /// The hold as one number for Java; never 0.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        (u64::from(self.generation) << 32) | u64::from(self.place)
    }

    /// The inverse of [`Handle::to_bits`].
    #[must_use]
    pub fn from_bits(bits: u64) -> Handle {
        Handle {
            place: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// Result of a request for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// A hold.
    Held(Handle),
    /// All records are in use, or the bucket for this id is full.
    Full,
}

/// The records and the table that finds them.
#[derive(Debug)]
pub struct Slab<'a> {
    words: &'a [AtomicU64],
    table: Table<'a>,
    /// Number of records used so far.
    used: AtomicU32,
    /// The first free record plus one (low half). The upper half changes with every change, so that
    /// an equal head means an equal list.
    free: AtomicU64,
    /// Number of records that are held.
    held: AtomicU32,
}

impl<'a> Slab<'a> {
    /// A slab in zeroed memory. `None` if the table's size is no power of two of buckets.
    #[must_use]
    pub fn new(words: &'a [AtomicU64], entries: &'a [AtomicU32]) -> Option<Slab<'a>> {
        Some(Slab {
            words,
            table: Table::new(entries)?,
            used: AtomicU32::new(0),
            free: AtomicU64::new(0),
            held: AtomicU32::new(0),
        })
    }

    /// Maximum number of records.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        let records = self.words.len() / RECORD_WORDS;
        records.min(RECORDS_MAX) as u32
    }

    /// The record at a place.
    #[inline]
    #[must_use]
    pub fn record(&self, place: u32) -> Option<Record<'a>> {
        let first = (place as usize).wrapping_mul(RECORD_WORDS);
        let words = self.words.get(first..first.wrapping_add(RECORD_WORDS))?;
        Record::new(words)
    }

    #[inline]
    fn find(&self, id: u64) -> Option<u32> {
        if id == 0 {
            return None;
        }
        self.table.find(id, |place| self.record(place))
    }

    /// The context of the logical thread `id`, for a caller that has interrupted this thread, or is
    /// it.
    #[inline]
    #[must_use]
    pub fn context_here(&self, id: u64) -> Option<Context> {
        let record = self.record(self.find(id)?)?;
        Some(record.read_here()).filter(Context::is_active)
    }

    /// The context of the logical thread `id`, from any thread.
    #[inline]
    #[must_use]
    pub fn context_of(&self, id: u64) -> Option<Context> {
        let record = self.record(self.find(id)?)?;
        // Before the context, also for the processor.
        let generation = record.atomic(GENERATION)?.load(Ordering::Acquire);
        let context = record.read()?;
        // The record may have moved to another thread during the read.
        let same = record.id() == id && record.word(GENERATION) == generation;
        Some(context).filter(|context| same && context.is_active())
    }

    /// Whether the logical thread `id` has a record, with a context or without.
    #[must_use]
    pub fn knows(&self, id: u64) -> bool {
        self.find(id).is_some()
    }

    /// Visits all threads that have a context now.
    pub fn for_each(&self, mut visit: impl FnMut(u64, &Context)) {
        for place in 0..self.used.load(Ordering::Acquire).min(self.capacity()) {
            let Some(id) = self.record(place).map(|record| record.id()) else {
                continue;
            };
            if id != 0
                && let Some(context) = self.context_of(id)
            {
                visit(id, &context);
            }
        }
    }

    /// Visits the ids of all threads that have a context now.
    pub fn for_each_working(&self, mut visit: impl FnMut(u64)) {
        for place in 0..self.used.load(Ordering::Acquire).min(self.capacity()) {
            if let Some(record) = self.record(place)
                && let id @ 1.. = record.id()
                && record.has_context()
            {
                visit(id);
            }
        }
    }

    /// Number of held records: at least the number of threads with a context.
    #[inline]
    #[must_use]
    pub fn held(&self) -> u32 {
        self.held.load(Ordering::Relaxed)
    }

    /// Holds the record of the logical thread `id`: its present one, or a new one. Must run on that
    /// thread.
    #[must_use]
    pub fn acquire(&self, id: u64) -> Acquired {
        if id == 0 {
            return Acquired::Full;
        }
        if let Some(place) = self.find(id)
            && let Some(record) = self.record(place)
            && Self::hold_more(record)
        {
            let generation = record.word(GENERATION) as u32;
            return Acquired::Held(Handle { place, generation });
        }
        let Some(place) = self.take() else {
            return Acquired::Full;
        };
        let Some(record) = self.record(place) else {
            return Acquired::Full;
        };
        record.clear();
        // A generation of 0 would make a handle of 0.
        let generation = (record.word(GENERATION) as u32).wrapping_add(1).max(1);
        record.set(GENERATION, u64::from(generation), Ordering::Relaxed);
        record.set(HOLDS, 1, Ordering::Relaxed);
        record.set(ID, id, Ordering::Release);
        if !self.table.insert(id, place) {
            record.set(ID, 0, Ordering::Release);
            record.set(HOLDS, 0, Ordering::Relaxed);
            self.give_back(place);
            return Acquired::Full;
        }
        self.held.fetch_add(1, Ordering::Relaxed);
        Acquired::Held(Handle { place, generation })
    }

    /// Adds a hold, unless the last one is being released.
    fn hold_more(record: Record<'_>) -> bool {
        let Some(holds) = record.atomic(HOLDS) else {
            return false;
        };
        let more = |holds: u64| (holds != 0 && holds < LOW).then_some(holds.wrapping_add(1));
        holds
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more)
            .is_ok()
    }

    /// Releases a record; false if this hold is no longer valid. Must run on the thread itself, or
    /// after that thread can no longer write.
    pub fn release(&self, handle: Handle) -> bool {
        let Some(record) = self.record(handle.place) else {
            return false;
        };
        if handle.generation == 0 || record.word(GENERATION) != u64::from(handle.generation) {
            return false;
        }
        let Some(holds) = record.atomic(HOLDS) else {
            return false;
        };
        let less = |holds: u64| (holds & LOW != 0).then(|| holds.wrapping_sub(1));
        match holds.fetch_update(Ordering::AcqRel, Ordering::Relaxed, less) {
            Err(_) => return false,
            Ok(1) => {}
            Ok(_) => return true,
        }
        let id = record.id();
        self.table.remove(id, handle.place);
        record.set(ID, 0, Ordering::Release);
        // From here on the handle is invalid.
        let next = handle.generation.wrapping_add(1).max(1);
        record.set(GENERATION, u64::from(next), Ordering::Release);
        self.held.fetch_sub(1, Ordering::Relaxed);
        self.give_back(handle.place);
        true
    }

    /// Takes a free record. The last one released comes first, so that few pages are in use.
    fn take(&self) -> Option<u32> {
        let mut head = self.free.load(Ordering::Acquire);
        while let Some(place) = ((head & LOW) as u32).checked_sub(1) {
            // If another thread has taken the record, this value is stale, but then the exchange of
            // the head fails.
            let next = self.record(place)?.word(HOLDS) >> 32;
            let changed = (head >> 32).wrapping_add(1) << 32;
            match self.free.compare_exchange_weak(
                head,
                changed | next,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(place),
                Err(now) => head = now,
            }
        }
        let capacity = self.capacity();
        let more = |used: u32| (used < capacity).then_some(used.wrapping_add(1));
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, more)
            .ok()
    }

    fn give_back(&self, place: u32) {
        let Some(record) = self.record(place) else {
            return;
        };
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            record.set(HOLDS, (head & LOW) << 32, Ordering::Relaxed);
            let changed = (head >> 32).wrapping_add(1) << 32;
            let new = changed | u64::from(place.wrapping_add(1));
            match self
                .free
                .compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}
