//! Limits of growth for `--fail-on`: which of them the second recording exceeds by more than
//! chance.

use dwell_profile::diff::statistics::two_sided;
use dwell_profile::diff::{Base, Growth, Per};
use dwell_profile::{Lack, Profile, Weight, matches};
use serde_json::{Value, json};

use super::{Compared, Table, is_idle};
use crate::plain::plain;

/// Maximum chance that a comparison exceeds a limit although nothing has grown beyond the limits.
const FALSE_ALARMS: f64 = 0.05;

/// A limit of growth.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// The measure that must not grow.
    pub of: Limited,
    /// The growth that is allowed, as a part: 0.05 is 5 %.
    pub tolerance: f64,
    /// The limit as it was given.
    pub text: String,
}

/// Subject of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limited {
    /// All CPU time.
    Cpu,
    /// CPU time of each method with such a name, with all that it calls; `*` for anything.
    Method(String),
    /// All wall time that was not idle.
    Wall,
    /// Wall time of a cause.
    Cause(String),
    /// Bytes that are allocated.
    Allocated,
}

/// Whether a limit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing has grown by more.
    Kept,
    /// Something has, but that may be chance.
    Uncertain,
    /// Something has, by more than chance.
    Exceeded,
}

impl Outcome {
    /// A word for people and programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Kept => "passed",
            Outcome::Uncertain => "uncertain",
            Outcome::Exceeded => "failed",
        }
    }
}

/// Result of a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The limit as it was given.
    pub limit: String,
    /// The measure; of several methods, the one that exceeds the limit most.
    pub name: String,
    /// The growth; `None` if neither recording has such data.
    pub growth: Option<Growth>,
    /// Whether the limit is kept.
    pub outcome: Outcome,
}

impl Verdict {
    /// How much it has grown, in words.
    #[must_use]
    pub fn grown(&self) -> String {
        let Some(growth) = &self.growth else {
            return "neither recording has such data".to_owned();
        };
        match (growth.part, growth.error) {
            (Some(part), Some(error)) => {
                format!("{:+.1} % (+- {:.1})", part * 100.0, error * 100.0)
            }
            _ => "new".to_owned(),
        }
    }

    /// One line without an end: the failed limit and the growth.
    #[must_use]
    pub fn line(&self) -> String {
        let note = match self.outcome {
            Outcome::Uncertain => "; possibly sampling noise: record both for longer",
            Outcome::Kept | Outcome::Exceeded => "",
        };
        let (limit, outcome) = (plain(&self.limit), self.outcome.word());
        format!(
            "{limit}: {outcome}: {}, {}{note}",
            plain(&self.name),
            self.grown()
        )
    }

    pub(super) fn value(&self) -> Value {
        let growth = self.growth.as_ref();
        json!({
            "limit": plain(&self.limit),
            "name": plain(&self.name),
            "a": growth.map(|it| it.rate_a),
            "b": growth.map(|it| it.rate_b),
            "growth": growth.and_then(|it| it.part),
            "standardError": growth.and_then(|it| it.error),
            "z": growth.map(|it| it.z),
            "result": self.outcome.word(),
        })
    }
}

/// Data on which a limit is tested.
struct Tested {
    name: String,
    base: Base,
    a: Weight,
    b: Weight,
}

