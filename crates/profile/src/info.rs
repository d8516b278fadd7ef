//! A recording's data about itself: where it was made, its losses and its cost.

use crate::platform::Platform;

/// The quantity that the samples of a profile measure. Only the first two are processor time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Measured {
    /// CPU time: samples are spread evenly over it.
    #[default]
    CpuTime,
    /// Threads that run Java code. The JDK's recorder samples some of them (5 each 10 or 20 ms),
    /// for any other activity of the process.
    Java,
    /// Threads that a wall clock met running.
    Wall,
    /// Threads in native methods, whether they run there or wait (`jdk.NativeMethodSample`).
    Native,
    /// Occurrences of an event that is no time, which has this name: `page-faults`.
    Event(String),
}

impl Measured {
    /// Whether shares of the samples are about shares of the processor time that the program used.
    #[must_use]
    pub fn is_of_processors(&self) -> bool {
        matches!(self, Measured::CpuTime | Measured::Java)
    }

    /// The quantity, as the head of a column.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Measured::CpuTime => "CPU time".to_owned(),
            Measured::Java => "Samples of Java code".to_owned(),
            Measured::Wall => "Seen running".to_owned(),
            Measured::Native => "Samples in native methods".to_owned(),
            Measured::Event(event) => format!("Samples of {event}"),
        }
    }

    /// The sampled event, as the end of a sentence; empty for CPU time and similar events.
    #[must_use]
    pub fn of(&self) -> String {
        match self {
            Measured::CpuTime | Measured::Java => String::new(),
            Measured::Wall => "of running threads, by the wall clock: not CPU time".to_owned(),
            Measured::Native => {
                "of threads in native methods, running or waiting: not CPU time".to_owned()
            }
            Measured::Event(event) => format!("of {event}: not CPU time"),
        }
    }
}

/// Where and how a recording was made. Texts are empty and numbers 0 where the file does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Info {
    /// Time of the first event, nanoseconds since the Unix epoch.
    pub start_ns: u64,
    /// How long was recorded.
    pub duration_ns: u64,
    /// The profiled process.
    pub pid: i64,
    /// The profiler's version.
    pub profiler_version: String,
    /// The quantity: `cpu`, `wall` or both.
    pub mode: String,
    /// How samples were triggered, e.g. `perf` or `timer`.
    pub engine: String,
    /// Why that engine was chosen.
    pub engine_reason: String,
    /// The mean distance of two samples of a thread.
    pub interval_ns: u64,
    /// The options given to the profiler.
    pub options: String,
    /// The JVM's name.
    pub jvm_name: String,
    /// The JVM's version.
    pub jvm_version: String,
    /// The command line that the JVM was started with.
    pub jvm_arguments: String,
    /// When the JVM started, nanoseconds since the Unix epoch; 0 where the file does not say.
    pub jvm_start_ns: u64,
    /// The main class and its arguments.
    pub java_arguments: String,
    /// The events that the samples come from.
    pub sample_event: String,
    /// Their quantity.
    pub measured: Measured,
    /// Sample events of other names that are in the file and not in this profile, with their count.
    pub other_events: Vec<(String, u64)>,
    /// Other events of time or memory, which are only counted.
    pub held_events: Vec<(String, u64)>,
    /// Data on waits that are single events and no samples of a clock; `None`: no waits are.
    pub event_waits: Option<EventWaits>,
}

/// Waits that another recorder wrote as single events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventWaits {
    /// Waits that lasted less were not written, in nanoseconds; 0: all were. The largest threshold
    /// of all kinds of waits.
    pub threshold_ns: u64,
    /// The same of sockets.
    pub sockets_ns: u64,
    /// The same of files.
    pub files_ns: u64,
    /// The time between two samples of a running thread, in nanoseconds.
    pub period_ns: u64,
}

impl EventWaits {
    /// The missing waits, as a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        EventWaits::missing("Waits", self.threshold_ns)
    }

    /// The same of waits of a kind.
    pub(crate) fn missing(waits: &str, threshold_ns: u64) -> String {
        match threshold_ns {
            0 => String::new(),
            ns => format!(
                "{waits} shorter than the recorder's threshold ({} ms) are not in the file.",
                ns as f64 / 1e6
            ),
        }
    }
}

impl Info {
    /// The wall time of a sample that is only counted, in nanoseconds; 0: not known.
    pub(crate) fn counted_ns(&self) -> u64 {
        match self.event_waits {
            Some(waits) if self.measured.is_of_processors() => waits.period_ns,
            _ => 0,
        }
    }

