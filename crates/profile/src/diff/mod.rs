//! The difference of two profiles: the methods and causes that take more or less time, and whether
//! the change is statistically significant.
//!
//! Both are brought to the same base first: a second, a request, or all that was sampled. A row's
//! change is tested against no change: were the rate r the same in both, the sums would vary by
//! chance with a known variance, because the weights of all samples are known (see
//! [`Base::variance`]). As there are many rows, the rate of false discoveries is limited, not that
//! of each row's error ([`statistics`]).

mod both;
mod names;
pub mod statistics;

pub use both::{Both, both};
pub use names::stable;

use crate::aggregate::{GroupBy, Grouped};
use crate::idle::IDLE;
use crate::names::Names;
use crate::profile::{Profile, Unit};
use crate::sample::Weight;
use crate::wall::WallFilter;
use std::collections::BTreeMap;

/// Rows of fewer samples in both together are not tested: they could not show anything.
pub const TESTED_FROM: u64 = 10;

/// The unit to which both profiles are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A second of the recording.
    Second,
    /// A request that ended.
    Request,
    /// All that was sampled: rows are shares.
    Sample,
}

/// The base of two profiles' sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Base {
    /// The unit.
    pub per: Per,
    /// How many of it there are: seconds, requests, or the sum of all weights.
    pub a: f64,
    /// The same of the second profile.
    pub b: f64,
    /// Mean weight of a nanosecond's sample: the sum of squares by the sum.
    grain_a: f64,
    grain_b: f64,
    /// Whether weights of both are of one unit, so that they can be added up.
    is_one_unit: bool,
}

/// One line of a table of differences.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// A method, or a cause.
    pub name: String,
    /// Its sum in the first profile.
    pub a: Weight,
    /// Its sum in the second profile.
    pub b: Weight,
    /// Sums by the base.
    pub rate_a: f64,
    /// The same of the second profile.
    pub rate_b: f64,
    /// The standard error of the difference under the hypothesis of no change.
    pub error: f64,
    /// The difference in standard errors; 0 where it was not tested.
    pub z: f64,
    /// Whether it is more than chance.
    pub is_significant: bool,
}

impl Change {
    /// How much more it is per unit of the base.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.rate_b - self.rate_a
    }

    /// Whether the row is absent from the first profile.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.a.samples == 0
    }

    /// Whether the row is absent from the second profile.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.b.samples == 0
    }
}

/// How much a row has grown, and whether that is more than was allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Its sum by the base in the first profile.
    pub rate_a: f64,
    /// The same of the second profile.
    pub rate_b: f64,
    /// Increase of the second one as a part of the first one; `None` if the first one is 0.
    pub part: Option<f64>,
    /// The standard error of that part.
    pub error: Option<f64>,
    /// Whether it is more than what was allowed, be it by chance.
    pub is_more: bool,
    /// How much more it is than what was allowed, in standard errors; 0 where it was not tested.
    pub z: f64,
}

impl Base {
    /// The base of two profiles with these wholes; `None` if one has no amount of the unit.
    #[must_use]
    pub fn new(per: Per, a: (&Profile, &Weight), b: (&Profile, &Weight)) -> Option<Base> {
        let of = |(profile, whole): (&Profile, &Weight)| match per {
            Per::Second => profile.info().duration_ns as f64 / 1e9,
            Per::Request => {
                let requests = profile.requests().iter();
                requests.fold(0u64, |sum, r| sum.saturating_add(r.count)) as f64
            }
            Per::Sample => whole.sum as f64,
        };
        let grain = |whole: &Weight| match whole.sum {
            0 => 1.0,
            sum => whole.squares / sum as f64,
        };
        let base = Base {
            per,
            a: of(a),
            b: of(b),
            grain_a: grain(a.1),
            grain_b: grain(b.1),
            is_one_unit: a.0.unit() == b.0.unit(),
        };
        (base.a > 0.0 && base.b > 0.0).then_some(base)
    }

    /// The same base with other weights of samples, for rows that one profile lacks: the mean
    /// weights of these wholes. Wall time uses the non-idle time. Idle threads have many derived
    /// samples, which weigh almost nothing, and non-idle rows are of other threads.
    #[must_use]
    pub fn with_grains_of(self, a: &Weight, b: &Weight) -> Base {
        let Base {
            grain_a, grain_b, ..
        } = Base::of_moments(a, b);
        Base {
            grain_a: if a.sum > 0 { grain_a } else { self.grain_a },
            grain_b: if b.sum > 0 { grain_b } else { self.grain_b },
            ..self
        }
    }

