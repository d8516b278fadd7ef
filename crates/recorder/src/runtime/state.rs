//! What there is once per process, for all recordings in it, and never freed: callbacks may come as
//! long as it lives.

use super::Runtime;
use crate::alive::Table;
use crate::allocated::Classes;
use crate::blocked::Blocked;
use crate::pauses::Pauses;
use crate::registry::Registry;
use crate::threads::ThreadTable;
use dwell_signal::Engine;
use std::sync::OnceLock;

/// What all parts of a recording share with the runtime's callbacks.
pub struct State<R: Runtime> {
    /// The runtime of this process.
    pub runtime: R,
    /// The sampling engine.
    pub engine: &'static Engine,
    /// Why this engine, for `status` and the file.
    pub engine_reason: String,
    /// Who threads are.
    pub threads: ThreadTable,
    /// Which threads are registered.
    pub registry: Registry,
    /// What classes of allocated objects are called.
    pub classes: Classes,
    /// Which of them are followed; none before a recording has wanted it.
    pub alive: OnceLock<Table>,
    /// All waits for monitors, where these are told.
    pub blocked: Blocked,
    /// Pauses of the collector that are not written yet.
    pub pauses: Pauses,
}