    /// Whether the file has only sums of samples by stack, and no single objects and waits.
    #[must_use]
    pub fn has_sums_only(&self) -> bool {
        matches!(self.sample_event.as_str(), "pprof" | "OTLP")
    }

    /// Name and version of the JVM. The version by the JDK's recorder begins with the name, and
    /// ends with how the JVM was built.
    #[must_use]
    pub fn jvm(&self) -> String {
        let (name, long) = (self.jvm_name.as_str(), self.jvm_version.as_str());
        let version = long.split(", built on").next().unwrap_or("");
        match version.starts_with(name) {
            true => version.to_owned(),
            false => format!("{name} {version}").trim().to_owned(),
        }
    }

    /// The platform of the program.
    #[must_use]
    pub fn platform(&self) -> Platform {
        Platform::of(&self.jvm_name)
    }
}

/// The parts of the file that could not be read, because it is cut off or damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unread {
    /// Chunks that are not whole.
    pub chunks: u64,
    /// Bytes that are in the file and were left out.
    pub bytes: u64,
    /// Bytes that the last chunk should have and the file has not.
    pub absent: u64,
    /// Whether all that was left out lies at the file's end.
    pub is_at_end: bool,
}

/// Samples that were due and are not in the recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loss {
    /// Why.
    pub cause: String,
    /// How many.
    pub samples: u64,
    /// Their total weight.
    pub weight_ns: u64,
}

/// A stretch of time in which the profiler could not sample.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gap {
    /// When it began, nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// Why.
    pub cause: String,
    /// Samples lost in it.
    pub samples: u64,
    /// Their total weight.
    pub weight_ns: u64,
}

/// The cost of the profiler itself. The sums are over the content of the file, but the time in the
/// handler is over the whole recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SelfCost {
    /// How long it was counted: shorter than the recording where the file holds a part of one.
    pub span_ns: u64,
    /// Samples taken.
    pub samples: u64,
    /// Stacks walked.
    pub walks: u64,
    /// Samples dropped.
    pub dropped: u64,
    /// Bytes written.
    pub bytes: u64,
    /// CPU time of the profiler's own threads and of its signal handlers.
    pub agent_cpu_ns: u64,
    /// Signals handled.
    pub handlers: u64,
    /// CPU time of the signal handlers, a part of the one above.
    pub handler_cpu_ns: u64,
    /// Time that threads waited in the signal handler to be walked.
    pub waited_ns: u64,
    /// Time that collections waited until samples in code they may free were walked.
    pub collections_waited_ns: u64,
    /// Time that walking took, in the handler or elsewhere.
    pub walk_ns: u64,
    /// Stacks copied.
    pub copies: u64,
    /// Bytes of them.
    pub copied_bytes: u64,
    /// Median time in the signal handler.
    pub handler_p50_ns: u64,
    /// 90th percentile of the time in the signal handler.
    pub handler_p90_ns: u64,
    /// 99th percentile of the time in the signal handler.
    pub handler_p99_ns: u64,
    /// The longest time in the signal handler.
    pub handler_max_ns: u64,
    /// Memory of the profiler.
    pub memory_bytes: u64,
}

/// CPU time of the whole process, which the weights must add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// From when on it is counted, nanoseconds since the Unix epoch; samples before that are not in
    /// it. 0: from the recording's beginning, all samples are.
    pub since_ns: u64,
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
}

impl CpuUse {
    /// In user mode and in the kernel.
    pub fn sum_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

/// The limit of the control group, and how often it held the process back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLimit {
    /// Processors' time a second, in nanoseconds, as it was last; 0: as much as there is.
    pub quota_ns: u64,
    /// Processors that the process may run on.
    pub processors: u64,
    /// Periods of the control group in the recording.
    pub periods: u64,
    /// Periods among them in which the quota was used up.
    pub throttled: u64,
    /// How long threads were held back, all together.
    pub throttled_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jvm_is_named_once() {
        for (name, version, expected) in [
            ("OpenJDK VM", "25+9", "OpenJDK VM 25+9"),
            (
                "OpenJDK VM",
                "OpenJDK VM (25+9) JRE (25), built on 1",
                "OpenJDK VM (25+9) JRE (25)",
            ),
            ("", "25", "25"),
            ("Mono 6.8", "", "Mono 6.8"),
            ("", "", ""),
        ] {
            let info = Info {
                jvm_name: name.to_owned(),
                jvm_version: version.to_owned(),
                ..Info::default()
            };
            assert_eq!(info.jvm(), expected);
        }
    }
}
