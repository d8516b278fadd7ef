//! Reads what the program ran on and with.

use super::fields::count;
use crate::host::Host;
use dwell_jfr::reader::Recording;

/// Reads what a recording says.
pub(super) fn host(recording: &Recording) -> Host {
    let text = |event: &str, field: &str| {
        let event = recording.events_named(event).last();
        let text = event.and_then(|event| event.text(field));
        text.unwrap_or("").trim().to_owned()
    };
    let number = |event: &str, field: &str| {
        let event = recording.events_named(event).last();
        event.map_or(0, |event| count(event, field))
    };
    Host {
        jvm_arguments: text("jdk.JVMInformation", "jvmArguments"),
        jvm_flags: text("jdk.JVMInformation", "jvmFlags"),
        jvm_start_ms: number("jdk.JVMInformation", "jvmStartTime"),
        cpu: text("jdk.CPUInformation", "cpu"),
        hardware_threads: number("jdk.CPUInformation", "hwThreads"),
        os: text("jdk.OSInformation", "osVersion"),
    }
}
