//! Three vantages, one walker: the same stacks whether a thread is walked from a copy, in its
//! handler, or while it waits; and whatever a walk reads, the program goes on.

use dwell_e2e::{
    Jdk, Place, Program, Starter, View, both, each, is_whole, jdks, must, stats, turn,
};
use dwell_profile::Profile;
use std::collections::BTreeMap;
use std::time::Duration;

const VANTAGES: [&str; 3] = ["snapshot", "handler", "paused"];

/// Weights by stack (methods only) of the program's busy threads, and how many samples they are
/// worth.
fn stacks(view: &View, thread: &str) -> (BTreeMap<String, u64>, f64) {
    let mut weights: BTreeMap<String, u64> = BTreeMap::new();
    for sample in view.of_threads(thread) {
        let java = sample.frames().filter(|frame| frame.is_java());
        let names: Vec<_> = java.map(|f| format!("{}.{}", f.class, f.name)).collect();
        *weights.entry(names.join(";")).or_default() += sample.weight_ns();
    }
    let samples = stats::effective_samples(view.of_threads(thread).map(|s| s.weight_ns()));
    (weights, samples)
}

/// Two samples of one distribution: the pooled shares stand for the truth, and the difference of
/// two independent estimates scatters like one from n = n1 n2 / (n1 + n2) samples.
#[track_caller]
fn check_same(what: &str, one: &(BTreeMap<String, u64>, f64), two: &(BTreeMap<String, u64>, f64)) {
    let sum = |weights: &BTreeMap<String, u64>| weights.values().sum::<u64>() as f64;
    let (sum1, sum2) = (sum(&one.0), sum(&two.0));
    let samples = one.1 * two.1 / (one.1 + two.1);
    let names: std::collections::BTreeSet<&String> = one.0.keys().chain(two.0.keys()).collect();
    for name in &names {
        let share = |side: &BTreeMap<String, u64>, sum| *side.get(*name).unwrap_or(&0) as f64 / sum;
        let (first, second) = (share(&one.0, sum1), share(&two.0, sum2));
        let pooled = (first * sum1 + second * sum2) / (sum1 + sum2);
        let bound = stats::share_bound(pooled, samples, names.len());
        assert!(
            (first - second).abs() <= bound,
            "{what}: {first:.4} against {second:.4}, may differ by {bound:.4}: {name}"
        );
    }
}

/// The cost in a recording agrees with itself and with the status.
fn check_account(view: &View, vantage: &str, status: &str) {
    let last = view.recording.events_named("dwell.Self").last();
    let last = last.expect("an account");
    let of = |name: &str| last.int(name).expect(name);
    let told: Vec<_> = last.fields.iter().skip(1).collect();
    println!("{vantage}: {told:?}");
    assert_eq!(of("samples"), view.recording.samples.len() as i64);
    let bars = view.sum("dwell.HandlerTime", "handlers");
    assert_eq!(of("handlers"), bars as i64, "bars of the histogram");
    assert!(of("walks") > 0 && of("walks") <= of("handlers"));
    let quantiles = ["handlerP50", "handlerP90", "handlerP99", "handlerMax"].map(of);
    assert!(quantiles[0] > 0 && quantiles.is_sorted(), "{quantiles:?}");
    for name in ["walkTime", "agentCpu", "handlerCpu", "memory"] {
        assert!(of(name) > 0, "{vantage}: {name}");
    }
    assert_eq!(of("copies") > 0, of("copied") > 0);
    assert!(vantage != "snapshot" || of("copies") > 0);
    assert_eq!(vantage == "paused", of("waited") > 0);
    for key in [
        "handler_p50_ns",
        "handler_p99_ns",
        "handler_max_ns",
        "agent_cpu_ns",
        "agent_memory",
    ] {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        assert!(
            line.is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n > 0)),
            "{key}: {status}"
        );
    }
}

