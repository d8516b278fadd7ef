//! Samples, the threads they were taken of, and the weight they stand for.

use crate::extent::{Extent, Window};
use crate::names::NameId;
use crate::tree::NodeId;
use dwell_wall::sums;

/// Index of a [`Thread`] in a profile.
pub type ThreadId = u32;
/// Index of a failure cause in a profile.
pub type CauseId = NameId;

/// A thread of the profiled program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The Java name, otherwise the operating system's.
    pub name: NameId,
    /// The operating system's number of the thread; 0 when unknown.
    pub os_tid: i64,
    /// The Java number of the thread; 0 when it is not a Java thread.
    pub java_tid: i64,
    /// Whether it is a virtual thread.
    pub is_virtual: bool,
}

/// Index of a [`Context`] in a profile.
pub type ContextId = u32;

/// The request that a thread worked for. Absent ids are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// The trace.
    pub trace_id: u128,
    /// The span.
    pub span_id: u64,
    /// The first span of the trace in this process: the request.
    pub local_root_span_id: u64,
    /// The endpoint, also if it only became known when the request ended.
    pub endpoint: Option<NameId>,
    /// Names and values of labels.
    pub labels: Vec<(NameId, NameId)>,
}

/// One sample: the activity of a thread at a time, and the amount of the measured quantity that it
/// stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack.
    pub node: NodeId,
    /// How much the sample stands for: nanoseconds, or 1 in a profile that counts samples.
    pub weight: u64,
    /// How many samples of the recording it is: more than 1 where there are too many to be kept,
    /// see [`Profile::bin_ns`](crate::Profile::bin_ns).
    pub count: u32,
    /// Why the stack is not whole, if it is not.
    pub failure: Option<CauseId>,
    /// The context of the thread, if known.
    pub context: Option<ContextId>,
}

/// Equal wall-clock samples of a thread that did not run. Empty by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The first look, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// From there to the last one.
    pub duration_ns: u64,
    /// The thread; the virtual one where one was mounted.
    pub thread: ThreadId,
    /// The stack.
    pub node: NodeId,
    /// The cause of the wait.
    pub cause: CauseId,
    /// The wall-clock time that the looks stand for.
    pub weight_ns: u64,
    /// How many looks there were.
    pub count: u64,
    /// As how many looks of one weight that is certain: more than there were where the thread is
    /// known to have been there in between. 0: as many as there were.
    pub choices: u64,
    /// The context of the thread, if known.
    pub context: Option<ContextId>,
    /// On what the thread waited, in words.
    pub detail: Option<NameId>,
    /// The owner of the lock that it waited for.
    pub owner: Option<ThreadId>,
    /// Where that one was, if it waited too.
    pub owner_node: Option<NodeId>,
}

impl Look {
    /// The time over which its weight lies.
    #[must_use]
    pub fn extent(&self) -> Extent {
        Extent {
            time_ns: self.time_ns,
            duration_ns: self.duration_ns,
        }
    }

    /// [`Look::choices`], with a default for recordings that lack it.
    #[must_use]
    pub fn as_choices(&self) -> u64 {
        match self.choices {
            0 => self.count.max(1),
            choices => choices,
        }
    }
}

/// A sum of samples' weights that remembers how certain it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    /// Sum of the weights.
    pub sum: u64,
    /// Sum of their squares.
    pub squares: f64,
    /// Number of samples.
    pub samples: u64,
    /// The maximum weight of a sample of this kind in the recording, also if it is not in the sum.
    /// 0 for samples of CPU time, whose weights are alike.
    pub heaviest: f64,
}

impl Weight {
    /// The weight of one sample.
    pub fn of(weight: u64) -> Weight {
        Weight {
            sum: weight,
            squares: (weight as f64).powi(2),
            samples: 1,
            heaviest: 0.0,
        }
    }

    /// The weight of equal wall-clock samples, with their recorded precision. `heaviest` is the
    /// maximum weight of a sample in the recording.
    pub fn of_look(look: &Look, heaviest: f64) -> Weight {
        Weight {
            sum: look.weight_ns,
            squares: (look.weight_ns as f64).powi(2) / look.as_choices() as f64,
            samples: look.count.max(1),
            heaviest,
        }
    }

