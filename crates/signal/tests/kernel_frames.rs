//! Samples taken in the kernel carry its call chain; those in user mode do not.

mod common;

use common::{burn, drain_into, register_here, settle};
use dwell_signal::{Cause, Config, EngineKind, PerfLevel, perf_permitted, sys};
use std::io::Read;
use std::thread;

const INTERVAL_NS: u64 = 1_000_000;

/// Spends nearly all of its time in the kernel.
fn burn_in_kernel(cpu_ns: u64) {
    let until_ns = sys::own_cpu_ns() + cpu_ns;
    let mut buffer = vec![0; 1 << 20];
    let mut file = std::fs::File::open("/dev/urandom").unwrap();
    while sys::own_cpu_ns() < until_ns {
        file.read_exact(&mut buffer).unwrap();
    }
}

/// Detects kernel frames that are missing or invented. With 400 samples, of which 98 % and 1 % are
/// due, nine tenths and a half are more than ten deviations away. False alarm: less than 1e-20.
#[test]
fn measured_kernel_time_has_kernel_frames() {
    if perf_permitted() != Ok(PerfLevel { kernel: true }) {
        println!("skipped: the machine does not show its kernel");
        return;
    }
    let config = Config {
        engine: EngineKind::Perf { kernel: true },
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    engine.start(INTERVAL_NS);
    let sampled = |work: fn(u64)| {
        let worker = thread::spawn(move || {
            let record = register_here(engine, 11);
            engine.attach_ring(record).unwrap();
            work(200_000_000);
            settle(engine, record)
        });
        worker.join().unwrap();
        let mut samples = Vec::new();
        drain_into(engine, &mut samples);
        let with = samples
            .iter()
            .filter(|sample| !sample.kernel.is_empty())
            .count();
        assert!(
            samples
                .iter()
                .flat_map(|s| &s.kernel)
                .all(|pc| *pc >= 1 << 63)
        );
        (with, samples.len())
    };
    // Reading random numbers spends 90 % or more of its time in the kernel. Burning spends 50 % or
    // less there (it asks the kernel for the time once in a thousand rounds).
    let (with, all) = sampled(burn_in_kernel);
    assert!(with * 10 >= all * 9, "{with} of {all} in the kernel");
    let (with, all) = sampled(burn);
    assert!(with * 2 <= all, "{with} of {all} in the kernel");
    assert_eq!(engine.counters().get(Cause::RingSkipped), 0);
}
