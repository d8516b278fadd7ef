//! The state machine with one thread.

use super::*;
use crate::labels::Shown;

const TICK_NS: u64 = 20_000_000;

fn tick(clock: &mut WallClock<u8>, number: u32) {
    let tick = Tick {
        number,
        at_ns: u64::from(number) * TICK_NS,
        interval_ns: TICK_NS,
        until_ns: u64::from(number) * TICK_NS,
    };
    clock.begin_tick(tick, TICK_NS);
}

fn begun() -> WallClock<u8> {
    let mut clock = WallClock::new(Purse::fixed(100), Random::new(1));
    tick(&mut clock, 1);
    clock.begin(0);
    assert_eq!(clock.due(), [0]);
    clock
}

fn label(shown: Shown, has_claim: bool) -> Label {
    Label {
        shown,
        place: 1,
        has_claim,
    }
}

fn sampled(clock: &mut WallClock<u8>, fingerprint: Fingerprint, label: Label) {
    let labelled = clock.label(0, fingerprint, label);
    clock.settle(0, Some(labelled.class));
}

fn weight(clock: &mut WallClock<u8>) -> (u64, u64) {
    clock.finish(0);
    let of = |ended: &Ended<u8>| match ended.class {
        UNSAMPLED => (0, ended.run.weight_ns),
        _ => (ended.run.weight_ns, 0),
    };
    let ended = clock.take_ended();
    ended
        .iter()
        .map(of)
        .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
}

/// A sample found the thread running, and a later read finds it waiting at the same fingerprint.
#[test]
fn wait_after_a_wrong_label_is_sampled_again() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    sampled(&mut clock, fingerprint, label(Shown::Run, false));
    tick(&mut clock, 2);
    assert_eq!(clock.due(), [0]);
    assert!(clock.can_stay(0, |_| true));
    clock.stays(0);
    assert_eq!(clock.next_of_backlog(false), Some(0));
    sampled(&mut clock, fingerprint, label(Shown::Wait, false));
    assert_eq!(weight(&mut clock), (TICK_NS, 0));
}

#[test]
fn lock_with_another_owner_is_sampled_again() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    sampled(&mut clock, fingerprint, label(Shown::Wait, true));
    tick(&mut clock, 2);
    assert_eq!(clock.due(), [0]);
    assert!(!clock.can_stay(0, |_| false) && clock.can_stay(0, |_| true));
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| false));
    clock.settle(0, None);
    // The second tick has no sample, and its place differs from the first.
    assert_eq!(weight(&mut clock), (TICK_NS, TICK_NS));
}

/// The process was stopped for many ticks.
#[test]
fn pause_of_many_ticks_is_accounted_and_reads_go_on() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    sampled(&mut clock, fingerprint, label(Shown::Wait, false));
    for number in [1000, 1001] {
        tick(&mut clock, number);
        assert_eq!(clock.due(), [0]);
        clock.stays(0);
    }
    assert_eq!(weight(&mut clock), (1001 * TICK_NS, 0));
}

#[test]
fn ready_thread_is_not_counted_as_wait() {
    let mut clock = begun();
    assert!(!clock.read(0, Fingerprint::running(), (0, || 0), true, |_| true));
    assert!(clock.runs(0));
    clock.account(0, 5);
    assert_eq!(weight(&mut clock), (0, 0));
}

/// A thread that waits half of the time, and was seen waiting in each of ten ticks.
#[test]
fn waits_follow_the_account_of_the_kernel() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    sampled(&mut clock, fingerprint, label(Shown::Wait, false));
    clock.account(0, 0);
    for number in 2..=10 {
        tick(&mut clock, number);
        assert_eq!(clock.due(), [0]);
        let _ = clock.read(0, fingerprint, (0, || 0), true, |_| true);
        clock.settle(0, None);
        clock.account(0, TICK_NS / 2);
    }
    assert_eq!(weight(&mut clock), (TICK_NS + 9 * TICK_NS / 2, 0));
}

