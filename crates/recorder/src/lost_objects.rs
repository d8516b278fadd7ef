//! Sampled objects that found no free slot, by class, thread and allocating method, since the last
//! flush. A burst can take all samples of a method away, and only this shows which it was.
//!
//! The table does not grow on the program's threads. Nothing here is called in a handler.

use rustc_hash::FxHashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sums that are kept separate until the next flush.
const ENTRIES_MAX: usize = 1024;
/// Those that are written; all others are one sum.
const WRITTEN_MAX: usize = 64;

/// Lost objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostObjects {
    /// The number of their class; `None`: of several.
    pub class: Option<u32>,
    /// The thread that allocated them, as its record names it; `None`: several.
    pub thread: Option<u64>,
    /// The number of the method that allocated them; `None`: several, or unknown.
    pub method: Option<u32>,
    /// How many.
    pub samples: u64,
    /// The bytes that they stood for.
    pub weight_bytes: u64,
}

impl LostObjects {
    fn add(&mut self, samples: u64, weight_bytes: u64) {
        self.samples = self.samples.saturating_add(samples);
        self.weight_bytes = self.weight_bytes.saturating_add(weight_bytes);
    }
}

/// The table.
#[derive(Debug, Default)]
pub struct LostObjectsTable(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_place: FxHashMap<(u32, u64, Option<u32>), LostObjects>,
    others: LostObjects,
}

impl LostObjectsTable {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room, before objects are sampled.
    pub fn prepare(&self) {
        let by_place = &mut self.inner().by_place;
        by_place.reserve(ENTRIES_MAX.saturating_sub(by_place.len()));
    }

    /// Adds an object of a class that a method allocated, with the bytes that it stood for.
    pub fn add(&self, class: u32, thread: u64, method: Option<u32>, weight_bytes: u64) {
        let place = (class, thread, method);
        let mut inner = self.inner();
        let has_room = inner.by_place.len() < ENTRIES_MAX.min(inner.by_place.capacity());
        match inner.by_place.get_mut(&place) {
            Some(known) => known.add(1, weight_bytes),
            None if has_room => {
                let new = LostObjects {
                    class: Some(class),
                    thread: Some(thread),
                    method,
                    samples: 1,
                    weight_bytes,
                };
                inner.by_place.insert(place, new);
            }
            None => inner.others.add(1, weight_bytes),
        }
    }

    /// Takes all: the most bytes first, and the rest as one sum at the end.
    #[must_use]
    pub fn take(&self) -> Vec<LostObjects> {
        let mut inner = self.inner();
        let mut others = std::mem::take(&mut inner.others);
        let mut lost: Vec<LostObjects> = inner.by_place.drain().map(|(_, lost)| lost).collect();
        drop(inner);
        lost.sort_unstable_by_key(|lost| {
            (
                std::cmp::Reverse(lost.weight_bytes),
                lost.class,
                lost.thread,
                lost.method,
            )
        });
        for rest in lost.iter().skip(WRITTEN_MAX) {
            others.add(rest.samples, rest.weight_bytes);
        }
        lost.truncate(WRITTEN_MAX);
        lost.extend((others.samples > 0).then_some(others));
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(
        (class, thread, method): (u32, u64, Option<u32>),
        samples: u64,
        weight_bytes: u64,
    ) -> LostObjects {
        LostObjects {
            class: Some(class),
            thread: Some(thread),
            method,
            samples,
            weight_bytes,
        }
    }

    #[test]
    fn lost_objects_are_summed_by_class_thread_and_method() {
        let table = LostObjectsTable::default();
        table.prepare();
        for (class, thread, method, bytes) in [
            (1, 7, Some(3), 10),
            (2, 7, Some(3), 100),
            (1, 7, Some(3), 20),
            (1, 7, Some(4), 9),
            (1, 7, None, 8),
            (1, 8, Some(3), 5),
        ] {
            table.add(class, thread, method, bytes);
        }
        let all = [
            lost((2, 7, Some(3)), 1, 100),
            lost((1, 7, Some(3)), 2, 30),
            lost((1, 7, Some(4)), 1, 9),
            lost((1, 7, None), 1, 8),
            lost((1, 8, Some(3)), 1, 5),
        ];
        assert_eq!(table.take(), all);
        assert_eq!(table.take(), [], "since the last flush");
    }

    #[test]
    fn full_table_keeps_sums_and_does_not_grow() {
        let table = LostObjectsTable::default();
        // Without room: nothing is allocated.
        table.add(1, 1, None, 3);
        assert_eq!(table.inner().by_place.capacity(), 0);
        table.prepare();
        let capacity = table.inner().by_place.capacity();
        for class in 0..2 * ENTRIES_MAX as u32 {
            table.add(class, 1, Some(2), 10);
        }
        assert_eq!(table.inner().by_place.capacity(), capacity);
        let all = table.take();
        assert_eq!(all.len(), WRITTEN_MAX + 1);
        let others = all.last().unwrap();
        assert_eq!(
            (others.class, others.thread, others.method),
            (None, None, None)
        );
        let sum = |of: fn(&LostObjects) -> u64| all.iter().map(of).sum::<u64>();
        assert_eq!(sum(|lost| lost.samples), 2 * ENTRIES_MAX as u64 + 1);
        assert_eq!(sum(|lost| lost.weight_bytes), 20 * ENTRIES_MAX as u64 + 3);
        table.add(5, 1, None, 1);
        assert_eq!(table.take(), [lost((5, 1, None), 1, 1)], "room again");
    }
}