impl Compared<'_> {
    /// Tests limits; they are part of all that is written from then on. An error says in words why
    /// one cannot be tested.
    ///
    /// # Errors
    ///
    /// If a recording lacks the data of a limit, or if only shares are compared.
    pub fn check(&mut self, limits: &[Limit]) -> Result<(), String> {
        let tested = limits.iter().map(|limit| self.tested(limit));
        let tested: Vec<Vec<Tested>> = tested.collect::<Result<_, _>>()?;
        // Each of n tests has an n-th of the chance (Bonferroni).
        let tests: usize = tested.iter().map(Vec::len).sum();
        let chance = FALSE_ALARMS / tests.max(1) as f64;
        let verdicts = limits.iter().zip(tested);
        self.verdicts = verdicts
            .map(|(limit, tested)| verdict(limit, &tested, chance))
            .collect();
        Ok(())
    }

    /// Results of the tested limits.
    #[must_use]
    pub fn verdicts(&self) -> &[Verdict] {
        &self.verdicts
    }

    fn tested(&self, limit: &Limit) -> Result<Vec<Tested>, String> {
        let text = &limit.text;
        let is_whole = matches!(limit.of, Limited::Cpu | Limited::Wall | Limited::Allocated);
        if is_whole && self.per == Per::Sample {
            return Err(format!(
                "{text}: shares of a whole do not grow; leave --per sample out"
            ));
        }
        match &limit.of {
            Limited::Cpu | Limited::Method(_) if !self.is_of_processors() => {
                let remedy = "their samples are not of CPU time; record with -e cpu";
                Err(format!("{text}: {remedy}"))
            }
            Limited::Cpu => {
                let (name, table) = ("CPU time", self.found("self"));
                let (a, b) = (self.a.total(), self.b.total());
                Ok(table
                    .into_iter()
                    .map(|it| one(name, &it.base, a, b))
                    .collect())
            }
            Limited::Method(pattern) => Ok(self
                .found("total")
                .map_or_else(Vec::new, |it| rows(it, |name| matches(pattern, name)))),
            Limited::Wall => {
                let causes = self.causes(text)?;
                let rows = rows(causes, |name| !is_idle(name));
                let (mut a, mut b) = (Weight::default(), Weight::default());
                for row in &rows {
                    a += &row.a;
                    b += &row.b;
                }
                Ok(vec![one("wall time that was not idle", &causes.base, a, b)])
            }
            Limited::Cause(cause) => Ok(rows(self.causes(text)?, |name| name == cause)),
            Limited::Allocated => self.allocated(text),
        }
    }

    fn is_of_processors(&self) -> bool {
        let profiles = [self.a, self.b];
        profiles
            .iter()
            .all(|it| it.info().measured.is_of_processors())
    }

    fn found(&self, key: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.key == key)
    }

    fn causes(&self, text: &str) -> Result<&Table, String> {
        self.found("causes").ok_or_else(|| {
            let without = if self.a.has_wall() { self.b } else { self.a };
            let remedy = without.info().remedy(Lack::Wall);
            format!("{text}: one of them has no wall time; {remedy}")
        })
    }

    fn allocated(&self, text: &str) -> Result<Vec<Tested>, String> {
        let profiles = [self.a, self.b];
        if let Some(without) = profiles.into_iter().find(|it| !it.has_allocations()) {
            let remedy = without.info().remedy(Lack::Allocations);
            return Err(format!("{text}: one of them has no allocations; {remedy}"));
        }
        let [a, b] = profiles.map(Profile::allocated);
        let base = match self.per {
            Per::Second => {
                let [time_a, time_b] = profiles.map(Profile::allocations_sampled_ns);
                Base::of_times((time_a, &a), (time_b, &b))
            }
            Per::Request | Per::Sample => Base::new(self.per, (self.a, &a), (self.b, &b)),
        };
        let base = base.ok_or_else(|| format!("{text}: there is no data to compare with"))?;
        Ok(vec![one("allocated bytes", &base, a, b)])
    }
}

fn one(name: &str, base: &Base, a: Weight, b: Weight) -> Tested {
    Tested {
        name: name.to_owned(),
        base: *base,
        a,
        b,
    }
}

fn rows(table: &Table, is_of: impl Fn(&str) -> bool) -> Vec<Tested> {
    let rows = table.changes.iter().filter(|change| is_of(&change.name));
    rows.map(|it| one(&it.name, &table.base, it.a, it.b))
        .collect()
}