    /// The weight of a sample. One that is several is taken for as many of the same weight.
    pub fn of_sample(sample: &Sample) -> Weight {
        let count = sample.count.max(1);
        Weight {
            sum: sample.weight,
            squares: (sample.weight as f64).powi(2) / f64::from(count),
            samples: u64::from(count),
            heaviest: 0.0,
        }
    }

    /// The part in a window of an event's weight ([`Window::part`]), with its precision; `None`
    /// outside of the window.
    #[must_use]
    pub fn within(&self, window: &Window, extent: Extent) -> Option<Weight> {
        window.overlap(extent)?;
        let part = Weight {
            sum: window.part(self.sum, extent),
            samples: window.part(self.samples, extent),
            ..*self
        };
        if part.sum == self.sum {
            return Some(part);
        }
        if part.sum == 0 && part.samples == 0 {
            return None;
        }
        // As certain as its part of so many choices of one weight, or as one.
        let share = part.sum as f64 / self.sum.max(1) as f64;
        let choices = (self.sum as f64).powi(2) / self.squares.max(f64::MIN_POSITIVE);
        Some(Weight {
            squares: self.squares * share * (share * choices).min(1.0),
            ..part
        })
    }

    /// The standard error of the sum: `sqrt(sum of w^2 + 1.5 W^2)`, W being the heaviest look.
    ///
    /// The first is the error of a Poisson process whose events carry the weights w: how many
    /// samples hit this row is chance, each hit is worth its weight. It knows those only that were
    /// seen; the second is for looks that might as well have been ([`sums::UNSEEN`]).
    pub fn standard_error(&self) -> f64 {
        sums::standard_error(self.squares, self.heaviest)
    }

    /// This weight as a share of `whole`, 0 when `whole` is nothing.
    pub fn share(&self, whole: &Weight) -> f64 {
        if whole.sum == 0 {
            0.0
        } else {
            self.sum as f64 / whole.sum as f64
        }
    }

    /// As a part or a multiple of itself, with its error.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Weight {
        Weight {
            sum: (self.sum as f64 * factor).round() as u64,
            squares: self.squares * factor * factor,
            samples: self.samples,
            heaviest: self.heaviest * factor,
        }
    }

    /// The standard error of [`share`](Weight::share), where this weight is part of `whole`.
    ///
    /// With p the share, S the whole's sum, A the squares inside the part and B those outside:
    /// `sqrt((1-p)^2 A + p^2 B) / S`, the ratio estimator's first-order error. For n equal weights
    /// this is the binomial `sqrt(p (1-p) / n)`, and 0 for a part that is all. Looks that were
    /// not seen, inside or outside, count as in [`standard_error`](Weight::standard_error).
    pub fn share_error(&self, whole: &Weight) -> f64 {
        let inside = match self.heaviest > 0.0 {
            true => self.heaviest,
            // A sample of a running thread could have been one of a waiting thread.
            false => whole.heaviest,
        };
        self.share_error_with(whole, unseen(inside), unseen(whole.heaviest))
    }

    /// The same for callers that correct for few samples themselves, as Wilson's interval does.
    /// Only the excess weight of a sample that was possible but not taken counts.
    pub fn share_error_of_seen(&self, whole: &Weight) -> f64 {
        let mean_square = self.squares / self.samples.max(1) as f64;
        let heavier = (self.heaviest.powi(2) - mean_square).max(0.0);
        self.share_error_with(whole, sums::UNSEEN * heavier, 0.0)
    }

    fn share_error_with(&self, whole: &Weight, inside: f64, outside: f64) -> f64 {
        if whole.sum == 0 || self.samples >= whole.samples {
            return 0.0;
        }
        let share = self.share(whole);
        let inside = self.squares + inside;
        let outside = (whole.squares - self.squares).max(0.0) + outside;
        let variance = (1.0 - share).powi(2) * inside + share.powi(2) * outside;
        variance.sqrt() / whole.sum as f64
    }
}

