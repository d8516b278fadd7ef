//! Sampled objects, and which of them are still alive: a table of bounded size, filled on threads
//! of the program, without locks.
//!
//! The table holds references of the runtime's that keep no object alive. A dead object is found
//! when somebody asks. An allocation that needs a place checks some of them. The end of a
//! recording, or a dump, checks all.
//!
//! If the table is full, chance decides which objects stay. Each object has a random key. Only
//! objects whose key is below a limit stay, and the limit is halved. Each object that stays stands
//! for twice as much. So every object has the same chance whenever it was allocated, and sums are
//! right in the mean. No pass through the table is needed: an object above the limit counts as
//! absent, and its place is free for the next one.

use dwell_signal::Followed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Maximum number of objects that are followed.
pub const PLACES: usize = 16_384;
/// Places that are checked for a free one. If none of them is free, the table counts as full: with
/// nine tenths taken that happens once in 850 times.
const PROBES: usize = 64;
/// Maximum number of times that the limit of keys is halved.
const LEVELS: u32 = 24;

/// There is no reference in a place.
const FREE: usize = 0;
/// Another thread is working on the place. No reference of a runtime is as small a number.
const BUSY: usize = 1;

/// References to objects, in the runtime's form, for the calling thread.
pub trait References {
    /// A reference to the object at hand that does not keep it alive; 0 if the runtime has no
    /// more.
    fn make(&self) -> usize;

    /// Whether the object is still there.
    fn is_alive(&self, reference: usize) -> bool;

    /// Gives the reference back.
    fn give_back(&self, reference: usize);
}

/// A place.
#[derive(Debug, Default)]
struct Place {
    reference: AtomicUsize,
    serial: AtomicU64,
    key: AtomicU32,
}

/// The fate of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is followed: its place, and its number.
    Followed(u32, u64),
    /// Chance is against it: others stand for it.
    Thinned,
    /// No place was free, even after a halving, or no reference could be made.
    Lost,
}

/// The table's figures for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Objects that are followed.
    pub followed: u64,
    /// Each of them stands for this many.
    pub one_of: u64,
    /// Objects that were chosen.
    pub chosen: u64,
    /// Objects that were not followed, as there was no room for them.
    pub lost: u64,
}

/// The time of the last check of which objects are alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// When, on the monotonic clock; 0: never.
    pub at_ns: u64,
    /// Collections that were over by then.
    pub collections: u32,
}

/// The table.
#[derive(Debug)]
pub struct Table {
    places: Box<[Place]>,
    /// The place where the next search begins.
    next: AtomicUsize,
    /// Numbers given out.
    serials: AtomicU64,
    level: AtomicU32,
    chosen: AtomicU64,
    lost: AtomicU64,
    is_open: AtomicBool,
    looked_at_ns: AtomicU64,
    looked_collections: AtomicU32,
}

impl Default for Table {
    fn default() -> Table {
        Table::of(PLACES)
    }
}

/// The greatest key that stays after this many halvings.
const fn limit(level: u32) -> u32 {
    u32::MAX >> level
}

impl Table {
    /// A table with this many places, which uses no memory before it is opened.
    #[must_use]
    pub fn of(places: usize) -> Table {
        Table {
            places: (0..places).map(|_| Place::default()).collect(),
            next: AtomicUsize::new(0),
            serials: AtomicU64::new(0),
            level: AtomicU32::new(0),
            chosen: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_open: AtomicBool::new(false),
            looked_at_ns: AtomicU64::new(0),
            looked_collections: AtomicU32::new(0),
        }
    }

    /// Begins with an empty table.
    pub fn open(&self, references: &impl References) {
        self.clear(references);
        self.level.store(0, Ordering::Relaxed);
        self.chosen.store(0, Ordering::Relaxed);
        self.lost.store(0, Ordering::Relaxed);
        self.looked_at_ns.store(0, Ordering::Relaxed);
        self.looked_collections.store(0, Ordering::Relaxed);
        self.is_open.store(true, Ordering::Release);
    }

    /// Ends: all references are given back, except those that other threads are just using. These
    /// keep no object alive, and are given back when the table is opened again.
    pub fn close(&self, references: &impl References) {
        self.is_open.store(false, Ordering::Release);
        self.clear(references);
    }

