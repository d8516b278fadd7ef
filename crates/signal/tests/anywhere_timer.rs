//! A thread may be anywhere when a timer's signal comes.

mod anywhere;
mod common;

use dwell_signal::EngineKind;

#[test]
fn a_thread_may_be_anywhere_when_a_timer_signals() {
    anywhere::run(EngineKind::Timer);
}
