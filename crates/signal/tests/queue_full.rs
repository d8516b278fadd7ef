//! When the kernel cannot queue real-time signals any more it sends SIGIO. The process survives,
//! the loss is counted, and threads are armed again when there is room.

mod common;

use common::{Account, burn, drain_into, register_here, settle, weight_of};
use dwell_signal::{Cause, Config, EngineKind, perf_permitted};
use std::thread;

/// A signal that needs room in the queue.
const REAL_TIME: i32 = 50;
const INTERVAL_NS: u64 = 500_000;

fn set_limit(limit: libc::rlim_t) {
    let mut both = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain structures of this function.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_SIGPENDING, &mut both), 0);
        both.rlim_cur = limit.min(both.rlim_max);
        assert_eq!(libc::setrlimit(libc::RLIMIT_SIGPENDING, &both), 0);
    }
}

#[test]
fn a_full_signal_queue_is_survived_and_overcome() {
    if perf_permitted().is_err() {
        // Only the perf engine depends on the queue; timers own their entries.
        println!("skipped: perf events are refused");
        return;
    }
    let config = Config {
        signal: Some(REAL_TIME),
        engine: EngineKind::Perf { kernel: false },
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    engine.start(INTERVAL_NS);
    let worker = thread::spawn(move || -> Account {
        let record = register_here(engine, 3);
        set_limit(0);
        burn(20_000_000);
        assert!(
            engine.counters().get(Cause::QueueFull) > 0,
            "SIGIO must have come instead"
        );
        set_limit(libc::RLIM_INFINITY);
        let samples = record.samples();
        // The thread gets no signals now. That is found when it is 50 ms late.
        for _ in 0..10 {
            burn(20_000_000);
            engine.tend();
        }
        assert!(engine.counters().get(Cause::Silent) > 0);
        assert!(record.samples() > samples, "sampled again");
        settle(engine, record)
    });
    let account = worker.join().unwrap();
    let mut samples = Vec::new();
    drain_into(engine, &mut samples);
    account.assert_weight(weight_of(&samples, &account), INTERVAL_NS);
}
