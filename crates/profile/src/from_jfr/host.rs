//! Reads what the program ran on and with.

use crate::host::Host;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

/// Reads what a recording says.
pub(super) fn host(recording: &Recording) -> Host {
    let mut host = Host::default();
    let trimmed = |text: &str| text.trim().to_owned();
    if let Some(jvm) = recording.told::<told::JvmInformation>().last() {
        host.jvm_arguments = trimmed(&jvm.jvm_arguments);
        host.jvm_flags = trimmed(&jvm.jvm_flags);
        host.jvm_start_ms = jvm.jvm_start_epoch_ms;
    }
    if let Some(cpu) = recording.told::<told::CpuInformation>().last() {
        host.cpu = trimmed(&cpu.cpu);
        host.hardware_threads = cpu.hardware_threads;
    }
    if let Some(os) = recording.told::<told::OsInformation>().last() {
        host.os = trimmed(&os.os_version);
    }
    host
}
