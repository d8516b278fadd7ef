//! Waits of virtual threads that have begun: the thread may be on another carrier when it gets the
//! monitor. The table has no locks, because a thread that waits for the program's locks must not
//! wait for ours.
//!
//! An entry is only accessed by its virtual thread itself, on any carrier.

use crate::owners::Asked;
use dwell_signal::LockOwner;
use std::sync::atomic::{AtomicU64, Ordering};

/// A wait that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// When, on the monotonic clock; 0: none.
    pub at_ns: u64,
    /// Where the JVM keeps the monitor, or 0.
    pub monitor: u64,
    /// Owner of the monitor.
    pub owner: LockOwner,
    /// The wait's random number, which decides whether it is recorded.
    pub draw: u64,
    /// The question about the owner's stack.
    pub asked: Asked,
}

impl Begun {
    /// No wait.
    pub const NONE: Begun = Begun {
        at_ns: 0,
        monitor: 0,
        owner: LockOwner::Unknown,
        draw: 0,
        asked: Asked {
            one_in: 0,
            question: 0,
            why: 0,
        },
    };
}

/// Places; a power of two. Pages that are never used take no memory.
const PLACES: usize = 1 << 16;
/// Places that a thread may have, next to each other.
const TRIED: u64 = 16;

/// Entry of one thread.
struct Place {
    /// The thread's id; 0: the place is free.
    id: AtomicU64,
    at_ns: AtomicU64,
    monitor: AtomicU64,
    owner: [AtomicU64; 2],
    draw: AtomicU64,
    /// One in so many, the question, and why it has no answer.
    asked: [AtomicU64; 3],
}

impl Place {
    const fn free() -> Place {
        Place {
            id: AtomicU64::new(0),
            at_ns: AtomicU64::new(0),
            monitor: AtomicU64::new(0),
            owner: [const { AtomicU64::new(0) }; 2],
            draw: AtomicU64::new(0),
            asked: [const { AtomicU64::new(0) }; 3],
        }
    }
}

/// Waits by the ids of threads.
pub struct Waits {
    places: [Place; PLACES],
}

impl Waits {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Waits {
        Waits {
            places: [const { Place::free() }; PLACES],
        }
    }

    /// Enters a wait of the calling thread. It replaces a wait that never ended. False: there is no
    /// room.
    pub fn put(&self, id: u64, begun: &Begun) -> bool {
        let found = self.find(id).or_else(|| self.claim(id));
        let Some(place) = found else { return false };
        let set = |to: &AtomicU64, value| to.store(value, Ordering::Relaxed);
        set(&place.at_ns, begun.at_ns);
        set(&place.monitor, begun.monitor);
        let (kind, value) = match begun.owner {
            LockOwner::Unknown => (0, 0),
            LockOwner::Kernel(tid) => (1, u64::from(tid.cast_unsigned())),
            LockOwner::Logical(id) => (2, id),
            LockOwner::User(key) => (3, key),
        };
        set(&place.owner[0], kind);
        set(&place.owner[1], value);
        set(&place.draw, begun.draw);
        let asked = &begun.asked;
        set(&place.asked[0], asked.one_in);
        set(&place.asked[1], asked.question);
        set(&place.asked[2], u64::from(asked.why));
        true
    }

    /// Takes out the calling thread's entry.
    pub fn take(&self, id: u64) -> Begun {
        let Some(place) = self.find(id) else {
            return Begun::NONE;
        };
        let get = |from: &AtomicU64| from.load(Ordering::Relaxed);
        let value = get(&place.owner[1]);
        let begun = Begun {
            at_ns: get(&place.at_ns),
            monitor: get(&place.monitor),
            owner: match get(&place.owner[0]) {
                1 => LockOwner::Kernel((value as u32).cast_signed()),
                2 => LockOwner::Logical(value),
                3 => LockOwner::User(value),
                _ => LockOwner::Unknown,
            },
            draw: get(&place.draw),
            asked: Asked {
                one_in: get(&place.asked[0]),
                question: get(&place.asked[1]),
                why: get(&place.asked[2]) as u32,
            },
        };
        place.id.store(0, Ordering::Release);
        begun
    }

    /// Frees all places. Their waits had not ended when the recording did.
    pub fn clear(&self) {
        for place in &self.places {
            // Unused pages stay untouched.
            if place.id.load(Ordering::Relaxed) != 0 {
                place.id.store(0, Ordering::Release);
            }
        }
    }

    /// The places that a thread may have.
    fn places_of(&self, id: u64) -> impl Iterator<Item = &Place> {
        (0..TRIED).filter_map(move |tried| {
            let at = id.wrapping_add(tried) as usize % PLACES;
            self.places.get(at)
        })
    }

    fn find(&self, id: u64) -> Option<&Place> {
        let mut places = self.places_of(id);
        places.find(|place| place.id.load(Ordering::Acquire) == id)
    }

    fn claim(&self, id: u64) -> Option<&Place> {
        let claimed = |place: &&Place| {
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            place.id.load(Ordering::Relaxed) == 0
                && place.id.compare_exchange(0, id, success, failure).is_ok()
        };
        self.places_of(id).find(claimed)
    }
}

impl Default for Waits {
    fn default() -> Waits {
        Waits::new()
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
mod tests {
    use super::*;

    fn begun(at_ns: u64) -> Begun {
        Begun {
            at_ns,
            monitor: at_ns + 2,
            owner: match at_ns % 4 {
                0 => LockOwner::Unknown,
                1 => LockOwner::Kernel(-7),
                2 => LockOwner::Logical(at_ns),
                _ => LockOwner::User(at_ns),
            },
            draw: at_ns << 40,
            asked: Asked {
                one_in: at_ns + 3,
                question: at_ns + 4,
                why: 5,
            },
        }
    }

    #[test]
    fn each_thread_finds_its_last_wait_once() {
        static WAITS: Waits = Waits::new();
        for id in 1..9 {
            assert!(WAITS.put(id, &begun(100 + id)));
        }
        assert!(WAITS.put(3, &begun(203)), "the wait before never ended");
        for id in 1..9 {
            let expected = begun(if id == 3 { 203 } else { 100 + id });
            assert_eq!(WAITS.take(id), expected);
            assert_eq!(WAITS.take(id), Begun::NONE);
        }
    }

    #[test]
    fn full_places_reject_waits_and_keep_each_thread_apart() {
        static WAITS: Waits = Waits::new();
        // All these ids have the same first place.
        let ids = (0..TRIED + 4).map(|n| 5 + n * PLACES as u64);
        let ids: Vec<u64> = ids.collect();
        let there: Vec<bool> = ids.iter().map(|id| WAITS.put(*id, &begun(*id))).collect();
        assert_eq!(there.iter().filter(|it| **it).count(), TRIED as usize);
        for (id, is_there) in ids.iter().zip(there) {
            let expected = if is_there { begun(*id) } else { Begun::NONE };
            assert_eq!(WAITS.take(*id), expected);
        }
        assert!(WAITS.put(5, &begun(1)));
        WAITS.clear();
        assert_eq!(WAITS.take(5), Begun::NONE);
    }
}
