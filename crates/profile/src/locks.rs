//! Waits for locks: those for monitors that were chosen and are exact, and looks at threads that
//! waited for others.

use crate::names::NameId;
use crate::sample::{ContextId, ThreadId, Weight};
use crate::tree::NodeId;

/// A wait for a monitor that is over and was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorWait {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The time in waits that it stands for.
    pub weight_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack, and innermost a frame for the lock's class.
    pub node: NodeId,
    /// The class, as in Java.
    pub class: NameId,
    /// What the thread worked for, if it said.
    pub context: Option<ContextId>,
    /// Who had the monitor when the wait began.
    pub owner: Option<ThreadId>,
}

impl MonitorWait {
    /// The time as a weight. A wait of d that stands for w was chosen with a chance of d/w, so what
    /// it adds to the variance is w^2 (1 - d/w): nothing where each one is chosen.
    #[must_use]
    pub fn weight(&self) -> Weight {
        let rest = self.weight_ns.saturating_sub(self.duration_ns);
        Weight {
            sum: self.weight_ns,
            squares: self.weight_ns as f64 * rest as f64,
            samples: 1,
            heaviest: 0.0,
        }
    }

    /// The waits that it stands for.
    #[must_use]
    pub fn waits(&self) -> f64 {
        self.weight_ns as f64 / self.duration_ns.max(1) as f64
    }
}

/// Looks that are part of the time in locks, as no event tells it: the place of the looks, and of
/// their stack with a frame for the lock's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockLook {
    /// Their place in [`Profile::looks`](crate::Profile::looks).
    pub look: u32,
    /// The stack, and innermost a frame for the lock's class.
    pub node: NodeId,
    /// The class, as in Java.
    pub class: NameId,
}

/// What a recording says of all waits for monitors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorSums {
    /// Waits are chosen by how long they last, from this on all; the last one, if there were
    /// several.
    pub interval_ns: u64,
    /// What was asked for: less than that where it has grown, as too many waits came; 0: that is
    /// not known.
    pub asked_ns: u64,
    /// All waits.
    pub waits: u64,
    /// How long all of them lasted.
    pub blocked_ns: u64,
    /// Waits that were chosen but not kept.
    pub lost: u64,
    /// The time that these stood for.
    pub lost_ns: u64,
    /// Waits of which it could not be noted when they began; in no other number.
    pub untold: u64,
    /// For how long they were told, in nanoseconds; 0: that is not known.
    pub told_ns: u64,
}

impl MonitorSums {
    /// Whether the interval has grown beyond what was asked for.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.asked_ns != 0 && self.asked_ns < self.interval_ns
    }
}

/// Some time that a thread waited for a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Locked {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack, and innermost a frame for the lock's class.
    pub node: NodeId,
    /// The class, as in Java.
    pub class: NameId,
    /// How much, and how certain that is.
    pub weight: Weight,
    /// The waits that it stands for; 0 where looks cannot tell.
    pub waits: f64,
    /// How long it was seen to last.
    pub lasted_ns: u64,
    /// What the thread worked for, if it said.
    pub context: Option<ContextId>,
    /// Who had the lock.
    pub owner: Option<ThreadId>,
    /// Whether it is from looks and not from an event.
    pub is_look: bool,
}

/// The time in locks of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct LockClass {
    /// The class, as in Java.
    pub name: String,
    /// The time.
    pub blocked: Weight,
    /// The waits, estimated; 0 where looks cannot tell.
    pub waits: f64,
    /// The longest of the waits that were chosen, or the longest that looks saw.
    pub longest_ns: u64,
    /// Whether all of it is from looks.
    pub is_looks: bool,
    /// Groups of threads that had such locks, by the time that others waited for them.
    pub owners: Vec<(String, u64)>,
    /// Where the owners were, as far as looks tell, by the time that others waited.
    pub owners_at: Vec<(String, u64)>,
    /// The program's methods that waited, by their time.
    pub waiters: Vec<(String, u64)>,
}
