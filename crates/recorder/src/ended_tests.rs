//! CPU time used while sampling is being ended.

use super::*;
use crate::testing::{alone, register_here};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const INTERVAL_NS: u64 = 1_000_000;
const WORK_NS: u64 = 60_000_000;

/// On a busy machine the thread that ends sampling may lose its processor for long between two
/// others.
#[test]
fn cpu_time_after_a_threads_stop_is_not_sampled() {
    let alone = alone();
    let engine = alone.engine();
    let (registry, over, used_ns) = <(Registry, AtomicBool, AtomicU64)>::default();
    registry.rebase();
    engine.start(INTERVAL_NS);
    let used = || used_ns.load(Ordering::SeqCst);
    let until = |ns| {
        while used() < ns {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let tid = register_here(&registry, engine);
            while !over.load(Ordering::SeqCst) {
                used_ns.store(process::own_cpu().as_nanos() as u64, Ordering::SeqCst);
            }
            let record = registry.get(tid).unwrap();
            registry.end(tid, 0, None);
            engine.end(record);
        });
        until(WORK_NS);
        let before_ns = used();
        let mut stopped_ns = 0;
        let ended = end(engine, &registry, || {
            stopped_ns = used();
            until(stopped_ns + WORK_NS);
        });
        over.store(true, Ordering::SeqCst);
        let clocks = &ended.clocks;
        // Its clock is read separately, and a ms may pass in between.
        let sampled = before_ns..=stopped_ns + 1_000_000;
        assert!(
            sampled.contains(&clocks.sampled_ns),
            "{ended:?}, {sampled:?}"
        );
        assert!(clocks.ending_ns >= WORK_NS - 1_000_000, "{ended:?}");
        let split_ns = (clocks.split.0 + clocks.split.1).as_nanos() as u64;
        assert!(
            split_ns >= clocks.sampled_ns + WORK_NS - 1_000_000,
            "{ended:?}"
        );
    });
    engine.drain(|_| ());
    engine.drain(|_| ());
    engine.reap(|_| ());
}
