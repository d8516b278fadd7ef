//! Which system calls our signals interrupt, with CPU timers: no case has been seen.

mod common;
mod interrupted;

use dwell_signal::EngineKind;

#[test]
fn calls_notice_nothing_of_timers() {
    interrupted::run(EngineKind::Timer, false);
}
