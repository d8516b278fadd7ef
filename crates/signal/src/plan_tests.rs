//! Statistical tests of the plan. Bounds are derived where they are used; seeds are fixed. If a
//! count is binomial, five standard deviations are allowed: 6e-7 of all seeds would fail.

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
            points += u64::from(plan.due(now, false).points);
            let (used, weight) = (now - origin, points * T);
            assert!(
                weight + T > used && weight <= used + T,
                "{weight} for {used}"
            );
        }
    }
}

#[test]
fn owed_ns_of_short_threads_matches_cpu_time() {
    // This many threads used a hundredth of an interval each; the recording ends.
    const THREADS: u64 = 100_000;
    const USED: u64 = T / 100;
    for in_blocks in [true, false] {
        let owed = (0..THREADS).map(|seed| {
            let mut plan = match in_blocks {
                true => Plan::in_blocks(seed, T, 0),
                false => Plan::new(seed, T, 0),
            };
            plan.owed_ns(USED)
        });
        let points = owed.sum::<u64>() as f64 / T as f64;
        let (expected, trials) = (THREADS as f64 / 100.0, THREADS as f64);
        // Windows are half to one and a half intervals long: a point stands for at most that. So
        // the scatter is at most that of so many points of the greatest weight.
        let bound = 1.5 * five_sigma(trials, USED as f64 / T as f64);
        assert!(
            (points - expected).abs() < bound,
            "{in_blocks}: {points} of {expected}"
        );
    }
}

#[test]
fn weights_do_not_depend_on_how_often_one_asks() {
    let mut random = Random(2);
    for seed in 0..100 {
        let (mut often, mut once) = (Plan::new(seed, T, 7), Plan::new(seed, T, 7));
        let (mut now, mut sum) = (7, 0);
        for _ in 0..200 {
            now += random.below(T / 2);
            sum += often.due(now, false).points;
        }
        let due = once.due(now, false);
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
        } = plan.due(now, false);
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
            .map(|seed| u64::from(Plan::new(seed, T, 0).due(length, false).points))
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
        } = plan.due(now, false);
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
fn phases_in_step_with_interval_get_true_shares() {
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

/// The same program under a timer that fires only on a 4 ms tick. The weights stay right, as ticks
/// and windows drift against each other (4 ms and 10 ms have 20 ms in common, so it is 10.01).
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
        } = plan.due(now, false);
        weight += u64::from(points) * plan.interval_ns();
        now = next.next_multiple_of(TICK);
    }
    let points = plan.due(now, false).points;
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
        let offset = plan.own_place_ns(window);
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
    let low = |plan: &Plan, window: u64| plan.own_place_ns(window) < T / 2;
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
    assert_eq!(plan.due(0, false).points, 0, "a clock that ran backwards");
    let Due {
        points,
        wake_up_ns: next,
        ..
    } = plan.due(u64::MAX - 1, false);
    assert_eq!(points, u32::MAX);
    assert_eq!(next, u64::MAX);
    let mut dense = Plan::new(9, 0, 0);
    assert_eq!(dense.interval_ns(), 1);
    assert_eq!(dense.due(1_000_000, false).points, 1_000_001);
    assert_eq!(dense.due(1_000_000, false).points, 0, "already taken");
}

