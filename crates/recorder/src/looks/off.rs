//! A wall-clock sample of a thread that waits.

use dwell_context::Context;
use dwell_walker::Walk;
use dwell_wall::cause::{Monitor, Os};

/// The kernel's data about a thread that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// In which system call.
    pub os: Os,
    /// sp and pc of its user code, if they are known.
    pub registers: Option<(u64, u64)>,
}

/// A thread that waits.
#[derive(Debug)]
pub struct Off {
    /// In which system call.
    pub os: Os,
    /// The runtime's data about monitors.
    pub monitor: Monitor,
    /// Whether it is parked on a lock, which another thread has.
    pub is_owned_lock: bool,
    /// The id of the logical thread that is mounted, if one is.
    pub mounted: Option<u64>,
    /// The request that it works for.
    pub context: Option<Context>,
    /// The awaited object in words: a class, a peer, a file.
    pub detail: Option<Box<str>>,
    /// The walk; the frames are in the caller's buffer. None: no walk is possible yet.
    pub walk: Option<Walk>,
}

impl Off {
    /// A thread of which only this is known.
    #[must_use]
    pub fn at(os: Os, walk: Option<Walk>) -> Off {
        Off {
            os,
            monitor: Monitor::None,
            is_owned_lock: false,
            mounted: None,
            context: None,
            detail: None,
            walk,
        }
    }
}
