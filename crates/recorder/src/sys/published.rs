//! A value that handlers may read at any time and one thread replaces now and then.
//!
//! An old value is freed only when no reader was active after it had been replaced. Handlers
//! cannot wait, so the writer does, or leaves it to its next turn.

use crate::sync::{AtomicPtr, AtomicUsize, Mutex, Ordering};

/// See above.
pub struct Published<T> {
    now: AtomicPtr<T>,
    readers: AtomicUsize,
    retired: Mutex<Vec<Box<T>>>,
}

impl<T: Send + Sync> Default for Published<T> {
    fn default() -> Self {
        Published {
            now: AtomicPtr::default(),
            readers: AtomicUsize::default(),
            retired: Mutex::default(),
        }
    }
}

impl<T: Send + Sync> Published<T> {
    /// Without a value.
    #[cfg(not(loom))]
    pub const fn new() -> Published<T> {
        Published {
            now: AtomicPtr::new(std::ptr::null_mut()),
            readers: AtomicUsize::new(0),
            retired: Mutex::new(Vec::new()),
        }
    }

    /// Shows the current value to `look`, if there is one. Safe in a handler if `look` is. Must
    /// not unwind, or no value is ever freed again.
    #[inline]
    pub fn read<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.readers.fetch_add(1, Ordering::SeqCst);
        // SAFETY: null or from a box. It is freed only by `replace`, after `readers` was seen at 0
        // later than the pointer was replaced; all accesses are sequentially consistent, so a
        // reader that got the old pointer has been counted by then.
        let value = unsafe { self.now.load(Ordering::SeqCst).as_ref() };
        let result = value.map(look);
        self.readers.fetch_sub(1, Ordering::SeqCst);
        result
    }

    /// Replaces the present value by `value`. Not in a handler.
    pub fn replace(&self, value: T) {
        let Ok(mut retired) = self.retired.lock() else {
            return; // a panic while freeing has left the old value in place
        };
        let old = self
            .now
            .swap(Box::into_raw(Box::new(value)), Ordering::SeqCst);
        if !old.is_null() {
            // SAFETY: came from a box, and no thread has taken it out: swaps are under the lock.
            retired.push(unsafe { Box::from_raw(old) });
        }
        if self.readers.load(Ordering::SeqCst) == 0 {
            retired.clear();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    /// A value whose copies show whether it has been dropped.
    struct Checked(Arc<AtomicUsize>, u64);

    impl Drop for Checked {
        fn drop(&mut self) {
            self.1 = 0;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn readers_never_see_a_freed_value_and_old_ones_are_freed() {
        static SHARED: Published<Checked> = Published::new();
        let freed = Arc::new(AtomicUsize::new(0));
        let over = AtomicBool::new(false);
        assert!(SHARED.read(|_| ()).is_none());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let seen = SHARED.read(|value| (value.1, std::hint::black_box(value.1)));
                        assert!(seen.is_none_or(|(a, b)| a == b && a != 0));
                        std::thread::yield_now();
                    }
                });
            }
            for number in 1..=20_000 {
                SHARED.replace(Checked(Arc::clone(&freed), number));
            }
            over.store(true, Ordering::Relaxed);
        });
        SHARED.replace(Checked(Arc::clone(&freed), 1));
        assert_eq!(freed.load(Ordering::SeqCst), 20_000);
    }
}
