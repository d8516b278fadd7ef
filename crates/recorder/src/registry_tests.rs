//! Which threads count as born since the recording began, and how much CPU time of ended threads
//! was sampled.

use super::*;
use crate::sys::process;
use crate::testing::{alone, register_here};
use std::time::Duration;

const INTERVAL_NS: u64 = 1_000_000;

fn burn(time: Duration) {
    let until = process::own_cpu() + time;
    while process::own_cpu() < until {
        std::hint::spin_loop();
    }
}

/// Whether the registry takes the calling thread for a newborn one, when the census finds it.
fn is_newborn(registry: &Registry) -> bool {
    let mut found = None;
    registry.add_if_new(process::own_tid(), true, |newborn| {
        found = Some(newborn);
        None
    });
    found.unwrap()
}

#[test]
fn thread_older_than_recording_is_not_newborn() {
    let registry = Registry::default();
    burn(Duration::from_millis(300));
    registry.rebase();
    assert!(!is_newborn(&registry), "it used 300 ms before");
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(is_newborn(&registry)));
    });
}

/// Otherwise their time would be counted twice: the process's clock would show it as used by no
/// thread.
#[test]
fn threads_ended_without_notice_count_their_samples() {
    let alone = alone();
    let engine = alone.engine();
    let registry = Registry::default();
    registry.rebase();
    engine.start(INTERVAL_NS);
    let thread = std::thread::spawn(move || {
        let tid = register_here(&registry, engine);
        burn(Duration::from_millis(200));
        (tid, registry)
    });
    let (tid, registry) = thread.join().unwrap();
    while cpu_ns_of(tid).is_ok() {
        std::thread::yield_now();
    }
    let mut weight_ns = 0;
    engine.drain(|slot| weight_ns += slot.weight_ns());
    assert!(weight_ns > 100_000_000, "{weight_ns} ns were sampled");
    assert_eq!(registry.sampled_cpu_ns(), weight_ns, "not retired yet");
    engine.tend();
    engine.drain(|_| ());
    let retired = engine.reap(|record| registry.forget(tid, record, 0));
    assert_eq!(retired, 1);
    assert_eq!(registry.sampled_cpu_ns(), weight_ns, "retired");
    engine.stop();
}

/// The process's clock runs while the events of thousands of threads are opened.
#[test]
fn time_before_the_first_signal_was_not_sampled() {
    let alone = alone();
    let engine = alone.engine();
    let registry = Registry::default();
    let tid = register_here(&registry, engine);
    registry.rebase();
    burn(Duration::from_millis(100));
    let before_ns = own_cpu_ns();
    engine.start(INTERVAL_NS);
    burn(Duration::from_millis(10));
    let sampled_ns = registry.sampled_cpu_ns();
    assert!(sampled_ns >= 10_000_000, "{sampled_ns} ns after the start");
    assert!(sampled_ns <= own_cpu_ns() - before_ns, "{sampled_ns} ns");
    engine.stop();
    let cpu_ns = own_cpu_ns();
    let record = registry.end(tid, cpu_ns, Some(cpu_ns)).unwrap();
    let ended_ns = registry.sampled_cpu_ns();
    assert!(
        (sampled_ns..=cpu_ns - before_ns).contains(&ended_ns),
        "{ended_ns} ns"
    );
    engine.end(record);
}

/// A native thread that attaches for each call keeps its record from its second time on.
#[test]
fn thread_that_comes_back_keeps_its_record() {
    let alone = alone();
    let engine = alone.engine();
    let registry = Registry::default();
    registry.rebase();
    let tid = process::own_tid();
    let attach = || {
        let mut made = None;
        let register = |newborn| {
            made = Some(newborn);
            let registration = dwell_signal::Registration {
                tid,
                newborn,
                ..dwell_signal::Registration::default()
            };
            engine.register(&registration).ok()
        };
        registry.add_or_update(tid, true, register, |_| ());
        made
    };
    assert!(attach().is_some());
    assert!(registry.detach(tid).is_none(), "its first time");
    let record = registry.end(tid, 0, None).unwrap();
    engine.end(record);
    assert_eq!(attach(), Some(false), "it was here before");
    let kept = registry.detach(tid).map(|record| record.index());
    assert_eq!(kept, registry.get(tid).map(|record| record.index()));
    assert!(kept.is_some());
    assert_eq!(attach(), None, "it has a record");
    registry.clear(|record| {
        engine.end(record);
    });
    engine.drain(|_| ());
    engine.reap(|_| ());
}
