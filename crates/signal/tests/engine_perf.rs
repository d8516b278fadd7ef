//! The perf engine against threads that burn CPU time: the weights are the CPU time.

mod common;

use common::{Drainer, burn, busy_record_keeps_being_sampled, run_threads, weight_of};
use dwell_signal::{Cause, Config, EngineKind};

#[test]
fn weights_are_cpu_time() {
    const INTERVAL_NS: u64 = 1_000_000;
    let config = Config {
        engine: EngineKind::Perf { kernel: true },
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    assert_eq!(engine.start(INTERVAL_NS), 0);
    let drainer = Drainer::begin(engine);
    let accounts = run_threads(engine, 0..6, |number| {
        burn(60_000_000 + number * 37_000_000)
    });
    busy_record_keeps_being_sampled(engine, INTERVAL_NS);
    let samples = drainer.finish();
    assert!(engine.stop());
    for account in &accounts {
        account.assert_weight(weight_of(&samples, account), INTERVAL_NS);
    }
    let counters = engine.counters();
    assert_eq!(counters.get(Cause::PointsLost), 0);
    assert_eq!(counters.get(Cause::Contention), 0);
    assert_eq!(counters.get(Cause::Sample), samples.len() as u64);
}
