//! The period in the record always equals the kernel's, regardless of which code set it.

use crate::engine::Engine;
use crate::engine::perf_permitted;
use crate::init::init;
use crate::record::{Registration, ThreadRecord};
use crate::slots::Reason;
use crate::{Config, EngineKind, sys};

const INTERVAL_NS: u64 = 500_000;

/// Uses CPU time of this thread, half an interval at a time, until `done`.
fn burn_until(mut done: impl FnMut() -> bool) {
    for _ in 0..2000 {
        let until_ns = sys::own_cpu_ns() + INTERVAL_NS / 2;
        while sys::own_cpu_ns() < until_ns {
            std::hint::spin_loop();
        }
        if done() {
            return;
        }
    }
    panic!("a second of CPU time was not enough");
}

fn who_is_asked_while_others_have_its_record_answers_later(
    engine: &'static Engine,
    record: &'static ThreadRecord,
) {
    let answers = || {
        let mut answers = 0;
        engine.drain(|slot| answers += u32::from(slot.header().reason == Reason::Owner));
        answers
    };
    assert_eq!(answers(), 0);
    let guard = record.lock().unwrap();
    // Delivered before this returns: the thread is the calling one.
    assert!(engine.ask(record, Reason::Owner));
    assert_eq!(answers(), 0, "somebody else has the record");
    engine.unlock(guard);
    assert_eq!(answers(), 1);
    let guard = record.lock().unwrap();
    engine.unlock(guard);
    assert_eq!(answers(), 0, "it was asked once");
}

#[test]
fn a_period_set_outside_of_the_handler_is_noted() {
    if perf_permitted().is_err() {
        return; // only perf events are free-running
    }
    let config = Config {
        engine: EngineKind::Perf { kernel: false },
        ..Config::default()
    };
    let engine = init(&config).unwrap();
    engine.start(INTERVAL_NS);
    let registration = Registration {
        tid: sys::gettid(),
        seed: 5,
        newborn: true,
        ..Registration::default()
    };
    let record = engine.register(&registration).unwrap();
    let in_step = || {
        let mut guard = record.lock().unwrap();
        let inner = guard.inner();
        let in_step = inner.period_ns == inner.plan.width_ns() && inner.plan.left_in_block() > 8;
        engine.unlock(guard);
        in_step
    };
    // It overflows once per window without being set again.
    burn_until(in_step);
    for gap_ns in [3 * INTERVAL_NS, INTERVAL_NS / 2] {
        let mut guard = record.lock().unwrap();
        engine.rearm_after(&mut guard, gap_ns);
        let noted_ns = guard.inner().period_ns;
        engine.unlock(guard);
        assert_eq!(noted_ns, gap_ns);
        // So the handler knows that the event has to be set again.
        burn_until(in_step);
    }
    who_is_asked_while_others_have_its_record_answers_later(engine, record);
    assert!(engine.end(record));
    assert!(engine.stop());
}
