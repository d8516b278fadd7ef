//! Events of other recorders that are no time of threads: exceptions, transfers, old objects, calls
//! of methods. Pure.

use crate::names::NameId;
use crate::tree::NodeId;

/// The kind of a traced event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TracedKind {
    /// An exception.
    Exception,
    /// A transfer from or to a peer.
    Socket,
    /// The same of a file.
    File,
    /// A wait of a virtual thread that kept its platform thread.
    Pinned,
    /// An object that lives long.
    OldObject,
    /// A call of a method.
    Call,
    /// The sum of all calls of a method.
    Calls,
}

/// An event, or the sum of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Its kind.
    pub kind: TracedKind,
    /// A class, peer, path or method.
    pub what: NameId,
    /// The place in the program.
    pub node: Option<NodeId>,
    /// How many.
    pub count: u64,
    /// Bytes that came, or the size of objects; and bytes that went.
    pub bytes: [u64; 2],
    /// How long all of them lasted.
    pub duration_ns: u64,
    /// How long the longest lasted, or the age of the oldest.
    pub longest_ns: u64,
}

impl Traced {
    /// One event of which nothing more is known.
    #[must_use]
    pub fn one(kind: TracedKind, what: NameId, node: Option<NodeId>) -> Traced {
        Traced {
            kind,
            what,
            node,
            count: 1,
            bytes: [0; 2],
            duration_ns: 0,
            longest_ns: 0,
        }
    }

    pub(crate) fn add(&mut self, other: &Traced) {
        self.count = self.count.saturating_add(other.count);
        for (sum, bytes) in self.bytes.iter_mut().zip(other.bytes) {
            *sum = sum.saturating_add(bytes);
        }
        self.duration_ns = self.duration_ns.saturating_add(other.duration_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// The JVM's count of exceptions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThrownSum {
    /// All since the JVM started.
    pub all: u64,
    /// How many a second while it was recorded; `None` if that is not known.
    pub per_second: Option<f64>,
}
