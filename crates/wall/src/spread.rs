//! A choice of places that lie evenly among many, each place being as likely as any other:
//! systematic sampling with a random start (W. G. Cochran, "Sampling Techniques", chapter 8).
//!
//! It takes time for the chosen places only, and needs no list of all.

use crate::random::Random;

/// Chosen places, in ascending order.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The next place, in fractions of `count`.
    next: u128,
    total: u128,
    count: u128,
    left: u64,
}

impl Spread {
    /// Chooses `count` of `total` places, or all if there are fewer. Each is chosen with the same
    /// probability, `count` / `total`, and none twice.
    #[must_use]
    pub fn new(total: u64, count: u64, random: &mut Random) -> Spread {
        let count = count.min(total);
        Spread {
            next: u128::from(random.below(total)),
            total: u128::from(total),
            count: u128::from(count),
            left: count,
        }
    }
}

impl Iterator for Spread {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        // The start is below `total`, so the last place is, too: (total - 1 + (count - 1) * total)
        // / count < total.
        let place = self.next / self.count.max(1);
        self.next += self.total;
        u64::try_from(place).ok()
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
        // Five standard deviations: of 97 places none lies farther off but once in 18,000 seeds.
        for seen in times {
            assert!(
                (f64::from(seen) - mean).abs() < 5.0 * variance.sqrt(),
                "{seen}"
            );
        }
    }
}
