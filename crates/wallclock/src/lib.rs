//! The wall-clock sampler's decisions: census, choose, sample, account.
//!
//! A pure state machine without a clock, an operating system or a runtime. The caller reports which
//! threads live, whether a thread has run since its last read, its fingerprint, and the result of a
//! sample. The machine decides which threads to read in a tick, which to sample, and the weight of
//! each read.
//!
//! 1. **Census.** The time of each thread is divided into blocks of one or more ticks. One tick of
//!    each block, drawn at random, is read, and stands for the block ([`machine`]).
//! 2. **Choose.** A thread that has not run since its last read is still in the same place. For
//!    any other thread the caller reads a [`Fingerprint`]. A known fingerprint selects the place of
//!    an earlier sample ([`labels`]).
//! 3. **Sample.** A thread with an unknown fingerprint is sampled at once, or as soon as the
//!    [`purse`] allows. Until then its time is a debt of that fingerprint. Known fingerprints are
//!    sampled at random, most often if their samples disagree.
//! 4. **Account.** Reads of one place and one request that follow each other become one [`Run`].
//!    The time accounted for a thread is the time it lived. The sum of its waits follows the
//!    kernel's account ([`balance`]).
#![forbid(unsafe_code)]

pub mod balance;
pub mod block_length;
pub mod calendar;
pub mod ended_run;
pub mod fingerprint;
pub mod grid;
mod hot;
pub mod labels;
pub mod machine;
#[cfg(test)]
mod populations;
pub mod purse;
pub mod ready_reads;

pub use ended_run::Run;
pub use fingerprint::Fingerprint;
pub use grid::Tick;
pub use hot::RUNS;
pub use labels::{Label, Shown};
pub use machine::WallClock;
