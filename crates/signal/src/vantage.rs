//! From where a stack is walked. Plain data.

/// Where the stack of a sampled thread is walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Vantage {
    /// From a copy made in the handler; the thread continues in parallel.
    #[default]
    Snapshot = 0,
    /// On the sampled thread, in the handler.
    Handler = 1,
    /// By another thread, while the sampled one waits in its handler.
    Paused = 2,
    /// Experiment: neither copied nor held. The thread continues while its stack is read.
    #[cfg(feature = "experiments")]
    NoCopy = 3,
    /// Experiment: no sample at all, so that only the cost of the signals is left.
    #[cfg(feature = "experiments")]
    Empty = 4,
    /// Experiment: both a copy and a walk in the handler, to be compared.
    #[cfg(feature = "experiments")]
    Compare = 5,
}

impl Vantage {
    #[inline]
    pub(crate) fn from_bits(bits: u32) -> Self {
        match bits {
            1 => Vantage::Handler,
            2 => Vantage::Paused,
            #[cfg(feature = "experiments")]
            3 => Vantage::NoCopy,
            #[cfg(feature = "experiments")]
            4 => Vantage::Empty,
            #[cfg(feature = "experiments")]
            5 => Vantage::Compare,
            _ => Vantage::Snapshot,
        }
    }
}
