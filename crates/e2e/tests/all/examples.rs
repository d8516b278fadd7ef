//! A short form of the examples of safepoints: the culprit is named, and what helps does help.

use dwell_e2e::{Jdk, Place, View, agent, both, each, java_file, turn, turn_beside_jdk};
use dwell_profile::{Profile, Safepoint};
use std::process::{Command, Stdio};

const SERIAL: &str = "-XX:+UseSerialGC";
const POLLS: [&str; 2] = [
    "-XX:+UseCountedLoopSafepoints",
    "-XX:LoopStripMiningIter=1000",
];

/// Runs an example to its end, recorded from its start.
fn record(jdk: &Jdk, flags: &[&str], program: &str, arguments: &str) -> Profile {
    let place = Place::new("examples");
    let file = place.path("example.jfr");
    let options = format!("start,cpu=10ms,file={}", file.display());
    let output = Command::new(jdk.tool("java"))
        .env_remove("JAVA_TOOL_OPTIONS")
        .current_dir(&place.dir)
        .arg("-Xmx256m")
        .args(flags)
        .arg(format!("-agentpath:{}={options}", agent().display()))
        .arg("-cp")
        .arg(java_file("dwell-examples.jar"))
        .arg(program)
        .args(arguments.split(' '))
        .stdin(Stdio::null())
        .output()
        .expect("java starts");
    assert!(output.status.success(), "{output:?}");
    Profile::from_recording(View::read(&file).recording)
}

/// How long it took to reach each safepoint of an operation, in order.
fn reached_ns(profile: &Profile, operation: &str) -> Vec<u64> {
    let name = |stop: &&Safepoint| profile.names().text(stop.operation).contains(operation);
    let stops = profile.safepoints().iter().filter(name);
    let mut all: Vec<u64> = stops.map(|stop| stop.reaching_ns / stop.count).collect();
    all.sort_unstable();
    assert!(!all.is_empty(), "{:?}", profile.safepoints());
    all
}

/// How long these threads waited for a processor until they had one, in the mean.
fn turn_ns(profile: &Profile, names: &[&str]) -> u64 {
    let times = profile.thread_times().iter();
    let ours = times.filter(|it| names.contains(&profile.thread_name(it.thread)));
    let (waited_ns, turns) = ours.fold((0, 0), |sum, it| (sum.0 + it.waited_ns, sum.1 + it.turns));
    waited_ns / turns.max(1)
}

/// The part of the time of slow safepoints that the recording attributes to this thread.
fn part_of(profile: &Profile, thread: &str, class: &str) -> f64 {
    let slow = profile.safepoints().iter();
    let slow = slow.filter(|stop| stop.reaching_ns >= 1_000_000);
    let all: u64 = slow.map(|stop| stop.reaching_ns).sum();
    let held = profile.late().iter().filter(|late| {
        let place = late.node.and_then(|node| profile.place(node));
        profile.thread_name(late.thread) == thread
            && place.is_some_and(|place| place.starts_with(class))
    });
    held.map(|late| late.held_ns).sum::<u64>() as f64 / all.max(1) as f64
}

/// Detects a culprit that is not named. False alarm: not by chance on an idle machine.
#[test]
fn measured_loop_that_delays_safepoints_is_named() {
    each(&turn(&both()), |jdk| {
        // Code that is not yet compiled by C2 has safepoint polls in any case. However busy the
        // machine is, the loop must be compiled when the program measures it and when it is
        // requested to stop. And the JVM must not make a safepoint each second, as 17 does: that
        // one would wait for the loop, and the collection could be requested between two calls of
        // it.
        let sure = [
            SERIAL,
            "-Xbatch",
            "-XX:+UnlockDiagnosticVMOptions",
            "-XX:GuaranteedSafepointInterval=0",
        ];
        let without = record(jdk, &sure, "NeverStops", "3");
        let flags = [&sure[..], &POLLS].concat();
        let with = record(jdk, &flags, "NeverStops", "3");
        // Asked for by the program: GenCollectFull or SerialGCCollect.
        let [longest, remedied] =
            [&without, &with].map(|profile| *reached_ns(profile, "Collect").last().unwrap());
        let part = part_of(&without, "counting", "NeverStops.");
        println!(
            "{}: {longest} ns, {part:.3} of it named; with polls {remedied} ns",
            jdk.feature
        );
        assert!(part >= 0.9, "{:?}", without.late());
        // The loop goes on for three seconds and is asked to stop after one; with polls, a thread
        // needs a processor to come to one, no more, which may take some tenths of a second.
        assert!(longest > 5 * remedied, "{longest} {remedied}");
        let text = dwell_report::safepoints_text(&without);
        assert!(text.contains("counting in NeverStops.count"), "{text}");
    });
}

/// Detects a remedy that does not help. False alarm: not by chance on an idle machine.
#[test]
fn measured_culprit_thread_is_named_and_remedies_help() {
    each(&turn(&both()), |jdk| {
        let without = record(jdk, &[SERIAL], "Innocent", "30000 int 2");
        // The least quarter: where processors are scarce, threads that poll are late now and then.
        let quarter = |profile: &Profile| {
            let all = reached_ns(profile, "FindDeadlocks");
            all[all.len() / 4]
        };
        let part = part_of(&without, "culprit", "Innocent.");
        println!("{}: {} ns, {part:.3} named", jdk.feature, quarter(&without));
        assert!(part >= 0.9, "{:?}", without.late());
        let text = dwell_report::safepoints_text(&without);
        assert!(text.contains("culprit in Innocent.scan"), "{text}");
        let flag = "-XX:CompileCommand=dontinline,Innocent::scan";
        let remedies = [(&[SERIAL, flag][..], "int"), (&[SERIAL], "long")];
        for (flags, index) in turn_beside_jdk(&remedies) {
            let with = record(jdk, flags, "Innocent", &format!("30000 {index} 2"));
            // A thread that polls stops as soon as it has a processor, and there are two that run.
            let waits = 2 * turn_ns(&with, &["culprit", "innocent"]);
            let (long, short) = (quarter(&without), quarter(&with));
            println!("{flags:?} {index}: {short} ns, {waits} ns for processors");
            // A quarter of 30,000 scans against one scan.
            assert!(
                long > 10 * short.saturating_sub(waits) && long > 2 * short,
                "{flags:?} {index}: {long} ns without, {short} ns with, {waits} ns for processors"
            );
        }
    });
}
