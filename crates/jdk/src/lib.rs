//! What is known of the JDK by its names alone: what threads wait for in its methods and in
//! HotSpot's functions. For all who judge stacks of a JVM: inside of it, from outside, or from a
//! file. Data only: it reads nothing, and decides nothing.
#![forbid(unsafe_code)]

mod waits;

pub use waits::WAITS;
