//! The agent library libdwell.so: JVMTI glue, thread registry, drainer, recording.
//!
//! Loaded with `-agentpath:libdwell.so=start,cpu=10ms,file=app.jfr` or attached at run time with
//! the same options. An error of the agent never stops the JVM from starting and never ends it.
//!
//! Read next: [`entry`] (how the JVM calls us), [`session`] (one recording), [`drain`] (the thread
//! that does the work). Signal handlers live in crate `dwell-signal`, but for the hooks in [`hook`]
//! and [`vantage`].
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic
    )
)]

pub mod agent;
pub mod command;
pub mod context;
pub mod drain;
pub mod entry;
#[cfg(feature = "experiments")]
pub mod experiments;
pub mod hook;
pub mod jvm;
pub mod native;
pub mod options;
pub mod patience;
pub mod pauses;
pub mod record;
pub mod registry;
pub mod reply;
pub mod session;
pub mod stops;
pub mod sys;
pub mod vantage;
pub mod wall;
