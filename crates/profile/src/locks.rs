//! Waits for locks: chosen waits for monitors, which are exact, and wall-clock samples of other
//! waits.

use crate::extent::{Extent, Window};
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
    /// The context of the thread, if known.
    pub context: Option<ContextId>,
    /// The thread that owned the monitor when the wait began.
    pub owner: Option<ThreadId>,
}

impl MonitorWait {
    /// The time as a weight: a wait of d that stands for w was chosen with a chance of d/w.
    #[must_use]
    pub fn weight(&self) -> Weight {
        chosen(self.duration_ns, self.weight_ns)
    }

    /// The waits that it stands for.
    #[must_use]
    pub fn waits(&self) -> f64 {
        self.weight_ns as f64 / self.duration_ns.max(1) as f64
    }
}

/// Where the owner of a monitor was when a wait for it began: of a wait that asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorOwner {
    /// When the owner was there, in nanoseconds since the Unix epoch; when the wait began if that
    /// is not known.
    pub time_ns: u64,
    /// How long the wait lasted.
    pub duration_ns: u64,
    /// The time in waits that it stands for.
    pub weight_ns: u64,
    /// The class of the monitor's object, as in Java.
    pub class: NameId,
    /// The owner, if it is known.
    pub owner: Option<ThreadId>,
    /// Where it was, if that is known.
    pub node: Option<NodeId>,
    /// Why it is not known, or not whole.
    pub failure: Option<NameId>,
    /// The thread that waited.
    pub waiter: Option<ThreadId>,
    /// Where.
    pub waiter_node: NodeId,
}

impl MonitorOwner {
    /// The time as a weight. A wait with the duration d and the weight w has an owner with the
    /// probability d/w: that is the chance of being chosen for the record and for the owner.
    #[must_use]
    pub fn weight(&self) -> Weight {
        chosen(self.duration_ns, self.weight_ns)
    }
}

/// An event chosen with the probability `duration_ns / weight_ns` adds w^2 (1 - d/w) to the
/// variance: 0 if each one is chosen.
fn chosen(duration_ns: u64, weight_ns: u64) -> Weight {
    let rest = weight_ns.saturating_sub(duration_ns);
    Weight {
        sum: weight_ns,
        squares: weight_ns as f64 * rest as f64,
        samples: 1,
        heaviest: 0.0,
    }
}

/// Time in waits for monitors of one class, by the place of the owner and the place of the waiting
/// thread.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnerRow {
    /// The monitor's class, as in Java.
    pub class: String,
    /// The group of threads that had it; none if that is not known.
    pub group: Option<String>,
    /// The program's methods that the owner was in, the innermost first; none: it is not known.
    pub methods: Vec<String>,
    /// The program's method that waited.
    pub waiter: Option<String>,
    /// The time.
    pub blocked: Weight,
}

/// Wall-clock samples that are part of the time in locks, because no event covers the wait: their
/// place, and the place of their stack with a frame for the lock's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockLook {
    /// Their place in [`Profile::looks`](crate::Profile::looks).
    pub look: u32,
    /// The stack, and innermost a frame for the lock's class.
    pub node: NodeId,
    /// The class, as in Java.
    pub class: NameId,
}

/// A recording's sums over all waits for monitors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MonitorSums {
    /// Waits are chosen by how long they last, from this on all; the last one, if there were
    /// several.
    pub interval_ns: u64,
    /// The requested interval: less than the actual one if that has grown, as too many waits came.
    /// 0: unknown.
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
    /// Time with recording of waits on, in nanoseconds; 0 if unknown.
    pub told_ns: u64,
}

impl MonitorSums {
    /// Whether the interval has grown beyond what was asked for.
    #[must_use]
    pub fn has_grown(&self) -> bool {
        self.asked_ns != 0 && self.asked_ns < self.interval_ns
    }
}

/// Replaces the place of an unknown owner.
pub const NOT_KNOWN: &str = "[unknown]";

/// Some time that a thread waited for a lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Locked {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The time from there on over which its weight lies evenly; 0: it is at one instant.
    pub duration_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack, and innermost a frame for the lock's class.
    pub node: NodeId,
    /// The class, as in Java.
    pub class: NameId,
    /// How much, and how certain that is.
    pub weight: Weight,
    /// Number of waits that it stands for; 0 for samples, which cannot show it.
    pub waits: f64,
    /// How long it was seen to last.
    pub lasted_ns: u64,
    /// The context of the thread, if known.
    pub context: Option<ContextId>,
    /// The thread that owned the lock.
    pub owner: Option<ThreadId>,
    /// Whether it is from looks and not from an event.
    pub is_look: bool,
}

impl Locked {
    /// The part in a window; `None` outside of it.
    pub(crate) fn within(self, window: &Window) -> Option<Locked> {
        let all = Extent {
            time_ns: self.time_ns,
            duration_ns: self.duration_ns,
        };
        let (extent, weight) = (window.overlap(all)?, self.weight.within(window, all)?);
        let share = weight.sum as f64 / self.weight.sum.max(1) as f64;
        Some(Locked {
            time_ns: extent.time_ns,
            duration_ns: extent.duration_ns,
            waits: self.waits * share,
            lasted_ns: match self.duration_ns {
                0 => self.lasted_ns,
                _ => self.lasted_ns.min(extent.duration_ns),
            },
            weight,
            ..self
        })
    }
}

/// The time in locks of one class.
#[derive(Clone, Debug, PartialEq)]
pub struct LockClass {
    /// The class, as in Java.
    pub name: String,
    /// The time.
    pub blocked: Weight,
    /// Estimated number of waits; 0 for samples, which cannot show it.
    pub waits: f64,
    /// The longest of the waits that were chosen, or the longest that looks saw.
    pub longest_ns: u64,
    /// Whether it is from wall-clock samples only.
    pub is_looks: bool,
    /// Groups of threads that had such locks, by the time that others waited for them.
    pub owners: Vec<(String, u64)>,
    /// Places of the owners, with the time that other threads waited for them. They are those at
    /// the beginning of waits, if some waits recorded them, with [`NOT_KNOWN`] for failures.
    /// Otherwise they are from wall-clock samples.
    pub owners_at: Vec<(String, u64)>,
    /// Whether waits have asked for that.
    pub is_asked: bool,
    /// The program's methods that waited, by their time.
    pub waiters: Vec<(String, u64)>,
}
