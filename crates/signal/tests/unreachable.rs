//! A thread that no signal reaches: the kernel copies its stacks, and no CPU time is lost on the
//! way there and back.

mod common;

use common::{Worker, block, burn, longest_window_ns};
use dwell_signal::{Cause, Engine, ThreadRecord, Unreachable, sys};

const INTERVAL_NS: u64 = 500_000;
/// A thread is silent when it is more than 50 ms late.
const LATE_NS: u64 = 60_000_000;

/// Samples by the kernel, by signals, and the weight of both.
fn drain(engine: &'static Engine, record: &ThreadRecord) -> (u32, u32, u64) {
    let (mut copied, mut signalled, mut weight_ns) = (0, 0, 0);
    engine.drain_while(|slot| {
        let header = slot.header();
        if header.record_index == record.index() {
            weight_ns += slot.weight_ns();
            match header.is_copied_by_kernel {
                true => copied += 1,
                false => signalled += 1,
            }
        }
        true
    });
    (copied, signalled, weight_ns)
}

#[test]
fn thread_that_blocks_the_signal_is_sampled_by_the_kernel() {
    let Some(engine) = common::with_events() else {
        return;
    };
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;
    let signal = engine.signal();
    worker.does(move || burn(10_000_000));
    let (copied, signalled, mut weight_ns) = drain(engine, record);
    assert!(copied == 0 && signalled > 0);
    engine.tend();
    assert!(!record.is_silent() && record.unreachable().is_none());

    worker.does(move || block(signal, true));
    weight_ns += drain(engine, record).2;
    engine.tend();
    worker.does(move || burn(LATE_NS));
    engine.tend();
    assert!(record.is_silent(), "it has not answered for long");
    let blocked = Unreachable::Blocked;
    let owed_ns = engine.set_unreachable(record, blocked);
    assert!(owed_ns >= LATE_NS - 2 * INTERVAL_NS, "{owed_ns}");
    assert_eq!(record.unreachable(), Some(blocked));
    assert_eq!(engine.rings().0, 1);
    assert_eq!(engine.set_unreachable(record, blocked), 0, "nothing new");
    weight_ns += owed_ns;
    for _ in 0..10 {
        worker.does(move || burn(8 * INTERVAL_NS));
        // Data that only the thread itself can read is no reason to signal it.
        engine.must_signal(record);
        let (copied, signalled, more_ns) = drain(engine, record);
        assert_eq!(signalled, 0);
        assert!(copied >= 2, "{copied}");
        weight_ns += more_ns;
        if engine.rings().0 == 0 {
            // It was too small for this stack.
            weight_ns += engine.set_unreachable(record, blocked);
        }
        assert_eq!(engine.rings().0, 1);
    }
    assert!(engine.count(Cause::Unsignalled) > 20);

    // It can be signalled again.
    record.set_reachable();
    worker.does(move || block(signal, false));
    weight_ns += drain(engine, record).2;
    assert_eq!(engine.rings().0, 0);
    worker.does(move || burn(20_000_000));
    let (_, signalled, more_ns) = drain(engine, record);
    assert!(signalled >= 10, "{signalled}");
    weight_ns += more_ns;
    engine.stop_showing(|it, ns| {
        if it.index() == record.index() {
            weight_ns += ns;
        }
    });
    weight_ns += drain(engine, record).2;
    let cpu_ns = sys::cpu_ns_of(record.tid()).unwrap();
    // Each change takes some time that is not counted.
    let most_ns = longest_window_ns(INTERVAL_NS) + 1_000_000;
    assert!(
        weight_ns.abs_diff(cpu_ns) <= most_ns,
        "{weight_ns} of {cpu_ns} ns"
    );
    worker.end();
}
