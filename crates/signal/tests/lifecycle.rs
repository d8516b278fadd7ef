//! Starting, stopping, ending and recycling while signals arrive: no weight is lost, and no record
//! stays in use.

mod common;

use common::{Drainer, burn, burn_until, drain_into, register_here, settle, weight_of};
use dwell_signal::{Cause, ClassSpec, Config, Registration, sys};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

const INTERVAL_NS: u64 = 200_000;

/// Threads begin and end without pause while another thread starts and stops the recording.
fn churn_of_threads(engine: &'static dwell_signal::Engine) {
    let drainer = Drainer::begin(engine);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for lane in 0..3u64 {
            let done = &done;
            scope.spawn(move || {
                let mut number = lane << 32;
                while !done.load(Ordering::Acquire) {
                    number += 1;
                    let worker = thread::spawn(move || {
                        let record = register_here(engine, number);
                        burn(300_000 + (number % 7) * 100_000);
                        settle(engine, record);
                    });
                    worker.join().unwrap();
                }
            });
        }
        for _ in 0..60 {
            engine.start(INTERVAL_NS);
            burn(3_000_000);
            assert!(engine.stop(), "a handler was still at work");
            let published = engine.counters().get(Cause::Sample);
            burn(1_000_000);
            assert_eq!(
                engine.counters().get(Cause::Sample),
                published,
                "sampled after the stop"
            );
        }
        done.store(true, Ordering::Release);
    });
    let samples = drainer.finish();
    assert!(!samples.is_empty());
    assert_eq!(engine.counters().get(Cause::Sample), samples.len() as u64);
    assert_eq!(engine.live_records().count(), 0);
    drain_into(engine, &mut Vec::new());
    engine.reap(|_| ());
    assert_eq!(engine.reap(|_| ()), 0);
}

/// A thread ended by another one while it is being sampled.
fn ended_from_outside(engine: &'static dwell_signal::Engine) {
    engine.start(INTERVAL_NS);
    for seed in 0..200 {
        let tid = AtomicI32::new(0);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                tid.store(sys::gettid(), Ordering::Release);
                while !done.load(Ordering::Acquire) {
                    burn(10_000);
                }
            });
            while tid.load(Ordering::Acquire) == 0 {
                thread::yield_now();
            }
            let tid = tid.load(Ordering::Acquire);
            let registration = Registration {
                tid,
                seed,
                ..Registration::default()
            };
            common::leave_signal_stack();
            let record = engine.register(&registration).unwrap();
            burn(300_000);
            assert!(engine.end(record));
            assert!(!engine.end(record), "ends once");
            done.store(true, Ordering::Release);
        });
    }
    assert!(engine.stop());
    drain_into(engine, &mut Vec::new());
    assert_eq!(engine.reap(|record| assert!(!record.is_live())), 200);
}

/// Without free slots only the stacks are lost: the weight comes with a later sample.
fn weight_is_carried_over(engine: &'static dwell_signal::Engine) {
    engine.start(INTERVAL_NS);
    let before = engine.counters();
    let worker = thread::spawn(move || {
        let record = register_here(engine, 99);
        burn_until(|| record.no_slot() > 2); // without a drain
        let mut samples = Vec::new();
        drain_into(engine, &mut samples);
        assert_eq!(samples.len(), SLOTS as usize);
        let account = settle(engine, record);
        drain_into(engine, &mut samples);
        account.assert_weight(weight_of(&samples, &account), INTERVAL_NS);
    });
    worker.join().unwrap();
    assert!(engine.stop());
    let after = engine.counters();
    assert!(after.get(Cause::NoSlot) > before.get(Cause::NoSlot));
    assert_eq!(after.get(Cause::PointsLost), before.get(Cause::PointsLost));
}

/// A thread that ends before there is a free slot leaves its debt in its record. Stopping the
/// recording or retiring the thread takes it. Debt that is never taken is counted as lost.
fn what_is_carried_outlives_its_thread(engine: &'static dwell_signal::Engine) {
    let end_without_slots = || {
        let worker = thread::spawn(move || {
            let record = register_here(engine, 98);
            burn_until(|| record.no_slot() > 2); // without a drain
            settle(engine, record)
        });
        worker.join().unwrap()
    };
    let lost = || engine.counters().lost_ns;
    let before_ns = lost();
    for taker in ["stop", "reap", "nobody"] {
        engine.start(INTERVAL_NS);
        let account = end_without_slots();
        let mut samples = Vec::new();
        let mut owed_ns = 0;
        if taker != "stop" {
            drain_into(engine, &mut samples);
            drain_into(engine, &mut samples);
            let retired = engine.reap(|record| {
                if taker == "reap" {
                    owed_ns += record.take_carried_ns();
                }
            });
            assert_eq!(retired, 1);
        }
        assert!(engine.stop_showing(|record, ns| {
            assert!(!record.is_live());
            owed_ns += ns;
        }));
        drain_into(engine, &mut samples);
        drain_into(engine, &mut samples);
        engine.reap(|_| ());
        let lost_ns = lost() - before_ns;
        assert_eq!(taker == "nobody", lost_ns > 0);
        assert_eq!(taker == "nobody", owed_ns == 0);
        let found_ns = weight_of(&samples, &account) + owed_ns + lost_ns;
        account.assert_weight(found_ns, INTERVAL_NS);
    }
}

/// A thread that exits without notice is found, and its timer is released.
fn vanished_threads_are_found(engine: &'static dwell_signal::Engine) {
    engine.start(INTERVAL_NS);
    let before = engine.counters().get(Cause::Vanished);
    let worker = thread::spawn(move || register_here(engine, 5).index());
    worker.join().unwrap();
    assert_eq!(engine.live_records().count(), 1);
    // The kernel takes a moment to forget a thread that has been joined.
    let mut from = 0;
    for _ in 0..1_000_000 {
        // One after the other, and again from the first on.
        from = engine.tend_some(from, 1);
        if engine.counters().get(Cause::Vanished) > before {
            break;
        }
        thread::yield_now();
    }
    assert_eq!(engine.live_records().count(), 0);
    assert!(engine.stop());
}

const SLOTS: u32 = 40;

#[test]
fn threads_and_recordings_come_and_go() {
    let classes = [ClassSpec {
        capacity_bytes: 16 << 10,
        count: SLOTS,
    }];
    let config = Config {
        classes: &classes,
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    assert_eq!(
        dwell_signal::init(&config).err(),
        Some(dwell_signal::InitError::Already)
    );
    churn_of_threads(engine);
    ended_from_outside(engine);
    weight_is_carried_over(engine);
    what_is_carried_outlives_its_thread(engine);
    vanished_threads_are_found(engine);
    assert_eq!(engine.counters().get(Cause::Contention), 0);
    assert_eq!(engine.counters().get(Cause::Foreign), 0);
}