#[test]
fn many_short_threads_are_seen_in_nearly_their_exact_share() {
    // A golden-ratio sequence of n points misses the expected number in any interval from 0 on by
    // less than 0.5 ln(n) + 2, wherever it begins. (This is a generous form of its known
    // discrepancy.)
    for (first, threads) in [(1u64, 300u64), (12_345, 1_000), (1 << 40, 20_000)] {
        for (life_ns, interval_ns) in [(100_000u64, 10_000_000u64), (250_000, 10_000_000)] {
            let seen: u32 = (first..first + threads)
                .map(|seed| Plan::new(seed, interval_ns, 0).due(life_ns, false).points)
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

/// Simulates, for `length_ns`, a timer that keeps to the blocks; returns each sample.
fn in_blocks(seed: u64, interval_ns: u64, length_ns: u64, mut sample: impl FnMut(u64, &Due)) {
    let mut plan = Plan::in_blocks(seed, interval_ns, 0);
    let mut now = plan.wake_up_ns(0);
    while now < length_ns {
        let due = plan.due(now, false);
        sample(now, &due);
        now = due.wake_up_ns;
    }
}

#[test]
fn weights_of_blocks_follow_cpu_time_at_every_moment() {
    let mut random = Random(3);
    for (seed, most_ns) in (0..50).zip([1, 3, 500].into_iter().cycle()) {
        let interval_ns = 200_000 + random.below(2_000_000);
        let longest_ns = longest_ns(interval_ns);
        let origin = random.below(1 << 40);
        let mut plan = Plan::in_blocks(seed, interval_ns, origin);
        let (mut now, mut weight) = (origin, 0);
        for round in 0..2000 {
            now += random.below(most_ns * interval_ns);
            weight += plan.due(now, round % 3 == 0).weight_ns;
            let used = now - origin;
            assert!(
                weight + longest_ns > used && weight <= used + longest_ns,
                "{weight} for {used}"
            );
        }
    }
}

#[test]
fn windows_of_a_block_are_an_interval_long_in_the_mean() {
    for interval_ns in [110_000, 300_000, 1_000_000, 10_000_000] {
        let (least_ns, most_ns) = widths_ns(interval_ns);
        assert!(least_ns >= interval_ns.min(WIDTH_MIN_NS) && most_ns <= 3 * interval_ns / 2);
        let mut plan = Plan::in_blocks(7, interval_ns, 0);
        let mut sum = 0.0;
        const BLOCKS: u64 = 10_000;
        for _ in 0..BLOCKS {
            plan.begin_block(0, 0);
            assert!((least_ns..=most_ns).contains(&plan.width_ns()));
            sum += plan.width_ns() as f64;
        }
        // Uniform from least to most: a variance of a twelfth of the range's square.
        let deviation = (most_ns - least_ns) as f64 / (12.0 * BLOCKS as f64).sqrt();
        let off = (sum / BLOCKS as f64 - interval_ns as f64).abs();
        assert!(off <= 5.0 * deviation + 1.0, "{off} of {interval_ns}");
    }
    assert_eq!(
        widths_ns(60_000),
        (60_000, 60_000),
        "a timer could not do that"
    );
}

/// At any age of a thread, its samples stand for its CPU time up to there.
#[test]
fn each_moment_of_a_life_has_the_weight_it_deserves() {
    const THREADS: u64 = 40_000;
    const BIN_NS: u64 = T / 4;
    let mut bins = [0.0; 40];
    for seed in 0..THREADS {
        // Mixed, so that threads are independent of each other.
        in_blocks(mix(seed), T, 10 * T, |now, due| {
            bins[(now / BIN_NS) as usize] += due.weight_ns as f64;
        });
    }
    for (place, weight) in bins.into_iter().enumerate() {
        let expected = THREADS as f64 * BIN_NS as f64;
        // A thread has one point in so short a bin or none, of at most 1.5 intervals each: a
        // variance of at most 1.5 T times the bin. Points nearer than a timer can go to the last
        // one come late, into the next bin.
        let deviation = (THREADS as f64 * 1.5 * T as f64 * BIN_NS as f64).sqrt();
        let late = THREADS as f64 * 1.5 * GAP_MIN_NS as f64;
        let bound = 5.0 * deviation + late;
        assert!(
            (weight - expected).abs() <= bound,
            "{place}: {weight} of {expected} +- {bound}"
        );
    }
}

#[test]
fn the_place_after_a_block_is_uniform_in_its_window() {
    const BINS: u64 = 16;
    const EACH: u64 = 160_000;
    for (old_ns, width_ns) in [(500, 1500), (1500, 500), (1000, 1000), (900, 1100)] {
        let mut random = Random(old_ns);
        let (mut bins, mut reached) = ([0u64; BINS as usize], 0);
        for _ in 0..EACH {
            let left_ns = 1 + random.below(old_ns * 1000);
            let place = following(
                left_ns,
                old_ns * 1000,
                width_ns * 1000,
                mix(random.below(!0)),
            );
            assert!(place < width_ns * 1000);
            bins[(place * BINS / (width_ns * 1000)) as usize] += 1;
            reached += u64::from(left_ns + place == width_ns * 1000);
        }
        let expected = (EACH / BINS) as f64;
        let chi2: f64 = bins
            .iter()
            .map(|n| (*n as f64 - expected).powi(2) / expected)
            .sum();
        // 15 degrees of freedom: 53.0 is exceeded with a probability of 4e-6.
        assert!(chi2 < 53.0, "{chi2}: {bins:?}");
        let share = old_ns.min(width_ns) as f64 / old_ns.max(width_ns) as f64;
        let off = (reached as f64 - EACH as f64 * share).abs();
        let bound = five_sigma(EACH as f64, share) + 1.0;
        assert!(off <= bound, "{reached} reached, not {share} of {EACH}");
    }
}

/// The shares of programs in step with the interval scatter hardly more than if each point had a
/// place of its own.
#[test]
fn blocks_keep_accuracy_for_programs_in_step() {
    const RUNS: u64 = 300;
    const WINDOWS: u64 = 1500;
    const MS: u64 = 1_000_000;
    for cycle_ns in [MS, 2 * MS, 10 * MS, MS / 2] {
        let (mut mean, mut square) = (0.0, 0.0);
        for run in 0..RUNS {
            let (mut first, mut all) = (0.0, 0.0);
            in_blocks(mix(run), MS, WINDOWS * MS, |now, due| {
                let weight = due.weight_ns as f64;
                all += weight;
                if now % cycle_ns < 3 * cycle_ns / 10 {
                    first += weight;
                }
            });
            let off = first / all - 0.3;
            mean += off / RUNS as f64;
            square += off * off / RUNS as f64;
        }
        let alone = 0.3 * 0.7 / WINDOWS as f64;
        // The mean of the squares of this many independent runs scatters by a few parts in a
        // hundred if they are normal, by more as blocks that keep step are rare. With one length
        // for all blocks it would be 64.
        let factor = square / alone;
        assert!(factor < 2.0, "{cycle_ns}: {factor}");
        let bound = 5.0 * (square / RUNS as f64).sqrt();
        assert!(mean.abs() <= bound, "{cycle_ns}: {mean} +- {bound}");
    }
}

#[test]
fn strange_numbers_do_blocks_no_harm() {
    let mut plan = Plan::in_blocks(9, 1_000_000, 1_000_000);
    assert_eq!(plan.due(0, true).points, 0, "a clock that ran backwards");
    let late_ns = 3_600_000_000_000;
    let due = plan.due(late_ns, true);
    assert!(due.weight_ns.abs_diff(late_ns - 1_000_000) <= longest_ns(1_000_000));
    assert!(due.wake_up_ns - late_ns <= 2 * longest_ns(1_000_000));
    let due = plan.due(u64::MAX - 1, true);
    assert_eq!((due.points, due.wake_up_ns), (u32::MAX, u64::MAX));
    let mut dense = Plan::in_blocks(9, 0, 0);
    assert_eq!(dense.due(1_000, false).weight_ns, 1_001);
}

#[test]
fn blocks_have_as_many_windows_as_they_may() {
    let windows = |interval_ns| Plan::in_blocks(1, interval_ns, 0).per_block;
    // 64 ms, with a maximum of 64 windows; one window where there would be fewer than four.
    for (interval_ns, expected) in [
        (T, 6),
        (2_000_000, 32),
        (1_000_001, 63),
        (1_000_000, 64),
        (200_000, 64),
        (16_000_000, 4),
        (16_000_001, 1),
        (0, 64),
    ] {
        assert_eq!(windows(interval_ns), expected, "{interval_ns}");
    }
}

/// A periodic timer is on time as long as it meets each window once.
#[test]
fn a_timer_in_step_is_on_time_until_it_misses_a_window() {
    let mut plan = Plan::in_blocks(3, 2_000_000, 0);
    let mut now = plan.next_point_ns();
    plan.due(now, false);
    let mut steady = 0;
    for _ in 0..100 {
        now += plan.width_ns();
        let due = plan.due(now, true);
        assert!(due.points != 1 || due.on_time, "{due:?}");
        steady += u32::from(due.steady && due.on_time);
    }
    assert!(steady > 80, "{steady}");
    // A timer that is not in step, that had to wait, or that is late carries no information.
    now += plan.width_ns();
    assert!(!plan.due(now, false).on_time);
    assert!(!plan.due(now + plan.width_ns() / 3, true).on_time);
    now += plan.width_ns() / 3 + 3 * plan.width_ns();
    let late = plan.due(now, true);
    assert!(late.points > 1 && !late.on_time, "{late:?}");
}

#[test]
fn time_left_out_moves_points_and_windows() {
    let (mut plan, mut moved) = (Plan::new(7, T, 0), Plan::new(7, T, 0));
    moved.leave_out(1000);
    assert_eq!(moved.next_point_ns(), plan.next_point_ns() + 1000);
    assert_eq!(moved.owed_ns(plan.next_point_ns() + 999), 0);
    for now in (0..20).map(|step| step * T / 3) {
        let (usual, later) = (plan.due(now, false), moved.due(now + 1000, false));
        assert_eq!(
            (usual.points, usual.weight_ns),
            (later.points, later.weight_ns)
        );
        assert_eq!(later.wake_up_ns, usual.wake_up_ns + 1000);
    }
    let mut never = Plan::new(7, T, 0);
    never.leave_out(u64::MAX / 2);
    assert_eq!(never.owed_ns(1000 * T), 0);
}
