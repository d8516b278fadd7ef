//! Logical threads that no platform thread runs: what a tick asks the runtime for, and what it
//! finds.

use super::off::Off;
use super::threads::Threads;
use dwell_walker::{Fault, Frame};

/// What a tick has found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// How many there are without a platform thread, as far as the chosen ones tell.
    pub estimated: f64,
    /// How many were looked at.
    pub looked: usize,
    /// Of these, how many would not stand still, or could not be read.
    pub failed: usize,
}

/// What was seen of such a thread; `None`: there was nothing to see.
pub type Seen<C> = Result<Option<OffLogical<C>>, Fault>;

/// Tells what was seen, by who looks, of a thread that stands for so many: the first frames are its
/// own; the other buffer is for those of who has what it waits for.
pub type Tell<'a, L, C> = dyn Fn(&L, Seen<C>, f64, (&[Frame], &mut [Frame]), &mut Found) + 'a;

/// What a tick works with, and whom it tells.
pub struct Unmounted<'a, L, C> {
    /// Some of all platform threads, chosen with the same probability ...
    pub chosen: &'a [u64],
    /// ... and for how many each of them stands.
    pub factor: f64,
    /// All of them.
    pub threads: &'a Threads,
    /// When this is, in ns on the monotonic clock.
    pub at_ns: u64,
    /// Ids of logical threads that have run lately, as far as that was seen.
    pub ran: &'a [u64],
    /// Takes what was seen.
    pub tell: &'a Tell<'a, L, C>,
}

/// A logical thread that waits on no platform thread.
#[derive(Debug)]
pub struct OffLogical<C> {
    /// Its id.
    pub id: u64,
    /// Its name; none if it cannot be told.
    pub name: Option<Box<str>>,
    /// What it waits for.
    pub off: Off,
    /// What of that another thread may have.
    pub claim: Option<C>,
}
