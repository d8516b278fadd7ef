//! Shares with the confidence interval that sampling leaves them.

use crate::numbers::plural;
use crate::sure::Sure;
use dwell_profile::Weight;

/// Standard deviations that contain 95 % of a normal distribution.
const DEVIATIONS: f64 = 1.96;

/// Least data for a confidence: samples, waits, and the lower bound as a part of the share.
struct Enough {
    sure: Sure,
    samples: u64,
    waits: u64,
    low: f64,
}

const ENOUGH: [Enough; 2] = [
    Enough {
        sure: Sure::High,
        samples: 20,
        waits: 5,
        low: 0.6,
    },
    Enough {
        sure: Sure::Medium,
        samples: 6,
        waits: 3,
        low: 0.3,
    },
];

/// A part of a time. Pure arithmetic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Share {
    /// Name of the whole.
    pub of: String,
    /// The part, from 0 to 1.
    pub value: f64,
    /// With a probability of 95 % it is at least this: [`value`](Share::value) if it was counted.
    pub low: f64,
    /// And at most this.
    pub high: f64,
    /// The time itself.
    pub ns: u64,
    /// The samples behind it; 0: it was counted, not sampled.
    pub samples: u64,
    /// The waits that these samples belong to; 0: it is not about waits.
    pub waits: u64,
}

impl Share {
    /// The share that was sampled.
    pub(crate) fn sampled(part: &Weight, whole: &Weight, of: impl Into<String>) -> Share {
        let value = part.share(whole).min(1.0);
        let (low, high) = wilson(value, effective_samples(part, whole));
        Share {
            of: of.into(),
            value,
            low,
            high,
            ns: part.sum,
            samples: part.samples,
            waits: 0,
        }
    }

    /// The share that was counted.
    pub(crate) fn counted(ns: u64, whole_ns: u64, of: impl Into<String>) -> Share {
        let value = if whole_ns == 0 {
            0.0
        } else {
            (ns as f64 / whole_ns as f64).min(1.0)
        };
        Share {
            of: of.into(),
            value,
            low: value,
            high: value,
            ns,
            samples: 0,
            waits: 0,
        }
    }

    /// The highest confidence that the data allow, and why it is not higher.
    pub(crate) fn limit(&self) -> (Sure, String) {
        let is_counted = self.samples == 0;
        let has_waits = |least| self.waits == 0 || self.waits >= least;
        let met = ENOUGH.iter().position(|it| {
            let is_seen = self.samples >= it.samples && has_waits(it.waits);
            is_seen && self.low >= it.low * self.value
        });
        let at = match (is_counted, met) {
            (true, _) | (_, Some(0)) => return (Sure::High, String::new()),
            (_, Some(at)) => at,
            (_, None) => ENOUGH.len(),
        };
        let missed = ENOUGH.get(at - 1);
        let is_few = missed.is_some_and(|it| self.samples < it.samples || !has_waits(it.waits));
        let of = match self.waits {
            0 => String::new(),
            waits => format!(" of {}", plural(waits, "wait")),
        };
        let why = match is_few {
            true => format!("only {}{of}", plural(self.samples, "sample")),
            false => "the interval is wide".to_owned(),
        };
        (ENOUGH.get(at).map_or(Sure::Low, |it| it.sure), why)
    }

    /// Whether it is at least `value`, and surely at least `low`, by at least `samples` samples.
    pub(crate) fn is_at_least(&self, value: f64, low: f64, samples: u64) -> bool {
        self.value >= value && self.low >= low && self.samples >= samples
    }
}

/// How many samples of equal weight would be as certain as these of many weights.
fn effective_samples(part: &Weight, whole: &Weight) -> f64 {
    let share = part.share(whole);
    let error = part.share_error_of_seen(whole);
    if error > 0.0 && share > 0.0 && share < 1.0 {
        return (share * (1.0 - share) / error.powi(2)).min(whole.samples as f64);
    }
    if whole.squares > 0.0 {
        return (whole.sum as f64).powi(2) / whole.squares;
    }
    whole.samples as f64
}

