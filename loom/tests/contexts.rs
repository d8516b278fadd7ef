//! Contexts that their threads write and any thread reads: records, and the slab that gives them to
//! threads, from `dwell-context`.
//!
//! Java's writes are not here. `java/api` has its own fences, and a compiler may weaken them (see
//! `docs/limits.md`).
#![allow(missing_docs, dead_code)]

use by_thread::BUCKET;
use dwell_loom::explore;
use loom::sync::Arc;
use loom::thread;
use record::{Context, LABELS_MAX, RECORD_WORDS};
use slab::{Acquired, Handle, Slab};
use sync::{AtomicU32, AtomicU64};

#[path = "../../crates/context/src/by_thread.rs"]
mod by_thread;
#[path = "../../crates/context/src/record.rs"]
mod record;
#[path = "../../crates/context/src/slab.rs"]
mod slab;

mod sync {
    pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

/// A slab with its memory.
struct World {
    slab: Slab<'static>,
    // After the slab, which borrows from them: fields are dropped in this order.
    _words: Box<[AtomicU64]>,
    _entries: Box<[AtomicU32]>,
}

impl World {
    fn new(records: usize) -> Arc<World> {
        let words: Box<[_]> = (0..records * RECORD_WORDS)
            .map(|_| AtomicU64::new(0))
            .collect();
        let entries: Box<[_]> = (0..BUCKET).map(|_| AtomicU32::new(0)).collect();
        // SAFETY: the slab is dropped before the boxes, and is not given away without them.
        let borrowed = unsafe { (&*(&raw const *words), &*(&raw const *entries)) };
        Arc::new(World {
            slab: Slab::new(borrowed.0, borrowed.1).unwrap(),
            _words: words,
            _entries: entries,
        })
    }

    fn acquire(&self, id: u64) -> Handle {
        match self.slab.acquire(id) {
            Acquired::Held(handle) => handle,
            Acquired::Full => panic!("full"),
        }
    }

    fn write(&self, handle: Handle, number: u64) {
        self.slab.record(handle.place).unwrap().write(&of(number));
    }
}

/// A context with the same number in its first, its last and its state word.
fn of(number: u64) -> Context {
    let mut labels = [0; LABELS_MAX];
    labels[LABELS_MAX - 1] = number as u32;
    Context {
        trace_hi: number,
        trace_lo: number,
        span: number,
        local_root: number,
        endpoint: number as u32,
        active: 1,
        labels,
    }
}

/// The second change writes the copy that the reader may just be reading.
#[test]
fn reader_sees_no_half_of_a_change() {
    explore(2, || {
        let world = World::new(1);
        let handle = world.acquire(1);
        world.write(handle, 5);
        let writer = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                world.write(handle, 6);
                world.write(handle, 7);
            })
        };
        if let Some(seen) = world.slab.context_of(1) {
            assert!((5..=7).contains(&seen.span), "{seen:?}");
            assert_eq!(seen, of(seen.span), "half of a change");
        }
        writer.join().unwrap();
        assert_eq!(world.slab.context_of(1), Some(of(7)));
    });
}

/// A thread with another id in the same bucket.
const NEXT: u64 = 1 + BUCKET as u64;

/// The record of thread 1 goes to thread `NEXT` while `read` reads.
fn while_the_record_moves(read: impl Fn(&Slab<'static>) + Send + Sync + 'static) {
    explore(2, move || {
        let world = World::new(1);
        let handle = world.acquire(1);
        world.write(handle, 5);
        let owners = {
            let world = Arc::clone(&world);
            thread::spawn(move || {
                assert!(world.slab.release(handle));
                let next = world.acquire(NEXT);
                world.write(next, 6);
            })
        };
        read(&world.slab);
        owners.join().unwrap();
        assert_eq!(world.slab.context_of(1), None);
        assert_eq!(world.slab.context_of(NEXT), Some(of(6)));
    });
}

#[test]
fn reader_sees_no_context_of_the_next_thread() {
    while_the_record_moves(|slab| {
        if let Some(seen) = slab.context_of(1) {
            assert_eq!(seen, of(5), "the next thread's");
        }
    });
}

#[test]
fn reader_sees_no_context_of_the_thread_before() {
    while_the_record_moves(|slab| {
        if let Some(seen) = slab.context_of(NEXT) {
            assert_eq!(seen, of(6), "the thread's before");
        }
    });
}

/// One record is free, and two threads want it: one gets it.
#[test]
fn record_has_one_holder() {
    explore(3, || {
        let world = World::new(1);
        let first = world.acquire(9);
        assert!(world.slab.release(first));
        let threads = [1, 2].map(|id| {
            let world = Arc::clone(&world);
            thread::spawn(move || match world.slab.acquire(id) {
                Acquired::Held(handle) => {
                    world.write(handle, id);
                    assert_eq!(world.slab.context_here(id), Some(of(id)));
                    assert!(world.slab.release(handle));
                    1
                }
                Acquired::Full => 0,
            })
        });
        let got: u32 = threads.into_iter().map(|it| it.join().unwrap()).sum();
        assert!(got >= 1);
        assert_eq!(world.slab.held(), 0);
        world.acquire(3);
    });
}
