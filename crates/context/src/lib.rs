//! What a logical thread works for: trace, span, local root, endpoint and labels, in records that
//! the thread itself writes (from Java, as plain memory) and that signal handlers and other threads
//! read.
//!
//! Everything here works on slices of atomics that somebody else owns and never gives back; nothing
//! allocates, locks or panics, so all of it may run in a signal handler. Strings are numbers here;
//! who knows them is the agent.
//!
//! Read next: [`record`] (what a record looks like, and why a reader never sees half of a change),
//! [`by_thread`] (how a record is found by its thread's id), [`slab`] (both together), [`foreign`]
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

pub use record::{Context, LABELS_MAX, RECORD_BYTES, RECORD_WORDS};
pub use slab::{Acquired, Handle, Slab};
