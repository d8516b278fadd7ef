//! The kernel's account of sampled threads: their time on a processor, the time they were ready
//! without one, and how often they got one.

use crate::sample::ThreadId;

/// The kernel's account of a thread, summed over the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// The thread.
    pub thread: ThreadId,
    /// When it was accounted for first, in nanoseconds since the Unix epoch.
    pub since_ns: u64,
    /// The period that the other fields cover.
    pub duration_ns: u64,
    /// On a processor.
    pub cpu_ns: u64,
    /// Ready, without a processor.
    pub waited_ns: u64,
    /// How often it got one.
    pub turns: u64,
    /// Whether virtual threads were seen on it, whose time is not its own.
    pub is_carrier: bool,
}
