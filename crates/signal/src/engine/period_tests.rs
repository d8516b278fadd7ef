//! A free-running timer played through: which signals set a period, and where samples lie.

use super::*;
use crate::plan::{BLOCK_NS, Plan};
use std::vec::Vec;

const MS: u64 = 1_000_000;

/// An event as the kernel has it: it goes off a period after it last went off or was set.
struct Event {
    period_ns: u64,
    next_ns: u64,
}

/// What a run of signals came to.
#[derive(Default)]
struct Run {
    /// CPU time and points of each sample.
    samples: Vec<(u64, u32)>,
    signals: u64,
    set: u64,
}

/// Plays the handler for `length_ns` of CPU time; each signal is handled `late_ns(n)` after the
/// event went off, and the thread's clock loses `lost_ns` against the timer in each interval.
fn play(interval_ns: u64, length_ns: u64, late_ns: impl Fn(u64) -> u64, lost_ns: u64) -> Run {
    let mut plan = Plan::in_blocks(11, interval_ns, 0);
    let first = plan.wake_up_ns(0);
    let mut event = Event {
        period_ns: first,
        next_ns: first,
    };
    let mut run = Run::default();
    loop {
        let now_ns = event.next_ns + late_ns(run.signals) - lost_ns;
        if now_ns > length_ns {
            return run;
        }
        run.signals += 1;
        let due = plan.due(now_ns);
        if due.points > 0 {
            run.samples.push((now_ns, due.points));
        }
        let standing = Standing {
            period_ns: event.period_ns,
            interval_ns,
            gap_ns: due.wake_up_ns - now_ns,
            steady: due.steady,
        };
        if let Some(period_ns) = to_set(&standing) {
            run.set += 1;
            event.period_ns = period_ns;
            event.next_ns = now_ns + period_ns;
        } else {
            event.next_ns = event.next_ns - lost_ns + event.period_ns;
        }
    }
}

fn weight_is_time_at_each_sample(run: &Run, interval_ns: u64) {
    let mut weight_ns = 0;
    for (now_ns, points) in &run.samples {
        weight_ns += u64::from(*points) * interval_ns;
        let off_ns = weight_ns.abs_diff(*now_ns);
        assert!(off_ns <= interval_ns, "{weight_ns} for {now_ns}");
    }
}

#[test]
fn two_signals_of_a_block_set_a_period() {
    for interval_ns in [MS / 10, MS / 2, MS, 4 * MS, 8 * MS] {
        let length_ns = 4000 * BLOCK_NS;
        let run = play(interval_ns, length_ns, |_| 9_000, 0);
        weight_is_time_at_each_sample(&run, interval_ns);
        let blocks = length_ns / (BLOCK_NS / interval_ns * interval_ns);
        // Two each: one to the block's place, one to stay there. The first signal sets one.
        assert!(run.set <= 2 * blocks + 1, "{} for {blocks}", run.set);
        // A place of the next block that is near (50 us) is reached late, which may need another
        // signal; no more than a part of the blocks has one.
        let due = length_ns / interval_ns;
        assert!(run.signals <= due + blocks / 5, "{} for {due}", run.signals);
    }
}

#[test]
fn signals_that_come_late_cost_no_weight() {
    let late = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 3_000_000;
    let run = play(MS, 2000 * BLOCK_NS, late, 0);
    weight_is_time_at_each_sample(&run, MS);
}

#[test]
fn a_clock_that_loses_time_is_followed() {
    for lost_ns in [200, 2_000, 20_000] {
        let length_ns = 1000 * BLOCK_NS;
        let run = play(MS, length_ns, |_| 5_000, lost_ns);
        weight_is_time_at_each_sample(&run, MS);
        let due = length_ns / MS;
        assert!(run.signals <= due + due / 2, "{} for {due}", run.signals);
    }
}

/// Samples of a program that repeats itself each interval: its shares are the true ones, as if
/// there were one sample a block.
#[test]
fn a_program_in_step_is_seen_in_its_true_shares() {
    const BLOCKS: u64 = 100_000;
    let run = play(MS, BLOCKS * BLOCK_NS, |_| 5_000, 0);
    let (mut first, mut all) = (0.0, 0.0);
    for (now_ns, points) in &run.samples {
        let points = f64::from(*points);
        all += points;
        if now_ns % MS < 3 * MS / 10 {
            first += points;
        }
    }
    // Blocks are independent of each other: five standard deviations of a mean of so many yes-or-no
    // answers. Where a place is near the last one (50 us of 1 ms), a sample in a block is late.
    let bound = 5.0 * (0.3 * 0.7 / BLOCKS as f64).sqrt() + 0.05 / 16.0;
    let share = first / all;
    assert!((share - 0.3).abs() <= bound, "{share} +- {bound}");
}

#[test]
fn strange_numbers_are_answered() {
    let standing = Standing {
        period_ns: 0,
        interval_ns: 0,
        gap_ns: 7,
        steady: true,
    };
    assert_eq!(to_set(&standing), Some(7));
    let far = Standing {
        interval_ns: u64::MAX,
        gap_ns: u64::MAX,
        ..standing
    };
    assert_eq!(to_set(&far), Some(u64::MAX));
}
