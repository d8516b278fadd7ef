//! The state of one thread that each of its reads changes.

use crate::block_length::Kind;
use crate::grid::Tick;
use crate::labels::{Label, Shown};

/// No class.
pub(crate) const NONE: u8 = u8::MAX;
/// The class of a thread that runs.
pub const RUNS: u8 = NONE - 1;

/// Data that a read of a thread needs, in one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Hot {
    /// Hash of the last fingerprint and of the thread's work.
    pub word: u64,
    /// The open run: weight, begin, last read and part of the variance.
    pub weight_ns: u64,
    pub since_ns: u64,
    pub until_ns: u64,
    pub square: f32,
    /// The last tick whose time is accounted.
    pub accounted: u32,
    /// The end of the present block, and the tick in it in which the thread is read.
    pub block_end: u32,
    pub read_at: u32,
    /// Reads of the open run.
    pub count: u32,
    /// Ticks without a change of place. Each read that finds the thread running halves them.
    pub calm: u16,
    pub class: u8,
    /// The class of its last wait, and a part of the key of its work there.
    pub place: u8,
    pub key: u8,
    /// Number of reported pieces of the open run.
    pub stage: u8,
    pub is_live: bool,
    pub is_labelled: bool,
    /// Whether the last sample of the class found the thread running.
    pub shows_run: bool,
    pub has_claim: bool,
    pub is_queued: bool,
    /// Whether the last read found it woken, without a processor yet.
    pub is_woken: bool,
}

impl Default for Hot {
    fn default() -> Hot {
        Hot {
            word: 0,
            weight_ns: 0,
            since_ns: 0,
            until_ns: 0,
            square: 0.0,
            accounted: 0,
            block_end: 0,
            read_at: 0,
            count: 0,
            calm: 0,
            class: NONE,
            place: NONE,
            key: 0,
            stage: 0,
            is_live: false,
            is_labelled: false,
            shows_run: false,
            has_claim: false,
            is_queued: false,
            is_woken: false,
        }
    }
}

impl Hot {
    pub fn kind(&self) -> Kind {
        Kind::of(self.calm)
    }

    /// Sets the result of the last sample of its class.
    pub fn set_label(&mut self, label: Option<Label>) {
        self.is_labelled = label.is_some();
        self.shows_run = label.is_some_and(|label| label.shown == Shown::Run);
        self.has_claim = label.is_some_and(|label| label.has_claim);
    }

    /// Whether the open run is a wait, as far as known.
    pub fn waits(&self) -> bool {
        self.class != RUNS && !self.shows_run
    }

    /// The part of the open run that may be wrong, in ns: its reads after the thread had run.
    pub fn loose_ns(&self) -> u64 {
        let each_ns = self.weight_ns as f64 / f64::from(self.count.max(1));
        let loose_ns = f64::from(self.square) / each_ns.max(1.0);
        (loose_ns as u64).min(self.weight_ns)
    }

    /// Ends the present block after interval `number`, `early_ns` before the interval's end. A
    /// block without a read so far counts for the place of the last read, if time without reads
    /// is accounted (`is_whole`).
    pub fn cut(&mut self, tick: &Tick, number: u32, early_ns: u64, is_whole: bool) {
        if self.count == 0 && self.class < RUNS {
            // Its run was reported a moment ago.
            (self.count, self.since_ns) = (1, self.until_ns);
            self.until_ns = tick.at_ns;
        }
        if self.count > 0 {
            let ns = |ticks: u32| u64::from(ticks) * tick.interval_ns;
            let missing_ns = match is_whole {
                true => ns(number.saturating_sub(self.accounted)),
                false => 0,
            };
            let over_ns = ns(self.accounted.saturating_sub(number));
            self.weight_ns = (self.weight_ns + missing_ns).saturating_sub(over_ns + early_ns);
            if is_whole {
                let later_ns = ns(tick.number.saturating_sub(number)) + early_ns;
                self.until_ns = tick.until_ns.saturating_sub(later_ns);
            }
        }
        self.accounted = number;
    }

    /// The end of the block of this tick's read, in ns.
    pub fn block_end_ns(&self, tick: &Tick) -> u64 {
        let ticks = u64::from(self.accounted.saturating_sub(tick.number));
        tick.until_ns.saturating_add(ticks * tick.interval_ns)
    }

    /// Adds a read to the open run. It counts for its block: from there on to the block's end, too.
    /// `is_known`: the thread was there since its last read, so the read adds no variance.
    pub fn add(&mut self, weight_ns: u64, is_known: bool, tick: &Tick) {
        let end_ns = self.block_end_ns(tick);
        if self.count == 0 {
            // At the last read the thread was elsewhere.
            self.since_ns = end_ns.saturating_sub(weight_ns).max(self.until_ns);
        }
        self.count = self.count.saturating_add(1);
        self.weight_ns = self.weight_ns.saturating_add(weight_ns);
        if !is_known {
            self.square += (weight_ns as f32).powi(2);
        }
        self.until_ns = end_ns;
    }

    /// Whether the open run must be reported: its last block is over, and it is `held_ns` long.
    pub fn is_due(&self, now_ns: u64, held_ns: u64) -> bool {
        let is_over = self.count > 0 && self.until_ns <= now_ns;
        is_over && now_ns.saturating_sub(self.since_ns) >= held_ns
    }
}

// A second cache line would double the time that a read of a thread waits for memory.
const _: () = assert!(size_of::<Hot>() == 64);
