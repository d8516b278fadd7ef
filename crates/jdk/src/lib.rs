//! Knowledge about the JDK that needs its names only: causes of waits in its methods and in
//! HotSpot's functions. Used for stacks of a JVM inside the process, from outside, and from a file.
//! Data only: the crate reads nothing, and decides nothing.
#![forbid(unsafe_code)]

mod waits;

pub use waits::WAITS;
