//! Samples of a thread that saw the same become one event: how many they were, what they stand for
//! together, and when that was.

use crate::sums::choices;

/// The first event of a run is held back for at most this long, so that a recording that breaks off
/// has it. Each later one may be held for twice as long as the one before, ...
const HELD_FIRST_NS: u64 = 1_000_000_000;
/// ... up to this: ten thousand idle threads must not fill a disk.
const HELD_NS: u64 = 60_000_000_000;
/// A run that has not grown for so long is over.
const OVER_NS: u64 = 500_000_000;
/// Ticks that are one choice with their sample are reported with it, or its pieces would count as
/// choices of their own. So they are held back until the next sample, but at most for this long.
const HELD_UNSURE_NS: u64 = 16_000_000_000;

/// What one sample or tick of a thread stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The wall time: that of the tick by how many threads one of those that were chosen is.
    pub weight_ns: u64,
    /// The time of the tick.
    pub span_ns: u64,
    /// When the thread was seen.
    pub at_ns: u64,
    /// The interval of the tick on the grid. The next tick's begins where this one ends.
    pub interval: Interval,
    /// Whether the thread is known to have been there all of that time. Then the only chance in it
    /// is whether the thread was chosen.
    pub is_known: bool,
}

/// From, until.
pub type Interval = (u64, u64);

impl Part {
    /// Its part of the variance of a sum. A sample, at a random moment, counts its weight w
    /// squared. A tick of length s that is known, of a thread chosen with the chance s/w, adds w to
    /// a sum with that chance, which has the variance s (w - s); in the mean over those that are
    /// chosen, that is w (w - s) for each.
    #[must_use]
    pub fn square(&self) -> f64 {
        let weight = self.weight_ns as f64;
        match self.is_known {
            true => weight * self.weight_ns.saturating_sub(self.span_ns) as f64,
            false => weight * weight,
        }
    }
}

/// Samples that saw the same in ticks that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<K> {
    /// What was seen.
    pub seen: K,
    /// The beginning of what the first sample stands for.
    pub since_ns: u64,
    /// The last sample.
    pub until_ns: u64,
    /// How many samples.
    pub count: u32,
    /// The wall time they stand for.
    pub weight_ns: u64,
    /// The time that passed for each of them.
    pub span_ns: u64,
    /// Their part of the variance of a sum, in ns squared: see [`Part::square`].
    pub square: f64,
    /// The end of the last one's interval.
    end_ns: u64,
}

impl<K> Run<K> {
    fn new(seen: K, count: u32, part: &Part, square: f64) -> Run<K> {
        Run {
            seen,
            since_ns: part.at_ns.saturating_sub(part.span_ns),
            until_ns: part.at_ns,
            count,
            weight_ns: part.weight_ns,
            span_ns: part.span_ns,
            square,
            end_ns: part.interval.1,
        }
    }

    /// How many choices they are: see [`choices`].
    #[must_use]
    pub fn choices(&self) -> u64 {
        choices(self.weight_ns, self.square)
    }

    /// Whether a sample follows on these, and is for about as many threads. Readers spread what a
    /// run stands for evenly over its time: so there must be no gap in it, and one sample for a
    /// hundred threads must not be among many for one.
    fn goes_on(&self, part: &Part) -> bool {
        let of_these = u128::from(self.weight_ns) * u128::from(part.span_ns);
        let of_it = u128::from(part.weight_ns) * u128::from(self.span_ns);
        part.interval.0 <= self.end_ns && of_it <= 2 * of_these && of_these <= 2 * of_it
    }

    fn grow(&mut self, count: u32, part: &Part, square: f64) {
        self.count = self.count.saturating_add(count);
        self.weight_ns = self.weight_ns.saturating_add(part.weight_ns);
        self.span_ns = self.span_ns.saturating_add(part.span_ns);
        self.square += square;
    }
}

/// The samples of one thread that are not reported yet.
#[derive(Clone, Debug)]
pub struct Pending<K> {
    run: Option<Run<K>>,
    /// What was seen last, whether it is reported or not.
    last: Option<K>,
    /// Until the run has grown so old it is not reported, unless it is over.
    held_ns: u64,
    /// Whether the run waits for the next sample.
    is_unsure: bool,
}

impl<K> Default for Pending<K> {
    fn default() -> Pending<K> {
        Pending {
            run: None,
            last: None,
            held_ns: HELD_FIRST_NS,
            is_unsure: false,
        }
    }
}

