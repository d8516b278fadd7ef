//! State that exists once per process, for all recordings in it, and is never freed: callbacks may
//! arrive during its whole life.

use super::Runtime;
use crate::alive::Table;
use crate::allocated::Classes;
use crate::blocked::Blocked;
use crate::callbacks::Callbacks;
use crate::lost_objects::LostObjectsTable;
use crate::native::Kept;
use crate::registry::Registry;
use crate::stretches::Stretches;
use crate::threads::ThreadTable;
use dwell_signal::Engine;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// State that all parts of a recording share with the runtime's callbacks.
pub struct State<R: Runtime> {
    /// The runtime of this process.
    pub runtime: R,
    /// The sampling engine.
    pub engine: &'static Engine,
    /// Why this engine, for `status` and the file.
    pub engine_reason: String,
    /// The threads' names.
    pub threads: ThreadTable,
    /// Which threads are registered.
    pub registry: Registry,
    /// The cost of the runtime's reports of threads.
    pub callbacks: Callbacks,
    /// Names of the classes of allocated objects.
    pub classes: Classes,
    /// Sampled objects that found no free slot.
    pub lost_objects: LostObjectsTable,
    /// Names of the methods that allocated them.
    pub lost_methods: Classes,
    /// The followed objects; none before the first recording that follows objects.
    pub alive: OnceLock<Table>,
    /// All waits for monitors, where the runtime reports them.
    pub blocked: Blocked,
    /// The interval by which objects are chosen at the moment, where it adapts, in bytes; 0: the
    /// requested one.
    pub adapted_bytes: AtomicU64,
    /// The same for waits for monitors, in nanoseconds.
    pub adapted_lock_ns: AtomicU64,
    /// Stretches of time that are not written yet.
    pub stretches: Stretches,
    /// The runtime's own libraries, as read by the last recording.
    pub libraries: Kept,
}

impl<R: Runtime> State<R> {
    /// The interval by which objects are chosen at the moment, in bytes, if `asked` is the
    /// requested one.
    #[must_use]
    pub fn object_bytes(&self, asked: u64) -> u64 {
        adapted(&self.adapted_bytes, asked)
    }

    /// The same for waits for monitors, in nanoseconds.
    #[must_use]
    pub fn lock_ns(&self, asked: u64) -> u64 {
        adapted(&self.adapted_lock_ns, asked)
    }
}

fn adapted(interval: &AtomicU64, asked: u64) -> u64 {
    match interval.load(Ordering::Relaxed) {
        0 => asked,
        adapted => adapted,
    }
}
