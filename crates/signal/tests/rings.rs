//! Samples without signals. A thread that only works gets a ring, and keeps it until it has a
//! context that only the thread itself can read. No CPU time is lost in between.

mod common;

use common::{Worker, burn, longest_window_ns};
use dwell_signal::{Engine, ThreadRecord, sys};

const INTERVAL_NS: u64 = 500_000;
const COPIED_BYTES: u32 = 32 << 10;

fn burns(worker: &Worker, intervals: u64) {
    worker.does(move || burn(intervals * INTERVAL_NS));
}

/// One thread's samples in a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shown {
    by_signal: u32,
    by_kernel: u32,
    weight_ns: u64,
}

fn drain(engine: &'static Engine, record: &ThreadRecord) -> Shown {
    let mut shown = Shown::default();
    let is_all = engine.drain_while(|slot| {
        let header = slot.header();
        if header.record_index != record.index() {
            return true;
        }
        shown.weight_ns += slot.weight_ns();
        if header.is_copied_by_kernel {
            shown.by_kernel += 1;
            assert_eq!(header.tid, record.tid());
            assert!(header.stack_len > 0 && header.regs.pc() != 0);
            assert!(header.stack_len <= COPIED_BYTES + 8);
        } else {
            shown.by_signal += 1;
        }
        true
    });
    assert!(is_all);
    shown
}

/// Burns and drains in turn until the thread has a ring.
fn until_it_has_a_ring(engine: &'static Engine, worker: &Worker) -> u64 {
    let mut weight_ns = 0;
    for _ in 0..100 {
        burns(worker, 4);
        weight_ns += drain(engine, worker.record).weight_ns;
        if engine.rings().0 == 1 {
            return weight_ns;
        }
    }
    panic!("it has no ring");
}

/// Repeats an action that a late signal may delay: the thread then works on its own record.
#[track_caller]
fn soon(mut done: impl FnMut() -> bool) {
    let mut tries = (0..100).map(|_| done());
    assert!(tries.any(|is_done| is_done));
}

#[test]
fn thread_with_plain_samples_gets_ring_until_context_is_set() {
    let Some(engine) = common::with_events() else {
        return;
    };
    engine.let_kernel_copy(COPIED_BYTES);
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;

    let mut weight_ns = until_it_has_a_ring(engine, &worker);
    let signals = engine.counters().handler_ns.iter().sum::<u64>();
    let turns = engine.attach_page(record).map(|()| engine.turns(record));
    // Room for 16 samples: 8 are expected, and never more than 16 if all periods are short.
    burns(&worker, 8);
    let shown = drain(engine, record);
    assert_eq!(shown.by_signal, 0);
    assert!(shown.by_kernel >= 4, "{shown:?}");
    assert_eq!(engine.counters().handler_ns.iter().sum::<u64>(), signals);
    weight_ns += shown.weight_ns;
    let turns = turns.unwrap().expect("the ring's page tells them");
    assert_ne!(engine.turns(record), Some(turns), "it has run");

    // Another thread finds out that the worker has a context.
    engine.must_signal(record);
    weight_ns += drain(engine, record).weight_ns;
    assert_eq!(engine.rings().0, 0);
    burns(&worker, 20);
    let shown = drain(engine, record);
    assert!(shown.by_signal >= 10 && shown.by_kernel == 0, "{shown:?}");
    weight_ns += shown.weight_ns;
    assert_eq!(engine.rings().0, 0, "for good");

    let mut owed_ns = 0;
    let is_quiet = engine.stop_showing(|it, ns| {
        if it.index() == record.index() {
            owed_ns += ns;
        }
    });
    assert!(is_quiet);
    weight_ns += drain(engine, record).weight_ns + owed_ns;
    let cpu_ns = sys::cpu_ns_of(record.tid()).unwrap();
    // The last window of those with signals.
    assert_told(weight_ns, cpu_ns, longest_window_ns(INTERVAL_NS));
    worker.end();

    who_stops_with_a_ring_owes_what_it_has_used(engine);
    a_timer_takes_the_place_of_a_ring(engine);
    the_thread_itself_and_its_end(engine);
}

/// Changes take some time that is not counted. (The event's clock may be far ahead of the
/// thread's, where the host takes the processor. That is found by the end of the recording.)
#[track_caller]
fn assert_told(weight_ns: u64, cpu_ns: u64, window_ns: u64) {
    let most_ns = window_ns + 200_000;
    assert!(
        weight_ns.abs_diff(cpu_ns) <= most_ns,
        "{weight_ns} of {cpu_ns} ns"
    );
}

