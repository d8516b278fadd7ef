//! The reach of lifetimes.

use super::*;

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
