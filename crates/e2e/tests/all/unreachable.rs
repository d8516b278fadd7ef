//! Threads that block all signals: their stacks are there all the same where perf events are
//! permitted, and else the reason is. Signals of perf events need no room in the kernel's queue.

use dwell_e2e::{Jdk, Place, Starter, View, both, each, perf_is_permitted, turn};

/// So much of the work has its stack, at least: one second passes until it is found that a thread
/// does not answer, and another one where its stack is deep.
const STACKS_MIN: f64 = 0.5;

/// Records six seconds of work of a JVM that is started through `words`.
fn record(jdk: &Jdk, words: &[&str], options: &str) -> View {
    let place = Place::new("unreachable");
    let file = place.path("u.jfr");
    let mut program = Starter::new(jdk, &place, "Steady60")
        .with("seconds=6 threads=2")
        .recorded(&format!("cpu=1ms,wall=10ms{options}"), &file)
        .through(words)
        .start();
    let _ = program.work();
    program.end();
    View::read(&file)
}

/// CPU time of the working threads: the sum, the part with the work on the stack, and the part
/// without a stack for this reason. Also the part of other threads for this reason.
fn check(view: &View, reason: &str, is_copied: bool) {
    let (mut all, mut with, mut without) = (0, 0, 0);
    for sample in view.of_threads("steady-") {
        let weight_ns = sample.weight_ns();
        all += weight_ns;
        with += weight_ns * u64::from(sample.has("steadyRoot"));
        without += weight_ns * u64::from(sample.failure() == Some(reason));
    }
    println!("{reason}: {with} ns with a stack, {without} without, of {all}");
    let share = with as f64 / all as f64;
    match is_copied {
        true => assert!(share >= STACKS_MIN, "{share}"),
        false => assert!(without as f64 >= 0.9 * all as f64, "{without} of {all}"),
    }
    assert!(without > 0, "the reason is there");
}

/// The same where every sample must have its stack.
fn check_all_copied(view: &View) {
    let (mut all, mut with) = (0, 0);
    for sample in view.of_threads("steady-") {
        assert_ne!(sample.failure(), Some("signal_queue_full"));
        all += sample.weight_ns();
        with += sample.weight_ns() * u64::from(sample.has("steadyRoot"));
    }
    assert!(with as f64 >= 0.9 * all as f64, "{with} of {all}");
}

/// Fails if stacks or reasons of blocked threads are missing. The share has no chance in it but how
/// much of the six seconds the machine takes away before the first look.
/// False alarm: not seen to come by chance.
#[test]
fn measured_jvm_with_blocked_signals_has_stacks_or_the_reason() {
    let block = ["env", "--block-signal"];
    each(&turn(&both()), |jdk| {
        if perf_is_permitted() {
            check(&record(jdk, &block, ""), "signal_blocked", true);
        } else {
            println!("not tried: perf events are not permitted");
        }
        let timers = record(jdk, &block, ",engine=timer");
        check(&timers, "signal_blocked", false);
    });
}

/// The same where the kernel has no room to queue signals.
/// False alarm: as above.
#[test]
fn measured_jvm_without_room_for_signals_has_stacks() {
    if !perf_is_permitted() {
        println!("skipped: perf events are not permitted");
        return;
    }
    let limit = ["bash", "-c", "ulimit -i 0; exec \"$@\"", "bash"];
    each(&turn(&both()), |jdk| {
        check_all_copied(&record(jdk, &limit, ""));
    });
}
