//! A recording in its process, for any runtime: sessions, the drainer, the wall-clock sampler,
//! native code, the file. An agent is a library for one runtime that links this crate.
//!
//! [`runtime`] defines what a runtime has to provide and may report: read that first, then
//! [`recorder`] (the state per process), [`session`] (one recording), [`drain`] (the thread that
//! does the work). No code here names a runtime, calls one, or knows its structures. Signal
//! handlers live in crate `dwell-signal`, except for the hook in [`context`].
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

#[cfg(test)]
extern crate self as dwell_recorder;

pub mod alive;
pub mod allocated;
pub mod asked;
pub mod blocked;
pub mod callbacks;
pub mod chosen;
pub mod context;
pub mod drain;
pub mod ended;
#[cfg(feature = "experiments")]
pub mod experiments;
pub mod gate;
pub mod helpers;
pub mod limits;
pub mod looks;
pub mod lost_objects;
pub mod native;
pub mod options;
pub mod orders;
pub mod patience;
pub mod rate;
pub mod record;
pub mod recorder;
pub mod registry;
pub mod reply;
pub mod runtime;
pub mod session;
pub mod source;
pub mod stops;
pub mod stretches;
pub mod switched;
mod sync;
pub mod sys;
#[cfg(test)]
mod testing;
pub mod threads;
pub mod wall;
