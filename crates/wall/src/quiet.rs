//! Whether there is nothing to look at: some threads run all the time, the others rest, and none
//! was seen anywhere new of late. Then ticks are left out: most of what a tick costs there is
//! waking up, and who runs pays for that.
//!
//! That harms no sum: a look comes at a random moment of the time that it stands for
//! ([`crate::grid`]), and how long that is was settled before, by what looks have shown until then.
//! What is told of states shorter than that time scatters more, until one is seen. So it is not
//! done where nobody runs: a program that waits for requests may have short ones.

/// So many ticks nothing new was seen in, and then ...
const QUIET_TICKS: u32 = 4;
/// ... one look is made in so many.
const TICKS: u64 = 3;

/// What the last ticks have shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet {
    without_news: u32,
}

impl Quiet {
    /// A tick is over; `news`: in it a thread was seen where it was not known to be, or one has
    /// come or gone; `ran`: one was seen that ran.
    pub fn add(&mut self, news: bool, ran: bool) {
        self.without_news = match ran && !news {
            true => self.without_news.saturating_add(1),
            false => 0,
        };
    }

    /// For how many ticks the next look may stand.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        if self.without_news >= QUIET_TICKS {
            TICKS
        } else {
            1
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::random::Random;

    #[test]
    fn ticks_are_left_out_while_there_is_nothing_new() {
        let mut quiet = Quiet::default();
        for _ in 0..QUIET_TICKS {
            assert_eq!(quiet.ticks(), 1);
            quiet.add(false, true);
        }
        assert_eq!(quiet.ticks(), TICKS);
        quiet.add(false, true);
        assert_eq!(quiet.ticks(), TICKS);
        quiet.add(true, true);
        assert_eq!(quiet.ticks(), 1);
        for _ in 0..2 * QUIET_TICKS {
            quiet.add(false, false);
        }
        assert_eq!(quiet.ticks(), 1, "nobody runs");
    }

    /// A thread that runs, and waits for a while now and then: what looks at it say of its waits is
    /// right in the mean, however the number of looks hangs together with what they see.
    #[test]
    fn sums_are_those_of_all_ticks() {
        const TICK_NS: u64 = 20_000_000;
        // Of 700 ms it waits for 30, 70 or 130, at the end.
        for wait_ns in [30_000_000, 70_000_000, 130_000_000] {
            let (period_ns, mut told_ns, mut looks) = (700_000_000, 0u64, 0u64);
            let mut grid = Grid::new(TICK_NS, 0, Random::new(wait_ns));
            let mut quiet = Quiet::default();
            let mut now_ns = 0;
            while now_ns < 20_000 * period_ns {
                now_ns = grid.due_ns(quiet.ticks());
                let Some(look) = grid.look(now_ns) else {
                    break;
                };
                let waits = now_ns % period_ns >= period_ns - wait_ns;
                told_ns += if waits { look.span_ns } else { 0 };
                quiet.add(waits, !waits);
                looks += 1;
            }
            let share = told_ns as f64 / now_ns as f64;
            let expected = wait_ns as f64 / period_ns as f64;
            assert!((share / expected - 1.0).abs() < 0.02, "{share} {expected}");
            assert!(looks < now_ns / TICK_NS * 9 / 10, "{looks}");
        }
    }
}
