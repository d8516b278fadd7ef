//! The JVM in this process: its structures, threads, methods and names.

pub mod environment;
#[cfg(test)]
pub mod made_up;
pub mod methods;
pub mod mutf8;
pub mod origins;
pub mod stubs;
pub mod thread_names;
pub mod threads;
pub mod virtual_threads;
pub mod vm;

pub use vm::Vm;
