//! A value that handlers read is freed only after the last of them
//! (`dwell_recorder::sys::published`).
//!
//! As for gates, each word is stored once before the threads begin: loom knows only a part of what
//! sequentially consistent accesses promise.
#![allow(missing_docs, dead_code)]

use dwell_loom::explore;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use published::Published;

#[path = "../../crates/recorder/src/sys/published.rs"]
mod published;

mod sync {
    pub use loom::sync::Mutex;
    pub use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
}

/// A value that loom sees being read and freed.
struct Value(UnsafeCell<u64>);

// SAFETY: handlers only read it; loom checks that its writer and its end are alone.
unsafe impl Sync for Value {}
// SAFETY: as above.
unsafe impl Send for Value {}

impl Value {
    fn new(number: u64) -> Value {
        Value(UnsafeCell::new(number))
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: loom checks that no other thread reads it, or did so without being waited for.
        self.0.with_mut(|number| unsafe { *number = 0 });
    }
}

#[test]
fn value_is_freed_after_its_last_reader() {
    explore(3, || {
        let shared = Arc::new(Published::default());
        shared.replace(Value::new(1));
        assert!(shared.read(|_| ()).is_some());
        let readers = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let look = |value: &Value| {
                    value.0.with(|number| {
                        thread::yield_now();
                        // SAFETY: loom checks that no other thread changes it.
                        unsafe { *number }
                    })
                };
                assert!(matches!(shared.read(look), Some(1 | 2)));
            })
        });
        shared.replace(Value::new(2));
        for reader in readers {
            reader.join().unwrap();
        }
        shared.replace(Value::new(3));
        // The last value stays, as in the product.
    });
}