    /// Whether objects are followed.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    fn clear(&self, references: &impl References) {
        for place in &self.places {
            if let Some(reference) = take(place) {
                references.give_back(reference);
                place.reference.store(FREE, Ordering::Release);
            }
        }
    }

    /// Follows the object at hand from now on, if there is room for it. `key` is a random number,
    /// each as likely as any other.
    pub fn put(&self, key: u32, references: &impl References) -> Put {
        if !self.is_open() {
            return Put::Lost;
        }
        self.chosen.fetch_add(1, Ordering::Relaxed);
        // After a halving about every second place is free: one attempt is enough, unless other
        // threads are faster.
        for _ in 0..4 {
            let level = self.level.load(Ordering::Acquire);
            if key > limit(level) {
                return Put::Thinned;
            }
            if let Some((index, place)) = self.free_one(level, references) {
                return self.fill(index, place, key, references);
            }
            if level < LEVELS {
                let (now, more) = (Ordering::AcqRel, Ordering::Relaxed);
                let _ = self.level.compare_exchange(level, level + 1, now, more);
            }
        }
        self.lost.fetch_add(1, Ordering::Relaxed);
        Put::Lost
    }

    fn fill(&self, index: usize, place: &Place, key: u32, references: &impl References) -> Put {
        let reference = references.make();
        if reference <= BUSY {
            place.reference.store(FREE, Ordering::Release);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return Put::Lost;
        }
        let serial = self.serials.fetch_add(1, Ordering::Relaxed) + 1;
        place.serial.store(serial, Ordering::Relaxed);
        place.key.store(key, Ordering::Relaxed);
        place.reference.store(reference, Ordering::Release);
        Put::Followed(u32::try_from(index).unwrap_or(u32::MAX), serial)
    }

    /// A place that belongs to the caller from now on: a free one, or one whose object is dead or
    /// above the limit.
    fn free_one(&self, level: u32, references: &impl References) -> Option<(usize, &Place)> {
        for _ in 0..PROBES.min(self.places.len()) {
            let index = self.next.fetch_add(1, Ordering::Relaxed) % self.places.len();
            let place = self.places.get(index)?;
            let free = place.reference.load(Ordering::Relaxed) == FREE;
            if free && exchange(place, FREE) {
                return Some((index, place));
            }
            if self.let_go(place, level, references) {
                return Some((index, place));
            }
        }
        None
    }

    /// Takes the place of an object that is dead, or above the limit.
    fn let_go(&self, place: &Place, level: u32, references: &impl References) -> bool {
        let Some(reference) = take(place) else {
            return false;
        };
        let stays = place.key.load(Ordering::Relaxed) <= limit(level);
        if stays && references.is_alive(reference) {
            place.reference.store(reference, Ordering::Release);
            return false;
        }
        place.serial.store(0, Ordering::Relaxed);
        references.give_back(reference);
        true
    }

    /// Checks which objects are alive.
    pub fn look(&self, looked: Looked, references: &impl References) {
        let level = self.level.load(Ordering::Acquire);
        for place in &self.places {
            if self.let_go(place, level, references) {
                place.reference.store(FREE, Ordering::Release);
            }
        }
        self.looked_collections
            .store(looked.collections, Ordering::Relaxed);
        self.looked_at_ns.store(looked.at_ns, Ordering::Release);
    }

    /// The time of the last check.
    #[must_use]
    pub fn looked(&self) -> Looked {
        Looked {
            at_ns: self.looked_at_ns.load(Ordering::Acquire),
            collections: self.looked_collections.load(Ordering::Relaxed),
        }
    }

    /// Stops following an object that was not recorded otherwise: it counts as lost.
    pub fn forget(&self, followed: &Followed, references: &impl References) {
        let Some(place) = self.places.get(followed.place as usize) else {
            return;
        };
        if let Some(reference) = take(place) {
            if place.serial.load(Ordering::Relaxed) == followed.serial {
                place.serial.store(0, Ordering::Relaxed);
                references.give_back(reference);
                place.reference.store(FREE, Ordering::Release);
                self.lost.fetch_add(1, Ordering::Relaxed);
            } else {
                place.reference.store(reference, Ordering::Release);
            }
        }
    }

    /// How often the limit was halved: each followed object stands for 2 to the power of this.
    #[must_use]
    pub fn level(&self) -> u32 {
        self.level.load(Ordering::Acquire)
    }

    /// Whether the object was alive at the last check, or was allocated since, and is still
    /// followed after `level` halvings.
    #[must_use]
    pub fn has(&self, followed: &Followed, level: u32) -> bool {
        let place = self.places.get(followed.place as usize);
        place.is_some_and(|place| {
            place.reference.load(Ordering::Acquire) != FREE
                && place.serial.load(Ordering::Relaxed) == followed.serial
                && place.key.load(Ordering::Relaxed) <= limit(level)
        })
    }

    /// The table's state for reports.
    #[must_use]
    pub fn state(&self) -> State {
        let level = self.level();
        let is_followed = |place: &&Place| {
            place.reference.load(Ordering::Acquire) != FREE
                && place.key.load(Ordering::Relaxed) <= limit(level)
        };
        State {
            followed: self.places.iter().filter(is_followed).count() as u64,
            one_of: 1 << level,
            chosen: self.chosen.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
        }
    }
}

/// The reference of a place, which belongs to the caller until it stores another state. `None`:
/// the place is free, or another thread has it.
fn take(place: &Place) -> Option<usize> {
    let reference = place.reference.load(Ordering::Relaxed);
    (reference > BUSY && exchange(place, reference)).then_some(reference)
}

fn exchange(place: &Place, known: usize) -> bool {
    let (now, otherwise) = (Ordering::Acquire, Ordering::Relaxed);
    let exchanged = place
        .reference
        .compare_exchange(known, BUSY, now, otherwise);
    exchanged.is_ok()
}

/// A random key for each number: the upper half of its mix (Steele, Lea and Flood, "Fast Splittable
/// Pseudorandom Number Generators", 2014).
#[must_use]
pub const fn key(number: u64) -> u32 {
    let mut mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 32) as u32
}

#[cfg(test)]
#[path = "alive_tests.rs"]
mod tests;
