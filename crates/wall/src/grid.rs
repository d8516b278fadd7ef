//! The times at which threads are looked at: one random moment in each interval, so that no program
//! can keep in step with the looks (stratified sampling). A look stands for its interval, and one
//! that comes late for those that were missed as well.

use crate::random::Random;

/// The intervals, one after the other.
#[derive(Clone, Debug)]
pub struct Grid {
    interval_ns: u64,
    /// Looks stand for the time until here.
    until_ns: u64,
    /// The moment drawn for the next look, and how many intervals it is to stand for.
    next: Option<(u64, u64)>,
    random: Random,
}

/// One look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Intervals it stands for: 1 unless some were missed or left out.
    pub ticks: u64,
    /// The time these are.
    pub span_ns: u64,
}

impl Look {
    /// The time that a look stands for whose last interval ends then.
    #[must_use]
    pub fn interval(&self, until_ns: u64) -> (u64, u64) {
        (until_ns.saturating_sub(self.span_ns), until_ns)
    }
}

impl Grid {
    /// Intervals that begin now.
    #[must_use]
    pub fn new(interval_ns: u64, now_ns: u64, random: Random) -> Grid {
        Grid {
            interval_ns: interval_ns.max(1),
            until_ns: now_ns,
            next: None,
            random,
        }
    }

    /// When the next look is due, which stands for so many intervals. Once drawn a moment stays
    /// what it is, whatever is asked for later: it must not depend on what was seen since.
    pub fn due_ns(&mut self, ticks: u64) -> u64 {
        if let Some((due_ns, _)) = self.next {
            return due_ns;
        }
        let ticks = ticks.max(1);
        let span_ns = self.interval_ns.saturating_mul(ticks);
        let due_ns = self.until_ns.saturating_add(self.random.below(span_ns));
        self.next = Some((due_ns, ticks));
        due_ns
    }

    /// The look that happens now; `None` if none is due.
    pub fn look(&mut self, now_ns: u64) -> Option<Look> {
        let (_, wanted) = self.next.filter(|(due_ns, _)| now_ns >= *due_ns)?;
        self.next = None;
        // What has gone by as a whole is not made up for by another look.
        let missed = now_ns.saturating_sub(self.until_ns) / self.interval_ns;
        let ticks = wanted.max(missed);
        let span_ns = ticks.saturating_mul(self.interval_ns);
        self.until_ns = self.until_ns.saturating_add(span_ns);
        Some(Look { ticks, span_ns })
    }

    /// The end of the last look's interval, on the same clock.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// The look at the end of a recording: it stands for the time that is left, or for none if the
    /// last look already stands for all, and shows that threads still were where they were.
    pub fn rest(&mut self, now_ns: u64) -> Look {
        let span_ns = now_ns.saturating_sub(self.until_ns);
        self.until_ns = now_ns.max(self.until_ns);
        self.next = None;
        Look {
            ticks: span_ns.div_ceil(self.interval_ns),
            span_ns,
        }
    }
}

/// What one of `looked` threads stands for, if these were chosen at random among `eligible`: the
/// time of the look times those that were not looked at (Horvitz and Thompson's estimator).
#[must_use]
pub fn weight_ns(look: &Look, eligible: usize, looked: usize) -> u64 {
    let product = u128::from(look.span_ns) * eligible as u128;
    let weight = product / (looked.max(1) as u128);
    u64::try_from(weight).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn missed_intervals_are_made_up_for() {
        let mut grid = Grid::new(20, 1000, Random::new(1));
        assert_eq!(grid.look(5000), None, "none was drawn");
        let due_ns = grid.due_ns(1);
        assert!((1000..1020).contains(&due_ns));
        assert_eq!(grid.due_ns(3), due_ns, "what is drawn stays");
        assert_eq!(grid.look(due_ns - 1), None);
        let look = |ticks| Look {
            ticks,
            span_ns: ticks * 20,
        };
        assert_eq!(grid.look(due_ns), Some(look(1)));
        assert_eq!(grid.look(due_ns), None, "one look for an interval");
        // Three at once, as asked for.
        let due_ns = grid.due_ns(3);
        assert!((1020..1080).contains(&due_ns));
        assert_eq!(grid.look(due_ns), Some(look(3)));
        // Two and a half intervals late: the half belongs to the next look.
        let _ = grid.due_ns(1);
        assert_eq!(grid.look(1130), Some(look(2)));
        let rest = |ticks, span_ns| Look { ticks, span_ns };
        assert_eq!(grid.rest(1131), rest(1, 11));
        assert_eq!(grid.rest(1131), rest(0, 0));
    }

    /// A program that does something for a quarter of each interval, in step with it, is seen to
    /// do so for a quarter of the time, wherever in the interval that lies.
    #[test]
    fn programs_in_step_are_seen_in_their_true_shares() {
        const INTERVAL: u64 = 1000;
        const LOOKS: u64 = 10_000;
        for (ticks, begins) in [(1, 0), (1, 700), (3, 300)] {
            let mut grid = Grid::new(INTERVAL, 0, Random::new(begins + ticks));
            let mut seen = 0;
            for _ in 0..LOOKS {
                let now_ns = grid.due_ns(ticks);
                let look = grid.look(now_ns).unwrap();
                let is_in = (now_ns + INTERVAL - begins) % INTERVAL < INTERVAL / 4;
                seen += u64::from(is_in) * look.ticks;
            }
            // Binomial: of 10,000 looks 2500 with a deviation of 43; five of them by chance once
            // in 1.7 million seeds.
            let share = seen as f64 / (LOOKS * ticks) as f64;
            assert!((share - 0.25).abs() < 0.0217, "{ticks} {begins}: {share}");
        }
    }

    proptest! {
        #[test]
        fn looks_stand_for_all_of_the_time(
            interval in 1u64..1000,
            steps in proptest::collection::vec((1u64..3, 0u64..3000), 1..100),
            seed: u64,
        ) {
            let mut grid = Grid::new(interval, 77, Random::new(seed));
            let (mut now, mut sum) = (77, 0);
            for (ticks, step) in steps {
                let due = grid.due_ns(ticks);
                prop_assert!(due >= 77 + sum && due < 77 + sum + 3 * interval);
                now += step;
                if let Some(look) = grid.look(now) {
                    prop_assert_eq!(look.span_ns, look.ticks * interval);
                    sum += look.span_ns;
                    // Nothing whole is left behind, and no more is taken in advance than was asked.
                    prop_assert!(77 + sum + interval > now && 77 + sum < now + 3 * interval);
                }
            }
            let rest = grid.rest(now).span_ns;
            prop_assert!(sum + rest >= now - 77);
            prop_assert!(rest == 0 || sum + rest == now - 77);
        }

        #[test]
        fn weights_of_those_looked_at_are_the_time_of_all(
            span_ns in 1u64..10_000_000_000,
            eligible in 1usize..20_000,
            share in 1usize..100,
        ) {
            let looked = (eligible * share / 100).max(1);
            let look = Look { ticks: 1, span_ns };
            let sum = u128::from(weight_ns(&look, eligible, looked)) * looked as u128;
            let truth = u128::from(span_ns) * eligible as u128;
            prop_assert!(sum <= truth && truth - sum < looked as u128);
        }
    }
}
