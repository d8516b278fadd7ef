//! The unsafe code except for the entry points: Mono's functions, its handler, and the walk in
//! ours.

pub mod exit;
#[cfg(feature = "experiments")]
pub mod experiments;
pub mod functions;
pub mod handlers;
pub mod jit;
pub mod walk;
