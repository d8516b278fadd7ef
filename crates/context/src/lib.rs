//! The context of a logical thread: trace, span, local root, endpoint and labels. The thread itself
//! writes it into a record (from Java, as plain memory); signal handlers and other threads read it.
//!
//! The crate works on slices of atomics that its caller owns and never frees. No function here
//! allocates, locks or panics, so all may run in a signal handler. Strings are numbers here; the
//! agent has the texts.
//!
//! Read next: [`record`] (the layout of a record, and why a reader never sees half of a change),
//! [`by_thread`] (finds a record by its thread's id), [`slab`] (both together), [`foreign`]
//! (contexts that other libraries publish).
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::arithmetic_side_effects
    )
)]

#[cfg(test)]
extern crate std;

pub mod by_thread;
pub mod foreign;
pub mod record;
pub mod slab;
mod sync;

pub use record::{Context, LABELS_MAX, RECORD_BYTES, RECORD_WORDS};
pub use slab::{Acquired, Handle, Slab};
