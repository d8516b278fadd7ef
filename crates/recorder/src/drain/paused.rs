//! The place where stacks are walked in this recording, and the thread that walks waiting threads.

use crate::native::Tables;
use crate::native::modules::TablesOf;
use crate::runtime::Runtime;
use crate::runtime::setup::Setup;
use crate::sys::{joined, process};
use dwell_signal::{Cause, Engine, Vantage};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The walking thread begins within this time, or the recording takes snapshots.
const BEGIN_MAX: Duration = Duration::from_secs(1);

/// The walking thread, if there is one; ends it when dropped.
pub struct Walking {
    engine: &'static Engine,
    thread: Option<JoinHandle<()>>,
    tid: i32,
}

impl Walking {
    /// CPU time that the walking thread has used.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        let ns = dwell_signal::sys::cpu_ns_of(self.tid);
        Duration::from_nanos(ns.ok().filter(|_| self.tid != 0).unwrap_or(0))
    }
}

impl Drop for Walking {
    fn drop(&mut self) {
        self.engine.set_vantage(Vantage::Snapshot, 0);
        self.engine.end_serving(true);
        if let Some(thread) = self.thread.take() {
            joined::join(thread);
        }
    }
}

/// Lets handlers walk, or wait, or copy, as requested. The data that they need must be published.
#[must_use]
pub fn take_position<R: Runtime>(setup: &Setup<R>) -> Walking {
    let engine = setup.engine;
    let mut walking = Walking {
        engine,
        thread: None,
        tid: 0,
    };
    let vantage = vantage(setup);
    if vantage == Vantage::Paused {
        engine.end_serving(false);
        let serve = setup.recorder.runtime.server();
        walking.thread = std::thread::Builder::new()
            .name("dwell-walker".into())
            .spawn(move || {
                process::block_signals();
                process::unblock_signal(engine.signal());
                serve();
            })
            .inspect_err(|e| eprintln!("dwell: walk=paused: {e}; taking snapshots instead"))
            .ok();
        let begun = Instant::now();
        while !engine.is_served() && walking.thread.is_some() && begun.elapsed() < BEGIN_MAX {
            std::thread::yield_now();
        }
        walking.tid = engine.server();
    }
    engine.set_vantage(
        vantage,
        u32::try_from(setup.options.depth).unwrap_or(u32::MAX),
    );
    walking
}

/// Whether the recording needs tables of libraries: handlers can use only ready ones. They walk
/// now and then if there was ever a sample that they could not copy.
#[must_use]
pub fn tables<R: Runtime>(setup: &Setup<R>) -> TablesOf {
    let all_copied = setup.engine.counters().get(Cause::WalkedInstead) == 0;
    let tables = match vantage(setup) {
        Vantage::Snapshot if R::WALKS_COPIES && all_copied => Tables::AsMet,
        _ => Tables::ForHandlers,
    };
    (tables, R::is_ahead_of_time)
}

#[cfg(not(feature = "experiments"))]
fn vantage<R: Runtime>(setup: &Setup<R>) -> Vantage {
    setup.options.walk
}

#[cfg(feature = "experiments")]
fn vantage<R: Runtime>(setup: &Setup<R>) -> Vantage {
    use crate::experiments::{Experiment, set_faults, set_noting};
    set_faults(setup.options.experiment == Some(Experiment::Faults));
    set_noting(setup.options.experiment == Some(Experiment::Compare));
    match setup.options.experiment {
        Some(Experiment::NoCopy) => Vantage::NoCopy,
        Some(Experiment::EmptyHandler) => Vantage::Empty,
        Some(Experiment::Compare) => Vantage::Compare,
        Some(Experiment::Faults | Experiment::Kernel { .. }) | None => setup.options.walk,
    }
}
