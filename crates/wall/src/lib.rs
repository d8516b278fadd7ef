//! The decisions of a wall-clock sampler: which threads to sample, how often, the weight of a
//! look, and why a thread was not running.
//!
//! Pure logic. It knows no runtime, no operating system and no clock: numbers, names and tables of
//! names in, decisions out.
#![forbid(unsafe_code)]

pub mod budget;
pub mod cause;
pub mod cgroup;
pub mod facts;
pub mod lively;
pub mod machine;
pub mod members;
mod own;
pub mod pools;
pub mod proc;
pub mod random;
pub mod spread;
pub mod sums;
pub mod waits;
pub mod woken;
pub mod yielded;
