//! The sum of weights against the CPU time that the process used, on either engine.

use dwell_e2e::{
    Jdk, Place, Program, Starter, View, both, cpu_time, each, must, number_of, perf_is_permitted,
    stats, thread_cpu, turn,
};
use dwell_jfr::FrameKind;
use std::path::Path;
use std::time::Duration;

fn engines() -> Vec<&'static str> {
    if perf_is_permitted() {
        vec!["perf", "timer"]
    } else {
        vec!["timer"]
    }
}

/// The maximum error of a sum of weights: 2 % of the CPU time, and the sampling error. A thread's
/// weights are its points, one at random in each window of its CPU time. They differ from that by
/// less than a window, with a variance of a sixth of its square. Windows have half an interval to
/// one and a half. At any moment a thread is in one whose mean square is 5/4 of the interval's.
/// Threads are independent, and five standard deviations are one false alarm in two million.
fn tolerance_ns(cpu_ns: u64, threads: usize, interval_ns: u64) -> u64 {
    let deviation = interval_ns as f64 * (threads as f64 * 1.25 / 6.0).sqrt();
    cpu_ns / 50 + (5.0 * deviation) as u64
}

/// Five standard deviations of a sum of samples at random: one false alarm in two million. Each
/// short thread is a draw of its own, whose mean is its CPU time.
fn five_sigma_ns(cpu_ns: u64, interval_ns: u64) -> u64 {
    (5.0 * (cpu_ns as f64 * interval_ns as f64).sqrt()) as u64
}

/// How much the process and how many threads used between two looks from outside.
struct Outside {
    cpu_ns: u64,
    threads: std::collections::BTreeMap<u32, u64>,
}

impl Outside {
    fn look(program: &Program) -> Outside {
        Outside {
            cpu_ns: cpu_time(program.pid).total_ns(),
            threads: thread_cpu(program.pid),
        }
    }

    /// CPU time since then, and the number of threads that used some of it.
    fn since(&self, before: &Outside) -> (u64, usize) {
        let used = |(tid, ns): &(&u32, &u64)| before.threads.get(*tid) != Some(*ns);
        (
            self.cpu_ns - before.cpu_ns,
            self.threads.iter().filter(used).count(),
        )
    }
}

#[track_caller]
fn check(what: &str, found_ns: u64, truth_ns: u64, tolerance_ns: u64) {
    let off = (found_ns as f64 - truth_ns as f64) / truth_ns as f64;
    println!(
        "{what}: weights {found_ns} ns, truth {truth_ns} ns ({:+.2} %)",
        100.0 * off
    );
    assert!(
        found_ns.abs_diff(truth_ns) <= tolerance_ns,
        "{what}: weights {found_ns} ns, truth {truth_ns} ns, allowed {tolerance_ns} ns"
    );
}

/// Returns the share of the samples that were taken without a signal, if the kernel copies stacks.
fn record(jdk: &Jdk, engine: &str, interval: (&str, u64)) -> f64 {
    let place = Place::new("weights");
    let file = place.path("w.jfr");
    // The collector and the compilers run during the test, so threads of every kind use CPU time.
    let mut program = Starter::new(jdk, &place, "Alloc")
        .with("seconds=1 threads=2 cpu_ms=1500")
        .start();
    let before = Outside::look(&program);
    let (cpu, interval_ns) = interval;
    program.tell(&format!(
        "start,cpu={cpu},engine={engine},file={}",
        file.display()
    ));
    let started = Outside::look(&program);
    let _ = program.work();
    let after = Outside::look(&program);
    let unsignalled = match engine {
        "kernel" => unsignalled(&program.tell("status")),
        _ => 0.0,
    };
    program.tell("stop");
    let end = Outside::look(&program);
    program.end();
    let (least_ns, _) = after.since(&started);
    let (most_ns, threads) = end.since(&before);
    let view = View::read(&file);
    view.check_failures();
    let what = format!("JDK {} {engine} {cpu}", jdk.feature);
    println!("{what}, lost: {} ns", view.lost_ns());
    let own = view.cpu_load_ns();
    let weights = view.weight_ns();
    check(&what, weights, own, tolerance_ns(own, threads, interval_ns));
    // Two readings of a clock of ticks. The CPU time of attaching and stopping is between the
    // bounds.
    let slack = tolerance_ns(most_ns, threads, interval_ns) + 2 * 10_000_000;
    println!("{what}, from outside: {least_ns} to {most_ns} ns");
    assert!(
        weights + slack >= least_ns && weights <= most_ns + slack,
        "{what}: weights {weights} ns, from outside {least_ns} to {most_ns} ns, slack {slack} ns"
    );
    assert!(least_ns > 500_000_000, "{what}: the program was busy");
    unsignalled
}

fn all_intervals(engine: &str) {
    each(&turn(&both()), |jdk| {
        let intervals = [("10ms", 10_000_000), ("1ms", 1_000_000), ("100us", 100_000)];
        let unsignalled = intervals.map(|interval| record(jdk, engine, interval));
        // Not each: with 100 us, a processor that stands still for a while delays the rings until
        // the program has ended.
        let most = unsignalled.into_iter().fold(0.0, f64::max);
        assert!(engine != "kernel" || most > 0.25, "{unsignalled:?}");
    });
}

