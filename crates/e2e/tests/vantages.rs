//! Three vantages, one walker: the same stacks whether a thread is walked from a copy, in its
//! handler, or while it waits; and whatever a walk reads, the program goes on.
#![allow(missing_docs)]

use dwell_e2e::{Jdk, Place, Program, Starter, View, both, each, jdks, stats};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

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

/// One JVM, recorded from each vantage in turn while it does the same work over and over.
fn the_same_stacks(jdk: &Jdk, name: &str, arguments: &str, thread: &str) {
    let place = Place::new("same");
    let mut program = Starter::new(jdk, &place, name)
        .with(arguments)
        // What is compiled while one recording runs and not the other would differ.
        .jvm("-Xbatch")
        .start();
    program.pass();
    std::thread::sleep(Duration::from_secs(2));
    let mut views = Vec::new();
    for vantage in VANTAGES {
        let file = place.path(&format!("{vantage}.jfr"));
        program.tell(&format!(
            "start,cpu=1ms,walk={vantage},file={}",
            file.display()
        ));
        std::thread::sleep(Duration::from_millis(2500));
        let status = program.tell("stop");
        assert!(status.contains("state=stopped"), "{status}");
        let view = View::read(&file);
        view.check_failures();
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

#[test]
fn every_vantage_gives_the_same_stacks() {
    each(&both(), |jdk| {
        the_same_stacks(jdk, "Steady60", "seconds=30 threads=2", "steady");
    });
}

/// Each sample is walked in the handler and from its copy: the frames are the same one by one.
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
    let line = errors
        .lines()
        .find_map(|l| l.strip_prefix("dwell experiment: compared "));
    let (walks, same) = line
        .and_then(|line| line.split_once(" same "))
        .and_then(|(walks, same)| Some((walks.parse::<u64>().ok()?, same.parse::<u64>().ok()?)))
        .unwrap_or_else(|| panic!("nothing was compared: {errors}"));
    println!(
        "JDK {} {name}: {same} of {walks} walks are the same",
        jdk.feature
    );
    assert!(
        walks >= 500,
        "JDK {} {name}: only {walks} walks",
        jdk.feature
    );
    // What may differ: a library or a class that came or went between the signal and the later
    // walk. In a program that makes neither nothing may.
    let different = walks - same;
    let allowed = if name == "ClassLoadChurn" {
        walks / 200
    } else {
        walks / 5000
    };
    assert!(
        different <= allowed,
        "JDK {} {name}: {different} of {walks} walks differ: {errors}",
        jdk.feature
    );
}

#[test]
fn a_copy_walks_like_the_thread_itself() {
    each(&both(), |jdk| {
        compared(jdk, "Steady60", "seconds=2 threads=2");
        compared(jdk, "DeoptStorm", "seconds=2");
        compared(jdk, "StackOverflow", "seconds=2");
        compared(jdk, "ClassLoadChurn", "seconds=2");
    });
}

/// Waits until the recording has `wanted` samples; says how many it has.
fn wait_for_samples(program: &Program, wanted: u64) -> u64 {
    let patience = Instant::now() + Duration::from_secs(90);
    loop {
        let status = program.tell("status");
        let samples = status
            .lines()
            .find_map(|line| line.strip_prefix("samples="))
            .and_then(|text| text.parse().ok())
            .expect("samples in the status");
        if samples >= wanted {
            return samples;
        }
        assert!(
            Instant::now() < patience,
            "only {samples} samples of {wanted}"
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// More than a hundred thousand walks, each with a load from an address that cannot be read: they
/// are counted as failed, and the program neither notices nor computes anything wrong.
#[test]
fn a_fault_anywhere_in_a_walk_harms_nobody() {
    const WALKS_OF_EACH: u64 = 56_000;
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
        wait_for_samples(&program, WALKS_OF_EACH);
        program.tell("stop");
        assert!(program.is_running(), "{vantage}: {}", program.errors());
        let view = View::read(&file);
        let samples = view.samples().count();
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
    assert!(all_bad >= 100_000, "{all_bad} walks with a bad load");
}

/// On a machine that is too small for its threads, those that wait to be walked still give their
/// samples, as walks: one for each interval of CPU time, as in the handler.
fn saturated(jdk: &Jdk) {
    let mut rates = BTreeMap::new();
    let threads = 2 * std::thread::available_parallelism().map_or(2, usize::from);
    for vantage in ["handler", "paused"] {
        let place = Place::new("saturated");
        let file = place.path("s.jfr");
        let mut program = Starter::new(jdk, &place, "Steady60")
            .with(&format!("seconds=4 threads={threads}"))
            .start();
        program.tell(&format!(
            "start,cpu=1ms,walk={vantage},file={}",
            file.display()
        ));
        let _ = program.work();
        program.tell("stop");
        program.end();
        let view = View::read(&file);
        view.check_failures();
        let weight_ns: u64 = view.of_threads("steady").map(|s| s.weight_ns()).sum();
        let copied = view.lost("walker_late_copied_instead");
        let samples = view.of_threads("steady").count() as u64;
        println!(
            "JDK {} {vantage}: {samples} samples of {weight_ns} ns, {copied} copied instead",
            jdk.feature
        );
        assert!(samples > 1000, "{vantage}: {samples} samples");
        rates.insert(vantage, (samples - copied) as f64 / weight_ns as f64);
    }
    let ratio = rates["paused"] / rates["handler"];
    println!(
        "JDK {}: paused gives {ratio:.4} of handler's walks",
        jdk.feature
    );
    assert!(ratio >= 0.98, "JDK {}: {ratio:.4}: {rates:?}", jdk.feature);
}

#[test]
fn those_who_wait_give_as_many_samples() {
    each(&both(), saturated);
}
