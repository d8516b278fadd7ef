//! Slots pass from handlers to the drainer and back through the stacks of `dwell-signal`, with
//! their data.
//!
//! The pool itself is not under loom. Its slots lie in zeroed memory, which has no atomics of
//! loom's, and loom sees no race in raw memory. All of its orders are those of these stacks: it has
//! only links, which are `Relaxed`, in between.
#![allow(missing_docs, dead_code)]

use dwell_loom::explore;
use freelist::TaggedHead;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sync::{AtomicU32, Ordering};

#[path = "../../crates/signal/src/freelist.rs"]
mod freelist;

mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

const SLOTS: usize = 2;

/// The pool's lists, and data that loom watches: an access that is not ordered after the last one
/// of another thread fails.
struct Pool {
    free: TaggedHead,
    filled: TaggedHead,
    links: [AtomicU32; SLOTS],
    data: [UnsafeCell<u64>; SLOTS],
}

// SAFETY: the lists give a slot to one thread at a time; loom checks that.
unsafe impl Sync for Pool {}
// SAFETY: as above.
unsafe impl Send for Pool {}

impl Pool {
    /// All slots are free.
    fn new() -> Arc<Pool> {
        let pool = Pool {
            free: TaggedHead::default(),
            filled: TaggedHead::default(),
            links: Default::default(),
            data: Default::default(),
        };
        for (index, link) in pool.links.iter().enumerate() {
            assert!(pool.free.push(index as u32, link));
        }
        Arc::new(pool)
    }

    fn link(&self, index: u32) -> Option<&AtomicU32> {
        self.links.get(index as usize)
    }

    /// As a handler: takes a slot, fills it and publishes it. False if no slot is free.
    fn sample(&self, value: u64) -> bool {
        let Some(index) = self.free.pop(|index| self.link(index)) else {
            return false;
        };
        // SAFETY: the slot is ours; loom checks that.
        self.data[index as usize].with_mut(|data| unsafe { *data = value });
        assert!(self.filled.push(index, &self.links[index as usize]));
        true
    }

    /// As the drainer: reads and frees all published slots, in the order of publication.
    /// Returns the sum of their values.
    fn drain(&self) -> u64 {
        let (mut at, mut published) = (self.filled.take_all(), Vec::new());
        while let Some(index) = at.checked_sub(1) {
            published.push(index as usize);
            at = self.links[index as usize].load(Ordering::Relaxed);
        }
        let mut sum = 0;
        for index in published.into_iter().rev() {
            // SAFETY: the slot is ours; loom checks that.
            sum += self.data[index].with_mut(|data| unsafe { std::mem::take(&mut *data) });
            assert!(self.free.push(index as u32, &self.links[index]));
        }
        sum
    }

    /// Takes all slots: once all threads have ended, all of them are free.
    fn check_free(&self) {
        for _ in 0..SLOTS {
            assert!(
                self.free.pop(|index| self.link(index)).is_some(),
                "a slot is lost"
            );
        }
    }
}

/// Two handlers and the drainer: no sample is lost, doubled or read half, and no two of them have
/// one slot.
#[test]
fn slots_reach_the_drainer_with_their_data() {
    explore(3, || {
        let pool = Pool::new();
        let handlers = [1, 10].map(|value| {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.sample(value))
        });
        let mut sum = pool.drain();
        for handler in handlers {
            assert!(handler.join().unwrap(), "there are two slots");
        }
        sum += pool.drain();
        assert_eq!(sum, 11);
        pool.check_free();
    });
}

/// A handler that has read the head of the free list may be late: since then all slots were taken,
/// drained and freed, so that the list has another order.
#[test]
fn late_handler_takes_no_slot_of_another_one() {
    explore(3, || {
        let pool = Pool::new();
        let late = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || if pool.sample(100) { 100 } else { 0 })
        };
        let mut taken = 0;
        for value in [1, 10] {
            if pool.sample(value) {
                taken += value;
            }
        }
        let mut sum = pool.drain();
        taken += late.join().unwrap();
        sum += pool.drain();
        assert_eq!(sum, taken);
        pool.check_free();
    });
}
