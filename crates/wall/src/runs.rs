//! Looks at a thread that saw the same become one event: how many they were, and what they stand
//! for together.

use crate::sums::choices;

/// The first event of a run is not held back for longer than this, so that a recording that breaks
/// off has it ...
const HELD_FIRST_NS: u64 = 1_000_000_000;
/// ... and the later ones not for longer than this: ten thousand idle threads must not fill a disk.
const HELD_NS: u64 = 60_000_000_000;
/// Ticks without a look come from threads that change all the time: when they were is told as well
/// as this.
const HELD_CARRIED_NS: u64 = 2_000_000_000;
/// Ticks that are one choice with their look are told with it, or its pieces would count as choices
/// of their own: so they are held back until the next look, but not for longer than this.
const HELD_UNSURE_NS: u64 = 16_000_000_000;

/// What one look or tick of a thread stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The wall time: that of the tick by how many threads one of those that were chosen is.
    pub weight_ns: u64,
    /// The time of the tick.
    pub span_ns: u64,
    /// Whether the thread is known to have been there all of that time. Then the only chance in it
    /// is whether the thread was chosen.
    pub is_known: bool,
}

impl Part {
    /// Its part of the variance of a sum. A look, at a random moment, counts its weight w squared.
    /// A tick of length s that is known, of a thread chosen with the chance s/w, adds to a sum
    /// w with that chance, which has the variance s (w - s); in the mean over those that are
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

/// Looks that saw the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Run<K> {
    /// What was seen.
    pub seen: K,
    /// The first look.
    pub since_ns: u64,
    /// The last look.
    pub until_ns: u64,
    /// How many looks.
    pub count: u32,
    /// The wall time they stand for.
    pub weight_ns: u64,
    /// The time that passed for each of them.
    pub span_ns: u64,
    /// Their part of the variance of a sum, in ns squared: see [`Part::square`].
    pub square: f64,
}

impl<K> Run<K> {
    /// How many choices they are: see [`choices`].
    #[must_use]
    pub fn choices(&self) -> u64 {
        choices(self.weight_ns, self.square)
    }

    /// Whether a look is for about as many threads as these. Who reads a run spreads what it stands
    /// for evenly over its time: one look for a hundred threads must not be among many for one.
    fn is_like(&self, weight_ns: u64, span_ns: u64) -> bool {
        let of_these = u128::from(self.weight_ns) * u128::from(span_ns);
        let of_it = u128::from(weight_ns) * u128::from(self.span_ns);
        of_it <= 2 * of_these && of_these <= 2 * of_it
    }
}

/// The looks at one thread that are not told yet.
#[derive(Clone, Debug)]
pub struct Pending<K> {
    run: Option<Run<K>>,
    /// What was seen last, whether it is told or not.
    last: Option<K>,
    held_ns: u64,
}

impl<K> Default for Pending<K> {
    fn default() -> Pending<K> {
        Pending {
            run: None,
            last: None,
            held_ns: HELD_FIRST_NS,
        }
    }
}

impl<K: PartialEq + Clone> Pending<K> {
    /// A look, with what it stands for and the time that has passed for it. Gives back the run that
    /// has ended with it, if one has.
    pub fn add(&mut self, seen: K, at_ns: u64, part: Part) -> Option<Run<K>> {
        self.add_many(seen, (at_ns, at_ns), 1, part)
    }

    /// The same for so many looks, from the first one to the last, for which `part` stands.
    pub fn add_many(
        &mut self,
        seen: K,
        (since_ns, until_ns): (u64, u64),
        count: u32,
        part: Part,
    ) -> Option<Run<K>> {
        let (weight_ns, span_ns) = (part.weight_ns, part.span_ns);
        if let Some(run) = &mut self.run
            && run.seen == seen
            && run.count <= u32::MAX - count
            && run.is_like(weight_ns, span_ns)
        {
            run.until_ns = until_ns;
            run.count += count;
            run.weight_ns = run.weight_ns.saturating_add(weight_ns);
            run.span_ns = run.span_ns.saturating_add(span_ns);
            run.square += part.square();
            return None;
        }
        if self.last.as_ref() != Some(&seen) {
            self.held_ns = HELD_FIRST_NS;
            self.last = Some(seen.clone());
        }
        self.run.replace(Run {
            seen,
            since_ns,
            until_ns,
            count,
            weight_ns,
            span_ns,
            square: part.square(),
        })
    }

    /// So many ticks without a look, that count for what was `seen` before; the thread may have
    /// been elsewhere in between. `is_alike`: each is as good as a look of its own, and else they
    /// are one choice with what is pending, all of which is `seen` then. Begins at `at_ns` if
    /// nothing is pending; gives back what was, if that is something else.
    pub fn carry(
        &mut self,
        seen: K,
        at_ns: u64,
        is_alike: bool,
        count: u32,
        part: Part,
    ) -> Option<Run<K>> {
        let weight = part.weight_ns as f64;
        let choices = f64::from(count.max(1));
        let is_one = |run: &&mut Run<K>| run.seen == seen || !is_alike;
        let Some(run) = self.run.as_mut().filter(is_one) else {
            self.last = Some(seen.clone());
            self.held_ns = match is_alike {
                true => HELD_CARRIED_NS,
                false => HELD_UNSURE_NS,
            };
            return self.run.replace(Run {
                seen,
                since_ns: at_ns,
                until_ns: at_ns,
                count,
                weight_ns: part.weight_ns,
                span_ns: part.span_ns,
                square: weight * weight / if is_alike { choices } else { 1.0 },
            });
        };
        run.square += match is_alike {
            true => weight * weight / choices,
            // (W + w)^2 instead of W^2.
            false => weight * (2.0 * run.weight_ns as f64 + weight),
        };
        if run.seen != seen {
            self.last = Some(seen.clone());
            (run.seen, run.until_ns) = (seen, at_ns);
        }
        if !is_alike {
            self.held_ns = HELD_UNSURE_NS;
        }
        run.count = run.count.saturating_add(count);
        run.weight_ns = run.weight_ns.saturating_add(part.weight_ns);
        run.span_ns = run.span_ns.saturating_add(part.span_ns);
        None
    }

