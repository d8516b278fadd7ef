//! The module libmono-profiler-dwell.so: Mono as a runtime that `dwell-recorder` records.
//!
//! Mono loads it at its start, for `--profile=dwell:cpu=10ms,file=app.jfr` on its command line or
//! in `MONO_ENV_OPTIONS`. An error of the module never stops the program from starting and never
//! ends it.
//!
//! Read next: [`entry`] (how Mono calls us), [`sys::walk`] (how a stack is walked, and why that is
//! safe), [`mono`] (the runtime of a recording), `dwell_recorder::runtime` (the boundary).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod code;
pub mod entry;
pub mod known_libraries;
pub mod looks;
pub mod mono;
pub mod names;
pub mod prologue;
pub mod sys;
pub mod threads;
pub mod waits;
pub mod walks;