#[test]
fn time_found_running_has_no_reads_of_woken_threads() {
    let mut clock = begun();
    assert!(!clock.read(0, Fingerprint::running(), (0, || 0), true, |_| true));
    for number in 2..=4 {
        tick(&mut clock, number);
        assert_eq!(clock.due(), [0]);
        let fingerprint = match number {
            3 => Fingerprint::woken(),
            _ => Fingerprint::running(),
        };
        assert!(!clock.read(0, fingerprint, (0, || 0), true, |_| true));
    }
    let found = clock.take_found(0);
    assert_eq!((found.running_ns, found.woken_ns), (3 * TICK_NS, TICK_NS));
    assert_eq!(clock.take_found(0), Found::default());
    assert_eq!(clock.take_found(1), Found::default(), "no such thread");
}

/// A wait of 30 ticks, one of one tick, and one that is not over.
#[test]
fn each_wait_that_a_thread_was_woken_from_has_the_same_chance() {
    let mut taken = [0; 3];
    for seed in 0..400 {
        let mut clock = WallClock::new(Purse::fixed(100), Random::new(seed));
        tick(&mut clock, 1);
        clock.begin(0);
        let mut numbers = 1..;
        for (wait, ticks) in [(1, 30), (2, 1), (0, 30)] {
            let fingerprint = Fingerprint::of([u64::from(wait)], false);
            for (is_first, number) in (0..ticks).map(|at| at == 0).zip(&mut numbers) {
                tick(&mut clock, number);
                assert_eq!(clock.due(), [0]);
                if is_first {
                    assert!(clock.read(0, fingerprint, (0, || wait), true, |_| true));
                    sampled(&mut clock, fingerprint, label(Shown::Wait, false));
                } else {
                    clock.stays(0);
                }
            }
        }
        let left = clock.take_found(0).left();
        taken[left.map_or(0, |class| 1 + usize::from(class))] += 1;
        assert_eq!(clock.take_found(0).left(), None, "each counts once");
    }
    // Half of 400, within four standard errors.
    assert!(
        taken[0] == 0 && (160..=240).contains(&taken[1]),
        "{taken:?}"
    );
}

#[test]
fn wait_is_not_left_at_the_place_of_a_later_sample() {
    for place in [1, 2] {
        let mut clock = begun();
        let fingerprint = Fingerprint::of([1], false);
        assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
        sampled(&mut clock, fingerprint, label(Shown::Wait, false));
        tick(&mut clock, 2);
        assert_eq!(clock.due(), [0]);
        let _ = clock.read(0, fingerprint, (0, || 0), true, |_| true);
        let other = Label {
            place,
            ..label(Shown::Wait, false)
        };
        sampled(&mut clock, fingerprint, other);
        assert_eq!(clock.take_found(0).left().is_some(), place == 1);
    }
}

/// The first read of a thread finds it woken: only its fingerprint and a sample of its methods show
/// where it waited.
#[test]
fn wait_before_the_first_read_is_sampled_and_left() {
    let mut clock = begun();
    let wait = Fingerprint::of([1], false);
    assert!(!clock.read(0, Fingerprint::woken(), (0, || 0), true, |_| true));
    assert!(clock.woken_from(0, wait), "an unknown wait");
    let labelled = clock.label(0, wait.after_wake_up(), label(Shown::Wait, false));
    clock.wake(0, wait);
    let found = clock.take_found(0);
    assert_eq!(found.left(), Some(labelled.class));
    assert_eq!((found.woken_ns, found.running_ns), (TICK_NS, 0));
    // It is still ready there, and has not run.
    tick(&mut clock, 2);
    assert_eq!(clock.due(), [0]);
    clock.stays(0);
    let found = clock.take_found(0);
    assert_eq!(
        (found.left(), found.woken_ns),
        (Some(labelled.class), TICK_NS)
    );
    // The place is not that of the wait itself, whose samples also have the system call.
    tick(&mut clock, 3);
    assert_eq!(clock.due(), [0]);
    assert!(clock.read(0, wait, (0, || 0), true, |_| true));
    sampled(&mut clock, wait, label(Shown::Wait, false));
    assert_eq!(weight(&mut clock), (TICK_NS, 0));
}

/// A sample failed, or the budget allowed none.
#[test]
fn unknown_wait_is_not_left() {
    let mut clock = begun();
    let wait = Fingerprint::of([1], false);
    assert!(clock.woken_from(0, wait));
    clock.wake(0, wait);
    assert_eq!(clock.take_found(0).left(), None);
    let mut purse = Purse::of_share(0.01);
    purse.spend(u64::MAX / 2);
    let mut poor: WallClock<u8> = WallClock::new(purse, Random::new(1));
    poor.begin(0);
    assert!(!poor.woken_from(0, wait));
    assert_eq!(poor.take_found(0).left(), None);
}

