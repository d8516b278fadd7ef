//! The environment of the program: the JVM's options, processors, the operating system.

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