    /// As with [`Per::Second`], of what was recorded for so many nanoseconds of the two profiles.
    #[must_use]
    pub fn of_times(a: (u64, &Weight), b: (u64, &Weight)) -> Option<Base> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let base = Base {
            a: seconds(a.0),
            b: seconds(b.0),
            ..Base::of_moments(a.1, b.1)
        };
        (base.a > 0.0 && base.b > 0.0).then_some(base)
    }

    /// The base of sums at one moment, which need no division by time.
    #[must_use]
    pub fn of_moments(a: &Weight, b: &Weight) -> Base {
        let grain = |whole: &Weight| match whole.sum {
            0 => 1.0,
            sum => whole.squares / sum as f64,
        };
        Base {
            per: Per::Second,
            a: 1.0,
            b: 1.0,
            grain_a: grain(a),
            grain_b: grain(b),
            is_one_unit: true,
        }
    }

    /// The rate of the first profile, estimated from both, if that of the second is `growth` times
    /// as much. Where they are of two units each side counts as many samples as it is worth: its
    /// base by its grain.
    fn rate_of_both(&self, a: &Weight, b: &Weight, growth: f64) -> f64 {
        let (by_a, by_b) = match self.is_one_unit {
            true => (1.0, 1.0),
            false => (self.grain_a, self.grain_b),
        };
        let sums = a.sum as f64 / by_a + b.sum as f64 / by_b;
        sums / (self.a / by_a + growth * self.b / by_b)
    }

    /// The variance of the difference of two rates that are the same but for chance.
    ///
    /// A sum of weights w of samples that come by chance has the variance `sum of w^2`, that is,
    /// its mean times the mean of w^2 by that of w, the *grain*. With the rate r of both together
    /// and the bases n and m: `r (grain_a / n + grain_b / m)`. Shares of a whole vary less:
    /// `(1 - r)` times that. Shares of two units are taken together by what each is worth.
    #[must_use]
    pub fn variance(&self, a: &Weight, b: &Weight) -> f64 {
        self.variance_of_growth(a, b, 1.0)
    }

    /// The variance of the second rate less `growth` times the first one, if these are the same but
    /// for chance. With the first rate r it is `growth^2 r grain_a / n + growth r grain_b / m`, and
    /// for a growth of 1 that of [`Base::variance`].
    fn variance_of_growth(&self, a: &Weight, b: &Weight, growth: f64) -> f64 {
        let rate = self.rate_of_both(a, b, growth);
        let grain = |of: &Weight, all: f64| match of.sum {
            0 => all,
            sum => of.squares / sum as f64,
        };
        let left = |rate: f64| match self.per {
            Per::Sample => (1.0 - rate).max(0.0),
            Per::Second | Per::Request => 1.0,
        };
        let of_a = growth * growth * rate * grain(a, self.grain_a) / self.a * left(rate);
        let of_b = growth * rate * grain(b, self.grain_b) / self.b * left(growth * rate);
        of_a + of_b
    }

    /// How much a row has grown, and by how much that is more than `tolerance` (0.05: 5 %).
    #[must_use]
    pub fn growth(&self, a: &Weight, b: &Weight, tolerance: f64) -> Growth {
        let (rate_a, rate_b) = (a.sum as f64 / self.a, b.sum as f64 / self.b);
        let allowed = 1.0 + tolerance;
        let error = self.variance_of_growth(a, b, allowed).sqrt();
        let is_tested = a.samples.saturating_add(b.samples) >= TESTED_FROM && error > 0.0;
        let growth = (rate_a > 0.0).then(|| rate_b / rate_a);
        Growth {
            rate_a,
            rate_b,
            part: growth.map(|growth| growth - 1.0),
            error: growth.map(|growth| self.variance_of_growth(a, b, growth).sqrt() / rate_a),
            is_more: rate_b > rate_a * allowed,
            z: match is_tested {
                true => (rate_b - rate_a * allowed) / error,
                false => 0.0,
            },
        }
    }

    fn change(&self, name: String, a: Weight, b: Weight) -> Change {
        let (rate_a, rate_b) = (a.sum as f64 / self.a, b.sum as f64 / self.b);
        let error = self.variance(&a, &b).sqrt();
        let is_tested = a.samples.saturating_add(b.samples) >= TESTED_FROM && error > 0.0;
        Change {
            name,
            a,
            b,
            rate_a,
            rate_b,
            error,
            z: match is_tested {
                true => (rate_b - rate_a) / error,
                false => 0.0,
            },
            is_significant: false,
        }
    }

    /// The differences of sums by name, the largest first.
    #[must_use]
    pub fn changes(&self, a: Sums, b: Sums) -> Vec<Change> {
        let mut both: BTreeMap<String, (Weight, Weight)> = BTreeMap::new();
        for (name, weight) in a {
            both.entry(name).or_default().0 += &weight;
        }
        for (name, weight) in b {
            both.entry(name).or_default().1 += &weight;
        }
        let changes = both
            .into_iter()
            .map(|(name, (a, b))| self.change(name, a, b));
        let mut changes: Vec<Change> = changes.collect();
        statistics::significant(&mut changes);
        let size = |change: &Change| change.difference().abs();
        changes.sort_by(|x, y| {
            size(y)
                .total_cmp(&size(x))
                .then_with(|| x.name.cmp(&y.name))
        });
        changes
    }
}

