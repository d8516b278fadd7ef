//! Signals that are not ours, threads that block signals, stacks whose bounds are wrong.

mod common;

use common::{burn, drain_into, longest_window_ns, register_here, run_threads, settle, weight_of};
use dwell_signal::slots::Reason;
use dwell_signal::{Cause, Config, Engine, Registration, sys};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

const SIGNAL: i32 = 50;
const INTERVAL_NS: u64 = 500_000;

static THEIRS: AtomicU64 = AtomicU64::new(0);

unsafe extern "C" fn theirs(_: i32, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    THEIRS.fetch_add(1, Ordering::Relaxed);
}

/// Signals with our number that others send go to the handler that was installed before.
fn others_signals_are_passed_on(engine: &Engine) {
    for value in [0, 0x1234, 0xd3e1 << 47] {
        sys::queue_signal(sys::gettid(), SIGNAL, value).unwrap();
    }
    sys::raise(SIGNAL);
    assert_eq!(THEIRS.load(Ordering::Relaxed), 4);
    assert_eq!(engine.counters().get(Cause::Foreign), 4);
}

/// Cookies of ended records, and of other threads' records, are refused.
fn stale_cookies_are_refused(engine: &'static Engine) {
    let record = register_here(engine, 1);
    // The cookie's layout, as in the signal of a timer made long ago.
    let cookie = |generation: u64| 0xd3e1 << 48 | generation << 20 | u64::from(record.index());
    let stale = || engine.counters().get(Cause::Stale);
    sys::queue_signal(sys::gettid(), SIGNAL, cookie(record.generation().into())).unwrap();
    assert_eq!(stale(), 0);
    sys::queue_signal(
        sys::gettid(),
        SIGNAL,
        cookie(u64::from(record.generation()) + 1),
    )
    .unwrap();
    assert_eq!(stale(), 1);
    let foreign_cookie = cookie(record.generation().into());
    thread::spawn(move || sys::queue_signal(sys::gettid(), SIGNAL, foreign_cookie).unwrap())
        .join()
        .unwrap();
    assert_eq!(stale(), 2, "another thread's cookie");
    assert!(engine.end(record));
    sys::queue_signal(sys::gettid(), SIGNAL, foreign_cookie).unwrap();
    assert_eq!(stale(), 3);
    assert_eq!(
        THEIRS.load(Ordering::Relaxed),
        4,
        "none of these was passed on"
    );
}

/// A stack that is registered as larger than it is, on a thread that blocks SIGSEGV. The copy ends
/// where the memory does, and the process survives.
fn wrong_stack_bounds_do_no_harm(engine: &'static Engine) {
    let before = engine.counters().get(Cause::StackFault);
    thread::spawn(move || {
        let blocked = sys::FAULT_SIGNALS;
        // SAFETY: blocks two signals of this thread; the set is 8 bytes as the kernel wants it.
        unsafe {
            let args = (
                libc::SIG_BLOCK,
                &raw const blocked,
                std::ptr::null_mut::<u64>(),
                8usize,
            );
            libc::syscall(libc::SYS_rt_sigprocmask, args.0, args.1, args.2, args.3);
        }
        let here = &raw const blocked as u64;
        let registration = Registration {
            tid: sys::gettid(),
            stack_hi: here + (512 << 20),
            newborn: true,
            ..Registration::default()
        };
        common::leave_signal_stack();
        let record = engine.register(&registration).unwrap();
        burn(5_000_000);
        settle(engine, record);
    })
    .join()
    .unwrap();
    let mut samples = Vec::new();
    drain_into(engine, &mut samples);
    assert!(samples.iter().all(|sample| sample.stack_len > 0));
    // 1 MiB (the largest slot) above a stack of 2 MiB minus a little may or may not be mapped. In
    // both cases the process survives, and all samples are cut off.
    let faults = engine.counters().get(Cause::StackFault) - before;
    let truncated = samples.iter().filter(|sample| sample.truncated).count() as u64;
    assert!(truncated + faults >= samples.len() as u64);
}

/// A thread that blocks our signal has one pending, gets it when it unblocks, and has no debt
/// left.
fn a_thread_that_blocks_the_signal_settles_later(engine: &'static Engine) {
    let accounts = run_threads(engine, 0..1, move |_| {
        let set = sys::signal_bit(SIGNAL);
        let change = |how: i32| {
            // SAFETY: as above.
            unsafe {
                let none = std::ptr::null_mut::<u64>();
                libc::syscall(libc::SYS_rt_sigprocmask, how, &raw const set, none, 8usize);
            }
        };
        change(libc::SIG_BLOCK);
        burn(20_000_000);
        let before = handled(engine);
        change(libc::SIG_UNBLOCK);
        // Pending signals have been handled when the call returns; at most one more can be due in
        // the few microseconds since.
        let pending = handled(engine) - before;
        assert!(
            (1..=2).contains(&pending),
            "{pending} signals, one for each interval?"
        );
        burn(2_000_000);
    });
    let mut samples = Vec::new();
    drain_into(engine, &mut samples);
    accounts[0].assert_weight(weight_of(&samples, &accounts[0]), INTERVAL_NS);
    // 20 ms minus the window in which the blocked time began.
    let least_ns = 20_000_000 - longest_window_ns(INTERVAL_NS);
    assert!(
        samples
            .iter()
            .any(|s| s.weight_ns >= least_ns && s.reason == Reason::CpuTime)
    );
}

/// How many of our signals have been handled, in any way.
fn handled(engine: &Engine) -> u64 {
    engine.counters().handler_ns.iter().sum()
}

#[test]
fn strangers_and_odd_threads() {
    let action = sys::KernelAction {
        handler: theirs as *const () as usize,
        flags: libc::SA_SIGINFO as u64 | sys::SA_RESTORER,
        restorer: sys::sigaction(libc::SIGSEGV, None).unwrap().restorer,
        mask: 0,
    };
    sys::sigaction(SIGNAL, Some(&action)).unwrap();
    let config = Config {
        signal: Some(SIGNAL),
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    assert_eq!(engine.signal(), SIGNAL);
    others_signals_are_passed_on(engine);
    stale_cookies_are_refused(engine); // before sampling: no signals but the test's
    engine.start(INTERVAL_NS);
    wrong_stack_bounds_do_no_harm(engine);
    a_thread_that_blocks_the_signal_settles_later(engine);
    assert!(engine.stop());
}