/// Detects 2 % of the CPU time that is missing or too much. False alarm: 6e-7 for each of six
/// sums, from the variance of `tolerance_ns`.
#[test]
fn measured_weights_add_up_to_the_cpu_time_with_timers() {
    all_intervals("timer");
}

/// The same with perf events. False alarm: 6e-7 for each of six sums.
#[test]
fn measured_weights_add_up_to_the_cpu_time_with_perf_events() {
    if engines().contains(&"perf") {
        all_intervals("perf");
    } else {
        println!("skipped: perf events are not permitted here");
    }
}

/// The program's threads, which do nothing but work, have rings in the end.
#[track_caller]
fn unsignalled(status: &str) -> f64 {
    let number = |key| number_of(status, key);
    let (samples, all) = (number("unsignalled"), number("samples"));
    println!("{samples} of {all} samples without a signal");
    must!(number("rings") <= number("rings_most"), "{status}");
    samples as f64 / all as f64
}

/// The same if the kernel copies stacks: the CPU time of a thread since its last sample belongs to
/// the next one, whichever path takes it. Detects the errors that the other test detects, and that
/// nearly every thread has signals. False alarm: 6e-7 for each of six sums.
#[test]
fn measured_weights_add_up_to_the_cpu_time_without_signals() {
    if engines().contains(&"perf") {
        all_intervals("kernel");
    } else {
        println!("skipped: perf events are not permitted here");
    }
}

/// Threads that live shorter than an interval.
fn churn(jdk: &Jdk, engine: &str, (cpu, interval_ns): (&str, u64)) {
    let place = Place::new("churn");
    let file = place.path("c.jfr");
    let arguments = "seconds=2 cpu_ms=800 rate=2000 burn_us=100";
    let mut program = Starter::new(jdk, &place, "ThreadChurn")
        .with(arguments)
        .start();
    program.tell(&format!(
        "start,cpu={cpu},engine={engine},file={}",
        file.display()
    ));
    let truths = program.work();
    program.tell("stop");
    program.end();
    let view = View::read(&file);
    let truth = truths.ns("threads_total");
    let found: u64 = view
        .of_threads("churn-")
        .map(|sample| sample.weight_ns())
        .sum();
    let percent = 100.0 * found as f64 / truth as f64;
    let what = format!("JDK {} {engine} {cpu}", jdk.feature);
    let started = truths.number("threads_started");
    println!("{what}: {started} threads, {percent:.1} % of their CPU time");
    assert!(started > 1000, "{what}: only {started} threads");
    // First points of threads follow a golden-ratio sequence, of which n members fall into any
    // range as often as they should but for 1 + ln n (Niederreiter 1992, section 3.1; its constant
    // is smaller).
    let scatter_ns = (1.0 + (started as f64).ln()) * interval_ns as f64;
    let least = truth * 95 / 100 - scatter_ns as u64;
    assert!(
        found >= least,
        "{what}: {percent:.1} %: {found} ns of {truth} ns"
    );
    // Nothing is made up either: all weights together are what the process used.
    let own = view.cpu_load_ns();
    check(
        &what,
        view.weight_ns(),
        own,
        own / 20 + five_sigma_ns(own, interval_ns),
    );
}

/// Detects 5 % of the CPU time of short threads that is missing. False alarm: not by chance below
/// (the discrepancy is a bound), 6e-7 for each of eight sums above.
#[test]
fn measured_threads_shorter_than_an_interval_are_there() {
    each(&turn(&both()), |jdk| {
        for engine in engines() {
            churn(jdk, engine, ("10ms", 10_000_000));
            churn(jdk, engine, ("1ms", 1_000_000));
        }
    });
}

/// Many threads that use a hundredth of an interval each, and are still there at the end.
///
/// Detects one sample in a hundred threads that is made up. False alarm: 6e-7 for each of four
/// sums.
#[test]
fn measured_mostly_idle_threads_get_no_excess_weight() {
    const INTERVAL_NS: u64 = 10_000_000;
    each(&turn(&both()), |jdk| {
        for engine in engines() {
            let place = Place::new("hardly");
            let file = place.path("h.jfr");
            let start = format!("start,cpu=10ms,engine={engine},file={}", file.display());
            let program = Starter::new(jdk, &place, "Idle")
                .with("seconds=3600 threads=2000")
                .agent(&start)
                .start();
            program.tell("stop");
            // It would go on for an hour.
            drop(program);
            let view = View::read(&file);
            let own = view.cpu_load_ns();
            // Windows are up to one and a half intervals long: such a draw scatters most.
            let scatter_ns = five_sigma_ns(own, INTERVAL_NS * 3 / 2);
            let what = format!("JDK {} {engine}", jdk.feature);
            check(&what, view.weight_ns(), own, own / 20 + scatter_ns);
        }
    });
}

