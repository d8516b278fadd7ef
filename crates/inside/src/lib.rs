//! HotSpot as a runtime that `dwell-recorder` records, seen from inside its process: walks,
//! wall-clock samples, safepoints, and a JVM's additions in the handler. The JVM's calls to us are
//! in `dwell-agent`. Reading a JVM from another process is in `dwell-outside`.
//!
//! Read next: [`hotspot`] (the JVM in this process), [`runtime`] (the recorder's interface and
//! where it is implemented), `dwell_recorder::runtime` (the boundary). Signal handlers are in crate
//! `dwell-signal`, except for the hooks in [`hook`], [`vantage`] and `dwell_recorder::context`.
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

pub mod drain;
pub mod hook;
pub mod hotspot;
pub mod jvm;
pub mod owners;
pub mod runtime;
pub mod stops;
pub mod vantage;
pub mod wall;
