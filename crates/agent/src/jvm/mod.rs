//! What the agent knows of the JVM it lives in.

pub mod allocations;
pub mod api;
pub mod attaching;
pub mod environment;
pub mod flags;
pub mod methods;
pub mod monitors;
pub mod mutf8;
pub mod origins;
pub mod stubs;
pub mod thread_names;
pub mod threads;
pub mod virtual_threads;
pub mod vm;
pub mod weak;

pub use vm::Vm;
