//! A HotSpot JVM seen from another process: its threads with stacks, causes and monitors, its
//! safepoints, its virtual threads. Works while the JVM hangs.
//!
//! Nothing is loaded into the target, no signal is sent, nobody is stopped, and no question is
//! asked of the JVM: memory is read through `/proc/PID/mem`, and walked by the same walker that the
//! agent uses. What threads do meanwhile is noticed by their scheduler's counters, and read again.
//!
//! Read [`vm`] (what must be known of the JVM), then [`look`] (one look at one thread), then
//! [`dump`] (all of them).
#![deny(unsafe_code)]

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
pub mod record;
pub mod running;
mod safepoint;
pub mod stopped;
mod sys;
pub mod task;
pub mod virtuals;
pub mod vm;

pub use dump::{Dump, Options, Thread};
pub use memory::Live;
pub use vm::{Error, Vm};