/// Ends the recording and returns the thread's debt at that time.
fn owed_at_the_end(engine: &'static Engine, record: &ThreadRecord) -> u64 {
    let mut owed_ns = 0;
    assert!(engine.stop_threads(|it, stop| {
        if it.index() == record.index() {
            owed_ns += stop.owed_ns;
        }
    }));
    assert!(engine.await_handlers());
    owed_ns
}

/// Whole intervals are carried here: the sum shows if they are lost.
fn who_stops_with_a_ring_owes_what_it_has_used(engine: &'static Engine) {
    engine.let_kernel_copy(COPIED_BYTES);
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;
    let mut weight_ns = until_it_has_a_ring(engine, &worker);
    // Far more than there is room for: most of it is carried by the last one.
    burns(&worker, 200);
    let owed_ns = owed_at_the_end(engine, record);
    weight_ns += drain(engine, record).weight_ns;
    let cpu_ns = sys::cpu_ns_of(record.tid()).unwrap();
    assert!(owed_ns > 50 * INTERVAL_NS, "{owed_ns} ns");
    assert_told(weight_ns + owed_ns, cpu_ns, 0);
    worker.end();
}

/// A thread that is switched often has neither a ring's event nor another one. When it has one
/// again a ring may be next, as before.
fn a_timer_takes_the_place_of_a_ring(engine: &'static Engine) {
    engine.let_kernel_copy(COPIED_BYTES);
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;
    let mut weight_ns = until_it_has_a_ring(engine, &worker);
    for _ in 0..5 {
        burns(&worker, 8);
        soon(|| engine.take_event(record).unwrap());
        assert!(engine.has_timer(record));
        assert_eq!(engine.rings().0, 0);
        let shown = drain(engine, record);
        assert!(shown.by_kernel > 0, "what was in the ring: {shown:?}");
        weight_ns += shown.weight_ns;
        // Five ticks of the kernel and more, which may be other threads'.
        let mut by_signal = 0;
        soon(|| {
            burns(&worker, 40);
            let shown = drain(engine, record);
            assert_eq!(shown.by_kernel, 0);
            weight_ns += shown.weight_ns;
            by_signal += shown.by_signal;
            by_signal > 4
        });
        assert_eq!(engine.rings().0, 0, "a timer's samples earn none");
        soon(|| engine.give_event(record).unwrap());
        weight_ns += until_it_has_a_ring(engine, &worker);
    }
    let owed_ns = owed_at_the_end(engine, record);
    weight_ns += drain(engine, record).weight_ns;
    let cpu_ns = sys::cpu_ns_of(record.tid()).unwrap();
    assert_told(weight_ns + owed_ns, cpu_ns, longest_window_ns(INTERVAL_NS));
    worker.end();
}

fn the_thread_itself_and_its_end(engine: &'static Engine) {
    engine.let_kernel_copy(COPIED_BYTES);
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;
    until_it_has_a_ring(engine, &worker);
    burns(&worker, 4);
    worker.does(move || {
        engine.must_signal_now(record);
        burn(20 * INTERVAL_NS);
    });
    assert_eq!(engine.rings().0, 0, "without a drain");
    let shown = drain(engine, record);
    assert!(shown.by_signal >= 10 && shown.by_kernel > 0, "{shown:?}");
    worker.end();

    // A thread that ends gives its ring back, and leaves the CPU time used since its last sample.
    let worker = Worker::begin(engine);
    let record = worker.record;
    until_it_has_a_ring(engine, &worker);
    // Beyond the window that its last signal has taken in advance.
    burns(&worker, 8);
    drain(engine, record);
    worker.does(|| burn(INTERVAL_NS / 4));
    worker.end();
    assert_eq!(engine.rings().0, 0);
    let left_ns = record.take_carried_ns() + drain(engine, record).weight_ns;
    assert!(left_ns >= INTERVAL_NS / 4, "{left_ns} ns");

    // If the kernel is to copy no more, all threads are signalled again.
    let worker = Worker::begin(engine);
    until_it_has_a_ring(engine, &worker);
    engine.let_kernel_copy(0);
    drain(engine, worker.record);
    assert_eq!(engine.rings().0, 0);
    burns(&worker, 20);
    assert!(drain(engine, worker.record).by_signal >= 10);
    worker.end();
    assert!(engine.stop());
}
