//! The agent library libdwell.so: HotSpot as a runtime that `dwell-recorder` records.
//!
//! Loaded with `-agentpath:libdwell.so=start,cpu=10ms,file=app.jfr` or attached at run time with
//! the same options. An error of the agent never stops the JVM from starting and never ends it.
//!
//! Read next: [`entry`] (how the JVM calls us), [`hotspot`] (what a recording asks of the JVM, and
//! where it is answered), `dwell_recorder::runtime` (the boundary). Signal handlers live in crate
//! `dwell-signal`, but for the hooks in [`hook`], [`vantage`] and `dwell_recorder::context`.
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

pub mod alive;
pub mod allocated;
pub mod begun;
pub mod change;
pub mod command;
pub mod contended;
pub mod drain;
pub mod entry;
pub mod hook;
pub mod hotspot;
pub mod jvm;
pub mod stops;
pub mod vantage;
pub mod wall;