    /// What is pending, if it has been for long enough; what is seen next begins another run.
    pub fn due(&mut self, now_ns: u64) -> Option<Run<K>> {
        let since_ns = self.run.as_ref()?.since_ns;
        if now_ns.saturating_sub(since_ns) < self.held_ns {
            return None;
        }
        self.held_ns = HELD_NS;
        self.run.take()
    }

    /// What is pending is held back no longer than ticks without a look are.
    pub fn hasten(&mut self) {
        self.held_ns = self.held_ns.min(HELD_CARRIED_NS);
    }

    /// What is pending, whatever its age: the thread or the recording ends.
    pub fn rest(&mut self) -> Option<Run<K>> {
        self.last = None;
        self.run.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn look(weight_ns: u64, span_ns: u64) -> Part {
        Part {
            weight_ns,
            span_ns,
            is_known: false,
        }
    }

    /// A tick of each of those who are followed has no chance in it; of one for three threads there
    /// is whether it was chosen.
    #[test]
    fn what_is_known_counts_for_the_choice_of_the_thread_alone() {
        let known = |weight_ns| Part {
            weight_ns,
            span_ns: 20,
            is_known: true,
        };
        let squares = [look(60, 20), known(60), known(20), known(19)].map(|part| part.square());
        assert_eq!(squares, [3600.0, 2400.0, 0.0, 0.0]);
        let mut pending = Pending::default();
        assert_eq!(pending.add('a', 10, look(20, 20)), None);
        for at_ns in 11..20 {
            assert_eq!(pending.add('a', at_ns, known(20)), None);
        }
        let run = pending.rest().unwrap();
        assert_eq!((run.count, run.weight_ns, run.square), (10, 200, 400.0));
        assert_eq!(run.choices(), 100);
    }

    #[test]
    fn equal_looks_are_one_run() {
        let mut pending = Pending::default();
        assert_eq!(pending.add('a', 10, look(5, 5)), None);
        assert_eq!(pending.add('a', 20, look(7, 5)), None);
        assert_eq!(pending.add('a', 30, look(1, 1)), None);
        let run = pending.add('b', 40, look(3, 3)).unwrap();
        let expected = Run {
            seen: 'a',
            since_ns: 10,
            until_ns: 30,
            count: 3,
            weight_ns: 13,
            span_ns: 11,
            square: 75.0,
        };
        assert_eq!(run, expected);
        assert_eq!(pending.rest().unwrap().seen, 'b');
        assert_eq!(pending.rest(), None);
    }

    /// A first look that stands for a hundred threads, at the start, is told by itself.
    #[test]
    fn looks_for_many_and_looks_for_one_are_told_apart() {
        let mut pending = Pending::default();
        assert_eq!(pending.add('a', 10, look(100, 1)), None);
        let first = pending.add('a', 11, look(1, 1)).unwrap();
        assert_eq!((first.weight_ns, first.count), (100, 1));
        assert_eq!(pending.add('a', 12, look(2, 1)), None);
        // Of ticks that were missed.
        assert_eq!(pending.add('a', 15, look(3, 3)), None);
        let rest = pending.rest().unwrap();
        assert_eq!((rest.weight_ns, rest.count, rest.span_ns), (6, 3, 5));
    }

    /// An idle thread, looked at each second for ten minutes.
    #[test]
    fn a_long_run_is_told_after_a_second_and_then_seldom() {
        let mut pending = Pending::default();
        let mut told = Vec::new();
        for second in 0..600 {
            let ended = pending.add((), second * SECOND, look(SECOND, SECOND));
            assert_eq!(ended, None);
            told.extend(pending.due(second * SECOND + 1).map(|run| run.count));
        }
        assert_eq!(told.get(..3), Some(&[2, 61, 61][..]));
        assert!(told.len() <= 12, "{told:?}");
        let rest = pending.rest().map_or(0, |run| run.count);
        assert_eq!(told.iter().sum::<u32>() + rest, 600);
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
                runs.extend(pending.add(*seen, now, look(*step, 1)));
                if *what == 0 {
                    runs.extend(pending.due(now));
                }
            }
            runs.extend(pending.rest());
            prop_assert_eq!(runs.iter().map(|r| r.weight_ns).sum::<u64>(), weight);
            prop_assert_eq!(runs.iter().map(|r| r.count).sum::<u32>(), count);
            prop_assert!(runs.iter().all(|r| r.since_ns <= r.until_ns));
            prop_assert!(runs.windows(2).all(|w| w[0].until_ns <= w[1].since_ns));
        }
    }
}
