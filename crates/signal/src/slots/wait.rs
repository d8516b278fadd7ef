//! A wait for a monitor, in a slot's form. Must not interpret it.

/// The owner of a monitor when a thread began to wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum LockOwner {
    /// No owner any more, or it is not known.
    #[default]
    Unknown,
    /// The platform thread with this id of the kernel's.
    Kernel(i32),
    /// The logical thread with this id.
    Logical(u64),
    /// The platform thread with this mark (see `ThreadRecord::user`).
    User(u64),
}

/// A sampled wait for a monitor that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Wait {
    /// When it began, on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The time in such waits that it stands for.
    pub weight_ns: u64,
    /// Where the runtime keeps the monitor, or 0: distinguishes monitors while threads contend.
    pub monitor: u64,
    /// The object's class: a number that the agent understands.
    pub class: u32,
    /// The owner.
    pub owner: LockOwner,
    /// Whether the owner's stack was requested.
    pub asked: Asked,
}

/// The outcome of the request for the owner's stack when a wait for a monitor began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    /// The time in waits that the answer stands for, in nanoseconds; 0: it was not requested.
    pub weight_ns: u64,
    /// The number that identifies the answer
    /// ([`SlotHeader::request`](super::SlotHeader::request)); 0 without an answer.
    pub request: u64,
    /// Why the answer is missing, as far as that was known then: a number that the agent
    /// understands.
    pub why: u32,
}
