//! The agent's use of JVMTI and JNI: allocations, waits for monitors, weak references, the Java
//! API.

pub mod allocations;
pub mod api;
pub mod attaching;
pub mod flags;
pub mod monitors;
pub mod weak;
