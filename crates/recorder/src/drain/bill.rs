//! What of the drainer's work is done for looks at threads: the wall-clock sampler pays for it from
//! its budget. Pure arithmetic.

/// What a sample of CPU time is taken to cost: more than it does in the mean.
const SAMPLE_NS: u64 = 50_000;
/// A round with samples that takes longer beside them has done something for them that is done
/// once, as reading a library's symbols.
const ROUND_NS_MAX: u64 = 1_000_000;

/// CPU times so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Of the drainer's thread.
    pub all_ns: u64,
    /// Of that, what is known to be for looks.
    pub looks_ns: u64,
    /// How many samples of CPU time it has worked on.
    pub samples: u64,
}

/// Says what is for looks.
#[derive(Debug, Default)]
pub struct Bill {
    last: Spent,
    /// Samples at the last flush.
    flushed: u64,
}

impl Bill {
    /// Begins now.
    #[must_use]
    pub fn new(now: Spent) -> Bill {
        Bill {
            last: now,
            flushed: now.samples,
        }
    }

    /// CPU time that was spent for looks since this was asked last: what is known to be, and what
    /// the samples of CPU time leave of the rest, as waking up is for looks where there is little
    /// else; but a part of that where samples are waited for, and looks alone would make one of so
    /// many `rounds`. A round that `flushed` writes the samples that came since the last of its
    /// kind.
    pub fn for_looks(&mut self, now: Spent, flushed: bool, rounds: u64) -> u64 {
        let last = std::mem::replace(&mut self.last, now);
        let since = if flushed { self.flushed } else { last.samples };
        if flushed {
            self.flushed = now.samples;
        }
        let all_ns = now.all_ns.saturating_sub(last.all_ns);
        let looks_ns = now.looks_ns.saturating_sub(last.looks_ns).min(all_ns);
        let samples = now.samples.saturating_sub(since);
        let mut rest_ns = all_ns - looks_ns;
        if samples > 0 {
            let of_samples_ns = samples.saturating_mul(SAMPLE_NS);
            rest_ns = rest_ns.saturating_sub(of_samples_ns).min(ROUND_NS_MAX);
        }
        if !flushed {
            rest_ns /= rounds.max(1);
        }
        looks_ns + rest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_for_looks_but_for_what_samples_cost() {
        let at = |all_us: u64, looks_us: u64, samples| Spent {
            all_ns: all_us * 1000,
            looks_ns: looks_us * 1000,
            samples,
        };
        let mut bill = Bill::new(at(100, 10, 5));
        let mut us = |now, flushed| bill.for_looks(now, flushed, 1) / 1000;
        assert_eq!(us(at(150, 20, 5), false), 50);
        // Four samples; what they are taken to cost is more than was spent.
        assert_eq!(us(at(250, 23, 9), false), 3);
        assert_eq!(us(at(260, 30, 9), false), 10);
        // It writes the four: 460 for looks and them, 40 of it known to be for looks.
        assert_eq!(us(at(720, 70, 9), true), 40 + 220);
        assert_eq!(us(at(1020, 71, 9), true), 300);
        // Symbols were read for a sample.
        assert_eq!(us(at(61_020, 71, 10), true), 1000);
        assert_eq!(us(at(61_030, 71, 500), true), 0);
    }

    #[test]
    fn rounds_that_samples_are_waited_for_are_hardly_for_looks() {
        let at = |all_us: u64, looks_us: u64| Spent {
            all_ns: all_us * 1000,
            looks_ns: looks_us * 1000,
            samples: 0,
        };
        let mut bill = Bill::new(at(0, 0));
        let mut us = |now, flushed, rounds| bill.for_looks(now, flushed, rounds) / 1000;
        assert_eq!(us(at(120, 20), false, 5), 20 + 20);
        assert_eq!(us(at(240, 40), false, 1), 120);
        // Flushes there are without samples, too.
        assert_eq!(us(at(360, 60), true, 5), 120);
    }
}
