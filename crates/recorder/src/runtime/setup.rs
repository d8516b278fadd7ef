//! The parts of a recording.

use super::process_wide::State;
use super::{About, Runtime};
use crate::ended::{EndOfSampling, Ended};
use crate::looks::shelf::Shelf;
use crate::options::{EngineChoice, Options};
use crate::record::file::RecordingFile;
use crate::stops;
use crate::switched::Switched;
use dwell_signal::{CounterSnapshot, Engine, EngineKind, Vantage};
use std::sync::Mutex;
use std::time::Duration;

/// The parts of a recording; except for [`Switched`], they do not change while it runs.
pub struct Setup<R: Runtime> {
    /// The state that exists once per process.
    pub recorder: &'static State<R>,
    /// Where signals come from.
    pub engine: &'static Engine,
    /// The options at its start.
    pub options: Options,
    /// The present events: the part of a recording that may change.
    pub switched: Switched,
    /// The file, until the drainer takes it.
    pub file: Mutex<Option<RecordingFile>>,
    /// Whether kernel frames can be had.
    pub kernel_frames: bool,
    /// The engine's counters when it began.
    pub counters_at_start: CounterSnapshot,
    /// CPU time of the runtime's callbacks when it began.
    pub callbacks_at_start_ns: u64,
    /// User and system CPU time of the process when it began.
    pub cpu_at_start: (Duration, Duration),
    /// CPU time of the process, on its clock, when it began.
    pub process_cpu_at_start: Duration,
    /// The runtime's description in the file.
    pub about: About,
    /// When the process was started.
    pub start_epoch_ms: u64,
    /// Results of the wall-clock sampler that the drainer has not taken yet.
    pub shelf: Shelf,
    /// Stops of all threads that are not written yet.
    pub stops: stops::Shelf,
    /// The end of sampling, once it is reached.
    pub end: EndOfSampling,
    /// Data that parts of the runtime's side share.
    pub shared: R::Shared,
}

impl<R: Runtime> Setup<R> {
    /// Ends sampling, unless that was done before, and returns the state at that time.
    pub fn end_sampling(&self) -> Ended {
        self.end.reach(self.engine, &self.recorder.registry)
    }

    /// Why it is this engine, for users.
    #[must_use]
    pub fn engine_reason(&self) -> String {
        let reason = &self.recorder.engine_reason;
        let is_timer = self.engine.kind() == EngineKind::Timer;
        let (now, before) = (self.engine.signal(), self.engine.moved_from());
        let taken = taken(now, before, self.engine.is_replaced());
        match self.options.engine {
            EngineChoice::Kernel if is_timer => {
                format!("instead of engine=kernel: {reason}{taken}")
            }
            _ => format!("{reason}{taken}"),
        }
    }

    /// The engine's name for users.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        match self.engine.kind() {
            EngineKind::Perf { kernel: true } => "perf cpu-clock, with kernel frames",
            EngineKind::Perf { kernel: false } => "perf cpu-clock, user only",
            EngineKind::Timer => "per-thread CPU timers",
        }
    }
}

/// That a library has taken the signal, if one has.
fn taken(now: i32, moved_from: Option<i32>, is_replaced: bool) -> String {
    let name = |signal: i32| match signal {
        libc::SIGURG => "SIGURG".to_owned(),
        signal => format!("signal {signal}"),
    };
    match moved_from {
        _ if is_replaced => format!(
            "; a library has taken {}, so samples are missing: record before it is loaded, or \
             restart the process with --engine timer",
            name(now)
        ),
        Some(before) => format!("; {} since a library has taken {}", name(now), name(before)),
        None => String::new(),
    }
}

impl<R: Runtime> Setup<R> {
    /// From where stacks are walked, for users.
    #[must_use]
    pub fn walk_name(&self) -> &'static str {
        match self.options.walk {
            Vantage::Handler => "walked in the handler",
            Vantage::Paused => "walked while paused",
            _ => "walked from snapshots",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_names_the_signal_that_a_library_took() {
        assert_eq!(taken(libc::SIGURG, None, false), "");
        let moved = taken(62, Some(libc::SIGURG), false);
        assert_eq!(moved, "; signal 62 since a library has taken SIGURG");
        let lost = taken(62, None, true);
        assert!(lost.starts_with("; a library has taken signal 62, so samples are missing"));
    }
}
