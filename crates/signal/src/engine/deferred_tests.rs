//! The reach of lifetimes.

use super::*;
use crate::plan::Plan;

const INTERVAL_NS: u64 = 10_000_000;

fn after(lives: impl IntoIterator<Item = u64>) -> Option<u64> {
    let lifetimes = Lifetimes::new();
    lives
        .into_iter()
        .for_each(|ns| lifetimes.ended(ns, INTERVAL_NS));
    lifetimes.reach_ns(INTERVAL_NS)
}

#[test]
fn reach_without_ended_threads_is_unlimited() {
    assert_eq!(after([]), None);
    assert_eq!(Lifetimes::new().reach_ns(u64::MAX), None);
}

#[test]
fn reach_falls_to_twice_the_usual_life() {
    let brief = |count| after((0..count).map(|_| 100_000));
    let few = brief(10).unwrap();
    assert!(
        few > INTERVAL_NS * 8 / 10,
        "{few}: ten threads prove little"
    );
    let many = brief(2000).unwrap();
    assert!((200_000..=200_100).contains(&many), "{many}");
}

#[test]
fn reach_of_one_long_life_fades_slowly() {
    let brief = || (0..2000).map(|_| 100_000);
    assert_eq!(after(brief().chain([300_000])), Some(600_000));
    assert_eq!(after(brief().chain([INTERVAL_NS / 2])), None);
    assert_eq!(after(brief().chain([u64::MAX])), None);
    let later = brief().chain([u64::MAX]).chain((0..64).map(|_| 100_000));
    let later = after(later).unwrap();
    assert!(
        (INTERVAL_NS / 3..INTERVAL_NS / 2).contains(&later),
        "{later}"
    );
}

#[test]
fn reach_is_unlimited_when_few_threads_end() {
    let lifetimes = Lifetimes::new();
    for (ended, is_limited) in [(ENDED_MIN, true), (ENDED_MIN - 1, false), (0, false)] {
        (0..ended).for_each(|_| lifetimes.ended(1000, INTERVAL_NS));
        lifetimes.check();
        let reach_ns = lifetimes.reach_ns(INTERVAL_NS);
        assert_eq!(reach_ns.is_some(), is_limited, "{ended} ended");
    }
}

/// Threads that each use `used_ns`, and `more_ns` if they have a source. Returns the weight of
/// their samples, their CPU time, the sum of the places of samples, and how many had a source.
fn run(threads: u64, used_ns: u64, more_ns: u64) -> (u64, u64, u64, u64) {
    let lifetimes = Lifetimes::new();
    let (mut weight, mut cpu, mut places, mut sources) = (0, 0, 0, 0);
    for seed in 0..threads {
        let point_ns = Plan::new(seed, INTERVAL_NS, 0).next_point_ns();
        let choice = lifetimes.choose(point_ns, INTERVAL_NS);
        let has_source = matches!(choice, Choice::Usual | Choice::Source);
        let cpu_ns = used_ns + if has_source { more_ns } else { 0 };
        let is_sampled = choice != Choice::PassedOver && point_ns < cpu_ns;
        assert!(
            !is_sampled || has_source,
            "sampled late: {choice:?} {point_ns}"
        );
        let weight_ns = if is_sampled { INTERVAL_NS } else { 0 };
        weight += weight_ns;
        places += if is_sampled { point_ns } else { 0 };
        cpu += cpu_ns;
        sources += u64::from(has_source);
        if choice != Choice::Usual {
            lifetimes.settle(weight_ns, cpu_ns);
        }
        lifetimes.ended(cpu_ns, INTERVAL_NS);
    }
    (weight, cpu, places, sources)
}

#[test]
fn weights_follow_cpu_time_if_sources_cost_time() {
    for more_ns in [0, 10_000, 40_000, 200_000] {
        let (weight, cpu, places, sources) = run(100_000, 100_000, more_ns);
        let discrepancy_ns = (2.0 + (100_000f64).ln()) as u64 * INTERVAL_NS;
        assert!(
            weight.abs_diff(cpu) < discrepancy_ns,
            "{weight} of {cpu} ns"
        );
        // Samples are all over the life of a thread that has a source.
        let mean_ns = places / (weight / INTERVAL_NS);
        let middle_ns = (100_000 + more_ns) / 2;
        assert!(mean_ns.abs_diff(middle_ns) < middle_ns / 10, "{mean_ns}");
        assert!(sources < 7000, "{sources} of 100000 had a source");
    }
}

#[test]
fn thread_is_passed_over_only_while_weights_are_ahead() {
    let lifetimes = Lifetimes::new();
    assert_eq!(lifetimes.choose(1, INTERVAL_NS), Choice::Usual);
    (0..2000).for_each(|_| lifetimes.ended(1_000_000, INTERVAL_NS));
    let near = || lifetimes.choose(1_000_000, INTERVAL_NS);
    assert_eq!(near(), Choice::Source);
    assert_eq!(lifetimes.choose(3_000_000, INTERVAL_NS), Choice::Deferred);
    lifetimes.settle(2 * INTERVAL_NS, 0);
    assert_eq!(near(), Choice::Source);
    lifetimes.settle(INTERVAL_NS, 1_000_000);
    assert_eq!(near(), Choice::PassedOver);
    assert_eq!(lifetimes.choose(3_000_000, INTERVAL_NS), Choice::Deferred);
    lifetimes.settle(0, INTERVAL_NS);
    assert_eq!(near(), Choice::Source);
}
