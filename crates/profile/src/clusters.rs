//! The confidence of a share of the time of requests. The samples of one request are not
//! independent, as one wait is seen in many of them. The unit of the estimate is therefore the
//! request, not the sample. Pure arithmetic.

use crate::sample::Weight;
use std::collections::HashMap;

/// A request: its trace and its first span.
pub type RequestKey = (u128, u64);

/// The 97.5th percentile of the normal distribution.
const NORMAL: f64 = 1.96;

/// A sum of time that remembers what each request has to it.
#[derive(Clone, Debug, Default)]
pub struct Clusters {
    requests: HashMap<RequestKey, f64>,
    /// Time without a known request: each sample is independent.
    others: Weight,
    sum: f64,
}

impl Clusters {
    /// Adds the time of a request, or of none.
    pub fn add(&mut self, request: Option<RequestKey>, weight: &Weight) {
        self.sum += weight.sum as f64;
        match request {
            Some(request) => *self.requests.entry(request).or_default() += weight.sum as f64,
            None => self.others += weight,
        }
    }

    /// How far, with 95 % confidence, this part's share of `whole` may be from the truth.
    ///
    /// The share p is the ratio of two sums over requests, y of the part and x of the whole. Its
    /// variance is about `n / (n-1) * sum of (y - p x)^2 / (sum of x)^2` (Cochran, Sampling
    /// Techniques, ratio estimates). The margin for few requests uses Student's distribution. A
    /// single request says nothing about others, so its samples count as independent.
    #[must_use]
    pub fn share_margin(&self, whole: &Clusters) -> f64 {
        if whole.sum <= 0.0 {
            return 0.0;
        }
        let share = self.sum / whole.sum;
        let outside = (whole.others.squares - self.others.squares).max(0.0);
        let inside = self.others.squares;
        let others = (1.0 - share).powi(2) * inside + share.powi(2) * outside;
        let count = whole.requests.len();
        if count < 2 {
            return NORMAL * others.sqrt() / whole.sum;
        }
        let residuals: f64 = whole
            .requests
            .iter()
            .map(|(request, all)| {
                let part = self.requests.get(request).copied().unwrap_or(0.0);
                (part - share * all).powi(2)
            })
            .sum();
        let degrees = (count - 1) as f64;
        let variance = others + residuals * (degrees + 1.0) / degrees;
        student(degrees) * variance.sqrt() / whole.sum
    }

    /// How many requests there are.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }
}

/// The 97.5th percentile of Student's distribution, by its expansion for many degrees of freedom
/// (Abramowitz and Stegun 26.7.5), which from three on is within 2 % of it.
fn student(degrees: f64) -> f64 {
    let z = NORMAL;
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from 0 to 1 (xorshift).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    #[test]
    fn students_percentiles_are_those_of_the_tables() {
        for (degrees, expected, off) in [
            (3.0, 3.1824, 0.008),
            (5.0, 2.5706, 0.0015),
            (10.0, 2.2281, 0.0001),
            (100.0, 1.9840, 0.0001),
        ] {
            let found: f64 = student(degrees);
            assert!((found / expected - 1.0).abs() < off, "{degrees}: {found}");
        }
    }

    #[test]
    fn without_requests_looks_are_independent() {
        let (mut part, mut whole, mut naive) = Default::default();
        let mut all = Weight::default();
        for number in 0..40 {
            let weight = Weight::of(10);
            Clusters::add(&mut whole, None, &weight);
            all += &weight;
            if number < 10 {
                Clusters::add(&mut part, None, &weight);
                std::ops::AddAssign::<&Weight>::add_assign(&mut naive, &weight);
            }
        }
        let expected = NORMAL * Weight::share_error(&naive, &all);
        assert!((part.share_margin(&whole) - expected).abs() < 1e-12);
        assert_eq!(part.share_margin(&Clusters::default()), 0.0);
        assert_eq!((part.requests(), whole.requests()), (0, 0));
    }

    /// Three in ten requests wait for a lock in all of their looks, the others in none; how many
    /// looks there are differs by request. The truth lies within the margin as often as it says.
    #[test]
    fn margins_hold_where_requests_differ() {
        const TRIALS: u32 = 1000;
        const REQUESTS: u64 = 60;
        let mut random = Random(0x1234_5678_9abc_def1);
        let (mut held, mut held_naively) = (0u32, 0u32);
        for _ in 0..TRIALS {
            let (mut part, mut whole) = (Clusters::default(), Clusters::default());
            let (mut locked, mut all) = (Weight::default(), Weight::default());
            for request in 1..=REQUESTS {
                let is_locked = random.next() < 0.3;
                for _ in 0..1 + (random.next() * 20.0) as u32 {
                    let weight = Weight::of(1_000_000);
                    whole.add(Some((7, request)), &weight);
                    all += &weight;
                    if is_locked {
                        part.add(Some((7, request)), &weight);
                        locked += &weight;
                    }
                }
            }
            let off = (locked.share(&all) - 0.3).abs();
            held += u32::from(off <= part.share_margin(&whole));
            held_naively += u32::from(off <= NORMAL * locked.share_error(&all));
        }
        // 950 are expected; five standard deviations of a binomial are 34, and the estimate of a
        // ratio of 60 draws may be a few percent too small.
        assert!((896..=984).contains(&held), "{held}");
        // Some ten looks a request: errors are three times as large as independent looks have.
        assert!(held_naively < 700, "{held_naively}");
    }
}