/// A thread that was found waiting, and then twice woken from that wait without having run.
#[test]
fn woken_thread_keeps_its_wait_until_it_runs() {
    let mut clock = begun();
    let wait = Fingerprint::of([1], false);
    assert!(clock.read(0, wait, (0, || 0), true, |_| true));
    sampled(&mut clock, wait, label(Shown::Wait, false));
    let class = clock.take_found(0).left();
    assert_eq!(class, None, "it still waits");
    for number in 2..=3 {
        tick(&mut clock, number);
        assert_eq!(clock.due(), [0]);
        clock.stays_ready(0);
        let found = clock.take_found(0);
        assert!(found.left().is_some(), "{number}");
        assert_eq!(found.woken_ns, TICK_NS);
    }
    tick(&mut clock, 4);
    assert_eq!(clock.due(), [0]);
    assert!(!clock.read(0, Fingerprint::running(), (0, || 0), true, |_| true));
    tick(&mut clock, 5);
    assert_eq!(clock.due(), [0]);
    clock.stays_ready(0);
    let found = clock.take_found(0);
    assert_eq!((found.left(), found.running_ns), (None, 2 * TICK_NS));
}

/// A thread that has not run since it was found running has been preempted all the time; one that
/// was found waiting has been woken.
#[test]
fn ready_thread_is_as_its_last_read_found_it() {
    for (first, is_preempted) in [
        (Fingerprint::running(), true),
        (Fingerprint::of([1], false), false),
    ] {
        for is_asked in [true, false] {
            let mut clock = begun();
            let _ = clock.read(0, first, (0, || 0), true, |_| true);
            clock.settle(0, None);
            for number in 2..=4 {
                tick(&mut clock, number);
                assert_eq!(clock.due(), [0]);
                if is_asked {
                    let _ = clock.stays_ready(0);
                } else {
                    clock.stays(0);
                }
            }
            let expected = if is_preempted { 4 * TICK_NS } else { 0 };
            assert_eq!(clock.take_found(0).running_ns, expected);
        }
    }
}

#[test]
fn exact_wait_is_not_changed_by_the_account() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    sampled(&mut clock, fingerprint, label(Shown::Wait, false));
    clock.account(0, 0);
    for number in 2..=10 {
        tick(&mut clock, number);
        assert_eq!(clock.due(), [0]);
        clock.stays(0);
        clock.account(0, 0);
    }
    // Only the first read may be wrong.
    assert_eq!(weight(&mut clock), (9 * TICK_NS, 0));
}

/// Also just after a piece of the wait was reported, when no read of the next piece was made.
#[test]
fn idle_thread_has_all_its_time_at_any_end() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    sampled(&mut clock, fingerprint, label(Shown::Wait, false));
    let mut reported_ns = 0;
    for number in 2..=700 {
        tick(&mut clock, number);
        if clock.due() == [0] {
            clock.stays(0);
        }
        // A budget of nearly nothing: blocks are as long as they may be.
        clock.census_done(1, 0, 1e-9);
        let ended = clock.take_ended();
        reported_ns += ended.iter().map(|it| it.run.weight_ns).sum::<u64>();
        let (rest_ns, unsampled_ns) = weight(&mut clock.clone());
        let lived_ns = u64::from(number) * TICK_NS;
        assert_eq!((reported_ns + rest_ns, unsampled_ns), (lived_ns, 0));
        // If the thread ends in this tick, it has lived for the ticks before.
        let mut without = clock.clone();
        without.end(0);
        let (rest_ns, _) = weight(&mut without);
        assert_eq!(reported_ns + rest_ns, lived_ns - TICK_NS, "{number}");
    }
}

