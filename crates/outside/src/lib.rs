//! Reads a HotSpot JVM from another process: its threads with stacks, causes and monitors, its
//! safepoints, its virtual threads. Works while the JVM hangs.
//!
//! dwell loads nothing into the target, sends no signal, stops no thread, and makes no request to
//! the JVM. It reads memory through `/proc/PID/mem`, and uses the agent's walker. If the
//! scheduler's counters show that a thread ran during the read, it is read again.
//!
//! Read [`vm`] (the data needed about the JVM), then [`look`] (reads one thread once), then
//! [`dump`] (all threads).
#![deny(unsafe_code)]

mod arch;
mod clock;
pub mod deadlock;
mod denied;
pub mod dump;
mod locked;
pub mod look;
pub mod memory;
pub mod modules;
pub mod names;
pub mod origins;
pub mod perf_server;
pub mod record;
pub mod running;
mod safepoint;
pub mod stopped;
mod sys;
pub mod task;
pub mod virtuals;
pub mod vm;

pub use denied::Refusal;
pub use dump::{Dump, Options, Stop, Thread};
pub use memory::Live;
pub use vm::{Error, Vm};
