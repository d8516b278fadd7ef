//! A wait for a monitor, as a slot carries it. Must not interpret it.

/// Who had a monitor when a thread began to wait for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum LockOwner {
    /// Nobody any more, or it is not known.
    #[default]
    Unknown,
    /// The platform thread with this id of the kernel's.
    Kernel(i32),
    /// The logical thread with this id.
    Logical(u64),
    /// The platform thread with this mark (see `ThreadRecord::user`).
    User(u64),
}

/// A wait for a monitor that is over and was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Wait {
    /// When it began, on `CLOCK_MONOTONIC`.
    pub begin_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// The time in such waits that it stands for.
    pub weight_ns: u64,
    /// Where the runtime keeps the monitor, or 0: tells monitors apart while threads contend.
    pub monitor: u64,
    /// Of which class the object is: a number that the agent understands.
    pub class: u32,
    /// Who had it.
    pub owner: LockOwner,
    /// Whether it was asked where that one was.
    pub asked: Asked,
}

/// What became of the question where a monitor's owner was when a wait for it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    /// The time in waits that the answer stands for, in nanoseconds; 0: it was not asked.
    pub weight_ns: u64,
    /// What the answer is known by ([`SlotHeader::request`](super::SlotHeader::request)); 0: there
    /// is none.
    pub request: u64,
    /// Why there is none, as far as that was known then: a number that the agent understands.
    pub why: u32,
}