/// Wilson's interval of a share: unlike that of the normal distribution it makes sense for few
/// samples and for shares of nothing and of all.
fn wilson(share: f64, samples: f64) -> (f64, f64) {
    if samples <= 0.0 {
        return (0.0, 1.0);
    }
    let z2 = DEVIATIONS * DEVIATIONS;
    let middle = (share + z2 / (2.0 * samples)) / (1.0 + z2 / samples);
    let spread = share * (1.0 - share) / samples + z2 / (4.0 * samples * samples);
    let half = DEVIATIONS / (1.0 + z2 / samples) * spread.max(0.0).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(samples: u64, weight: u64) -> Weight {
        let mut sum = Weight::default();
        (0..samples).for_each(|_| sum += &Weight::of(weight));
        sum
    }

    #[test]
    fn intervals_are_those_of_the_textbook() {
        // Wilson's interval of 10 in 100: 5.5 % to 17.4 %.
        let share = Share::sampled(&equal(10, 7), &equal(100, 7), "it");
        assert!((share.low - 0.0552).abs() < 5e-4, "{share:?}");
        assert!((share.high - 0.1744).abs() < 5e-4, "{share:?}");
        // All of 12: 75.8 % and more.
        let all = Share::sampled(&equal(12, 7), &equal(12, 7), "it");
        assert!(
            (all.low - 0.7575).abs() < 1e-3 && all.high > 0.999,
            "{all:?}"
        );
    }

    #[test]
    fn few_heavy_samples_are_less_certain_than_many_light_ones() {
        let mut heavy = equal(2, 500);
        let light = equal(100, 10);
        let mut whole = heavy;
        whole += &light;
        let few = Share::sampled(&heavy, &whole, "");
        heavy = equal(100, 10);
        let mut whole = heavy;
        whole += &light;
        let many = Share::sampled(&heavy, &whole, "");
        assert!(few.high - few.low > 2.0 * (many.high - many.low));
    }

    #[test]
    fn looks_that_might_have_been_heavier_are_less_certain() {
        let mut light = equal(20, 10);
        let mut whole = equal(200, 10);
        whole += &light;
        let alike = Share::sampled(&light, &whole, "");
        (light.heaviest, whole.heaviest) = (200.0, 200.0);
        let wary = Share::sampled(&light, &whole, "");
        assert_eq!(alike.value, wary.value);
        // One unseen look of 200 would double the part's time.
        assert!(wary.high > alike.value * 2.0, "{wary:?}");
        assert!(wary.low < alike.low, "{wary:?} {alike:?}");
    }

    #[test]
    fn confidence_follows_samples_waits_and_interval() {
        let limit = |samples, waits, low| {
            let share = Share {
                value: 0.5,
                low,
                samples,
                waits,
                ..Share::default()
            };
            share.limit()
        };
        for (samples, waits, low) in [(20, 5, 0.3), (20, 0, 0.3), (0, 0, 0.0)] {
            assert_eq!(limit(samples, waits, low), (Sure::High, String::new()));
        }
        let few = |text: &str| format!("only {text}");
        for (samples, waits, text) in [
            (19, 19, "19 samples of 19 waits"),
            (400, 4, "400 samples of 4 waits"),
            (19, 0, "19 samples"),
        ] {
            assert_eq!(limit(samples, waits, 0.4), (Sure::Medium, few(text)));
        }
        let wide = "the interval is wide".to_owned();
        assert_eq!(limit(100, 100, 0.29), (Sure::Medium, wide.clone()));
        assert_eq!(limit(100, 100, 0.14), (Sure::Low, wide));
        assert_eq!(limit(8, 2, 0.25), (Sure::Low, few("8 samples of 2 waits")));
        assert_eq!(limit(5, 5, 0.4), (Sure::Low, few("5 samples of 5 waits")));
    }

    #[test]
    fn nothing_of_nothing_is_nothing() {
        let share = Share::sampled(&Weight::default(), &Weight::default(), "");
        assert_eq!((share.value, share.low, share.high), (0.0, 0.0, 1.0));
        assert_eq!(Share::counted(1, 0, "").value, 0.0);
        assert_eq!(Share::counted(1, 4, "").low, 0.25);
    }
}
