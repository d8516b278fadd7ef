//! The boundary to the OS: every `unsafe` block of this crate.

pub mod allocator;
pub mod bell;
pub mod fds;
pub mod joined;
pub mod lasting;
pub mod loader;
pub mod mapped;
pub mod process;
pub mod published;
mod reserve;
pub mod shown;
pub mod switches;
pub mod task;
#[cfg(test)]
mod watch;
