//! The only crate with signal handlers and assembly: fault-tolerant loads, snapshots, timers, perf.
//!
//! A timer or a perf event signals a thread that has used CPU time. The handler copies the
//! thread's registers, its stack and the anchor of its managed frames into a preallocated slot. An
//! ordinary thread drains the slots. Code that a handler can reach must not allocate, lock, panic,
//! unwind, format, touch lazy thread-local storage or call libc beyond `clock_gettime` and
//! `memcpy`. The task `xtask handler-graph` proves it on the built library. This crate knows no
//! runtime: from a runtime's structures it copies only the words that the agent has configured.
//!
//! Read next: [`handler`] (the steps in a signal), [`engine`] (the API), [`plan`] (why the sum of
//! weights is the CPU time).
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

#[cfg(not(target_os = "linux"))]
compile_error!("dwell-signal knows only Linux");

#[cfg(test)]
extern crate std;

mod allocated;
mod arch;
pub mod capture;
pub mod config;
pub mod counters;
pub mod engine;
pub mod fault;
mod freelist;
pub mod handler;
mod hook;
mod init;
pub mod load;
pub mod pause;
pub mod perf_client;
pub mod plan;
pub mod record;
mod room;
pub mod slots;
mod sync;
pub mod sys;
pub mod vantage;
mod waited;

pub use arch::{Registers, SYSTEM_CALL, fetch_ahead, restorer};
pub use config::{ClassSpec, Config, EngineKind, Words};
pub use counters::{Cause, CounterSnapshot, HISTOGRAM_BUCKETS, bucket_end_ns};
pub use engine::{Engine, PerfLevel, Stop, Turns, Unreachable, perf_hangs, perf_permitted};
pub use hook::{Capture, Extra, WalkHook};
pub use init::{InitError, init, move_if_replaced};
pub use load::Live;
pub use plan::Plan;
pub use record::{Registration, ThreadRecord};
pub use slots::{
    Allocation, Asked, CHUNKS_MAX, Followed, LockOwner, REGIONS_MAX, Region, Slot, SlotFrames,
    SlotHeader, SnapshotMemory, Wait, WalkTarget,
};
pub use sys::{Errno, perf_is_filtered};
pub use vantage::Vantage;
