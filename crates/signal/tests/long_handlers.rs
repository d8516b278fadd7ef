//! A free-running perf event also overflows while its handler is at work. A thread whose handlers
//! take longer than the interval must still make progress.

mod common;

use common::{register_here, settle};
use dwell_signal::{Config, EngineKind, Vantage, WalkTarget, sys};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const INTERVAL_NS: u64 = 200_000;
/// Duration of the first handler; each one takes longer than the one before, up to ten times as
/// long.
const HANDLER_NS: u64 = 300_000;
/// Rounds of [`work`] whose duration is measured without handlers.
const UNIT: u64 = 20_000_000;

/// Walks no frames, slowly.
extern "C" fn dwell_slow_walk_hook(_: &mut WalkTarget<'_>) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let part = NUMBER.fetch_add(1, Ordering::Relaxed) % 90;
    let until_ns = sys::own_cpu_ns() + HANDLER_NS + part * HANDLER_NS / 10;
    while sys::own_cpu_ns() < until_ns {}
}

/// A fixed amount of work, independent of the thread's handlers.
fn work(rounds: u64) {
    let mut x = 1u64;
    for _ in 0..rounds {
        x = std::hint::black_box(x.wrapping_mul(0x2545_f491_4f6c_dd1d));
    }
}

/// Detects a thread whose own handlers stop its progress permanently: with the next signal due
/// before a handler ends, it never gets to its work. It gets about half of the time; on a machine
/// where signals cost much, a quarter. The test asks for 0.1. False alarm: not by chance.
#[test]
fn measured_thread_with_long_handlers_makes_progress() {
    let config = Config {
        engine: EngineKind::Perf { kernel: true },
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    engine.set_walk(dwell_slow_walk_hook);
    engine.set_vantage(Vantage::Handler, 64);
    assert_eq!(engine.start(INTERVAL_NS), 0);
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        // About a quarter of a second of work. Its unit takes some 20 ms, so one interrupt does not
        // change the duration by much.
        let before_ns = sys::own_cpu_ns();
        work(UNIT);
        let each_ns = (sys::own_cpu_ns() - before_ns).max(1);
        let record = register_here(engine, 1);
        let begin_ns = sys::own_cpu_ns();
        let parts = (250_000_000 / each_ns).max(1);
        work(parts * UNIT);
        let used_ns = sys::own_cpu_ns() - begin_ns;
        let samples = record.samples();
        settle(engine, record);
        done.send((samples, (parts * each_ns) as f64 / used_ns as f64))
            .unwrap();
    });
    let drainer = common::Drainer::begin(engine);
    let told = is_done.recv_timeout(Duration::from_secs(120));
    drainer.finish();
    let (samples, share) = told.expect("the thread got on");
    println!("{samples} samples, {share:.2} of its CPU time for itself");
    assert!(samples > 20, "{samples}");
    assert!(share > 0.1, "{share}");
    assert!(engine.stop());
}
