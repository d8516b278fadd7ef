//! A choice of places that are spread among many, each place being as likely as any other. One is
//! drawn at random in each stratum; the strata have equal length, and their borders are moved at
//! random (W. G. Cochran, "Sampling Techniques", chapter 5).
//!
//! Places at even distances would need only one random number (systematic sampling, ibid., chapter
//! 8). But objects at even distances are then met in full or not at all: threads that were started
//! one after the other have every second bucket of a set.
//!
//! It takes time only for the chosen places, and needs no list of all.

use crate::random::Random;

/// Chosen places, in ascending order.
#[derive(Clone, Debug)]
pub struct Spread {
    random: Random,
    total: u64,
    count: u64,
    /// Where the first stratum begins; strata wrap around the end.
    start: u64,
    /// The stratum with the last place, which may wrap around the end.
    last: u64,
    /// Its place if that is beyond the end: the first of all.
    first: Option<u64>,
    /// Its place if it is not: the last of all.
    rest: Option<u64>,
    /// Strata that were passed since the last one.
    passed: u64,
}

impl Spread {
    /// Chooses `count` of `total` places, or all if there are fewer. Each is chosen with the same
    /// probability, `count` / `total`, and none twice.
    #[must_use]
    pub fn new(total: u64, count: u64, random: &mut Random) -> Spread {
        let count = count.min(total);
        let mut spread = Spread {
            random: Random::new(random.word()),
            total,
            count,
            start: random.below(total),
            last: 0,
            first: None,
            rest: None,
            passed: 1,
        };
        if count > 0 {
            spread.begin();
        }
        spread
    }

    fn begin(&mut self) {
        // The largest i whose stratum begins at or before the last place.
        let places = u128::from(self.total - self.start);
        let last = (places * u128::from(self.count) - 1) / u128::from(self.total);
        self.last = u64::try_from(last).unwrap_or(0);
        let place = self.chosen_in(self.last);
        match place.checked_sub(self.total) {
            Some(place) => self.first = Some(place),
            None => self.rest = Some(place),
        }
    }

    /// Where a stratum begins, from the start on.
    fn border(&self, stratum: u64) -> u64 {
        let border = u128::from(stratum) * u128::from(self.total) / u128::from(self.count.max(1));
        u64::try_from(border).unwrap_or(self.total)
    }

    /// A place in a stratum, which may be beyond the end.
    fn chosen_in(&mut self, stratum: u64) -> u64 {
        let (from, to) = (self.border(stratum), self.border(stratum + 1));
        self.start + from + self.random.below(to - from)
    }
}

impl Iterator for Spread {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.passed >= self.count {
            return self.rest.take();
        }
        let stratum = (self.last + self.passed) % self.count;
        self.passed += 1;
        let place = self.chosen_in(stratum);
        // The strata behind the last one are all beyond the end.
        Some(if stratum > self.last {
            place - self.total
        } else {
            place
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_distinct_and_there(total in 0u64..5000, count in 0u64..6000, seed: u64) {
            let mut random = Random::new(seed);
            let chosen: Vec<u64> = Spread::new(total, count, &mut random).collect();
            prop_assert_eq!(chosen.len() as u64, count.min(total));
            prop_assert!(chosen.windows(2).all(|pair| pair.first() < pair.last()));
            prop_assert!(chosen.iter().all(|place| *place < total));
        }
    }

    #[test]
    fn every_place_is_as_likely() {
        // The number of times that a place is chosen is binomial.
        let (total, count, rounds) = (97u64, 10u64, 20_000u32);
        let mut times = vec![0u32; total as usize];
        let mut random = Random::new(4);
        for _ in 0..rounds {
            for place in Spread::new(total, count, &mut random) {
                times[place as usize] += 1;
            }
        }
        let p = count as f64 / total as f64;
        let (mean, variance) = (f64::from(rounds) * p, f64::from(rounds) * p * (1.0 - p));
        // Five standard deviations: only once in 18,000 seeds one of 97 places is farther off.
        for seen in times {
            assert!(
                (f64::from(seen) - mean).abs() < 5.0 * variance.sqrt(),
                "{seen}"
            );
        }
    }

    /// Threads that were started one after the other may have every second place. These places are
    /// met as evenly as by draws at random, or more evenly, for any number of chosen places.
    #[test]
    fn places_at_even_distances_are_chosen_evenly() {
        let total = 26_688u64;
        let mut random = Random::new(11);
        for count in [100u64, 116, 200, 230, 232, 464] {
            let (rounds, mut squares) = (2000, 0.0);
            let p = count as f64 / total as f64;
            for _ in 0..rounds {
                let met = Spread::new(total, count, &mut random);
                let met = met.filter(|place| *place < 3000 && place % 2 == 0).count();
                squares += (met as f64 - 1500.0 * p).powi(2);
            }
            // The variance of 2000 sums has a deviation of 3 % of itself: five of them.
            let (variance, random_draws) = (squares / f64::from(rounds), 1500.0 * p);
            assert!(
                variance < 1.16 * random_draws,
                "{count}: {variance} of {random_draws}"
            );
        }
    }
}
