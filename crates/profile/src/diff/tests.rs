//! Tests of differences, of their statistics above all: seeds are fixed, bounds derived.

use super::*;
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::sample::{Look, Sample};
use proptest::prelude::*;

/// A small generator, so that runs are the same everywhere (Knuth's constants, high bits).
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A profile of `n` samples, each in a method by chance: `parts` are the methods' probabilities.
fn drawn(random: &mut Random, n: u64, weight: u64, parts: &[f64]) -> Profile {
    let mut builder = Builder::default();
    builder.info.duration_ns = 10_000_000_000;
    let thread = builder.thread("t", 1, 1, false);
    for _ in 0..n {
        let mut left = random.unit();
        let method = parts.iter().position(|part| {
            left -= part;
            left < 0.0
        });
        let name = format!("m{}", method.unwrap_or(parts.len()));
        let method = builder.method("c", &name, "");
        let frame = builder.frame(method, 0, FrameKind::C2);
        let node = builder.stack([frame]);
        let (failure, context) = (None, None);
        builder.sample(Sample {
            time_ns: 0,
            thread,
            node,
            weight,
            count: 1,
            failure,
            context,
        });
    }
    builder.finish()
}

fn own_changes(per: Per, a: &Profile, b: &Profile) -> Vec<Change> {
    let base = Base::new(per, (a, &a.total()), (b, &b.total())).unwrap();
    base.changes(a.sums_by_method().0, b.sums_by_method().0)
}

const TEN: [f64; 10] = [0.3, 0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01];

#[test]
fn equal_programs_differ_by_chance_only() {
    const PAIRS: u32 = 300;
    let mut random = Random(7);
    let (mut alarms, mut squares, mut tests) = (0u32, 0.0, 0u32);
    for _ in 0..PAIRS {
        // Another interval in the second one: a third of the samples, each three times as heavy.
        let a = drawn(&mut random, 900, 1_000_000, &TEN);
        let b = drawn(&mut random, 300, 3_000_000, &TEN);
        let changes = own_changes(Per::Sample, &a, &b);
        alarms += u32::from(changes.iter().any(|change| change.is_significant));
        for change in changes.iter().filter(|change| change.z != 0.0) {
            squares += change.z * change.z;
            tests += 1;
        }
    }
    // With nothing to be found, any discovery is false: at most 5 % of the pairs have one, 15 of
    // 300. Binomial: deviation sqrt(300 0.05 0.95) = 3.8; five of them: 34.
    assert!(alarms <= 34, "{alarms} of {PAIRS} pairs");
    // Errors have the right size: z has the variance 1. The mean of 3000 squares of normal
    // variables has the deviation sqrt(2 / 3000) = 0.026. The ten rows of a pair, if fully
    // dependent, increase it by sqrt(10) to 0.082; five of these are allowed.
    let variance = squares / f64::from(tests);
    assert!((0.59..1.41).contains(&variance), "{variance}");
}

/// Samples that are only counted, and as many that stand for time: shares and their errors are
/// those of two recordings that both count.
#[test]
fn shares_of_two_units_are_as_certain_as_those_of_one() {
    let counting = |mut profile: Profile| {
        profile.unit = Unit::Samples;
        profile
    };
    let counted = counting(drawn(&mut Random(5), 500, 1, &TEN));
    let timed = drawn(&mut Random(6), 1500, 10_000_000, &TEN);
    let both_counted = counting(drawn(&mut Random(6), 1500, 1, &TEN));
    for (of_two, of_one) in [
        (
            own_changes(Per::Sample, &counted, &timed),
            own_changes(Per::Sample, &counted, &both_counted),
        ),
        (
            own_changes(Per::Sample, &timed, &counted),
            own_changes(Per::Sample, &both_counted, &counted),
        ),
    ] {
        assert_eq!(of_two.len(), of_one.len());
        for (x, y) in of_two.iter().zip(&of_one) {
            assert_eq!(x.name, y.name);
            assert!((x.error - y.error).abs() < 1e-12, "{x:?} {y:?}");
            assert!((x.z - y.z).abs() < 1e-9, "{x:?} {y:?}");
        }
    }
}

