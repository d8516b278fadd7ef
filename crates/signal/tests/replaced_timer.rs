//! A library that takes the signal of timers away: the engine uses another one.

mod common;
mod replaced;

use dwell_signal::{Config, EngineKind};

#[test]
fn timers_use_another_signal_if_theirs_is_taken() {
    let config = Config {
        engine: EngineKind::Timer,
        ..Config::default()
    };
    let engine = dwell_signal::init(&config).unwrap();
    replaced::another_signal_is_used(engine, 5_000_000);
}