/// The budget allowed the first sample long after the first read, in the middle of a block, or the
/// result of a sample was lost there.
#[test]
fn time_is_whole_whenever_a_place_is_sampled() {
    let fingerprint = Fingerprint::of([1], false);
    for (sampled_at, is_first) in (2..300).flat_map(|at| [(at, true), (at, false)]) {
        let mut clock = begun();
        assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
        match is_first {
            true => clock.settle(0, None),
            false => sampled(&mut clock, fingerprint, label(Shown::Wait, false)),
        }
        for number in 2..=sampled_at {
            tick(&mut clock, number);
            if clock.due() == [0] {
                clock.stays(0);
            }
            clock.census_done(1, 0, 1e-9);
        }
        if !is_first {
            clock.unreported(0, 0);
        }
        sampled(&mut clock, fingerprint, label(Shown::Wait, false));
        assert_eq!(
            weight(&mut clock),
            (u64::from(sampled_at) * TICK_NS, 0),
            "{sampled_at} {is_first}"
        );
    }
}

/// A thread takes the number of one that ended, whose next read was in the same tick.
#[test]
fn thread_with_the_number_of_another_is_read_once_a_tick() {
    let mut clock = begun();
    let fingerprint = Fingerprint::of([1], false);
    assert!(clock.read(0, fingerprint, (0, || 0), true, |_| true));
    clock.settle(0, None);
    tick(&mut clock, 2);
    clock.end(0);
    clock.begin(0);
    assert_eq!(clock.due(), [0]);
}

/// Threads that wait in one place are read ever more rarely. Each second must have its part of
/// their time, also the first ones and the last.
#[test]
fn each_second_has_its_part_of_growing_blocks() {
    const THREADS: u32 = 400;
    const SECONDS: usize = 8;
    const PER_SECOND: u32 = (1_000_000_000 / TICK_NS) as u32;
    let mut clock = WallClock::new(Purse::fixed(1000), Random::new(1));
    let mut ended = Vec::new();
    for number in 1..=SECONDS as u32 * PER_SECOND {
        tick(&mut clock, number);
        (0..THREADS).for_each(|id| {
            if number == 1 {
                clock.begin(id)
            }
        });
        let due = clock.due();
        for id in &due {
            if clock.can_stay(*id, |_| true) {
                clock.stays(*id);
            } else if clock.read(*id, Fingerprint::of([1], false), (0, || 0), true, |_| true) {
                let labelled =
                    clock.label(*id, Fingerprint::of([1], false), label(Shown::Wait, false));
                clock.settle(*id, Some(labelled.class));
            }
        }
        // Each read costs so much that the mean block has 50 ticks.
        clock.census_done(due.len(), due.len() as u64 * 50_000, 0.02);
        ended.append(&mut clock.take_ended());
    }
    clock.finish(0);
    ended.append(&mut clock.take_ended());
    let each_s: Vec<f64> = (0..SECONDS as u64)
        .map(|second| {
            let (from, to) = (second * 1_000_000_000, (second + 1) * 1_000_000_000);
            let part = |it: &Ended<u8>| {
                let run = &it.run;
                let overlap = run.until_ns.min(to).saturating_sub(run.since_ns.max(from));
                run.weight_ns as f64 * overlap as f64 / (run.until_ns - run.since_ns) as f64 / 1e9
            };
            ended.iter().map(part).sum()
        })
        .collect();
    let is_right = |part: &f64| (part - f64::from(THREADS)).abs() <= 0.02 * f64::from(THREADS);
    assert!(each_s.iter().all(is_right), "{each_s:?}");
}

/// A thread is ready in native code, and in code that only samples of CPU time show.
#[test]
fn preempted_thread_is_ready_in_its_code() {
    let mut clock = begun();
    let place = Fingerprint::of([1], false);
    let running = Fingerprint::running();
    assert!(!clock.read(0, running, (0, || 0), true, |_| true));
    assert!(
        clock.preempted(0, Some(place), (false, 1)),
        "an unknown place"
    );
    let class = clock
        .label(0, place.after_wake_up(), label(Shown::Wait, false))
        .class;
    clock.wake(0, place);
    let found = clock.take_found(0);
    assert_eq!((found.preempted(), found.left()), (Some(class), None));
    assert_eq!((found.running_ns, found.woken_ns), (TICK_NS, 0));
    // It stays ready. The caller then looks again where.
    tick(&mut clock, 2);
    assert_eq!(clock.due(), [0]);
    assert!(clock.stays_ready(0));
    assert!(!clock.preempted(0, None, (false, 1)));
    let found = clock.take_found(0);
    assert_eq!((found.preempted(), found.running_ns), (Some(RUNS), TICK_NS));
}
