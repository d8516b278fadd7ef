//! HotSpot and native stack walking over any memory: `no_std`, no allocation, no `unsafe`.
//!
//! The walker never reads memory itself. Its input is a [`Memory`] (live process, snapshot, another
//! process, a recorded fixture), initial [`Regs`] and a caller-owned frame buffer. It fills the
//! buffer leaf first. A walk that cannot continue ends in a *named* [`Failure`]; the walker never
//! guesses silently.
//!
//! Read next: [`walk`] (the loop), [`hotspot`] (HotSpot's structures), [`hotspot::machine`]
//! (processors).
#![no_std]
#![forbid(unsafe_code)]

pub mod cache;
pub mod frame;
pub mod hotspot;
pub mod memory;
pub mod native;
pub mod walk;

pub use frame::{Failure, Frame, FrameKind, Frames};
pub use hotspot::machine::{self, Host, Machine, Regs};
pub use hotspot::threads::Anchor;
pub use memory::{Fault, Memory};
pub use walk::{Outcome, ThreadContext, Walk, Walker};
