//! A thread's perf event and a timer in its place take turns: no CPU time is lost in between, and
//! either of them signals the thread.

mod common;

use common::{Worker, burn};
use dwell_signal::{Engine, Errno, plan, sys};
use std::time::Duration;

/// Longer than a tick of any kernel, so that timers come in time, and short enough that events run
/// free for some windows.
const INTERVAL_NS: u64 = 16_000_000;
const ROUNDS: u32 = 6;

/// The worker's samples: their number, and the CPU time they stand for.
fn drain(engine: &'static Engine, worker: &Worker) -> (u32, u64) {
    let (mut samples, mut weight_ns) = (0, 0);
    assert!(engine.drain_while(|slot| {
        if slot.header().record_index == worker.record.index() {
            samples += 1;
            weight_ns += slot.weight_ns();
        }
        true
    }));
    (samples, weight_ns)
}

fn burns(worker: &Worker, intervals: u64) {
    worker.does(move || burn(intervals * INTERVAL_NS));
}

/// Tries until its record is free: it may just be in its handler.
fn until_done(mut exchange: impl FnMut() -> Result<bool, Errno>) {
    let is_done = (0..1000).any(|_| {
        let done = exchange().unwrap();
        if !done {
            std::thread::sleep(Duration::from_millis(1));
        }
        done
    });
    assert!(is_done, "somebody has its record for a second");
}

#[test]
fn an_event_and_a_timer_take_turns_and_nothing_is_lost() {
    let Some(engine) = common::with_events() else {
        return;
    };
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;
    let mut sum_ns = 0;
    let longest_ns = plan::longest_ns(INTERVAL_NS);
    for round in 0..ROUNDS {
        assert!(!engine.has_timer(record), "as all begin");
        assert_eq!(engine.give_event(record), Ok(false), "it has one");
        let has_ring = engine.attach_ring(record).is_ok();
        burns(&worker, 4);
        let (samples, weight_ns) = drain(engine, &worker);
        assert!(samples > 0, "by the event, round {round}");
        sum_ns += weight_ns;

        until_done(|| engine.take_event(record));
        assert!(engine.has_timer(record));
        assert_eq!(engine.take_event(record), Ok(false), "it has none");
        assert!(!engine.wants_page(record) && !record.has_ring());
        burns(&worker, 4);
        let (samples, weight_ns) = drain(engine, &worker);
        assert!(samples > 0, "by the timer, round {round}");
        sum_ns += weight_ns;
        until_done(|| engine.give_event(record));
        assert_eq!(record.has_ring(), has_ring, "as before");
    }
    let cpu_ns = sys::cpu_ns_of(record.tid()).unwrap();
    // Its debt is at most a window and one more tick, as late as a busy host makes that.
    assert!(
        sum_ns.abs_diff(cpu_ns) <= 2 * longest_ns,
        "{sum_ns} of {cpu_ns} ns: windows are counted twice, or not"
    );
    until_done(|| engine.take_event(record));
    burns(&worker, 2);
    let mut owed_ns = 0;
    assert!(engine.stop_showing(|it, ns| {
        if it.index() == record.index() {
            owed_ns += ns;
        }
    }));
    sum_ns += drain(engine, &worker).1 + owed_ns;
    let cpu_ns = sys::cpu_ns_of(record.tid()).unwrap();
    assert!(
        sum_ns.abs_diff(cpu_ns) <= longest_ns,
        "{sum_ns} of {cpu_ns} ns in all"
    );
    assert_eq!(engine.take_event(record), Ok(false), "nobody samples");

    // The next recording decides for itself.
    engine.start(INTERVAL_NS);
    assert!(!engine.has_timer(record));
    burns(&worker, 4);
    assert!(drain(engine, &worker).0 > 0);

    who_rests_has_its_event_back(engine, &worker);
    whom_no_timer_sees_keeps_its_event(engine, &worker);
    worker.end();
    assert!(engine.stop());
}

fn who_rests_has_its_event_back(engine: &'static Engine, worker: &Worker) {
    let record = worker.record;
    until_done(|| engine.take_event(record));
    for _ in 0..20 {
        burns(worker, 1);
        engine.tend();
    }
    assert!(engine.has_timer(record), "it works");
    for _ in 0..7 {
        engine.tend();
    }
    assert!(engine.has_timer(record), "not at once");
    until_done(|| {
        engine.tend();
        Ok(!engine.has_timer(record))
    });
}

fn whom_no_timer_sees_keeps_its_event(engine: &'static Engine, worker: &Worker) {
    let record = worker.record;
    until_done(|| engine.take_event(record));
    let signal = engine.signal();
    engine.tend();
    worker.does(move || {
        common::block(signal, true);
        burn(8 * INTERVAL_NS);
    });
    until_done(|| {
        engine.tend();
        Ok(!engine.has_timer(record))
    });
    worker.does(move || common::block(signal, false));
    assert_eq!(engine.take_event(record), Ok(false), "for good");
}