fn unseen(heaviest: f64) -> f64 {
    sums::UNSEEN * heaviest * heaviest
}

impl std::ops::AddAssign<&Weight> for Weight {
    fn add_assign(&mut self, other: &Weight) {
        self.sum = self.sum.saturating_add(other.sum);
        self.squares += other.squares;
        self.samples += other.samples;
        self.heaviest = self.heaviest.max(other.heaviest);
    }
}

#[cfg(test)]
impl Look {
    /// One that says nothing, for tests to begin with.
    pub(crate) const PLAIN: Look = Look {
        time_ns: 0,
        duration_ns: 0,
        thread: 0,
        node: 0,
        cause: 0,
        weight_ns: 0,
        count: 0,
        choices: 0,
        context: None,
        detail: None,
        owner: None,
        owner_node: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(weights: &[u64]) -> Weight {
        let mut sum = Weight::default();
        for &weight in weights {
            sum += &Weight::of(weight);
        }
        sum
    }

    #[test]
    fn look_precision_follows_recorded_choices() {
        let error = |choices| {
            let look = Look {
                choices,
                ..look(1000, 4)
            };
            Weight::of_look(&look, 0.0).standard_error()
        };
        assert_eq!([error(0), error(4), error(100)], [500.0, 500.0, 100.0]);
        assert!(error(1_000_000_000) < 0.1);
    }

    #[test]
    fn part_is_as_certain_as_its_choices() {
        let window = |from_ns, to_ns| Window { from_ns, to_ns };
        let extent = Extent {
            time_ns: 0,
            duration_ns: 100,
        };
        let weight = |choices: f64| Weight {
            sum: 1_000,
            squares: 1e6 / choices,
            samples: 10,
            heaviest: 0.0,
        };
        let half = |choices| weight(choices).within(&window(0, 50), extent);
        assert_eq!(half(1.0).unwrap().squares, 250_000.0, "one look: (w/2)^2");
        assert_eq!(half(100.0).unwrap().squares, 5_000.0, "half of the looks");
        assert_eq!(half(1.0).unwrap().samples, 5);
        assert_eq!(
            weight(3.0).within(&window(0, 100), extent),
            Some(weight(3.0))
        );
        assert_eq!(weight(3.0).within(&window(100, 200), extent), None);
    }

    #[test]
    fn error_of_a_sum_is_the_root_of_the_squares() {
        assert_eq!(sum(&[3, 4]).standard_error(), 5.0);
        assert_eq!(Weight::default().standard_error(), 0.0);
    }

    #[test]
    fn error_of_a_share_is_binomial_for_equal_weights() {
        let (part, whole) = (sum(&[10; 25]), sum(&[10; 100]));
        assert_eq!(part.share(&whole), 0.25);
        let binomial = (0.25f64 * 0.75 / 100.0).sqrt();
        assert!((part.share_error(&whole) - binomial).abs() < 1e-12);
        assert_eq!(whole.share_error(&whole), 0.0);
        assert_eq!(part.share(&Weight::default()), 0.0);
        assert_eq!(part.share_error(&Weight::default()), 0.0);
    }

    /// The probability that a Poisson variable is `k`.
    fn poisson(k: u32, mean: f64) -> f64 {
        (0..k).fold((-mean).exp(), |p, i| p * mean / f64::from(i + 1))
    }

    fn look(weight_ns: u64, count: u64) -> Look {
        Look {
            weight_ns,
            count,
            ..Look::PLAIN
        }
    }

    /// However few looks hit a row, its true time is within 1.96 standard errors at least nine
    /// times in ten. Nothing is drawn: all numbers of looks are added up with their probability.
    #[test]
    fn few_looks_tell_how_uncertain_they_are() {
        const W: u64 = 1_000_000;
        let mut least = (1.0f64, 1.0f64);
        for step in 1..=600 {
            let mean = f64::from(step) / 20.0;
            let (mut held, mut held_naively) = (0.0, 0.0);
            for k in 0..120 {
                let mut row = Weight {
                    heaviest: W as f64,
                    ..Weight::default()
                };
                if k > 0 {
                    row += &Weight::of_look(&look(W * u64::from(k), u64::from(k)), W as f64);
                }
                let off = (row.sum as f64 - mean * W as f64).abs();
                let p = poisson(k, mean);
                held += p * f64::from(u8::from(off <= 1.96 * row.standard_error()));
                held_naively += p * f64::from(u8::from(off <= 1.96 * row.squares.sqrt()));
            }
            least = (least.0.min(held), least.1.min(held_naively));
        }
        assert!(least.0 > 0.9, "{least:?}");
        assert!(
            least.1 < 0.5,
            "a look not seen counts for nothing: {least:?}"
        );
    }

    /// Many light looks and a few heavy ones, which mostly none was made of: the row's share is
    /// within 1.96 standard errors at least nine times in ten, and without those that might have
    /// been seen far less often.
    #[test]
    fn margins_hold_where_few_looks_weigh_much() {
        const TRIALS: u32 = 2000;
        const HEAVY: u64 = 100;
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut chance = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for (mean_heavy, light) in [(0.7, 200u32), (1.5, 500), (4.0, 1000), (12.0, 0)] {
            let (mut held, mut held_naively) = (0u32, 0u32);
            // The row has these; the other rows of the recording have 10,000 light and 50 heavy
            // ones.
            let truth = (mean_heavy * HEAVY as f64 + f64::from(light))
                / (15_000.0 + mean_heavy * HEAVY as f64 + f64::from(light));
            for _ in 0..TRIALS {
                let mut draw = |mean: f64| {
                    let (mut k, mut left) = (0u64, chance());
                    let mut p = (-mean).exp();
                    while left > p && k < 200 {
                        left -= p;
                        k += 1;
                        p *= mean / k as f64;
                    }
                    k
                };
                let mut row = Weight::default();
                let (heavies, others) = (draw(mean_heavy), draw(50.0));
                row += &Weight::of_look(&look(u64::from(light), u64::from(light)), HEAVY as f64);
                row.samples = u64::from(light);
                if heavies > 0 {
                    row += &Weight::of_look(&look(HEAVY * heavies, heavies), HEAVY as f64);
                }
                let mut whole = row;
                whole += &Weight::of_look(&look(10_000, 10_000), HEAVY as f64);
                if others > 0 {
                    whole += &Weight::of_look(&look(HEAVY * others, others), HEAVY as f64);
                }
                let off = (row.share(&whole) - truth).abs();
                held += u32::from(off <= 1.96 * row.share_error(&whole));
                let naive = row.share_error_with(&whole, 0.0, 0.0);
                held_naively += u32::from(off <= 1.96 * naive);
            }
            // Nine in ten are 1800 of 2000; the deviation of that is 13.
            println!("{mean_heavy} {light}: {held}, without {held_naively}");
            assert!(held >= 1800, "{mean_heavy} {light}: {held} of {TRIALS}");
            assert!(mean_heavy > 1.0 || held_naively < 1400, "{held_naively}");
        }
    }

    #[test]
    fn few_sample_correction_counts_excess_weight_only() {
        let of = |weight, count, heaviest| Weight::of_look(&look(weight, count), heaviest);
        let mut whole = of(100, 10, 10.0);
        let part = of(30, 3, 10.0);
        assert_eq!(
            part.share_error_of_seen(&whole),
            part.share_error_with(&whole, 0.0, 0.0)
        );
        whole.heaviest = 50.0;
        let part = of(30, 3, 50.0);
        let expected = part.share_error_with(&whole, sums::UNSEEN * 2400.0, 0.0);
        assert_eq!(part.share_error_of_seen(&whole), expected);
        assert_eq!(whole.share_error_of_seen(&whole), 0.0);
    }

    #[test]
    fn sums_do_not_overflow() {
        assert_eq!(sum(&[u64::MAX, 5]).sum, u64::MAX);
    }
}