/// The row that exceeds the limit most decides.
fn verdict(limit: &Limit, tested: &[Tested], chance: f64) -> Verdict {
    let grown = tested.iter().map(|it| {
        let growth = it.base.growth(&it.a, &it.b, limit.tolerance);
        let is_certain = growth.z > 0.0 && two_sided(growth.z) / 2.0 <= chance;
        let outcome = match (growth.is_more, is_certain) {
            (true, true) => Outcome::Exceeded,
            (true, false) => Outcome::Uncertain,
            (false, _) => Outcome::Kept,
        };
        (it, growth, outcome)
    });
    let rank = |outcome| match outcome {
        Outcome::Kept => 0,
        Outcome::Uncertain => 1,
        Outcome::Exceeded => 2,
    };
    let worst = grown.max_by(|(_, x, of_x), (_, y, of_y)| {
        let by_outcome = rank(*of_x).cmp(&rank(*of_y));
        by_outcome.then_with(|| x.z.total_cmp(&y.z))
    });
    let limit_text = limit.text.clone();
    match worst {
        Some((it, growth, outcome)) => Verdict {
            limit: limit_text,
            name: it.name.clone(),
            growth: Some(growth),
            outcome,
        },
        None => Verdict {
            limit: limit_text,
            name: match &limit.of {
                Limited::Method(name) | Limited::Cause(name) => name.clone(),
                Limited::Cpu | Limited::Wall | Limited::Allocated => String::new(),
            },
            growth: None,
            outcome: Outcome::Kept,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::compared;
    use super::super::tests::sample;
    use super::*;
    use dwell_profile::{Look, text_art};

    /// A second with samples of 10 ms in one method, and looks of 10 ms at a thread that waits for
    /// a monitor.
    fn profile(samples: u32, looks: u64) -> Profile {
        let mut builder = text_art::builder("weight: 10000000\na.A.x\na.A.y");
        builder.info.duration_ns = 1_000_000_000;
        // The drawing has one.
        for _ in 1..samples {
            builder.sample(sample(2));
        }
        for (cause, count) in [("monitor", looks), ("idle-pool", 1000)] {
            let cause = builder.cause(cause);
            builder.look(Look {
                cause,
                weight_ns: 10_000_000 * count,
                count,
                ..Look::default()
            });
        }
        builder.finish()
    }

    fn limit(of: Limited, tolerance: f64) -> Limit {
        Limit {
            of,
            tolerance,
            text: "limit".to_owned(),
        }
    }

    fn outcome(a: &Profile, b: &Profile, of: Limited, tolerance: f64) -> Outcome {
        let mut compared = compared(a, b, Per::Second).unwrap();
        compared.check(&[limit(of, tolerance)]).unwrap();
        compared.verdicts()[0].outcome
    }

    #[test]
    fn limit_fails_only_if_growth_is_above_it_by_more_than_chance() {
        let few = |b| outcome(&profile(100, 0), &profile(b, 0), Limited::Cpu, 0.05);
        // Of 100 and n samples the error of n - 105 is about sqrt(205 * 1.05): 14.7.
        assert_eq!(few(105), Outcome::Kept);
        assert_eq!(few(128), Outcome::Uncertain);
        assert_eq!(few(132), Outcome::Exceeded);
        assert_eq!(few(90), Outcome::Kept);
        let many = |b| outcome(&profile(10_000, 0), &profile(b, 0), Limited::Cpu, 0.05);
        assert_eq!(many(10_499), Outcome::Kept);
        assert_eq!(many(10_700), Outcome::Uncertain);
        assert_eq!(many(10_900), Outcome::Exceeded);
    }

    #[test]
    fn limits_are_of_methods_causes_and_time_not_idle() {
        let (a, b) = (profile(1000, 1000), profile(1000, 2000));
        for (of, expected) in [
            (Limited::Cpu, Outcome::Kept),
            (Limited::Method("a.A.*".to_owned()), Outcome::Kept),
            (Limited::Wall, Outcome::Exceeded),
            (Limited::Cause("monitor".to_owned()), Outcome::Exceeded),
            (Limited::Cause("park".to_owned()), Outcome::Kept),
        ] {
            assert_eq!(outcome(&a, &b, of.clone(), 0.1), expected, "{of:?}");
        }
        let (less, more) = (profile(1000, 0), profile(2000, 0));
        let method = |name: &str| Limited::Method(name.to_owned());
        assert_eq!(
            outcome(&less, &more, method("a.A.y"), 0.1),
            Outcome::Exceeded
        );
        assert_eq!(outcome(&less, &more, method("b.*"), 0.1), Outcome::Kept);
    }

    #[test]
    fn growth_is_reported_with_its_standard_error() {
        let (a, b) = (profile(100, 0), profile(200, 0));
        let mut compared = compared(&a, &b, Per::Second).unwrap();
        compared.check(&[limit(Limited::Cpu, 0.05)]).unwrap();
        // 100 * 2^2 + 200 samples: 24.5 of the first one's 100.
        let line = compared.verdicts()[0].line();
        assert_eq!(line, "limit: failed: CPU time, +100.0 % (+- 24.5)");
    }

    #[test]
    fn more_limits_need_more_certainty() {
        let (a, b) = (profile(100, 0), profile(132, 0));
        let mut compared = compared(&a, &b, Per::Second).unwrap();
        let one = limit(Limited::Cpu, 0.05);
        compared.check(&vec![one; 10]).unwrap();
        assert_eq!(compared.verdicts()[0].outcome, Outcome::Uncertain);
    }

    #[test]
    fn limits_of_unrecorded_data_are_refused() {
        let (a, b) = (profile(10, 10), text_art::profile("a.A.x"));
        let error = |a, b, per, of| {
            let mut compared = compared(a, b, per).unwrap();
            compared.check(&[limit(of, 0.0)]).unwrap_err()
        };
        let wall = error(&a, &b, Per::Sample, Limited::Cause("park".to_owned()));
        assert!(wall.contains("no wall time; record with"), "{wall}");
        let whole = error(&a, &a, Per::Sample, Limited::Cpu);
        assert!(whole.contains("leave --per sample out"), "{whole}");
        let bytes = error(&a, &a, Per::Second, Limited::Allocated);
        assert!(bytes.contains("no allocations; record with"), "{bytes}");
    }
}
