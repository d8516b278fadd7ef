//! Bounds for what chance may do to a sampled profile. Pure.
//!
//! A sampler takes one sample in each interval of a thread's CPU time, at a random place in it. The
//! variance of its counts does not exceed that of independent draws, which these bounds assume.

/// Chance of a false alarm of one comparison of a whole profile.
pub const FALSE_ALARM: f64 = 1e-6;

/// The maximum error of a share that is truly `share` in `samples` samples. With `comparisons` of
/// them, the probability of any false alarm is [`FALSE_ALARM`]. Bernstein's inequality: P(|X - p|
/// >= t) <= 2 exp(-n t^2 / (2 p (1 - p) + 2 t / 3)).
#[must_use]
pub fn share_bound(share: f64, samples: f64, comparisons: usize) -> f64 {
    let log = (2.0 * comparisons as f64 / FALSE_ALARM).ln();
    let linear = log / (3.0 * samples);
    let variance = share * (1.0 - share);
    linear + (linear * linear + 2.0 * variance * log / samples).sqrt()
}

/// The error of a sum of independent terms that is exceeded with a probability of `chance` or less.
/// The sum has this `variance`, and no term differs from its mean by more than `largest`.
/// Bernstein's inequality: P(|X - EX| >= t) <= 2 exp(-t^2 / (2 (V + M t / 3))).
#[must_use]
pub fn sum_bound(variance: f64, largest: f64, chance: f64) -> f64 {
    let log = (2.0 / chance).ln();
    let linear = log * largest / 3.0;
    linear + (linear * linear + 2.0 * variance * log).sqrt()
}

/// The error of a number of successes in `draws` draws with the probability `p` each that is
/// exceeded with a probability of `chance` or less. Chernoff's bound: P(X >= q n) <= exp(-n D(q ||
/// p)) for q > p, D being the relative entropy, and the same below.
#[must_use]
pub fn binomial_bound(draws: f64, p: f64, chance: f64) -> f64 {
    let log = (2.0 / chance).ln();
    let term = |a: f64, b: f64| if a > 0.0 { a * (a / b).ln() } else { 0.0 };
    let is_likely = |off: f64| {
        let q = p + off / draws;
        (0.0..=1.0).contains(&q) && draws * (term(q, p) + term(1.0 - q, 1.0 - p)) < log
    };
    // D grows with the distance on either side.
    let side = |sign: f64| {
        let (mut near, mut far) = (0.0, draws);
        for _ in 0..100 {
            let middle = (near + far) / 2.0;
            match is_likely(sign * middle) {
                true => near = middle,
                false => far = middle,
            }
        }
        far
    };
    side(1.0).max(side(-1.0))
}

/// The maximum total variation distance between true shares and `samples` samples. Its mean does
/// not exceed half the sum of the standard deviations, and one sample moves it by 1/n or less. By
/// McDiarmid, it exceeds its mean by t with a probability of exp(-2 n t^2) or less.
#[must_use]
pub fn distance_bound(shares: &[f64], samples: f64) -> f64 {
    let mean: f64 = shares
        .iter()
        .map(|p| (p * (1.0 - p) / samples).sqrt())
        .sum::<f64>()
        / 2.0;
    mean + ((1.0 / FALSE_ALARM).ln() / (2.0 * samples)).sqrt()
}

/// The number of equal samples that scatter as much as these weights do: (sum w)^2 / sum w^2.
#[must_use]
pub fn effective_samples(weights: impl Iterator<Item = u64>) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for weight in weights {
        let weight = weight as f64;
        sum += weight;
        squares += weight * weight;
    }
    sum * sum / squares
}

/// Whether `times` in `all` draws may be said to be more often than with the chance `rate` of each:
/// whether so many or more come about with a chance of less than [`FALSE_ALARM`] (exact binomial).
#[must_use]
pub fn is_more_often(times: usize, all: usize, rate: f64) -> bool {
    // The chance of 0, 1, ... by the ratio of neighbours, from the logarithm of the first one.
    let (n, odds) = (all as f64, (rate / (1.0 - rate)).ln());
    let mut log = n * (-rate).ln_1p();
    let mut below = 0.0;
    for k in 0..times {
        below += log.exp();
        let k = k as f64;
        log += ((n - k) / (k + 1.0)).ln() + odds;
    }
    times > 0 && times as f64 > rate * n && 1.0 - below < FALSE_ALARM
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws that are fair must pass, draws that are off by some points must not.
    #[test]
    fn bounds_separate_bias_from_chance() {
        let samples = 4000.0;
        let bound = share_bound(0.05, samples, 20);
        let sigma = (0.05_f64 * 0.95 / samples).sqrt();
        assert!(bound > 5.0 * sigma, "{bound}");
        assert!(bound < 0.025, "{bound}");
        let distance = distance_bound(&[0.05; 20], samples);
        assert!((0.04..0.09).contains(&distance), "{distance}");
    }

    /// P(|X - 500| > 77 | 1000, 0.5) = 1e-6, and P(X < 83 | 84, 1 - 1e-7) = 4e-11.
    #[test]
    fn binomial_bound_holds_for_few_and_for_all_successes() {
        let bound = binomial_bound(1000.0, 0.5, 1e-6);
        assert!(bound > 77.0 && bound < 90.0, "{bound}");
        let bound = binomial_bound(84.0, 1.0 - 1.1e-7, 1e-7);
        assert!(bound > 1.0 && bound < 2.0, "{bound}");
        // A Poisson number of mean 1,000: 5.3 standard deviations.
        let bound = binomial_bound(1e9, 1e-6, 1e-6);
        assert!(bound > 4.9 * 31.6 && bound < 6.0 * 31.6, "{bound}");
    }

    /// Of 1,000 tosses of a coin 500 are heads, up to 5 standard deviations or so.
    #[test]
    fn sums_of_many_small_terms_are_bounded_by_their_variance() {
        let bound = sum_bound(250.0, 0.5, 1e-6);
        let sigma = 250.0_f64.sqrt();
        assert!(bound > 5.0 * sigma && bound < 6.0 * sigma, "{bound}");
        assert_eq!(sum_bound(0.0, 0.0, 1e-6), 0.0);
    }

    /// P(X >= 19 | 1000, 0.005) = 1.28e-6 and P(X >= 20) = 3.1e-7, computed with fractions.
    #[test]
    fn rates_are_judged_by_the_binomial_distribution() {
        assert!(!is_more_often(0, 0, 0.005) && !is_more_often(0, 1000, 0.005));
        assert!(!is_more_often(5, 1000, 0.005) && !is_more_often(18, 1000, 0.005));
        assert!(is_more_often(20, 1000, 0.005) && is_more_often(1000, 1000, 0.005));
        assert!(!is_more_often(560, 100_000, 0.005) && is_more_often(640, 100_000, 0.005));
    }

    #[test]
    fn equal_weights_count_each_and_one_heavy_weight_counts_little() {
        assert!((effective_samples([7; 10].into_iter()) - 10.0).abs() < 1e-9);
        assert!(effective_samples([1, 1, 1, 97].into_iter()) < 1.1);
    }
}
