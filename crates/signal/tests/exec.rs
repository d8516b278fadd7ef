//! A process that replaces itself while its threads are sampled: no signal may be left for the new
//! program, which has no handler for it.

mod common;

use common::{burn, register_here, with_events};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

const INTERVAL_NS: u64 = 100_000;
/// Set for the process that replaces itself.
const CHILD: &str = "DWELL_TEST_EXEC";
const NAME: &str = "never_exec_under_sampling_kills_the_new_program";

/// Far from where a signal is due, and then into `execve`.
fn replace_this_process() {
    let Some(engine) = with_events() else { return };
    engine.start(INTERVAL_NS);
    let record = register_here(engine, 1);
    burn(3_000_000);
    assert!(record.samples() > 0, "it is sampled");
    panic!("{}", Command::new("/bin/true").exec());
}

#[test]
fn never_exec_under_sampling_kills_the_new_program() {
    if std::env::var_os(CHILD).is_some() {
        return replace_this_process();
    }
    let program = std::env::current_exe().unwrap();
    let mut killed = Vec::new();
    for _ in 0..40 {
        let mut child = Command::new(&program);
        child.args(["--exact", NAME]).env(CHILD, "1");
        let output = child.output().unwrap();
        if !output.status.success() {
            killed.push((output.status.code(), output.status.signal()));
        }
    }
    assert!(killed.is_empty(), "{killed:?}");
}
