//! What the program ran on and with: the JVM's options, processors, the operating system.

use crate::profile::Profile;
use dwell_jfr::reader::Recording;

/// The machine and the options of the JVM. Texts are empty and numbers 0 where the file does not
/// say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Host {
    /// Options on the JVM's command line.
    pub jvm_arguments: String,
    /// Options from a file or the environment.
    pub jvm_flags: String,
    /// When the JVM started, in milliseconds since the Unix epoch.
    pub jvm_start_ms: u64,
    /// The model of the processors.
    pub cpu: String,
    /// Hardware threads of the machine.
    pub hardware_threads: u64,
    /// The operating system.
    pub os: String,
}

/// Reads what a recording says.
pub(crate) fn host(recording: &Recording) -> Host {
    let text = |event: &str, field: &str| {
        let event = recording.events_named(event).last();
        let text = event.and_then(|event| event.text(field));
        text.unwrap_or("").trim().to_owned()
    };
    let number = |event: &str, field: &str| {
        let event = recording.events_named(event).last();
        let number = event.and_then(|event| event.int(field));
        number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
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

impl Profile {
    /// What the program ran on and with.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }
}
