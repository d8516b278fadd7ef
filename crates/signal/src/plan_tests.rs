//! The plan as statistics. Bounds are derived where they stand; seeds are fixed. Where a count is
//! binomial, five standard deviations are allowed: 6e-7 of all seeds would fail.

use super::*;

const T: u64 = 10_000_000;

fn five_sigma(trials: f64, probability: f64) -> f64 {
    5.0 * (trials * probability * (1.0 - probability)).sqrt()
}

/// A stream of numbers for the tests themselves.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % limit
    }
}

#[test]
fn weights_follow_cpu_time_at_every_moment() {
    let mut random = Random(1);
    for seed in 0..50 {
        let origin = random.below(1 << 40);
        let mut plan = Plan::new(seed, T, origin);
        let (mut now, mut points) = (origin, 0);
        for _ in 0..2000 {
            now += random.below(3 * T);
            points += u64::from(plan.due(now).points);
            let (used, weight) = (now - origin, points * T);
            assert!(
                weight + T > used && weight <= used + T,
                "{weight} for {used}"
            );
        }
    }
}

#[test]
fn how_often_one_asks_does_not_matter() {
    let mut random = Random(2);
    for seed in 0..100 {
        let (mut often, mut once) = (Plan::new(seed, T, 7), Plan::new(seed, T, 7));
        let (mut now, mut sum) = (7, 0);
        for _ in 0..200 {
            now += random.below(T / 2);
            sum += often.due(now).points;
        }
        let due = once.due(now);
        assert_eq!((due.points, due.wake_up_ns), (sum, often.wake_up_ns(now)));
    }
}

#[test]
fn points_are_never_taken_early_and_always_at_the_wake_up() {
    let mut plan = Plan::new(3, T, 0);
    let mut now = plan.wake_up_ns(0);
    for _ in 0..10_000 {
        let point = plan.next_point_ns();
        assert!(point <= now);
        let Due {
            points,
            wake_up_ns: next,
            ..
        } = plan.due(now);
        assert!(points >= 1);
        assert!(next >= now + GAP_MIN_NS, "a timer could not do that");
        assert!(plan.next_point_ns() > now);
        now = next;
    }
}

/// A thread that lives for `length` is charged `length` on average, even if that is below T.
#[test]
fn short_threads_are_seen_as_often_as_they_deserve() {
    const THREADS: u64 = 100_000;
    for (length, whole) in [(T / 100, 0), (3 * T / 10, 0), (27 * T / 10, 2)] {
        let points: u64 = (0..THREADS)
            .map(|seed| u64::from(Plan::new(seed, T, 0).due(length).points))
            .sum();
        // Each thread has `whole` points for certain and one more with probability p.
        let p = length as f64 / T as f64 - whole as f64;
        let extra = points as f64 - (whole * THREADS) as f64;
        let expected = THREADS as f64 * p;
        let bound = five_sigma(THREADS as f64, p);
        assert!(
            (extra - expected).abs() <= bound,
            "{extra} of {expected} +- {bound}"
        );
    }
}

/// Samples a program whose three phases repeat with period T; the share of each.
fn phase_counts(plan: &mut Plan, windows: u64, late_ns: impl Fn(u64) -> u64) -> [u64; 3] {
    let mut counts = [0; 3];
    let mut now = plan.wake_up_ns(0);
    while now < windows * T {
        let Due {
            points,
            wake_up_ns: next,
            ..
        } = plan.due(now);
        let phase = match now % T {
            at if at < 3 * T / 10 => 0,
            at if at < 9 * T / 10 => 1,
            _ => 2,
        };
        counts[phase] += u64::from(points);
        now = late_ns(next);
    }
    counts
}

#[test]
fn a_program_in_step_with_the_interval_is_seen_in_its_true_shares() {
    const WINDOWS: u64 = 200_000;
    let mut plan = Plan::new(4, T, 0);
    let counts = phase_counts(&mut plan, WINDOWS, |next| next);
    let shares = [0.3, 0.6, 0.1];
    for (count, share) in counts.into_iter().zip(shares) {
        // Points nearer to each other than GAP_MIN are taken together, late: in each window with a
        // probability of at most GAP_MIN / T, plus the last window's point.
        let merged = WINDOWS as f64 * GAP_MIN_NS as f64 / T as f64 + 1.0;
        let bound = five_sigma(WINDOWS as f64, share) + merged;
        let expected = share * WINDOWS as f64;
        assert!(
            (count as f64 - expected).abs() <= bound,
            "{count} of {expected} +- {bound}"
        );
    }
}

