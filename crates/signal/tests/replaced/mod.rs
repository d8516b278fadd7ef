//! A library that takes the engine's signal away: the engine uses another one and loses no time.

use crate::common::{Account, burn, burn_until, drain_into, register_here, settle, weight_of};
use dwell_signal::{Engine, move_if_replaced, sys};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

static THEIRS: AtomicU64 = AtomicU64::new(0);

/// As a library does that uses the signal for itself: it passes nothing on.
extern "C" fn theirs(_: i32) {
    THEIRS.fetch_add(1, Ordering::Relaxed);
}

fn take(signal: i32) {
    // SAFETY: all zeroes is a value of the structure, and the handler takes the signal's number.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = theirs as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

/// Starts the engine, takes its signal in a thread that runs, and checks what follows.
pub fn another_signal_is_used(engine: &'static Engine, interval_ns: u64) {
    let first = engine.signal();
    engine.start(interval_ns);
    assert_eq!(move_if_replaced(engine), Ok(false));
    let worker = thread::spawn(move || -> Account {
        let record = register_here(engine, 3);
        burn_until(|| record.samples() > 3);
        take(first);
        burn_until(|| THEIRS.load(Ordering::Relaxed) > 0);
        burn(20_000_000);
        let before = record.samples();
        assert_eq!(move_if_replaced(engine), Ok(true));
        burn_until(|| record.samples() > before + 3);
        settle(engine, record)
    });
    let account = worker.join().unwrap();
    assert_ne!(engine.signal(), first);
    assert_eq!(
        (engine.moved_from(), engine.is_replaced()),
        (Some(first), false)
    );
    // The library keeps its signal.
    let kept = sys::sigaction(first, None).unwrap().handler;
    assert_eq!(kept, theirs as *const () as usize);
    assert_eq!(move_if_replaced(engine), Ok(false));
    // A thread that begins later, and all time of the first one.
    let later = thread::spawn(move || {
        let record = register_here(engine, 4);
        burn_until(|| record.samples() > 3);
        settle(engine, record);
    });
    later.join().unwrap();
    let mut samples = Vec::new();
    drain_into(engine, &mut samples);
    account.assert_weight(weight_of(&samples, &account), interval_ns);
}
