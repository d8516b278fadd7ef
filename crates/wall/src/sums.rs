//! Sums of weighted samples, and their errors by chance.

use std::collections::BTreeMap;

/// Number of further samples, of the heaviest weight, that the variance of a sum counts.
///
/// How many looks of weight w hit a row is a Poisson variable. After k hits, its mean is not k +-
/// sqrt(k): with a mean of 2, no look hits once in seven times, and then that says +- 0. With k +-
/// 1.96 sqrt(k + 1.5) the mean is in the interval in 91 or more cases of a hundred, for any mean
/// (a test of crate `dwell-profile` adds that up). Wilson's and Agresti and Coull's intervals do
/// the same for shares. Looks that weigh less have such a term each, which is small compared with
/// that of the heaviest.
pub const UNSEEN: f64 = 1.5;

/// The standard error of a sum of weights whose squares add up to `squares`: the square root of
/// `squares + 1.5 W^2`, W being the `heaviest` look there was.
#[must_use]
pub fn standard_error(squares: f64, heaviest: f64) -> f64 {
    (squares + UNSEEN * heaviest * heaviest).sqrt()
}

/// More choices than these count as certain.
pub const CHOICES_MAX: u64 = 1_000_000_000;

/// The number of choices of one weight that give a sum of `weight_ns` the same certainty, if its
/// part of the variance is `square`: `weight^2 / square`, from 1 to [`CHOICES_MAX`]. For k looks
/// of one weight that is k.
#[must_use]
pub fn choices(weight_ns: u64, square: f64) -> u64 {
    let choices = (weight_ns as f64).powi(2) / square;
    match choices.is_nan() {
        true => 1,
        // `as` stops at the ends of the range.
        false => (choices.round() as u64).clamp(1, CHOICES_MAX),
    }
}

/// Samples with the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// Their weight.
    pub weight_ns: u64,
    /// The sum of the squares of their weights.
    pub squares: f64,
    /// How many there were.
    pub looks: u64,
}

impl Sum {
    /// Adds `count` samples that stand for `weight_ns` together, and are as certain as this many
    /// [`choices`].
    pub fn add(&mut self, weight_ns: u64, count: u64, choices: u64) {
        self.weight_ns = self.weight_ns.saturating_add(weight_ns);
        self.squares += (weight_ns as f64).powi(2) / choices.max(1) as f64;
        self.looks += count.max(1);
    }
}

/// The samples of a recording, by their result.
#[derive(Clone, Debug, Default)]
pub struct ByCause {
    of: BTreeMap<&'static str, Sum>,
    heaviest: f64,
    told_ns: u64,
}

/// Time between two reports; there is another one at the end.
const EVERY_NS: u64 = 10_000_000_000;

impl ByCause {
    /// Adds `count` samples that stand for `weight_ns` together: see [`Sum::add`].
    pub fn add(&mut self, cause: &'static str, weight_ns: u64, count: u64, choices: u64) {
        let sum = self.of.entry(cause).or_default();
        sum.add(weight_ns, count, choices);
        self.heaviest = self.heaviest.max(weight_ns as f64 / count.max(1) as f64);
    }

    /// Each cause with its sum and the sum's standard error, in ns, if a report is due.
    pub fn told(&mut self, now_ns: u64, is_over: bool) -> Vec<(&'static str, Sum, u64)> {
        if !is_over && now_ns.saturating_sub(self.told_ns) < EVERY_NS {
            return Vec::new();
        }
        self.told_ns = now_ns;
        let error_ns = |sum: &Sum| standard_error(sum.squares, self.heaviest) as u64;
        let all = self.of.iter();
        all.map(|(cause, sum)| (*cause, *sum, error_ns(sum)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_in_one_event_equal_many_events() {
        let (mut one, mut many) = (Sum::default(), Sum::default());
        one.add(40, 4, 4);
        (0..4).for_each(|_| many.add(10, 1, 1));
        assert_eq!(one, many);
        assert_eq!(one.squares, 400.0);
        one.add(30, 0, 0);
        assert_eq!((one.weight_ns, one.looks, one.squares), (70, 5, 1300.0));
    }

    #[test]
    fn choices_equal_looks_of_one_weight() {
        assert_eq!(choices(40, 400.0), 4);
        assert_eq!(choices(40, 1600.0), 1);
        assert_eq!(choices(40, 0.0), CHOICES_MAX);
        assert_eq!(choices(0, 0.0), 1);
        assert_eq!(choices(1, 9.0), 1);
        let mut sum = Sum::default();
        sum.add(40, 4, CHOICES_MAX);
        assert!(sum.squares < 1e-5 && sum.looks == 4);
    }

    #[test]
    fn standard_error_includes_unseen_looks() {
        assert_eq!(standard_error(25.0, 0.0), 5.0);
        assert_eq!(standard_error(10.0, 2.0), 4.0);
        assert_eq!(standard_error(0.0, 2.0), 6f64.sqrt());
    }

    #[test]
    fn sums_are_reported_with_errors_every_ten_seconds() {
        let mut sums = ByCause::default();
        sums.add("sleep", 40, 4, 4);
        sums.add("monitor", 30, 1, 1);
        sums.add("sleep", 10, 1, 1);
        let numbers = |told: Vec<(&'static str, Sum, u64)>| -> Vec<_> {
            let number = told
                .iter()
                .map(|(cause, sum, error)| (*cause, sum.weight_ns, *error));
            number.collect()
        };
        // sqrt(900 + 1.5 * 900) and sqrt(5 * 100 + 1.5 * 900).
        let wanted = [("monitor", 30, 47), ("sleep", 50, 43)];
        assert_eq!(numbers(sums.told(EVERY_NS, false)), wanted);
        assert!(sums.told(2 * EVERY_NS - 1, false).is_empty());
        assert_eq!(numbers(sums.told(2 * EVERY_NS - 1, true)), wanted);
    }
}
