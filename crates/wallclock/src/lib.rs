//! The wall-clock sampler's decisions: census, choose, sample, account.
//!
//! A pure state machine. It knows no clock, no operating system and no runtime: the caller says
//! which threads live, whether a thread has run since its last read, what its fingerprint is, and
//! what a sample has shown. The machine says which threads to read in a tick, which to sample, and
//! what each read counts for.
//!
//! 1. **Census.** The time of each thread is divided into blocks of one or more ticks. One tick of
//!    each block, drawn at random, is read, and stands for the block ([`machine`]).
//! 2. **Choose.** A thread that has not run since its last read is still in the same place. Of any
//!    other thread the caller reads a [`Fingerprint`]. A known fingerprint names the place of an
//!    earlier sample ([`labels`]).
//! 3. **Sample.** A thread with an unknown fingerprint is sampled at once, or as soon as the
//!    [`purse`] allows. Until then its time is a debt of that fingerprint. Known fingerprints are
//!    sampled now and then, most often those whose samples disagree.
//! 4. **Account.** Reads of one place and one request that follow each other become one [`Run`].
//!    For each thread the time accounted is the time lived.
#![forbid(unsafe_code)]

pub mod block_length;
pub mod calendar;
pub mod ended_run;
pub mod fingerprint;
pub mod grid;
pub mod labels;
pub mod machine;
#[cfg(test)]
mod populations;
pub mod purse;

pub use ended_run::Run;
pub use fingerprint::Fingerprint;
pub use labels::{Label, Shown};
pub use machine::{Tick, WallClock};
