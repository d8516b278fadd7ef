//! The ticks: one random moment in each interval, so that no program can run in step with them. A
//! late tick also stands for the intervals that were missed.

use dwell_wall::random::Random;

/// The sequence of intervals.
#[derive(Clone, Debug)]
pub struct Grid {
    interval_ns: u64,
    /// End of the time that earlier ticks stand for.
    until_ns: u64,
    /// The moment of the next tick, once it is drawn.
    next_ns: Option<u64>,
    random: Random,
}

/// A tick: a random moment in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// The number of its interval. A late tick has the number of its last interval.
    pub number: u32,
    /// The moment, in ns.
    pub at_ns: u64,
    /// Length of one interval, in ns.
    pub interval_ns: u64,
    /// End of the interval, in ns.
    pub until_ns: u64,
}

/// One tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Intervals that the tick stands for: 1 unless some were missed.
    pub ticks: u64,
    /// Length of these intervals, in ns.
    pub span_ns: u64,
}

impl Grid {
    /// Creates a grid whose first interval begins now.
    #[must_use]
    pub fn new(interval_ns: u64, now_ns: u64, random: Random) -> Grid {
        Grid {
            interval_ns: interval_ns.max(1),
            until_ns: now_ns,
            next_ns: None,
            random,
        }
    }

    /// The moment of the next tick. It is drawn once.
    pub fn due_ns(&mut self) -> u64 {
        let (until_ns, interval_ns) = (self.until_ns, self.interval_ns);
        let random = &mut self.random;
        let draw = || until_ns.saturating_add(random.below(interval_ns));
        *self.next_ns.get_or_insert_with(draw)
    }

    /// The tick at `now_ns`; `None` if none is due.
    pub fn look(&mut self, now_ns: u64) -> Option<Look> {
        self.next_ns.take_if(|due_ns| now_ns >= *due_ns)?;
        // This tick stands for all intervals that have passed completely.
        let missed = now_ns.saturating_sub(self.until_ns) / self.interval_ns;
        let ticks = missed.max(1);
        let span_ns = ticks.saturating_mul(self.interval_ns);
        self.until_ns = self.until_ns.saturating_add(span_ns);
        Some(Look { ticks, span_ns })
    }

    /// The end of the last tick's interval, on the same clock.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// The tick at the end of a recording. It stands for the time since the last tick's interval,
    /// which may be zero.
    pub fn rest(&mut self, now_ns: u64) -> Look {
        let span_ns = now_ns.saturating_sub(self.until_ns);
        let ticks = span_ns.div_ceil(self.interval_ns);
        self.until_ns = self
            .until_ns
            .saturating_add(ticks.saturating_mul(self.interval_ns));
        self.next_ns = None;
        Look { ticks, span_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn late_tick_stands_for_missed_intervals() {
        let mut grid = Grid::new(20, 1000, Random::new(1));
        assert_eq!(grid.look(5000), None, "no tick was drawn");
        let due_ns = grid.due_ns();
        assert!((1000..1020).contains(&due_ns));
        assert_eq!(grid.due_ns(), due_ns, "a drawn tick stays");
        assert_eq!(grid.look(due_ns - 1), None);
        let look = |ticks| Look {
            ticks,
            span_ns: ticks * 20,
        };
        assert_eq!(grid.look(due_ns), Some(look(1)));
        assert_eq!(grid.look(due_ns), None, "one tick for an interval");
        // Two and a half intervals late: the half belongs to the next tick.
        let _ = grid.due_ns();
        assert_eq!(grid.look(1070), Some(look(2)));
        let rest = |ticks, span_ns| Look { ticks, span_ns };
        assert_eq!(grid.rest(1071), rest(1, 11));
        assert_eq!(grid.until_ns(), 1080);
        assert_eq!(grid.rest(1071), rest(0, 0));
    }

    /// A program works for a quarter of each interval, in step with it. A quarter of the ticks see
    /// that work, wherever in the interval it lies.
    #[test]
    fn program_in_step_with_ticks_keeps_its_share() {
        const INTERVAL: u64 = 1000;
        const LOOKS: u64 = 10_000;
        for begins in [0, 300, 700] {
            let mut grid = Grid::new(INTERVAL, 0, Random::new(begins));
            let mut seen = 0;
            for _ in 0..LOOKS {
                let now_ns = grid.due_ns();
                let _ = grid.look(now_ns);
                seen += u64::from((now_ns + INTERVAL - begins) % INTERVAL < INTERVAL / 4);
            }
            // Binomial: 2500 of 10,000 ticks with a deviation of 43. Chance exceeds five deviations
            // once in 1.7 million seeds.
            let share = seen as f64 / LOOKS as f64;
            assert!((share - 0.25).abs() < 0.0217, "{begins}: {share}");
        }
    }

    proptest! {
        #[test]
        fn ticks_stand_for_all_of_the_time(
            interval in 1u64..1000,
            steps in proptest::collection::vec(0u64..3000, 1..100),
            seed: u64,
        ) {
            let mut grid = Grid::new(interval, 77, Random::new(seed));
            let (mut now, mut sum) = (77, 0);
            for step in steps {
                let due = grid.due_ns();
                prop_assert!(due >= 77 + sum && due < 77 + sum + interval);
                now += step;
                if let Some(look) = grid.look(now) {
                    prop_assert_eq!(look.span_ns, look.ticks * interval);
                    sum += look.span_ns;
                    // No complete interval is missed, and at most one is counted in advance.
                    prop_assert!(77 + sum + interval > now && 77 + sum <= now + interval);
                }
            }
            let rest = grid.rest(now).span_ns;
            prop_assert!(sum + rest >= now - 77);
            prop_assert!(rest == 0 || sum + rest == now - 77);
        }
    }
}