impl<K: PartialEq + Clone> Pending<K> {
    /// A sample, with what it stands for. Gives back the run that has ended with it, if one has.
    pub fn add(&mut self, seen: K, part: Part) -> Option<Run<K>> {
        self.add_many(seen, 1, part)
    }

    /// The same for so many samples for which `part` stands.
    pub fn add_many(&mut self, seen: K, count: u32, part: Part) -> Option<Run<K>> {
        let square = part.square();
        self.take_in(seen, count, part, square)
    }

    fn take_in(&mut self, seen: K, count: u32, part: Part, square: f64) -> Option<Run<K>> {
        if let Some(run) = &mut self.run
            && run.seen == seen
            && run.count <= u32::MAX - count
            && run.goes_on(&part)
        {
            run.until_ns = part.at_ns;
            run.end_ns = part.interval.1;
            run.grow(count, &part, square);
            return None;
        }
        self.is_unsure = false;
        if self.last.as_ref() != Some(&seen) || self.run.is_some() {
            self.held_ns = HELD_FIRST_NS;
            self.last = Some(seen.clone());
        }
        self.run.replace(Run::new(seen, count, &part, square))
    }

    /// So many ticks without a sample, that count for what was `seen` before. `is_alike`: each is
    /// as good as a sample of its own. Otherwise they are one choice with what is pending, and are
    /// reported at its time. Gives back what was pending, if that is something else.
    pub fn carry(&mut self, seen: K, is_alike: bool, count: u32, part: Part) -> Option<Run<K>> {
        let weight = part.weight_ns as f64;
        if is_alike {
            let square = weight * weight / f64::from(count.max(1));
            return self.take_in(seen, count, part, square);
        }
        match &mut self.run {
            Some(run) if run.seen == seen => {
                // (W + w)^2 instead of W^2.
                let square = weight * (2.0 * run.weight_ns as f64 + weight);
                run.grow(count, &part, square);
                self.is_unsure = true;
                None
            }
            _ => {
                let ended = self.take_in(seen, count, part, weight * weight);
                self.is_unsure = true;
                ended
            }
        }
    }

    /// What is pending, if it is over or has been held back for long enough. What is seen next
    /// begins another run.
    pub fn due(&mut self, now_ns: u64) -> Option<Run<K>> {
        let run = self.run.as_ref()?;
        let age_ns = now_ns.saturating_sub(run.since_ns);
        let is_due = match self.is_unsure {
            true => age_ns >= HELD_UNSURE_NS,
            false => age_ns >= self.held_ns || now_ns.saturating_sub(run.until_ns) >= OVER_NS,
        };
        if !is_due {
            return None;
        }
        self.held_ns = (2 * self.held_ns).min(HELD_NS);
        self.is_unsure = false;
        self.run.take()
    }

