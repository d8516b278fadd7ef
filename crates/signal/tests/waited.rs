//! Snapshots for waits that are over, taken outside of any handler. They carry the wait's data and
//! no CPU time. A wait that finds no slot is counted with its weight.

use dwell_signal::slots::Reason;
use dwell_signal::{
    Asked, Cause, ClassSpec, Config, Engine, LockOwner, Registration, ThreadRecord, Vantage, Wait,
    sys,
};
use dwell_walker::{Frame, FrameKind, Frames, Outcome, Walk};

const INTERVAL_NS: u64 = 100_000_000;
const ROUNDS: u64 = 200;
/// Few slots, so that some are missing before the first drain.
const CLASSES: [ClassSpec; 1] = [ClassSpec {
    capacity_bytes: 64 << 10,
    count: 64,
}];

fn wait(number: u64) -> Wait {
    Wait {
        begin_ns: number,
        duration_ns: 20,
        weight_ns: 1000,
        monitor: 0x7000,
        class: number as u32,
        owner: match number % 4 {
            0 => LockOwner::Unknown,
            1 => LockOwner::Kernel(number as i32),
            2 => LockOwner::Logical(number),
            _ => LockOwner::User(number),
        },
        asked: Asked {
            weight_ns: number * 3,
            request: number,
            why: 2,
        },
    }
}

#[test]
fn waits_and_cpu_samples_are_kept_and_losses_counted() {
    let engine: &'static Engine = dwell_signal::init(&Config {
        classes: &CLASSES,
        ..Config::default()
    })
    .unwrap();
    let record = engine
        .register(&Registration {
            tid: sys::gettid(),
            ..Registration::default()
        })
        .unwrap();
    assert!(!engine.waited(record, &wait(0)), "nothing is recorded");
    engine.start(INTERVAL_NS);
    let mut found = Vec::new();
    for number in 0..ROUNDS {
        assert!(engine.waited(record, &wait(number)));
        engine.drain(|slot| {
            let header = slot.header();
            if header.reason == Reason::Wait {
                assert_eq!((slot.weight_ns(), header.points, header.carried), (0, 0, 0));
                found.push(header.wait);
            }
        });
    }
    let expected: Vec<_> = (0..ROUNDS).map(wait).collect();
    assert_eq!(found, expected, "each once, in its order");

    looks_at_others(engine, record);

    let before = engine.counters();
    let published = (0..ROUNDS).filter(|_| engine.waited(record, &wait(0)));
    let published = published.count() as u64;
    let after = engine.counters();
    let since = |cause| after.get(cause) - before.get(cause);
    assert!(published > 0 && published < ROUNDS, "{published}");
    assert_eq!(since(Cause::Wait), published);
    assert_eq!(since(Cause::WaitLost), ROUNDS - published);
    assert_eq!(after.blocked_ns - before.blocked_ns, published * 1000);
    let lost_ns = after.blocked_lost_ns - before.blocked_lost_ns;
    assert_eq!(lost_ns, (ROUNDS - published) * 1000);
    engine.stop();
    engine.drain(|_| ());
    assert!(!engine.waited(record, &wait(0)), "it is over");
}

/// Another thread's stack is recorded if `look` confirms it, and stands for no CPU time. If `look`
/// rejects it, the slot is not lost.
fn looks_at_others(engine: &'static Engine, record: &ThreadRecord) {
    const FRAME: Frame = Frame {
        kind: FrameKind::C2,
        bci: 3,
        id: 0x7777,
    };
    engine.set_vantage(Vantage::Snapshot, 100);
    for request in 1..ROUNDS {
        let is_true = request % 3 == 0;
        let told = engine.looked(record, request, |target| {
            target.keep(|frames| Walk {
                len: usize::from(frames.set(0, FRAME)),
                outcome: Outcome::Complete,
                gaps: 0,
                flaw: None,
            });
            is_true
        });
        assert_eq!(told, is_true);
        let mut seen = 0;
        engine.drain(|slot| {
            let header = slot.header();
            if header.reason == Reason::Owner {
                assert_eq!((slot.weight_ns(), header.carried), (0, 0));
                assert_eq!((header.request, slot.frames()), (request, &[FRAME][..]));
                seen += 1;
            }
        });
        assert_eq!(seen, u64::from(is_true));
    }
}
