//! Which of many differences are more than chance. Pure arithmetic.

use super::Change;

/// Of the differences that are called significant, at most this part is chance, on average.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// Marks the significant changes, by the step-up procedure of Benjamini and Hochberg. For m tests,
/// sorted by their p-values, the first k are significant, for the largest k whose p-value does not
/// exceed `k / m` times [`FALSE_DISCOVERIES`].
pub fn significant(changes: &mut [Change]) {
    let mut tested: Vec<(f64, usize)> = (changes.iter().enumerate())
        .filter(|(_, change)| change.z != 0.0)
        .map(|(place, change)| (two_sided(change.z), place))
        .collect();
    // Changes of nothing are tests too, with the probability 1.
    let untouched = changes
        .iter()
        .filter(|c| c.z == 0.0 && is_tested(c))
        .count();
    let all = (tested.len() + untouched) as f64;
    tested.sort_by(|a, b| a.0.total_cmp(&b.0));
    let passes = |(place, (p, _)): (usize, &(f64, usize))| {
        *p <= FALSE_DISCOVERIES * (place + 1) as f64 / all
    };
    let last = tested.iter().enumerate().rposition(passes);
    for (_, place) in tested.iter().take(last.map_or(0, |last| last + 1)) {
        if let Some(change) = changes.get_mut(*place) {
            change.is_significant = true;
        }
    }
}

fn is_tested(change: &Change) -> bool {
    change.a.samples.saturating_add(change.b.samples) >= super::TESTED_FROM
}

/// The probability that a normal variable lies at least so many deviations from its mean.
#[must_use]
pub fn two_sided(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    if x < 2.0 {
        1.0 - erf_series(x)
    } else {
        erfc_fraction(x)
    }
}

/// The error function by its power series, for small numbers.
fn erf_series(x: f64) -> f64 {
    let (mut sum, mut term) = (x, x);
    for n in 1..60 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

/// Its complement by its continued fraction, for large numbers, from the inside out.
fn erfc_fraction(x: f64) -> f64 {
    let inner = (1..=60)
        .rev()
        .fold(x, |below, n| x + f64::from(n) / 2.0 / below);
    (-x * x).exp() / (std::f64::consts::PI.sqrt() * inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_normal_distribution() {
        for (z, expected) in [
            (0.0, 1.0),
            (1.0, 0.317_310_507_9),
            (1.959_963_985, 0.05),
            (2.8, 0.005_110_260_7),
            (2.9, 0.003_731_626_6),
            (5.0, 5.733_031_4e-7),
            (-5.0, 5.733_031_4e-7),
        ] {
            let p = two_sided(z);
            assert!(
                (p - expected).abs() <= 1e-8 * expected.max(1e-3),
                "{z}: {p} {expected}"
            );
        }
        assert!(two_sided(40.0) < 1e-300 && two_sided(40.0) >= 0.0);
    }
}
