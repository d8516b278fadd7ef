//! Reads of one place that follow each other, as one event.

use dwell_wall::sums::choices;

/// Consecutive reads of one thread, at one place and for one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<W> {
    /// What the thread worked for.
    pub work: W,
    /// Begin of the first read's block, but not before the read of another place, in ns.
    pub since_ns: u64,
    /// The last read, in ns.
    pub until_ns: u64,
    /// Reads.
    pub count: u32,
    /// Wall time that they stand for, in ns.
    pub weight_ns: u64,
    /// Their part of the variance of a sum, in ns squared.
    pub square: f64,
}

impl<W> Run<W> {
    /// As how many independent samples of equal weight the run counts (see
    /// [`dwell_wall::sums::choices`]).
    #[must_use]
    pub fn choices(&self) -> u64 {
        choices(self.weight_ns, self.square)
    }

    /// Adds another run that is not adjacent: its time is kept, not when it was.
    pub(crate) fn absorb(&mut self, other: &Run<W>) {
        self.count = self.count.saturating_add(other.count);
        self.weight_ns = self.weight_ns.saturating_add(other.weight_ns);
        self.square += other.square;
    }
}

/// An open run is reported after so long, so that a recording that breaks off has it, and then
/// after ever longer times: ten thousand idle threads must not fill a disk.
const HELD_NS: [u64; 4] = [1_000_000_000, 4_000_000_000, 16_000_000_000, 60_000_000_000];

/// How long piece `stage` of a run is held back before it is reported, in ns.
#[must_use]
pub fn held_ns(stage: u8) -> u64 {
    let last = HELD_NS.len() - 1;
    HELD_NS
        .get(usize::from(stage))
        .copied()
        .unwrap_or(HELD_NS[last])
}
