//! The signal of perf events that is no real-time signal needs no room in the kernel's queue.

mod common;

use common::{Account, burn, drain_into, register_here, settle, weight_of, with_events};
use dwell_signal::Cause;
use std::thread;

const INTERVAL_NS: u64 = 500_000;

/// Sets the number of signals that may be queued, and returns the one before.
fn leave_room(signals: u64) -> u64 {
    let mut both = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain structures of this function.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_SIGPENDING, &mut both), 0);
        let before = std::mem::replace(&mut both.rlim_cur, signals);
        assert_eq!(libc::setrlimit(libc::RLIMIT_SIGPENDING, &both), 0);
        before
    }
}

#[test]
fn events_signal_threads_without_room_in_the_queue() {
    let Some(engine) = with_events() else { return };
    assert_eq!(engine.signal(), libc::SIGURG);
    assert!(!engine.needs_queue());
    engine.start(INTERVAL_NS);
    let worker = thread::spawn(move || -> Account {
        let record = register_here(engine, 3);
        let before = leave_room(0);
        burn(20_000_000);
        // If a point is due at the end, the engine sends a signal itself, which needs room.
        leave_room(before);
        assert!(record.samples() > 10, "{}", record.samples());
        settle(engine, record)
    });
    let account = worker.join().unwrap();
    assert_eq!(engine.counters().get(Cause::QueueFull), 0);
    let mut samples = Vec::new();
    drain_into(engine, &mut samples);
    account.assert_weight(weight_of(&samples, &account), INTERVAL_NS);
}