/// The same program under a timer that fires on a 4 ms tick only: the weights stay right, as ticks
/// and windows drift against each other (4 ms and 10 ms have 20 ms in common, so make it 10.01).
#[test]
fn a_timer_on_the_tick_loses_no_weight() {
    const TICK: u64 = 4_000_000;
    const LENGTH: u64 = 100_000 * T;
    let mut plan = Plan::new(5, T + 10_000, 0);
    let (mut now, mut weight) = (0, 0);
    while now < LENGTH {
        let Due {
            points,
            wake_up_ns: next,
            ..
        } = plan.due(now);
        weight += u64::from(points) * plan.interval_ns();
        now = next.next_multiple_of(TICK);
    }
    let points = plan.due(now).points;
    weight += u64::from(points) * plan.interval_ns();
    assert!(weight.abs_diff(now) <= plan.interval_ns());
}

#[test]
fn points_are_uniform_in_their_windows() {
    const BINS: usize = 16;
    const WINDOWS: u64 = 160_000;
    let plan = Plan::new(6, T, 0);
    let mut bins = [0u64; BINS];
    for window in 0..WINDOWS {
        let offset = plan.point_in(window) - window * T;
        assert!(offset < T);
        bins[(offset * BINS as u64 / T) as usize] += 1;
    }
    let expected = WINDOWS as f64 / BINS as f64;
    let chi2: f64 = bins
        .iter()
        .map(|n| (*n as f64 - expected).powi(2) / expected)
        .sum();
    // 15 degrees of freedom: 53.0 is exceeded with a probability of 4e-6.
    assert!(chi2 < 53.0, "{chi2}: {bins:?}");
}

#[test]
fn neighbouring_windows_and_seeds_are_not_related() {
    const PAIRS: u64 = 100_000;
    let plan = Plan::new(8, T, 0);
    let low = |plan: &Plan, window: u64| plan.point_in(window) - window * T < T / 2;
    let windows = (0..PAIRS)
        .filter(|w| low(&plan, *w) == low(&plan, w + 1))
        .count();
    let seeds = (0..PAIRS)
        .filter(|s| low(&Plan::new(*s, T, 0), 1) == low(&Plan::new(s + 1, T, 0), 1))
        .count();
    for equal in [windows, seeds] {
        let distance = (equal as f64 - PAIRS as f64 / 2.0).abs();
        assert!(
            distance <= five_sigma(PAIRS as f64, 0.5),
            "{equal} of {PAIRS}"
        );
    }
}

#[test]
fn strange_numbers_neither_hang_nor_overflow() {
    let mut plan = Plan::new(9, T, 1_000_000);
    assert_eq!(plan.due(0).points, 0, "a clock that ran backwards");
    let Due {
        points,
        wake_up_ns: next,
        ..
    } = plan.due(u64::MAX - 1);
    assert_eq!(points, u32::MAX);
    assert_eq!(next, u64::MAX);
    let mut dense = Plan::new(9, 0, 0);
    assert_eq!(dense.interval_ns(), 1);
    assert_eq!(dense.due(1_000_000).points, 1_000_001);
    assert_eq!(dense.due(1_000_000).points, 0, "already taken");
}

#[test]
fn many_short_threads_are_seen_in_nearly_their_exact_share() {
    // A golden-ratio sequence of n points misses the expected number in any interval from 0 on by
    // less than 0.5 ln(n) + 2 (a generous form of its known discrepancy, whatever it begins with).
    for (first, threads) in [(1u64, 300u64), (12_345, 1_000), (1 << 40, 20_000)] {
        for (life_ns, interval_ns) in [(100_000u64, 10_000_000u64), (250_000, 10_000_000)] {
            let seen: u32 = (first..first + threads)
                .map(|seed| Plan::new(seed, interval_ns, 0).due(life_ns).points)
                .sum();
            let expected = threads as f64 * life_ns as f64 / interval_ns as f64;
            let bound = 0.5 * (threads as f64).ln() + 2.0;
            assert!(
                (f64::from(seen) - expected).abs() < bound,
                "{seen} of {expected}"
            );
        }
    }
}