/// Wall-clock samples within this time belong to one stop of all threads.
const STOP_NS: u64 = 100_000_000;

/// Whether all threads enter a wait of this cause together. The samples of one such wait are one
/// observation, not one for each thread.
fn is_of_all(cause: &str) -> bool {
    matches!(cause, "safepoint" | "gc-stall")
}

/// Sums by name, in which what is seen of several threads at one stop is one sample.
#[derive(Default)]
struct Grains {
    sums: Sums,
    stops: BTreeMap<(String, u64), u64>,
}

impl Grains {
    fn add(&mut self, name: String, stop: Option<u64>, weight: &Weight) {
        match stop {
            None => *self.sums.entry(name).or_default() += weight,
            Some(stop) => {
                let sum = self.stops.entry((name, stop)).or_default();
                *sum = sum.saturating_add(weight.sum);
            }
        }
    }

    fn sums(mut self) -> Sums {
        for ((name, _), sum) in self.stops {
            *self.sums.entry(name).or_default() += &Weight::of(sum);
        }
        self.sums
    }
}

/// Sums by name.
pub type Sums = BTreeMap<String, Weight>;

impl Profile {
    /// CPU time by method: that of the method itself, and that with all it calls. Names are made
    /// such that they are the same in each run ([`stable`]).
    #[must_use]
    pub fn sums_by_method(&self) -> (Sums, Sums) {
        let mut names = Names::default();
        let grouped = self.group(GroupBy::Method);
        let stables = grouped.names.iter().map(|name| names.intern(&stable(name)));
        let stables: Vec<u32> = stables.collect();
        let of_frame = (grouped.of_frame.iter())
            .map(|group| stables.get(*group as usize).copied().unwrap_or(0))
            .collect();
        let grouped = Grouped {
            of_frame,
            names: names.iter().map(str::to_owned).collect(),
        };
        let (own, total) = self.sums(&grouped, &self.node_weights(|_| true));
        let named = |sums: Vec<Weight>| {
            let named = grouped.names.iter().cloned().zip(sums);
            named.filter(|(_, weight)| weight.samples > 0).collect()
        };
        (named(own), named(total))
    }

    /// Wall time by cause, and by cause and the program's method that waits.
    #[must_use]
    pub fn sums_by_cause(&self) -> (Sums, Sums) {
        let (mut causes, mut places) = (Grains::default(), Grains::default());
        let filter = WallFilter::default();
        let mut known: BTreeMap<u32, String> = BTreeMap::new();
        for wall in self.wall(&filter) {
            let stop = is_of_all(wall.cause).then_some(wall.time_ns / STOP_NS);
            causes.add(wall.cause.to_owned(), stop, &wall.weight);
            let place = known.entry(wall.node).or_insert_with(|| {
                let place = self.place(wall.node);
                stable(&place.unwrap_or_else(|| "[no Java frame]".to_owned()))
            });
            let name = format!("{}: {place}", wall.cause);
            places.add(name, stop, &wall.weight);
        }
        (causes.sums(), places.sums())
    }

    /// All wall time, and the part that was not idle; 0 without wall time.
    #[must_use]
    pub fn wall_totals(&self) -> (Weight, Weight) {
        let (mut all, mut busy) = (Weight::default(), Weight::default());
        if self.unit() == Unit::Nanoseconds {
            for wall in self.wall(&WallFilter::default()) {
                all += &wall.weight;
                if wall.cause != IDLE {
                    busy += &wall.weight;
                }
            }
        }
        (all, busy)
    }
}

#[cfg(test)]
mod tests;
