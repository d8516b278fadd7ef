//! The times at which threads are looked at: a grid with a constant interval. A look that comes
//! late stands for the ticks that were missed as well.

/// The grid.
#[derive(Clone, Debug)]
pub struct Grid {
    interval_ns: u64,
    /// The tick that was looked at last.
    last_ns: u64,
}

/// One look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Ticks since the last look: 1 unless some were missed.
    pub ticks: u64,
    /// The time these stand for.
    pub span_ns: u64,
    /// When the next look is due.
    pub next_ns: u64,
}

impl Grid {
    /// A grid that begins now.
    #[must_use]
    pub fn new(interval_ns: u64, now_ns: u64) -> Grid {
        Grid {
            interval_ns: interval_ns.max(1),
            last_ns: now_ns,
        }
    }

    /// When the next look is due.
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.last_ns.saturating_add(self.interval_ns)
    }

    /// When a look after so many ticks is due.
    #[must_use]
    pub fn due_ns(&self, ticks: u64) -> u64 {
        let more_ns = self.interval_ns.saturating_mul(ticks.max(1) - 1);
        self.next_ns().saturating_add(more_ns)
    }

    /// The look that happens now; `None` if none is due.
    pub fn look(&mut self, now_ns: u64) -> Option<Look> {
        let ticks = now_ns.saturating_sub(self.last_ns) / self.interval_ns;
        if ticks == 0 {
            return None;
        }
        let span_ns = ticks * self.interval_ns;
        self.last_ns += span_ns;
        Some(Look {
            ticks,
            span_ns,
            next_ns: self.next_ns(),
        })
    }

    /// The look at the end of a recording: the part of an interval that is left.
    pub fn rest(&mut self, now_ns: u64) -> Look {
        let span_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns.max(self.last_ns);
        Look {
            ticks: span_ns.div_ceil(self.interval_ns),
            span_ns,
            next_ns: self.next_ns(),
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
    fn missed_ticks_are_made_up_for() {
        let mut grid = Grid::new(20, 1000);
        assert_eq!(grid.look(1019), None);
        let look = |ticks, next_ns| {
            Some(Look {
                ticks,
                span_ns: ticks * 20,
                next_ns,
            })
        };
        assert_eq!(grid.look(1020), look(1, 1040));
        assert_eq!(grid.look(1039), None);
        // Late, but not by a tick: the grid stays where it is.
        assert_eq!(grid.look(1055), look(1, 1060));
        assert_eq!(grid.look(1125), look(4, 1140));
        assert_eq!(grid.rest(1131).span_ns, 11);
    }

    proptest! {
        #[test]
        fn looks_stand_for_all_of_the_time(
            interval in 1u64..1000,
            steps in proptest::collection::vec(0u64..3000, 1..100),
        ) {
            let (mut grid, mut now, mut sum) = (Grid::new(interval, 77), 77, 0);
            for step in steps {
                now += step;
                if let Some(look) = grid.look(now) {
                    prop_assert!(look.next_ns > now && look.next_ns <= now + interval);
                    sum += look.span_ns;
                }
            }
            prop_assert_eq!(sum + grid.rest(now).span_ns, now - 77);
        }

        #[test]
        fn weights_of_those_looked_at_are_the_time_of_all(
            span_ns in 1u64..10_000_000_000,
            eligible in 1usize..20_000,
            share in 1usize..100,
        ) {
            let looked = (eligible * share / 100).max(1);
            let look = Look { ticks: 1, span_ns, next_ns: 0 };
            let sum = u128::from(weight_ns(&look, eligible, looked)) * looked as u128;
            let truth = u128::from(span_ns) * eligible as u128;
            prop_assert!(sum <= truth && truth - sum < looked as u128);
        }
    }
}
