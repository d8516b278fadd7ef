//! Which system calls our signals interrupt, with perf events that sample the kernel too.

mod common;
mod interrupted;

use dwell_signal::{EngineKind, perf_permitted};

#[test]
fn perf_events_interrupt_calls_within_limits() {
    match perf_permitted() {
        Ok(level) => {
            let kernel = level.kernel;
            interrupted::run(EngineKind::Perf { kernel }, kernel);
        }
        Err(errno) => println!("skipped: perf events are refused ({errno})"),
    }
}
