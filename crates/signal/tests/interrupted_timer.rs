//! Which system calls our signals interrupt, with CPU timers: no case has been seen.

mod common;
mod interrupted;

use dwell_signal::EngineKind;

#[test]
fn timers_interrupt_no_call() {
    interrupted::run(EngineKind::Timer, false);
}
