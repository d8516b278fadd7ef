//! A handler offers its slot and waits, and the walking thread fills it: `dwell_signal::pause`
//! itself, with slots whose data loom watches and with simulated time.
//!
//! Sleeping and waking is not tried. A thread that is not woken is delayed by `SLEEP_MAX_NS` at
//! most, and these accesses are sequentially consistent, which loom knows only in part.
#![allow(missing_docs, dead_code)]

use dwell_loom::explore;
use loom::sync::Arc;
use loom::thread;
use pause::{Offer, Pause};
use slots::SlotPool;

#[path = "../../crates/signal/src/freelist.rs"]
mod freelist;
#[path = "../../crates/signal/src/pause.rs"]
mod pause;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
}

/// The kernel's part: time, and sleeping.
mod sys {
    use crate::sync::AtomicU32;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Only the handler reads the time.
    pub static NOW_NS: AtomicU64 = AtomicU64::new(0);

    /// A handler may wait once for the walk to begin, and twice for its end.
    const STEP_NS: u64 = 45_000_000;
    const LONG_STEP_NS: u64 = 230_000_000;

    pub fn monotonic_ns() -> u64 {
        let step = match NOW_NS.load(Ordering::Relaxed) < 2 * STEP_NS {
            true => STEP_NS,
            false => LONG_STEP_NS,
        };
        NOW_NS.fetch_add(step, Ordering::Relaxed)
    }

    pub fn futex_wait(_: &AtomicU32, _: u32, _: u64) {
        loom::thread::yield_now();
    }

    pub fn futex_wake(_: &AtomicU32) {}

    pub fn gettid() -> i32 {
        7
    }
}

/// Slots as the module sees them.
mod slots {
    use crate::freelist::TaggedHead;
    use crate::sync::{AtomicU32, Ordering};
    use loom::cell::UnsafeCell;

    /// A slot, for the pool only.
    #[derive(Debug)]
    pub struct Memory {
        pub handoff: AtomicU32,
        pub data: UnsafeCell<u64>,
    }

    /// A pool of one slot.
    #[derive(Debug)]
    pub struct SlotPool {
        free: TaggedHead,
        offered: TaggedHead,
        link: AtomicU32,
        slot: Memory,
    }

    // SAFETY: the lists and the word of a slot give it to one thread at a time; loom checks that.
    unsafe impl Sync for SlotPool {}
    // SAFETY: as above.
    unsafe impl Send for SlotPool {}

    /// The slot, for the thread that has it.
    pub struct OwnedSlot(*const Memory);

    impl OwnedSlot {
        pub fn header(&mut self) -> &Memory {
            // SAFETY: the pool outlives all threads of a model.
            unsafe { &*self.0 }
        }

        pub fn handoff(&mut self) -> &'static AtomicU32 {
            // SAFETY: as above.
            unsafe { &(*self.0).handoff }
        }

        /// Reads and writes the data.
        pub fn add(&mut self, value: u64) -> u64 {
            self.header().data.with_mut(|data| {
                // SAFETY: the slot is ours; loom checks that.
                unsafe {
                    *data += value;
                    *data
                }
            })
        }
    }

    impl SlotPool {
        pub fn new() -> SlotPool {
            let pool = SlotPool {
                free: TaggedHead::default(),
                offered: TaggedHead::default(),
                link: AtomicU32::new(0),
                slot: Memory {
                    handoff: AtomicU32::new(0),
                    data: UnsafeCell::new(0),
                },
            };
            assert!(pool.free.push(0, &pool.link));
            pool
        }

        pub fn take(&self) -> Option<OwnedSlot> {
            self.free.pop(|_| Some(&self.link))?;
            Some(OwnedSlot(&raw const self.slot))
        }

        pub fn offer(&self, _: &OwnedSlot) -> bool {
            self.offered.push(0, &self.link)
        }

        pub fn take_offered(&self, mut visit: impl FnMut(OwnedSlot)) -> usize {
            match self.offered.take_all() {
                0 => 0,
                _ => {
                    self.link.load(Ordering::Relaxed);
                    visit(OwnedSlot(&raw const self.slot));
                    1
                }
            }
        }

        pub fn release(&self, _: OwnedSlot) -> bool {
            self.free.push(0, &self.link)
        }
    }
}

/// The slot is walked or left, and then the next handler's: never two threads use it.
#[test]
fn slot_has_one_holder_whether_walked_or_left() {
    explore(3, || {
        sys::NOW_NS.store(0, std::sync::atomic::Ordering::Relaxed);
        let shared = Arc::new((Pause::default(), SlotPool::new()));
        let server = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let (pause, pool) = &*shared;
                pause.serve(pool, |slot| {
                    slot.add(10);
                });
            })
        };
        let (pause, pool) = &*shared;
        let mut slot = pool.take().unwrap();
        slot.add(1);
        if let (Offer::Walked(mut slot), _) = pause.offer(pool, slot) {
            assert_eq!(slot.add(0), 11, "the walk's frames are there");
            assert!(pool.release(slot));
        }
        // The next handler, while the walking thread may still be at work.
        if let Some(mut slot) = pool.take() {
            slot.add(100);
            assert!(pool.release(slot));
        }
        pause.end(true);
        server.join().unwrap();
        // A slot that was left and not taken yet waits for the next recording's thread.
        pool.take_offered(|slot| assert!(pool.release(slot)));
        assert!(pool.take().is_some(), "the slot is not lost");
    });
}