/// Eight threads at each of so many stops are so many observations, not eight times as many.
#[test]
fn threads_at_one_stop_are_one_observation() {
    let stopped = |stops: u64, cause: &str| {
        let mut builder = Builder::default();
        builder.info.duration_ns = 10_000_000_000;
        let threads: Vec<u32> = (0..8)
            .map(|id| builder.thread("w", id, id + 1, false))
            .collect();
        let cause = builder.cause(cause);
        for stop in 0..stops {
            for thread in &threads {
                builder.look(Look {
                    time_ns: stop * 1_000_000_000 + u64::from(*thread),
                    duration_ns: 0,
                    thread: *thread,
                    node: 0,
                    cause,
                    weight_ns: 20_000_000,
                    count: 1,
                    choices: 0,
                    context: None,
                    detail: None,
                    owner: None,
                    owner_node: None,
                });
            }
        }
        builder.finish()
    };
    for (cause, is_significant) in [("safepoint", false), ("gc-stall", false), ("park", true)] {
        let (few, many) = (stopped(3, cause), stopped(8, cause));
        let [whole_a, whole_b] = [&few, &many].map(|profile| profile.wall_totals().0);
        let base = Base::new(Per::Second, (&few, &whole_a), (&many, &whole_b)).unwrap();
        let changes = base.changes(few.sums_by_cause().0, many.sums_by_cause().0);
        assert_eq!(changes[0].b.sum, 8 * 8 * 20_000_000, "{cause}");
        assert_eq!(changes[0].is_significant, is_significant, "{changes:?}");
    }
}

#[test]
fn a_change_is_found_and_the_rest_is_left_alone() {
    let mut random = Random(11);
    let mut slower = TEN;
    (slower[3], slower[0]) = (0.2, 0.2);
    let a = drawn(&mut random, 2000, 1_000_000, &TEN);
    let b = drawn(&mut random, 2000, 1_000_000, &slower);
    let changes = own_changes(Per::Sample, &a, &b);
    let mut found: Vec<&str> = (changes.iter().filter(|c| c.is_significant))
        .map(|change| change.name.as_str())
        .collect();
    found.sort_unstable();
    // 10 points of 2000 samples each: z is about 0.1 / sqrt(0.15 0.85 2 / 2000) = 8.9.
    assert_eq!(found, ["c.m0", "c.m3"]);
}

#[test]
fn new_and_gone_rows_are_reported() {
    let mut random = Random(3);
    let a = drawn(&mut random, 500, 1_000_000, &[0.5, 0.5]);
    let b = drawn(&mut random, 500, 1_000_000, &[0.5, 0.0, 0.5]);
    let changes = own_changes(Per::Second, &a, &b);
    let by_name = |name: &str| changes.iter().find(|change| change.name == name).unwrap();
    assert!(by_name("c.m1").is_gone() && by_name("c.m1").is_significant);
    assert!(by_name("c.m2").is_new() && by_name("c.m2").is_significant);
    assert!(!by_name("c.m0").is_significant);
}

