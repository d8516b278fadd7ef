//! The agent's boundary to the OS: every `unsafe` block of the agent that is not a call to the JVM.

pub mod cgroup;
pub mod fds;
pub mod lasting;
pub mod loader;
pub mod mapped;
pub mod memory;
pub mod process;
pub mod published;
pub mod task;
