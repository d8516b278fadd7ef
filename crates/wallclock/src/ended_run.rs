//! Reads of one place that follow each other, as one event.

use dwell_wall::sums::choices;

/// Consecutive reads of one thread, at one place and for one request.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<W> {
    /// The context the thread worked for.
    pub work: W,
    /// Begin of the first read's block, but not before the read of another place, in ns.
    pub since_ns: u64,
    /// The last read, in ns.
    pub until_ns: u64,
    /// Number of reads.
    pub count: u32,
    /// Wall time that the reads stand for, in ns.
    pub weight_ns: u64,
    /// Their part of the variance of a sum, in ns squared.
    pub square: f64,
}

impl<W> Run<W> {
    /// Number of independent samples of equal weight that the run counts for (see
    /// [`dwell_wall::sums::choices`]).
    #[must_use]
    pub fn choices(&self) -> u64 {
        choices(self.weight_ns, self.square)
    }

    /// Adds another run that is not adjacent. Its duration is kept, its begin and end are not.
    pub(crate) fn absorb(&mut self, other: &Run<W>) {
        self.count = self.count.saturating_add(other.count);
        self.weight_ns = self.weight_ns.saturating_add(other.weight_ns);
        self.square += other.square;
    }
}

/// Times after which pieces of an open run are reported, so that a recording that breaks off has
/// them. The times grow, because ten thousand idle threads must not fill a disk.
const HELD_NS: [u64; 4] = [1_000_000_000, 4_000_000_000, 16_000_000_000, 60_000_000_000];

/// Time before piece `stage` of a run is reported, in ns.
#[must_use]
pub fn held_ns(stage: u8) -> u64 {
    let last = HELD_NS.len() - 1;
    HELD_NS
        .get(usize::from(stage))
        .copied()
        .unwrap_or(HELD_NS[last])
}
