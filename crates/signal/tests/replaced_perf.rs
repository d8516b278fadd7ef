//! A library that takes the signal of perf events away: the engine uses another one.

mod common;
mod replaced;

#[test]
fn events_use_another_signal_if_theirs_is_taken() {
    let Some(engine) = common::with_events() else {
        return;
    };
    assert_eq!(engine.signal(), libc::SIGURG);
    replaced::another_signal_is_used(engine, 500_000);
}
