//! Recordings from another process, without the agent: this process is the recorder.

use dwell_attach::Target;
use dwell_jfr::redact::Secrets;
use dwell_outside::record::{Error, Recorder, Sum, Wanted};
use dwell_outside::{Live, Vm};
use std::path::Path;
use std::time::Duration;

/// Part of a processor that looking may take unless more is given, in percent.
const BUDGET: f64 = 0.5;

/// Records a JVM for as long as `goes_on` says, which is asked once in each `step`; `None` where
/// the kernel allows no samples.
#[must_use]
pub fn record_outside(
    pid: u32,
    file: &Path,
    cpu: Duration,
    step: Duration,
    goes_on: impl FnMut() -> bool,
) -> Option<Sum> {
    record_outside_with((pid, BUDGET), file, cpu, step, goes_on)
}

/// The same, with a budget for sampling in percent of a processor.
#[must_use]
pub fn record_outside_with(
    (pid, wall_budget): (u32, f64),
    file: &Path,
    cpu: Duration,
    step: Duration,
    mut goes_on: impl FnMut() -> bool,
) -> Option<Sum> {
    let target = Target::examine(pid).expect("a JVM");
    let live = Live::open(pid).expect("its memory");
    let mut vm = Vm::read(&target, &live).expect("its data");
    let wanted = Wanted {
        cpu,
        wall: Some(Duration::from_millis(20)),
        wall_budget,
        depth: 8192,
        version: "test",
        options: String::new(),
        secrets: Secrets::default(),
    };
    let file = std::fs::File::create(file).expect("a file");
    let mut recorder = match Recorder::start(&mut vm, file, wanted) {
        Err(Error::NotPermitted { .. }) => return None,
        started => started.expect("it starts"),
    };
    while goes_on() {
        recorder.step(step).expect("it goes on");
    }
    Some(recorder.end().expect("it ends"))
}
