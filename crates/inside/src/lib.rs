//! HotSpot as a runtime that `dwell-recorder` records, seen from inside its process: walks, looks,
//! safepoints, what a handler adds for a JVM. How the JVM calls us is in `dwell-agent`; how it is
//! read from another process, in `dwell-outside`.
//!
//! Read next: [`hotspot`] (the JVM as all of this knows it), [`runtime`] (what a recording asks of
//! it, and where it is answered), `dwell_recorder::runtime` (the boundary). Signal handlers live in
//! crate `dwell-signal`, but for the hooks in [`hook`], [`vantage`] and `dwell_recorder::context`.
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
