//! A thread may be anywhere when a perf event's signal comes.

mod anywhere;
mod common;

use dwell_signal::{EngineKind, PerfLevel, perf_permitted};

#[test]
fn a_thread_may_be_anywhere_when_a_perf_event_signals() {
    match perf_permitted() {
        Ok(PerfLevel { kernel }) => anywhere::run(EngineKind::Perf { kernel }),
        Err(errno) => println!("skipped: perf events are refused ({errno})"),
    }
}