/// One JVM, recorded from each vantage in turn while it does the same work over and over.
fn the_same_stacks(jdk: &Jdk, name: &str, arguments: &str, thread: &str) {
    let place = Place::new("same");
    let mut program = Starter::new(jdk, &place, name)
        .with(arguments)
        // Compilation during one of the two recordings would make them differ.
        .jvm("-Xbatch")
        .start();
    program.pass();
    program.await_cpu(Duration::from_secs(2));
    let mut views = Vec::new();
    for vantage in VANTAGES {
        let file = place.path(&format!("{vantage}.jfr"));
        program.tell(&format!(
            "start,cpu=1ms,walk={vantage},file={}",
            file.display()
        ));
        // As many as two threads have in 1.5 s, however long that takes where others want the
        // processors, too.
        program.await_samples(2500);
        let status = program.tell("stop");
        assert!(status.contains("state=stopped"), "{status}");
        let view = View::read(&file);
        view.check_failures();
        check_account(&view, vantage, &status);
        let text = dwell_report::text(&Profile::from_recording(View::read(&file).recording));
        assert!(text.contains("\ndwell used"), "{text}");
        views.push((vantage, view));
    }
    drop(program);
    let all: Vec<_> = views
        .iter()
        .map(|(v, view)| (v, stacks(view, thread)))
        .collect();
    for (vantage, (weights, samples)) in &all {
        println!(
            "JDK {} {name} {vantage}: {samples:.0} samples, {} stacks",
            jdk.feature,
            weights.len()
        );
        assert!(*samples > 300.0, "{vantage}: only {samples} samples");
    }
    let (_, first) = &all[0];
    for (vantage, other) in &all[1..] {
        let what = format!("JDK {} {name}: snapshot, {vantage}", jdk.feature);
        check_same(&what, first, other);
    }
}

/// Detects a stack whose share differs by 5 points or so between two vantages. False alarm: 1e-6
/// for each of four comparisons (`stats::share_bound` of the pooled shares).
#[test]
fn measured_every_vantage_gives_the_same_stacks() {
    each(&turn(&both()), |jdk| {
        the_same_stacks(jdk, "Steady60", "seconds=600 threads=2", "steady");
    });
}

