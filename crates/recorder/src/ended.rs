//! The end of sampling: the moment, and what threads owe at it.
//!
//! Sampling ends where a recording is asked to end, and not when the drainer comes to it: on a busy
//! machine that may be seconds later, with as many more samples to take in the little time that a
//! process's end waits for.

use crate::registry::Registry;
use crate::sys::process;
use dwell_signal::Engine;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// CPU time of a thread whose points had passed and whose signal was still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The thread, as its record names it.
    pub thread: u64,
    /// Whether it lived.
    pub lives: bool,
    /// How much, in ns.
    pub ns: u64,
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
}

/// What there was at the end of sampling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Who owed how much.
    pub owing: Vec<Owed>,
    /// The clocks.
    pub clocks: Clocks,
}

/// The end of a recording's sampling, once it has come.
#[derive(Debug, Default)]
pub struct EndOfSampling(Mutex<Option<Ended>>);

impl EndOfSampling {
    /// Ends sampling, unless that was done before, and returns what there was then.
    pub fn reach(&self, engine: &'static Engine, registry: &Registry) -> Ended {
        let mut ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ended.get_or_insert_with(|| end(engine, registry)).clone()
    }
}

fn end(engine: &'static Engine, registry: &Registry) -> Ended {
    // The clocks before: what is used meanwhile would be out of reach of samples.
    let process = process::process_cpu();
    let sampled_ns = registry.sampled_cpu_ns();
    let mut owing = Vec::new();
    engine.stop_showing(|record, ns| {
        owing.push(Owed {
            thread: record.user(),
            lives: record.is_live(),
            ns,
        });
    });
    let clocks = Clocks {
        process,
        split: process::cpu_split(),
        now_ns: process::monotonic_ns(),
        sampled_ns,
    };
    Ended { owing, clocks }
}
