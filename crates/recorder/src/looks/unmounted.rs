//! Logical threads that no platform thread runs: the input of a tick, and its results.

use super::off::Off;
use super::threads::Threads;
use dwell_walker::{Fault, Frame};

/// The results of a tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// Number of threads without a platform thread, estimated from the chosen ones.
    pub estimated: f64,
    /// How many were sampled.
    pub looked: usize,
    /// Threads among them that did not stand still, or could not be read.
    pub failed: usize,
}

/// The sample of such a thread; `None`: there was nothing to see.
pub type Seen<C> = Result<Option<OffLogical<C>>, Fault>;

/// Reports a sample of a thread that stands for many. The first frames are its own. The other
/// buffer is for the frames of the owner of the object that it waits for.
pub type Tell<'a, L, C> = dyn Fn(&L, Seen<C>, f64, (&[Frame], &mut [Frame]), &mut Found) + 'a;

/// The input of a tick, and the receiver of its results.
pub struct Unmounted<'a, L, C> {
    /// Some of all platform threads, chosen with the same probability ...
    pub chosen: &'a [u64],
    /// ... and how many threads each of them stands for.
    pub factor: f64,
    /// All of them.
    pub threads: &'a Threads,
    /// The time, in ns on the monotonic clock.
    pub at_ns: u64,
    /// Ids of logical threads that were seen running lately.
    pub ran: &'a [u64],
    /// Takes the samples.
    pub tell: &'a Tell<'a, L, C>,
}

/// A logical thread that waits without a platform thread.
#[derive(Debug)]
pub struct OffLogical<C> {
    /// Its id.
    pub id: u64,
    /// Its name; none if it is not known.
    pub name: Option<Box<str>>,
    /// The sample of its wait.
    pub off: Off,
    /// The part of that that another thread may own.
    pub claim: Option<C>,
}
