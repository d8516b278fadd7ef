//! A simulated free-running timer: which signals set a period, and where samples lie.

use super::*;
use crate::plan::{Plan, longest_ns};
use std::vec::Vec;

const MS: u64 = 1_000_000;

/// An event as the kernel has it: it overflows a period after it last overflowed or was set, until
/// it has sent as many signals as it may.
struct Event {
    period_ns: u64,
    next_ns: u64,
    credit: u32,
}

impl Event {
    /// Handles a signal: the weight of its sample, and the period to set, if any.
    fn handle(&self, plan: &mut Plan, now_ns: u64) -> (u64, Option<u64>) {
        let due = plan.due(now_ns, self.period_ns == plan.width_ns());
        let standing = Standing {
            period_ns: self.period_ns,
            width_ns: plan.width_ns(),
            gap_ns: due.wake_up_ns - now_ns,
            steady: due.steady,
            on_time: due.on_time,
            silenced: self.credit == 0,
        };
        (due.weight_ns, to_set(&standing))
    }
}

/// The result of a run of signals.
#[derive(Default)]
struct Run {
    /// CPU time and weight of each sample.
    samples: Vec<(u64, u64)>,
    signals: u64,
    /// Periods set, and how many of them while the event was enabled.
    set: u64,
    set_enabled: u64,
    granted: u64,
}

/// Simulates the handler for `length_ns` of CPU time. Each signal is handled `late_ns(n)` after
/// the event overflowed, and the thread's clock loses `lost_ns` against the timer in each
/// interval.
fn play(interval_ns: u64, length_ns: u64, late_ns: impl Fn(u64) -> u64, lost_ns: i64) -> Run {
    let mut plan = Plan::in_blocks(11, interval_ns, 0);
    let first = plan.wake_up_ns(0);
    let mut event = Event {
        period_ns: first,
        next_ns: first,
        credit: 1,
    };
    let (mut known, mut run) = (1, Run::default());
    loop {
        let now_ns = (event.next_ns + late_ns(run.signals)).saturating_add_signed(-lost_ns);
        if now_ns > length_ns {
            return run;
        }
        run.signals += 1;
        event.credit -= 1;
        known = if event.credit == 0 { 0 } else { known - 1 };
        assert_eq!(known, event.credit);
        let (weight_ns, period_ns) = event.handle(&mut plan, now_ns);
        if weight_ns > 0 {
            run.samples.push((now_ns, weight_ns));
        }
        if let Some(period_ns) = period_ns {
            run.set += 1;
            run.set_enabled += u64::from(event.credit > 0);
            event.period_ns = period_ns;
            event.next_ns = now_ns + period_ns;
        } else {
            assert!(event.credit > 0, "it would go off at once");
            event.next_ns = event.next_ns.saturating_add_signed(-lost_ns) + event.period_ns;
        }
        let in_step = event.period_ns == plan.width_ns();
        let grant = to_grant(known, plan.left_in_block(), in_step);
        run.granted += u64::from(grant > 0);
        (event.credit, known) = (event.credit + grant, known + grant);
        assert!((1..=CREDIT).contains(&known));
    }
}

fn weight_is_time_at_each_sample(run: &Run, interval_ns: u64) {
    let mut sum_ns = 0;
    for (now_ns, weight_ns) in &run.samples {
        sum_ns += weight_ns;
        let off_ns = sum_ns.abs_diff(*now_ns);
        assert!(off_ns <= longest_ns(interval_ns), "{sum_ns} for {now_ns}");
    }
}

#[test]
fn hardly_more_than_one_signal_of_a_block_sets_a_period() {
    for interval_ns in [MS / 4, MS / 2, MS] {
        let blocks = 2000;
        let length_ns = blocks * 64 * interval_ns;
        let run = play(interval_ns, length_ns, |_| 9_000, 0);
        weight_is_time_at_each_sample(&run, interval_ns);
        // One for each, and another one if the next block's place cannot be reached in one step.
        // With lengths from a half to one and a half, the smaller one is 0.725 of the larger one
        // in the mean. A near place (50 us) is reached late, which may need another signal.
        assert!(run.set <= blocks * 145 / 100, "{} for {blocks}", run.set);
        assert!(run.signals <= 65 * blocks, "{} signals", run.signals);
        assert!(run.set_enabled <= run.set / 10, "{}", run.set_enabled);
        assert!(run.granted <= run.signals * 4 / 10, "{}", run.granted);
    }
}

#[test]
fn signals_that_come_late_cost_no_weight() {
    let late = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 3_000_000;
    let run = play(MS, 20_000 * MS, late, 0);
    weight_is_time_at_each_sample(&run, MS);
}

#[test]
fn a_clock_that_strays_from_the_timer_is_followed() {
    for lost_ns in [-20_000, -200, 200, 2_000, 20_000] {
        let length_ns = 30_000 * MS;
        let run = play(MS, length_ns, |_| 5_000, lost_ns);
        weight_is_time_at_each_sample(&run, MS);
        // Each signal is worth an interval minus small losses: blocks with short windows end a
        // little early or late.
        let due = length_ns / MS;
        let most = due + due / 16;
        assert!(run.signals <= most, "{} for {due}", run.signals);
        assert!(run.set <= due / 16, "{} set", run.set);
    }
}

