//! HotSpot and native stack walking over any memory: `no_std`, no allocation, no `unsafe`.
//!
//! The walker never reads memory itself. It is given a [`Memory`] (live process, snapshot, another
//! process, a recorded fixture), initial [`Regs`] and a caller-owned frame buffer, and fills the
//! buffer leaf first. What it cannot walk ends in a *named* [`Failure`]; nothing is guessed
//! silently.
//!
//! Read next: [`walk`] (the loop), [`hotspot`] (what is known of HotSpot's structures).
#![no_std]
#![forbid(unsafe_code)]

pub mod cache;
pub mod frame;
pub mod hotspot;
pub mod memory;
pub mod native;
pub mod regs;
pub mod walk;

pub use frame::{Failure, Frame, FrameKind, Frames};
pub use hotspot::threads::Anchor;
pub use memory::{Fault, Memory};
pub use regs::Regs;
pub use walk::{Outcome, ThreadContext, Walk, Walker};
