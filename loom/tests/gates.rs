//! A closed gate has no callback inside (`dwell_recorder::gate`).
//!
//! The gate's accesses are sequentially consistent. Loom knows only one part of that: such a load
//! does not see a value older than the last such store. So each word is stored once before the
//! threads begin.
#![allow(missing_docs, dead_code)]

use dwell_loom::explore;
use gate::Gate;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

#[path = "../../crates/recorder/src/gate.rs"]
mod gate;

mod sync {
    pub use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    pub fn park_timeout(_: std::time::Duration) {
        loom::thread::yield_now();
    }
}

/// The gate, and data for callbacks that are inside.
struct Shared {
    gate: Gate,
    recording: UnsafeCell<u32>,
}

// SAFETY: callbacks only read the cell, and loom checks that the closing thread is alone.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

#[test]
fn closed_gate_has_no_callback_inside() {
    explore(3, || {
        let shared = Arc::new(Shared {
            gate: Gate::default(),
            recording: UnsafeCell::new(1),
        });
        shared.gate.open();
        drop(shared.gate.enter());
        let callbacks = [(); 2].map(|()| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if let Some(_inside) = shared.gate.enter() {
                    // SAFETY: loom checks that no other thread changes it.
                    shared.recording.with(|it| assert_eq!(unsafe { *it }, 1));
                }
            })
        });
        assert!(shared.gate.close());
        // SAFETY: loom checks that no other thread uses it.
        shared.recording.with_mut(|it| unsafe { *it = 0 });
        assert!(shared.gate.enter().is_none());
        for callback in callbacks {
            callback.join().unwrap();
        }
    });
}
