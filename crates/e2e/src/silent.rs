//! Describes the state of a JVM that does not answer, for the message of the test that fails.

use dwell_attach::Target;
use dwell_outside::dump::{Dumper, Options, Stop, Thread};
use dwell_outside::names::Named;
use dwell_outside::{Live, Vm};
use std::fmt::Write as _;
use std::time::Duration;

/// All threads' stacks, read from outside, and the safepoint if there is one.
#[must_use]
pub fn what_it_does(target: &Target) -> String {
    let pid = target.jvm().pid;
    let live = match Live::open(pid) {
        Ok(live) => live,
        Err(error) => return format!("process {pid} cannot be read: {error}"),
    };
    let vm = match Vm::read(target, &live) {
        Ok(vm) => vm,
        Err(error) => return format!("process {pid} cannot be understood: {error}"),
    };
    let dump = Dumper::new(&vm).dump(&Options {
        native: true,
        virtual_max: 0,
        running: Duration::from_millis(200),
        stop: Stop::Never,
    });
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut text = format!("load {}, safepoint {:?}", load.trim(), dump.safepoint);
    let mut threads: Vec<&Thread> = dump.threads.iter().collect();
    // Of a long message only the first lines may be kept.
    threads.sort_by_key(|thread| {
        let name = thread.name.as_str();
        let first = ["Attach Listener", "VM Thread"].contains(&name) || name.starts_with("dwell");
        !first
    });
    for thread in threads {
        tell(thread, &mut text);
    }
    text
}

/// One line.
fn tell(thread: &Thread, text: &mut String) {
    let cpu_ms = thread.cpu_ns.unwrap_or(0) / 1_000_000;
    let names: Vec<String> = thread.frames.iter().map(name).collect();
    let _ = write!(
        text,
        "\n{:?} {:?} {:?} {:?}, {cpu_ms} ms of CPU time: {}",
        thread.name,
        thread.tid,
        thread.vm_state,
        thread.cause,
        names.join(" < ")
    );
}

fn name(frame: &Named) -> String {
    match frame {
        Named::Java { method, .. } => format!("{}.{}", method.class, method.name),
        Named::Native {
            library, function, ..
        } => format!("{library}.{}", function.as_deref().unwrap_or("?")),
        Named::Stub(name) => name.clone(),
        Named::Missing(why) => (*why).to_owned(),
    }
}
