//! A thread's turns are known without a system call. They differ if the thread has run since, and
//! are the same if it has not, for any change of its event in between.

mod common;

use common::{Worker, burn};
use dwell_signal::{Engine, Turns};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::thread;
use std::time::Duration;

const INTERVAL_NS: u64 = 10_000_000;

/// A thread's turns once it waits: it may be on its way there.
fn turns(worker: &Worker, engine: &Engine) -> Turns {
    thread::sleep(Duration::from_millis(50));
    engine.turns(worker.record).expect("a page that is mapped")
}

/// The descriptors of perf events.
fn events() -> BTreeSet<OsString> {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_event = |path: &Path| {
        let target = std::fs::read_link(path);
        target.is_ok_and(|target| target.to_string_lossy().contains("perf_event"))
    };
    all.filter(|entry| is_event(&entry.path()))
        .map(|entry| entry.file_name())
        .collect()
}

#[test]
fn turns_change_exactly_when_thread_has_run() {
    let Some(engine) = common::with_events() else {
        return;
    };
    engine.start(INTERVAL_NS);
    let worker = Worker::begin(engine);
    let record = worker.record;
    assert_eq!(engine.turns(record), None, "nothing is mapped yet");
    assert!(engine.wants_page(record));
    engine.attach_page(record).unwrap();
    engine.attach_page(record).unwrap();
    assert!(!engine.wants_page(record));
    let mut before = turns(&worker, engine);
    // Work so short that it has no sample, and so long that it has several.
    for work in [|| (), || burn(1), || burn(5 * INTERVAL_NS)] as [fn(); 3] {
        for _ in 0..20 {
            worker.does(work);
            let now = engine.turns(record).unwrap();
            assert_ne!(now, before);
            before = turns(&worker, engine);
            assert_eq!(engine.turns(record), Some(before));
        }
    }
    // A ring takes the place of the page. An absent page never counts as proof that a thread stood
    // still.
    let (events, samples) = (events(), record.samples());
    engine.attach_ring(record).unwrap();
    // The ring is that of another event: to map one again, the kernel waits for all processors.
    let with_ring = self::events();
    assert_eq!(with_ring.len(), events.len());
    assert_ne!(with_ring, events);
    worker.does(|| burn(5 * INTERVAL_NS));
    assert!(record.samples() > samples, "the other event sends signals");
    let after = turns(&worker, engine);
    assert_ne!(after, before);
    assert_eq!(turns(&worker, engine), after);
    worker.does(|| burn(1));
    assert_ne!(engine.turns(record), Some(after));
    engine.stop();
    assert_eq!(engine.turns(record), None, "its event is off");
    engine.start(INTERVAL_NS);
    let again = turns(&worker, engine);
    worker.does(|| burn(1));
    assert_ne!(engine.turns(record), Some(again));
    worker.end();
    assert_eq!(engine.turns(record), None, "the thread is gone");
    assert!(!engine.wants_page(record));
}
