//! Counts the calls of a thread to the allocator where there may be none. For tests only.

use std::cell::Cell;

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread should not allocate until the value is dropped.
pub struct Watch(());

impl Watch {
    /// From now on.
    pub fn begin() -> Watch {
        IS_WATCHED.set(true);
        Watch(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        IS_WATCHED.set(false);
    }
}

/// How often it did so.
pub fn calls() -> u64 {
    CALLS.get()
}

pub(super) fn note() {
    CALLS.set(CALLS.get() + u64::from(IS_WATCHED.get()));
}
