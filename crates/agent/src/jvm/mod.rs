//! What the agent asks of the JVM it lives in, and what the JVM calls it for: allocations, waits
//! for monitors, weak references, the Java API.

pub mod allocations;
pub mod api;
pub mod attaching;
pub mod flags;
pub mod monitors;
pub mod weak;