/// Each sample is walked in the handler and from its copy: the frames are the same one by one,
/// unless what the first walk had read outside of the stack is another by the second.
fn compared(jdk: &Jdk, name: &str, arguments: &str) {
    let place = Place::new("compared");
    let file = place.path("c.jfr");
    let options = format!("start,cpu=300us,experiment=compare,file={}", file.display());
    let mut program = Starter::new(jdk, &place, name)
        .with(arguments)
        .experiment(&options)
        .start();
    let _ = program.work();
    program.tell("stop");
    let errors = program.errors();
    program.end();
    let numbers = |start: &str| -> Vec<u64> {
        let lines = errors.lines();
        let line = lines.filter_map(|l| l.strip_prefix("dwell experiment: ")?.strip_prefix(start));
        let words = line.flat_map(str::split_whitespace);
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let (done, left_out) = (numbers("compared"), numbers("not compared:"));
    let (&[walks, same], &[moved, changed, unknown]) = (&done[..], &left_out[..]) else {
        panic!("nothing was compared: {errors}");
    };
    let what = format!("JDK {} {name}", jdk.feature);
    println!("{what}: {same} of {walks} walks are the same");
    println!("{what}: not compared: {moved} moved, {changed} changed, {unknown} without notes");
    assert!(walks >= 500, "{what}: only {walks} walks");
    // Else it has measured nothing.
    assert!(
        2 * unknown <= walks + moved + changed + unknown,
        "{what}: {unknown} walks without notes, {walks} compared"
    );
    let different = walks - same;
    must!(
        different == 0,
        "{what}: {different} of {walks} walks differ: {errors}"
    );
}

#[test]
fn never_does_a_walk_of_a_copy_differ_from_the_threads() {
    each(&turn(&both()), |jdk| {
        compared(jdk, "Steady60", "seconds=2 threads=2 cpu_ms=2000");
        compared(jdk, "DeoptStorm", "seconds=2 cpu_ms=1500");
        compared(jdk, "StackOverflow", "seconds=2 cpu_ms=1500");
        compared(jdk, "ClassLoadChurn", "seconds=2 cpu_ms=1500");
    });
}

/// Tens of thousands of walks, each with a load from an address that cannot be read: they
/// are counted as failed, none of them is lost, and the program neither notices nor computes
/// anything wrong.
#[test]
fn never_does_a_fault_in_a_walk_harm_the_program() {
    // Where everything is tried, a hundred thousand with a load that went wrong.
    let (walks_of_each, bad_min) = if is_whole() {
        (56_000, 100_000)
    } else {
        (5_000, 8_000)
    };
    let mut all_bad = 0;
    let all = jdks();
    let newest = all.last().expect("a JDK");
    for (vantage, jdk) in VANTAGES.iter().zip([&all[0], newest, newest]) {
        let place = Place::new("faults");
        let file = place.path("f.jfr");
        let options = format!(
            "start,cpu=50us,walk={vantage},experiment=faults,file={}",
            file.display()
        );
        let mut program = Starter::new(jdk, &place, "Steady60")
            .with("seconds=300 threads=4")
            .experiment(&options)
            .start();
        program.pass();
        program.await_samples(walks_of_each);
        let status = program.tell("stop");
        assert!(program.is_running(), "{vantage}: {}", program.errors());
        let view = View::read(&file);
        let samples = view.samples().count();
        // Each sample is in the file, however its walk has ended.
        let taken = status
            .lines()
            .find_map(|line| line.strip_prefix("samples="));
        let taken = taken.and_then(|text| text.parse::<usize>().ok());
        assert_eq!(taken, Some(samples), "{vantage}: {status}");
        let (failed, failures) = view.failures();
        let errors = program.errors();
        let bad = errors
            .lines()
            .find_map(|line| line.strip_prefix("dwell experiment: bad loads "))
            .and_then(|text| text.parse::<usize>().ok())
            .unwrap_or_else(|| panic!("{vantage}: no load went wrong: {errors}"));
        println!(
            "JDK {} {vantage}: a load of {bad} walks went wrong; {failed} of {samples} walks \
             failed: {failures:?}",
            jdk.feature
        );
        // Short walks end before their bad load. And not every one shows: it may be repeated by
        // another rule, as where what is remembered of a return address is to be confirmed.
        all_bad += bad;
        assert!(2 * failed > bad, "{vantage}: {failed} of {bad} failed");
    }
    assert!(all_bad >= bad_min, "{all_bad} walks with a bad load");
}

/// How many windows of CPU time, of which each should have a sample, the samples of such threads
/// stand for. Windows in a row are equally long, and a sample that came late stands for several.
fn windows(view: &View, start: &str) -> u64 {
    let mut weights: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for sample in view.of_threads(start) {
        let of_thread = weights.entry(sample.thread()).or_default();
        of_thread.push(sample.weight_ns());
    }
    let mut windows = 0;
    for of_thread in weights.values() {
        let mut width_ns = 1_000_000;
        for (i, &weight_ns) in of_thread.iter().enumerate() {
            let times = (weight_ns as f64 / width_ns as f64).round().max(1.0) as u64;
            let is_multiple = weight_ns.abs_diff(times * width_ns) * 100 < weight_ns;
            // By chance the next windows may be twice as long as the last ones.
            let is_again = of_thread.get(i + 1) == Some(&weight_ns);
            if weight_ns > 1_500_000 || (times > 1 && is_multiple && !is_again) {
                windows += times.max(2);
            } else {
                windows += 1;
                width_ns = weight_ns;
            }
        }
    }
    windows
}

/// Parts of recordings that are compared, alternately from the handler and from a pause. A virtual
/// machine may stop for tens of milliseconds, which the thread's CPU clock counts and no timer
/// sees. The part with that stop has fewer samples, so the median of several is compared.
const TURNS: usize = 5;

/// The part of the windows with a walk, while the program runs for a while.
fn walked_part(program: &Program, place: &Place, vantage: &str) -> f64 {
    let file = place.path("s.jfr");
    program.tell(&format!(
        "start,cpu=1ms,walk={vantage},file={}",
        file.display()
    ));
    // As many as two processors give in 0.7 s.
    program.await_samples(1000);
    program.tell("stop");
    let view = View::read(&file);
    view.check_failures();
    let copied = view.lost("walker_late_copied_instead");
    let samples = view.of_threads("steady").count() as u64;
    let windows = windows(&view, "steady");
    println!("{vantage}: {samples} samples of {windows} windows, {copied} copied instead");
    assert!(samples > 150, "{vantage}: {samples} samples");
    (samples - copied) as f64 / windows as f64
}

/// On a machine that is too small for its threads, those that wait to be walked still give their
/// samples, as walks: one for each window of CPU time, as in the handler.
fn saturated(jdk: &Jdk) {
    let place = Place::new("saturated");
    let threads = 2 * std::thread::available_parallelism().map_or(2, usize::from);
    let mut program = Starter::new(jdk, &place, "Steady60")
        .with(&format!("seconds=600 threads={threads}"))
        .start();
    program.pass();
    let mut ratios = Vec::new();
    for turn in 0..TURNS {
        // The order alternates, so that gradual changes of speed cancel out.
        let mut order = ["handler", "paused"];
        order.rotate_left(turn % 2);
        let [first, second] = order.map(|vantage| walked_part(&program, &place, vantage));
        ratios.push(if turn % 2 == 0 {
            second / first
        } else {
            first / second
        });
    }
    drop(program);
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[TURNS / 2];
    println!(
        "JDK {}: paused gives {ratio:.4} of handler's walks, {ratios:.4?}",
        jdk.feature
    );
    assert!(ratio >= 0.98, "JDK {}: {ratios:?}", jdk.feature);
}

/// Detects 2 % of walks that pausing loses. Each turn has 1000 samples, whose number is that of
/// the intervals but for one a thread; the middle of five ratios scatters by 0.2 %. False alarm:
/// needs three turns of five with a stall of the machine of 10 ms in the same of two parts.
#[test]
fn measured_waiting_threads_give_as_many_samples() {
    each(&turn(&both()), saturated);
}
