//! The boundary to the OS: every `unsafe` block of this crate.

pub mod allocator;
pub mod bell;
pub mod fds;
pub mod lasting;
pub mod loader;
pub mod mapped;
pub mod process;
pub mod published;
pub mod shown;
pub mod switches;
pub mod task;
