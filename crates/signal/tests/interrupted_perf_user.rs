//! Which system calls our signals interrupt, with perf events of user mode: no case has been seen.

mod common;
mod interrupted;

use dwell_signal::{EngineKind, perf_permitted};

#[test]
fn user_mode_perf_events_interrupt_no_call() {
    match perf_permitted() {
        Ok(_) => interrupted::run(EngineKind::Perf { kernel: false }, false),
        Err(errno) => println!("skipped: perf events are refused ({errno})"),
    }
}
