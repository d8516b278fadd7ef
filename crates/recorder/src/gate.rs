//! Lets callbacks of the runtime in while their events are recorded. Once the gate is closed, no
//! further callback can enter. No callback waits.

use crate::sync::{AtomicBool, AtomicU64, Ordering, park_timeout};
use std::time::Duration;

/// A gate; closed at first.
#[derive(Debug, Default)]
pub struct Gate {
    open: AtomicBool,
    inside: AtomicU64,
}

/// A callback is inside.
#[derive(Debug)]
pub struct Inside<'g>(&'g Gate);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Maximum number of steps, of a millisecond each, that closing waits: a pause of the collector
/// may hold a callback inside.
const STEPS_MAX: u32 = 10_000;

impl Gate {
    /// A closed one.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn closed() -> Gate {
        Gate {
            open: AtomicBool::new(false),
            inside: AtomicU64::new(0),
        }
    }

    /// Lets callbacks in from now on.
    pub fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    /// Enters, until the returned guard is dropped. `None`: it is closed.
    pub fn enter(&self) -> Option<Inside<'_>> {
        // A callback that finds the gate closed is not counted: there may be one after the other.
        if !self.open.load(Ordering::SeqCst) {
            return None;
        }
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(self);
        // The gate was closed in between: the closing thread may not have seen this callback.
        self.open.load(Ordering::SeqCst).then_some(inside)
    }

    /// Closes the gate and waits until no callback is inside. Returns whether that is so.
    pub fn close(&self) -> bool {
        self.open.store(false, Ordering::SeqCst);
        for _ in 0..STEPS_MAX {
            if self.inside.load(Ordering::SeqCst) == 0 {
                return true;
            }
            park_timeout(Duration::from_millis(1));
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Threads count as long as they can enter; once it is closed, the count stays.
    #[test]
    fn closed_gate_has_no_callback_inside() {
        let gate = Arc::new(Gate::closed());
        assert!(gate.enter().is_none());
        for _ in 0..50 {
            gate.open();
            let told = Arc::new(AtomicU64::new(0));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (gate, told) = (Arc::clone(&gate), Arc::clone(&told));
                    std::thread::spawn(move || {
                        while let Some(_inside) = gate.enter() {
                            std::thread::yield_now();
                            told.fetch_add(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            while told.load(Ordering::SeqCst) < 10 {
                std::thread::yield_now();
            }
            assert!(gate.close());
            let before = told.load(Ordering::SeqCst);
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(told.load(Ordering::SeqCst), before);
        }
    }
}
