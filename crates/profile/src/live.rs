//! Objects that were sampled when they were allocated and are still there.

use crate::allocations::Allocation;

/// An object that was sampled when it was allocated, and is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveObject {
    /// Its allocation; its bytes are what it stands for among those that are still there.
    pub allocated: Allocation,
    /// Its age in nanoseconds, at the last check.
    pub age_ns: u64,
    /// Collections that it is known to have survived.
    pub collections: u64,
}

impl LiveObject {
    /// Whether it has survived a collection. Other objects may be garbage that no collection has
    /// cleared yet.
    #[must_use]
    pub fn has_survived(&self) -> bool {
        self.collections > 0
    }
}

/// A recording's last check of objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveSampling {
    /// When it was, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The bytes between two samples, in the mean.
    pub interval_bytes: u64,
    /// Of so many that were sampled one was followed.
    pub one_of: u64,
    /// Objects that were sampled.
    pub samples: u64,
    /// Objects among them that were not followed for want of room.
    pub lost: u64,
    /// For how long objects had been followed, in nanoseconds; 0: since the recording's begin.
    pub followed_ns: u64,
}
