//! What the agent knows of the JVM it lives in.

pub mod api;
pub mod attaching;
pub mod environment;
pub mod flags;
pub mod memory;
pub mod methods;
pub mod mutf8;
pub mod stubs;
pub mod threads;
pub mod virtual_threads;
pub mod vm;

pub use vm::Vm;
