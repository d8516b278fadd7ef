//! The agent and the calling thread's record, for frequent callbacks of the runtime. Makes no
//! system call. Only the first call of a thread takes a lock.

use dwell_inside::hotspot::{self, Agent};
use dwell_recorder::sys::process;
use dwell_signal::ThreadRecord;
use std::cell::Cell;

// Needs no lazy initialisation, and no destructor when a thread ends.
thread_local! {
    /// The thread's record with its generation, because another thread may use the record later.
    static RECORD: Cell<Option<(&'static ThreadRecord, u32)>> = const { Cell::new(None) };
}

/// The agent, if it records, and the calling thread's record.
pub fn here() -> Option<(&'static Agent, &'static ThreadRecord)> {
    let agent = hotspot::agent().filter(|agent| agent.engine.is_running())?;
    // One that is ending has no storage any more.
    let known = RECORD.try_with(Cell::get).ok().flatten();
    if let Some((record, generation)) = known
        && record.is_live()
        && record.generation() == generation
    {
        return Some((agent, record));
    }
    // A thread that is not registered, or no longer, lacks a record.
    let record = agent.registry.get(process::own_tid())?;
    let _ = RECORD.try_with(|known| known.set(Some((record, record.generation()))));
    Some((agent, record))
}
