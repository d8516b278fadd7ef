//! The end of sampling: the time, and the CPU-time debt of each thread.
//!
//! Sampling ends when the end of a recording is requested, and not when the drainer handles that.
//! On a busy machine that may be seconds later. All samples taken until then would have to be
//! drained in the little time that a process's end waits for.

use crate::registry::Registry;
use crate::sys::process;
use dwell_signal::{Engine, Unreachable};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// CPU time of a thread whose points had passed before its signal arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The thread, as its record names it.
    pub thread: u64,
    /// Whether it lived.
    pub lives: bool,
    /// How much, in ns.
    pub ns: u64,
    /// Why no signal reaches it, if that is so.
    pub unreachable: Option<Unreachable>,
}

/// The clocks at the end of sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// CPU time of the process, on its clock.
    pub process: Duration,
    /// User and system CPU time of the process.
    pub split: (Duration, Duration),
    /// The moment, on the monotonic clock, in ns.
    pub now_ns: u64,
    /// CPU time of the threads, in ns, while they could be sampled.
    pub sampled_ns: u64,
    /// CPU time of the process, in ns, that passed while sampling was being ended.
    pub ending_ns: u64,
}

/// The state at the end of sampling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The debt of each thread that has one.
    pub debts: Vec<Owed>,
    /// The clocks.
    pub clocks: Clocks,
}

/// The end of a recording's sampling, once it is reached.
#[derive(Debug, Default)]
pub struct EndOfSampling(Mutex<Option<Ended>>);

impl EndOfSampling {
    /// Ends sampling, unless that was done before, and returns the state at that time.
    pub fn reach(&self, engine: &'static Engine, registry: &Registry) -> Ended {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended
            .get_or_insert_with(|| end(engine, registry, || ()))
            .clone()
    }
}

/// The clocks are read when no thread is sampled any more. Each thread was sampled up to a moment
/// of its own: on a busy machine the first is stopped many ms before the last. The CPU time that
/// threads use until the clocks are read is reported as time without a sample. `between` is called
/// after each thread.
fn end(engine: &'static Engine, registry: &Registry, mut between: impl FnMut()) -> Ended {
    let before = process::process_cpu();
    let mut debts = Vec::new();
    let sampled_ns = registry.sampled_cpu_ns_to(|sampled| {
        engine.stop_threads(|record, stop| {
            if let Some(cpu_ns) = stop.sampled_to_ns {
                sampled(record, cpu_ns);
            }
            if stop.owed_ns > 0 {
                debts.push(Owed {
                    thread: record.user(),
                    lives: record.is_live(),
                    ns: stop.owed_ns,
                    unreachable: record.unreachable(),
                });
            }
            between();
        });
    });
    let process = process::process_cpu();
    let clocks = Clocks {
        process,
        split: process::cpu_split(),
        now_ns: process::monotonic_ns(),
        sampled_ns,
        ending_ns: process.saturating_sub(before).as_nanos() as u64,
    };
    engine.await_handlers();
    Ended { debts, clocks }
}

#[cfg(test)]
#[path = "ended_tests.rs"]
mod tests;