/// Detects 2 % of the CPU time from start to end. False alarm: 6e-7 a JDK.
#[test]
fn measured_recording_from_jvm_start_adds_up() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("agentpath");
        let file = place.path("s.jfr");
        let mut program = Starter::new(jdk, &place, "Alloc")
            .with("seconds=2 threads=2 cpu_ms=2000")
            .agent(&format!("start,cpu=1ms,file={}", file.display()))
            .start();
        let _ = program.work();
        let threads = thread_cpu(program.pid).len();
        program.end();
        check_file(&file, threads, 1_000_000);
    });
}

#[track_caller]
fn check_file(file: &Path, threads: usize, interval_ns: u64) {
    let view = View::read(file);
    view.check_failures();
    let own = view.cpu_load_ns();
    check(
        "to the end of the JVM",
        view.weight_ns(),
        own,
        tolerance_ns(own, threads, interval_ns),
    );
}

/// Waits until both of the threads have a timer.
fn await_timers(program: &Program) {
    let timers = || {
        let status = program.tell("status");
        let line = status.lines().find_map(|it| it.strip_prefix("timers="));
        line.map_or(0, |number| number.parse::<u64>().expect("a number"))
    };
    let has_both = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        timers() == 2
    });
    assert!(has_both, "two threads with timers");
}

/// Checks that one of three drawn by weight has a third, within five standard deviations of that
/// many samples.
#[track_caller]
fn check_third(what: &str, once: u64, twice: u64, samples: usize) {
    let share = once as f64 / (once + twice) as f64;
    let most = 0.02 + 5.0 * (1.25 * 2.0 / 9.0 / samples as f64).sqrt();
    println!("{what}: {samples} samples, {share:.3} in burnOnce");
    assert!(
        samples > 120,
        "{what}: {samples} samples in methods that burn"
    );
    assert!((share - 1.0 / 3.0).abs() < most, "{what}: {share:.3}");
}

/// The time outside of the program's own methods is parking and waking, mostly in the kernel.
/// Timers record it as such, too, but not its place. Detects two thirds that are not. (Without
/// permission for kernel frames it is invisible until there are timers.)
#[track_caller]
fn check_kernel(what: &str, view: &View) {
    let burning = ["burnOnce", "burnTwice"];
    let others = view.of_threads("hand-");
    let others = others.filter(|sample| !burning.iter().any(|name| sample.has(name)));
    let (mut all, mut in_kernel, mut by_timer) = (0, 0, 0);
    for sample in others {
        let leaf = sample.frames().next().map(|it| it.kind);
        all += 1;
        in_kernel += usize::from(leaf == Some(FrameKind::Kernel));
        by_timer += usize::from(sample.has("[system call]"));
    }
    println!("{what}: {in_kernel} of {all} other samples in the kernel, {by_timer} by timers");
    assert!(all > 30 && by_timer > 0, "{what}: {by_timer} of {all}");
    if view.has_kernel_frames() {
        assert!(
            !stats::is_more_often(all - in_kernel, all, 1.0 / 3.0),
            "{what}: {in_kernel} of {all}"
        );
    }
}

/// Threads that hand over to each other thousands of times a second have timers, except for one
/// second in eight. Detects 2 % of their CPU time, missing or too much, and time in the wrong
/// method. False alarm: 6e-7 for each of two sums and shares, a millionth for parts in the kernel.
/// In none of ten seconds both have timers with a probability of (15/64)^10 = 5e-7.
#[test]
fn measured_often_switched_threads_use_timers_without_loss() {
    if !engines().contains(&"perf") {
        println!("skipped: perf events are not permitted here");
        return;
    }
    each(&turn(&both()), |jdk| {
        let place = Place::new("hand-over");
        let file = place.path("h.jfr");
        let mut program = Starter::new(jdk, &place, "HandOver").start();
        // Two ticks of the slowest kernel.
        program.tell(&format!("start,cpu=20ms,file={}", file.display()));
        program.pass();
        await_timers(&program);
        std::thread::sleep(Duration::from_secs(6));
        program.pass();
        let truths = program.truths();
        program.tell("stop");
        program.end();
        let view = View::read(&file);
        view.check_failures();
        let sum = |thread: &str, method: &str| -> (u64, usize) {
            let of_thread = view.of_threads(thread);
            let met = of_thread.filter(|s| method.is_empty() || s.has(method));
            met.fold((0, 0), |(ns, n), s| (ns + s.weight_ns(), n + 1))
        };
        let what = format!("JDK {}", jdk.feature);
        for number in ["1", "2"] {
            let own = truths.ns(&format!("hand_{number}"));
            let thread = format!("hand-{number}");
            let told = sum(&thread, "").0;
            check(
                &format!("{what} {thread}"),
                told,
                own,
                tolerance_ns(own, 1, 20_000_000),
            );
        }
        let (once, twice) = (sum("hand-", "burnOnce"), sum("hand-", "burnTwice"));
        check_third(&what, once.0, twice.0, once.1 + twice.1);
        check_kernel(&what, &view);
    });
}