#[test]
fn rates_are_per_second_request_or_share() {
    let mut random = Random(5);
    let a = drawn(&mut random, 100, 10_000_000, &[1.0]);
    let mut longer = drawn(&mut random, 400, 10_000_000, &[1.0]);
    longer.info.duration_ns = 40_000_000_000;
    let change = &own_changes(Per::Second, &a, &longer)[0];
    // 1 s of CPU time in 10 s, 4 s in 40 s.
    assert_eq!((change.rate_a, change.rate_b), (1e8, 1e8));
    assert!(!change.is_significant);
    let change = &own_changes(Per::Sample, &a, &longer)[0];
    assert_eq!((change.rate_a, change.z), (1.0, 0.0));
    let total = a.total();
    assert_eq!(
        Base::new(Per::Request, (&a, &total), (&longer, &total)),
        None
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_file_and_itself_do_not_differ(
        seed in any::<u64>(), n in 1u64..400, weight in 1u64..1_000_000_000,
    ) {
        let profile = drawn(&mut Random(seed), n, weight, &TEN);
        for per in [Per::Second, Per::Sample] {
            for change in own_changes(per, &profile, &profile) {
                prop_assert!(!change.is_significant && change.z == 0.0, "{change:?}");
                prop_assert_eq!(change.difference(), 0.0);
            }
        }
    }

    /// If the files are exchanged, every sign changes, and the values stay.
    #[test]
    fn the_difference_is_antisymmetric(seed in any::<u64>(), n in 1u64..200, m in 1u64..200) {
        let mut random = Random(seed);
        let a = drawn(&mut random, n, 1000, &TEN);
        let b = drawn(&mut random, m, 3000, &[0.1; 10]);
        let (there, back) = (own_changes(Per::Second, &a, &b), own_changes(Per::Second, &b, &a));
        prop_assert_eq!(there.len(), back.len());
        for (x, y) in there.iter().zip(&back) {
            prop_assert_eq!(&x.name, &y.name);
            prop_assert_eq!(x.is_significant, y.is_significant);
            prop_assert!((x.z + y.z).abs() <= 1e-9 * (1.0 + x.z.abs()));
        }
    }
}

fn sum(weight: u64, samples: u64) -> Weight {
    let mut sum = Weight::default();
    (0..samples).for_each(|_| sum += &Weight::of(weight));
    sum
}

/// By hand: 100 in 2 s and 300 in 4 s are 50 and 75 a second, together 400 in 6 s.
#[test]
fn rates_and_their_errors_are_those_of_the_formula() {
    let mut base = Base {
        per: Per::Second,
        a: 2.0,
        b: 4.0,
        grain_a: 7.0,
        grain_b: 8.0,
        is_one_unit: true,
    };
    let change = base.change("m".to_owned(), sum(10, 10), sum(15, 20));
    assert_eq!((change.rate_a, change.rate_b), (50.0, 75.0));
    assert_eq!(change.difference(), 25.0);
    // A sample weighs 10 in one and 15 in the other.
    let variance: f64 = 400.0 / 6.0 * (10.0 / 2.0 + 15.0 / 4.0);
    assert!(
        (change.error - variance.sqrt()).abs() < 1e-9,
        "{}",
        change.error
    );
    assert!(
        (change.z - 25.0 / variance.sqrt()).abs() < 1e-9,
        "{}",
        change.z
    );
    assert!(!change.is_new() && !change.is_gone());
    // A profile without the row uses the mean weight of all its samples.
    let new = base.variance(&Weight::default(), &sum(15, 20));
    assert!(
        (new - 300.0 / 6.0 * (7.0 / 2.0 + 15.0 / 4.0)).abs() < 1e-9,
        "{new}"
    );
    let gone = base.variance(&sum(10, 10), &Weight::default());
    assert!(
        (gone - 100.0 / 6.0 * (10.0 / 2.0 + 8.0 / 4.0)).abs() < 1e-9,
        "{gone}"
    );
    // Shares of a whole vary less.
    base = Base {
        per: Per::Sample,
        a: 1000.0,
        b: 1000.0,
        ..base
    };
    let shares = base.variance(&sum(10, 10), &sum(10, 30));
    assert!(
        (shares - 0.2 * 0.8 * (10.0 + 10.0) / 1000.0).abs() < 1e-9,
        "{shares}"
    );
    // 0.01 of 1000 that weigh 20 each, and 0.2 of 50 that weigh 1: of 50 and 50 together 10.5.
    let of_two = Base {
        per: Per::Sample,
        a: 1000.0,
        b: 50.0,
        grain_a: 20.0,
        grain_b: 1.0,
        is_one_unit: false,
    };
    let two_units = of_two.variance(&sum(10, 1), &sum(1, 10));
    assert!(
        (two_units - 0.105 * 0.895 * (10.0 / 1000.0 + 1.0 / 50.0)).abs() < 1e-9,
        "{two_units}"
    );
    let few = TESTED_FROM - 1;
    let untested = base.change("m".to_owned(), sum(10, few), Weight::default());
    assert_eq!((untested.z, untested.is_gone()), (0.0, true));
    let tested = base.change("m".to_owned(), Weight::default(), sum(10, few + 1));
    assert!(tested.z > 0.0 && tested.is_new());
}