    /// What is pending, whatever its age: the thread or the recording ends.
    pub fn rest(&mut self) -> Option<Run<K>> {
        self.last = None;
        self.is_unsure = false;
        self.run.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// A sample in an interval of `span_ns` that ends at `until_ns`, seen just before its end.
    fn part(weight_ns: u64, span_ns: u64, until_ns: u64) -> Part {
        Part {
            weight_ns,
            span_ns,
            at_ns: until_ns,
            interval: (until_ns.saturating_sub(span_ns), until_ns),
            is_known: false,
        }
    }

    /// A tick of each of those who are followed has no chance in it; of one for three threads there
    /// is whether it was chosen.
    #[test]
    fn what_is_known_counts_for_the_choice_of_the_thread_alone() {
        let known = |weight_ns, until_ns| Part {
            is_known: true,
            ..part(weight_ns, 20, until_ns)
        };
        let squares = [part(60, 20, 0), known(60, 0), known(20, 0), known(19, 0)];
        let squares = squares.map(|part| part.square());
        assert_eq!(squares, [3600.0, 2400.0, 0.0, 0.0]);
        let mut pending = Pending::default();
        assert_eq!(pending.add('a', part(20, 20, 20)), None);
        for ticks in 2..=10 {
            assert_eq!(pending.add('a', known(20, ticks * 20)), None);
        }
        let run = pending.rest().unwrap();
        assert_eq!((run.count, run.weight_ns, run.square), (10, 200, 400.0));
        assert_eq!(run.choices(), 100);
    }

    #[test]
    fn equal_samples_are_one_run() {
        let mut pending = Pending::default();
        assert_eq!(pending.add('a', part(5, 5, 10)), None);
        assert_eq!(pending.add('a', part(7, 5, 15)), None);
        assert_eq!(pending.add('a', part(1, 1, 16)), None);
        let run = pending.add('b', part(3, 3, 19)).unwrap();
        assert_eq!((run.seen, run.since_ns, run.until_ns), ('a', 5, 16));
        assert_eq!((run.count, run.weight_ns, run.span_ns), (3, 13, 11));
        assert!((run.square - 75.0).abs() < 1e-9);
        assert_eq!(pending.rest().unwrap().seen, 'b');
        assert_eq!(pending.rest(), None);
    }

    /// Samples come at a random moment of their interval: what follows on is seen by the intervals.
    #[test]
    fn gap_between_intervals_ends_a_run() {
        let mut pending = Pending::default();
        let tick = |at_ns, number: u64| Part {
            at_ns,
            interval: (20 * number, 20 * number + 20),
            ..part(20, 20, 0)
        };
        assert_eq!(pending.add('a', tick(21, 1)), None);
        assert_eq!(pending.add('a', tick(59, 2)), None);
        let run = pending.add('a', tick(81, 4)).unwrap();
        assert_eq!((run.since_ns, run.until_ns, run.count), (1, 59, 2));
        let rest = pending.rest().unwrap();
        assert_eq!((rest.since_ns, rest.until_ns, rest.count), (61, 81, 1));
    }

    /// A first sample that stands for a hundred threads, at the start, is reported by itself.
    #[test]
    fn samples_for_many_and_for_one_are_kept_apart() {
        let mut pending = Pending::default();
        assert_eq!(pending.add('a', part(100, 1, 10)), None);
        let first = pending.add('a', part(1, 1, 11)).unwrap();
        assert_eq!((first.weight_ns, first.count), (100, 1));
        assert_eq!(pending.add('a', part(2, 1, 12)), None);
        // Of ticks that were missed.
        assert_eq!(pending.add('a', part(3, 3, 15)), None);
        let rest = pending.rest().unwrap();
        assert_eq!((rest.weight_ns, rest.count, rest.span_ns), (6, 3, 5));
    }

    /// A thread that waits for ten minutes: at any time at least half of its wait is reported.
    #[test]
    fn long_run_is_reported_in_ever_longer_pieces() {
        let mut pending = Pending::default();
        let mut told = Vec::new();
        for second in 1..=600 {
            let ended = pending.add((), part(SECOND, SECOND, second * SECOND));
            assert_eq!(ended, None);
            told.extend(pending.due(second * SECOND + 1).map(|run| run.count));
            let all = told.iter().sum::<u32>();
            assert!(
                u64::from(all) * 2 + 1 >= second.min(60),
                "{all} of {second}"
            );
        }
        assert_eq!(told.get(..4), Some(&[1, 2, 4, 8][..]));
        assert!(told.len() <= 16, "{told:?}");
        let rest = pending.rest().map_or(0, |run| run.count);
        assert_eq!(told.iter().sum::<u32>() + rest, 600);
    }

    /// What the thread has left is reported soon.
    #[test]
    fn run_that_is_over_is_due() {
        let mut pending = Pending::default();
        for second in 1..=200 {
            let _ = pending.add((), part(SECOND, SECOND, second * SECOND));
            let _ = pending.due(second * SECOND);
        }
        let end_ns = 200 * SECOND;
        assert_eq!(pending.due(end_ns + OVER_NS - 1), None);
        assert!(pending.due(end_ns + OVER_NS).is_some());
    }

    proptest! {
        #[test]
        fn nothing_gets_lost(
            looks in proptest::collection::vec((0u8..3, 0u64..100, 0u8..4), 0..300)
        ) {
            let mut pending = Pending::default();
            let (mut now, mut weight, mut count) = (0, 0, 0);
            let mut runs = Vec::new();
            for (seen, step, what) in &looks {
                now += step * SECOND / 10;
                weight += step;
                count += 1;
                runs.extend(match what {
                    0 => pending.carry(*seen, false, 1, part(*step, 1, now)),
                    1 => pending.carry(*seen, true, 1, part(*step, 1, now)),
                    _ => pending.add(*seen, part(*step, 1, now)),
                });
                if *what == 3 {
                    runs.extend(pending.due(now));
                }
            }
            runs.extend(pending.rest());
            prop_assert_eq!(runs.iter().map(|r| r.weight_ns).sum::<u64>(), weight);
            prop_assert_eq!(runs.iter().map(|r| r.count).sum::<u32>(), count);
            prop_assert!(runs.iter().all(|r| r.since_ns <= r.until_ns));
            // No event spans more than its samples stand for.
            prop_assert!(runs.iter().all(|r| r.until_ns - r.since_ns <= r.span_ns));
        }
    }
}
