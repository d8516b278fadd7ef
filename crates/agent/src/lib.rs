//! The agent library libdwell.so: its entry points, and the events that it gets from the JVM.
//!
//! Loaded with `-agentpath:libdwell.so=start,cpu=10ms,file=app.jfr` or attached at run time with
//! the same options. An error of the agent never stops the JVM from starting and never ends it.
//!
//! Read next: [`entry`] (how the JVM calls us), [`command`] (commands to the agent), crate
//! `dwell-inside` (the recorder's view of the JVM).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod alive;
pub mod allocated;
pub mod begun;
pub mod change;
pub mod command;
pub mod contended;
pub mod entry;
pub mod here;
pub mod jvm;
pub mod owners;
pub mod rate;
