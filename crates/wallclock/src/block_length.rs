//! The length of blocks in ticks.
//!
//! A read counts for its whole block, so a change of place is off by up to a block's length. For a
//! thread that changes every `d` ticks, blocks of `l` ticks give a variance of `l^2 / 6` at each
//! change, or `l^2 / 6d` a tick. With blocks of the square root of `d` that is the same for all
//! threads. So the blocks of a thread that has not changed grow with the square root of that time.
//! After about a second the budget alone decides: 10,000 idle threads must cost little.

/// Maximum ticks in a block of a calm thread, whose place has not changed for long.
const CALM_MAX: u32 = 64;
/// Maximum ticks in a block of a lively thread.
const LIVELY_MAX: u32 = 8;
/// Ticks without a change of place after which a thread is calm.
const LIVELY_TICKS: u16 = 8;
/// Part of the budget that the census of lively threads may take. They may also have what samples
/// leave of [`SPARE_PART`].
const LIVELY_PART: f64 = 0.5;
/// Part of the budget that the census of calm threads may take: they need few reads.
const CALM_PART: f64 = 0.3;
const SPARE_PART: f64 = 0.3;
/// A thread that has been calm for so many ticks, about a second, has blocks as long as the budget
/// needs.
const SETTLED_TICKS: u16 = 50;
/// Cost of one read before one was measured, in ns.
const READ_NS: f64 = 60.0;
/// Weight of the last tick's cost in the moving average.
const STEP: f64 = 0.1;

/// Kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its place has changed recently.
    Lively,
    /// Its place has not changed recently.
    Calm,
}

impl Kind {
    /// The kind of a thread whose place has not changed for so many ticks.
    #[must_use]
    pub fn of(calm_ticks: u16) -> Kind {
        match calm_ticks < LIVELY_TICKS {
            true => Kind::Lively,
            false => Kind::Calm,
        }
    }
}

/// Controls the length of blocks.
#[derive(Clone, Debug)]
pub struct Pace {
    read_ns: f64,
    lively: u32,
    calm: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            read_ns: READ_NS,
            lively: 1,
            calm: 1,
        }
    }
}

impl Pace {
    /// Ticks of the next block of a thread whose place has not changed for `calm_ticks`.
    #[must_use]
    pub fn ticks(&self, calm_ticks: u16) -> u32 {
        match Kind::of(calm_ticks) {
            Kind::Lively => self.lively,
            Kind::Calm if calm_ticks < SETTLED_TICKS => {
                let root = u32::from(calm_ticks.isqrt());
                root.min(self.calm).max(self.lively)
            }
            Kind::Calm => self.calm.max(self.lively),
        }
    }

    /// Records the cost of some reads.
    pub fn spent(&mut self, reads: usize, cpu_ns: u64) {
        // The cost of a few reads is mostly the cost of waking up.
        if reads >= 16 {
            let each_ns = cpu_ns as f64 / reads as f64;
            self.read_ns += (each_ns - self.read_ns) * STEP;
        }
    }

    /// Adjusts the lengths to the number of threads of each kind. Sampling may take `share` of a
    /// processor; `fill`: the part of the purse that samples have left.
    pub fn steer(&mut self, (lively, calm): (usize, usize), tick_ns: u64, share: f64, fill: f64) {
        let blocks = |threads: usize, part: f64| {
            let may_ns = (part * share * tick_ns as f64).max(1.0);
            threads as f64 * self.read_ns / may_ns
        };
        let wanted = blocks(lively, LIVELY_PART + SPARE_PART * fill);
        self.lively = step(self.lively, wanted, LIVELY_MAX);
        self.calm = step(self.calm, blocks(calm, CALM_PART), CALM_MAX);
    }
}

/// Moves `ticks` towards `wanted`: up at once, but at most to twice as much; down by one tick, and
/// only if the length below is long enough with some reserve, so that it does not alternate.
fn step(ticks: u32, wanted: f64, most: u32) -> u32 {
    const RESERVE: f64 = 0.8;
    let below = ticks.saturating_sub(1);
    if wanted > f64::from(ticks) {
        (wanted.ceil() as u32).min(2 * ticks).min(most)
    } else if below > 0 && wanted < RESERVE * f64::from(below) {
        below
    } else {
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 20_000_000;

    fn steered(lively: usize, calm: usize, read_ns: u64) -> Pace {
        let mut pace = Pace::default();
        for _ in 0..200 {
            pace.spent(1000, 1000 * read_ns);
            pace.steer((lively, calm), TICK_NS, 0.02, 0.25);
        }
        pace
    }

    #[test]
    fn blocks_are_as_short_as_the_budget_allows() {
        // 2 % of 20 ms are 400 us.
        let ticks = |pace: Pace| [pace.ticks(0), pace.ticks(u16::MAX)];
        assert_eq!(ticks(steered(5, 500, 60)), [1, 1]);
        assert_eq!(ticks(steered(5, 5000, 60)), [1, 3]);
        assert_eq!(ticks(steered(5, 10_000, 60)), [1, 5]);
        assert_eq!(ticks(steered(5, 1_000_000, 60)), [1, CALM_MAX]);
        assert_eq!(ticks(steered(5_000, 0, 100)), [3, 3]);
    }

    #[test]
    fn lively_threads_have_the_part_that_samples_leave() {
        // 1000 reads of 1 us in 20 ms are 5 %; all of the purse leaves 1.6 of 2 %.
        let lively = |fill| {
            let mut pace = steered(1000, 0, 1000);
            (0..200).for_each(|_| pace.steer((1000, 0), TICK_NS, 0.02, fill));
            pace.ticks(0)
        };
        assert_eq!([lively(1.0), lively(0.0)], [4, 5]);
    }

    #[test]
    fn length_does_not_alternate() {
        let of = |ticks, wanted| step(ticks, wanted, 8);
        assert_eq!(
            [of(3, 2.9), of(3, 1.7), of(3, 1.5), of(1, 0.1)],
            [3, 3, 2, 1]
        );
        assert_eq!(
            [of(3, 3.1), of(3, 5.5), of(3, 7.0), of(8, 99.0)],
            [4, 6, 6, 8]
        );
    }

    #[test]
    fn block_grows_with_the_root_of_the_calm_time() {
        let pace = steered(5, 6000, 400);
        let ticks = [7, 8, 49, 50, 100, 900, 10_000].map(|calm| pace.ticks(calm));
        assert_eq!(ticks, [1, 2, 7, 20, 20, 20, 20]);
    }
}
