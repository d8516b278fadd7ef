//! Snapshots for allocated objects, taken outside of any handler. They carry the object's data and
//! no CPU time, show the thread from its anchor on, and neither lose nor spoil samples of signals
//! that arrive at the same time.

mod common;

use common::leave_signal_stack;
use dwell_signal::slots::Reason;
use dwell_signal::{Allocation, Cause, ClassSpec, Config, Engine, Registration, ThreadRecord, sys};
use std::sync::atomic::{AtomicU64, Ordering};

const INTERVAL_NS: u64 = 100_000;
const ROUNDS: u64 = 2_000;
/// Few slots, so that some are missing before the first drain.
const CLASSES: [ClassSpec; 1] = [ClassSpec {
    capacity_bytes: 64 << 10,
    count: 64,
}];

/// A structure like a runtime's thread: an anchor at 16, 24 and 40.
#[repr(C)]
#[derive(Default)]
struct FakeThread {
    words: [AtomicU64; 6],
}

fn allocation(number: u64) -> Allocation {
    Allocation {
        size: number + 16,
        weight: number + 1000,
        class: number as u32,
        is_told: true,
        ..Allocation::default()
    }
}

#[test]
fn allocations_and_cpu_samples_are_both_kept() {
    let engine: &'static Engine = dwell_signal::init(&Config {
        classes: &CLASSES,
        ..Config::default()
    })
    .unwrap();
    engine.words().set_anchor(16, 24, 40);
    let thread = FakeThread::default();
    let mut on_stack = [0x1111_1111_1111_1111u64; 64];
    let anchor = std::hint::black_box(&raw mut on_stack) as u64 + 256;
    for (word, value) in [(2, anchor), (3, 0x7000), (5, 0x9000)] {
        thread.words[word].store(value, Ordering::Relaxed);
    }
    leave_signal_stack();
    let record = engine
        .register(&Registration {
            tid: sys::gettid(),
            managed_thread: &raw const thread as u64,
            ..Registration::default()
        })
        .unwrap();
    assert!(
        !engine.allocated(record, &allocation(0)),
        "nothing is recorded"
    );
    engine.start(INTERVAL_NS);

    let (mut found, mut cpu_samples) = (Vec::new(), 0u64);
    for number in 0..ROUNDS {
        // Signals come at any point of it.
        assert!(engine.allocated(record, &allocation(number)));
        engine.drain(|slot| {
            let header = slot.header();
            if header.reason != Reason::Allocation {
                cpu_samples += 1;
                return;
            }
            assert_eq!((slot.weight_ns(), header.points, header.carried), (0, 0, 0));
            let regs = (header.regs.pc(), header.regs.sp());
            assert_eq!(regs, (0x7000, anchor));
            assert_eq!(header.stack_lo, anchor - 128);
            assert_eq!(slot.stack()[..8], [0x11; 8]);
            found.push(header.allocation);
        });
    }
    while cpu_samples == 0 {
        common::burn(INTERVAL_NS);
        engine.drain(|_| cpu_samples += 1);
    }
    let expected: Vec<_> = (0..ROUNDS).map(allocation).collect();
    assert_eq!(found, expected, "each once, in its order");

    losses_are_counted(engine, record);
    engine.stop();
    engine.drain(|_| ());
    assert!(!engine.allocated(record, &allocation(0)), "it is over");
    assert_eq!(engine.drain(|_| ()), 0);
    std::hint::black_box(&on_stack);
}

/// Without a drain, snapshots that find no slot are counted with their weight.
#[track_caller]
fn losses_are_counted(engine: &'static Engine, record: &ThreadRecord) {
    let before = engine.counters();
    let published = (0..200)
        .filter(|_| engine.allocated(record, &allocation(0)))
        .count() as u64;
    let after = engine.counters();
    let since = |cause| after.get(cause) - before.get(cause);
    assert!(published > 0 && published < 200, "{published}");
    assert_eq!(since(Cause::Allocation), published);
    assert_eq!(since(Cause::AllocationLost), 200 - published);
    let lost_bytes = after.allocated_lost_bytes - before.allocated_lost_bytes;
    assert_eq!(lost_bytes, (200 - published) * 1000);
    let kept_bytes = after.allocated_bytes - before.allocated_bytes;
    assert_eq!(kept_bytes, published * 1000);
}