/// Samples of a program that repeats itself each interval have its true shares.
#[test]
fn a_program_in_step_is_seen_in_its_true_shares() {
    const WINDOWS: u64 = 1_000_000;
    for lost_ns in [0, 3_000] {
        let run = play(MS, WINDOWS * MS, |_| 5_000, lost_ns);
        let (mut first, mut all) = (0.0, 0.0);
        for (now_ns, weight_ns) in &run.samples {
            let weight = *weight_ns as f64;
            all += weight;
            if now_ns % MS < 3 * MS / 10 {
                first += weight;
            }
        }
        // At most twice the variance of independent points (see the plan's tests). Places near the
        // last point are reached late: a twentieth of a window once in a block.
        let bound = 5.0 * (2.0 * 0.3 * 0.7 / WINDOWS as f64).sqrt() + 0.05 / 64.0;
        let share = first / all;
        assert!((share - 0.3).abs() <= bound, "{share} +- {bound}");
    }
}

#[test]
fn strange_numbers_are_answered() {
    let standing = Standing {
        period_ns: 0,
        width_ns: 1,
        gap_ns: 7,
        steady: true,
        on_time: true,
        silenced: false,
    };
    assert_eq!(to_set(&standing), Some(7));
    let far = Standing {
        width_ns: u64::MAX,
        gap_ns: u64::MAX,
        ..standing
    };
    assert_eq!(to_set(&far), Some(u64::MAX));
    assert_eq!(to_grant(0, 0, true), 0);
    assert_eq!(to_grant(u32::MAX, u64::MAX, true), 0);
    assert_eq!(to_grant(0, u64::MAX, true), CREDIT);
}

#[test]
fn may_have_merged_needs_room_for_two_periods() {
    let merged = |last_ns, before_ns, now_ns| may_have_merged(100, (last_ns, before_ns), now_ns);
    assert!(!merged(1100, 1000, 1100), "one after the other");
    assert!(!merged(1149, 1000, 1150));
    assert!(merged(1150, 1000, 1150), "the second was late");
    assert!(!merged(1100, 1000, 1174), "a second one comes later");
    assert!(merged(1100, 1000, 1175), "the handler took nearly a period");
    assert!(!merged(1000, 1100, 900), "clocks that go back");
    assert!(!may_have_merged(u64::MAX, (5, 0), 5));
}

/// The weight of a thread that is registered at `begin_ns` of its CPU time, and ends at `end_ns`.
fn life(seed: u64, (begin_ns, end_ns): (u64, u64), late_ns: u64, ahead: f64) -> u64 {
    let mut plan = Plan::in_blocks(seed, MS, 0);
    let first = plan.wake_up_ns(begin_ns);
    let on_timer = |ns: u64| (ns as f64 * (1.0 - ahead)) as u64;
    let period_ns = first - begin_ns;
    let mut event = Event {
        period_ns,
        next_ns: begin_ns + on_timer(period_ns),
        credit: 1,
    };
    let mut weight_ns = 0;
    loop {
        let now_ns = event.next_ns + late_ns;
        if now_ns >= end_ns {
            if plan.next_point_ns() <= end_ns {
                weight_ns += plan.due(end_ns, false).weight_ns;
            }
            return weight_ns;
        }
        event.credit -= 1;
        let (due_ns, period_ns) = event.handle(&mut plan, now_ns);
        weight_ns += due_ns;
        if let Some(period_ns) = period_ns {
            event.period_ns = period_ns;
            event.next_ns = now_ns + on_timer(period_ns);
        } else {
            event.next_ns += on_timer(event.period_ns);
        }
        let in_step = event.period_ns == plan.width_ns();
        event.credit += to_grant(event.credit, plan.left_in_block(), in_step);
    }
}

/// Late signals, a begin that is late, and a timer that loses time change no weight. Otherwise each
/// short thread of a busy machine weighs more than its CPU time: 50 us, if its signals are 60 us
/// late.
#[test]
fn late_signals_do_not_change_the_weight_of_a_life() {
    const LIVES: u64 = 20_000;
    for windows in [1, 2, 3, 10, 100] {
        let (mut weight, mut used) = (0.0, 0.0);
        for seed in 0..LIVES {
            let end_ns = windows * MS + seed * 7919 % MS;
            let weight_ns = life(seed, (0, end_ns), 0, 0.0);
            for (begin_us, late_us, ahead) in [(200, 10, 0.0), (200, 60, 0.0), (300, 10, -0.01)] {
                let begin_ns = begin_us * 1000;
                let late = life(seed, (begin_ns, end_ns), late_us * 1000, ahead);
                assert_eq!(
                    late, weight_ns,
                    "{seed}: {windows} windows, {late_us} us late"
                );
            }
            weight += weight_ns as f64;
            used += end_ns as f64;
        }
        // A life has a window of at most 1.5 MS more or less.
        let bound = 5.0 * (LIVES as f64).sqrt() * 0.75 * MS as f64;
        assert!((weight - used).abs() <= bound, "{weight} for {used}");
    }
}
