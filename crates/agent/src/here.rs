//! The agent and the calling thread's record, for callbacks of the runtime that come often: no
//! system call, and nothing is locked but where a thread comes for the first time.

use dwell_inside::hotspot::{self, Agent};
use dwell_recorder::sys::process;
use dwell_signal::ThreadRecord;
use std::cell::Cell;

// Nothing of it is made when it is used first, and nothing is to be done when a thread ends.
thread_local! {
    /// The thread's record, and which use of it that is: another thread may have it later.
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
    // One that is just becoming a thread, or is one no more, has none.
    let record = agent.registry.get(process::own_tid())?;
    let _ = RECORD.try_with(|known| known.set(Some((record, record.generation()))));
    Some((agent, record))
}
