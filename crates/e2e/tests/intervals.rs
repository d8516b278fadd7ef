//! What held threads up, told as intervals: pauses of the collector, and processors they did not
//! get.
#![allow(missing_docs)]

use dwell_e2e::{Jdk, Place, Starter, Truths, View, both, each, turn};
use dwell_jfr::reader::{GenericEvent, Value};
use dwell_profile::Profile;
use std::collections::BTreeMap;

/// Runs a program from its beginning, and what it recorded.
fn record(jdk: &Jdk, place: &Place, program: &str, with: &str, jvm: &[&str]) -> (View, Truths) {
    let file = place.path("i.jfr");
    let mut starter = Starter::new(jdk, place, program)
        .with(with)
        .agent(&format!("start,cpu=1ms,file={}", file.display()));
    for option in jvm {
        starter = starter.jvm(option);
    }
    let mut program = starter.start();
    let truths = program.work();
    program.end();
    (View::read(&file), truths)
}

/// Milliseconds at the end of the log's lines about pauses: `Pause Young (...) 24M->5M(96M)
/// 1.234ms`.
fn logged_pauses(log: &str) -> Vec<f64> {
    let pauses = log.lines().filter(|line| line.contains("Pause"));
    let length = |line: &str| {
        line.trim()
            .strip_suffix("ms")?
            .rsplit(' ')
            .next()?
            .parse()
            .ok()
    };
    pauses.filter_map(length).collect()
}

/// Detects pauses that are missing or told twice (10 %). The log's clock begins later and ends
/// earlier by what writing the log costs, some us to tens of us of pauses of ms. False alarm: not
/// by chance on an idle machine.
#[test]
fn measured_pauses_of_the_collector_are_those_that_it_logs() {
    each(&both(), |jdk| {
        for collector in turn(&COLLECTORS).concat() {
            let place = Place::new("gc-pauses");
            let log = place.path("gc.log");
            let logging = format!("-Xlog:gc*=info:file={}:tags", log.display());
            let flags = [&format!("-XX:+{collector}"), "-Xmx256m", logging.as_str()];
            let (view, _) = record(jdk, &place, "Gc", "seconds=3", &flags);
            let logged = logged_pauses(&std::fs::read_to_string(&log).expect("the log"));
            let profile = Profile::from_recording(view.recording);
            let told: Vec<f64> = profile
                .gc_pauses()
                .iter()
                .map(|pause| pause.duration_ns as f64 / 1e6)
                .collect();
            let sum = |all: &[f64]| all.iter().sum::<f64>();
            println!(
                "{} {collector}: {} pauses of {:.1} ms, logged {} of {:.1} ms",
                jdk.feature,
                told.len(),
                sum(&told),
                logged.len(),
                sum(&logged)
            );
            assert!(logged.len() > 5, "{collector}");
            // The log's clock begins later and ends earlier than ours, by what the log itself
            // costs; a young collection that becomes a full one is two of its lines, and one pause.
            assert!(told.len() * 10 >= logged.len() * 9, "{collector}");
            let ratio = sum(&told) / sum(&logged);
            assert!((0.9..=1.2).contains(&ratio), "{collector}: {ratio}");
            let text = dwell_report::text(&profile);
            assert!(text.contains("GC pause"), "{text}");
        }
    });
}

/// Of the collectors two in turn.
const COLLECTORS: [[&str; 2]; 2] = [["UseG1GC", "UseSerialGC"], ["UseParallelGC", "UseZGC"]];

fn number(event: &GenericEvent, field: &str) -> f64 {
    match event.get(field) {
        Some(Value::DurationNs(ns) | Value::Int(ns)) => *ns as f64,
        other => panic!("{field}: {other:?}"),
    }
}

/// A thread that always has something to do is on a processor or waits for one.
///
/// Detects time that is neither: 2 %, and one wait for a processor at either end of a thread's
/// account, of which six on two processors last up to 50 ms. False alarm: not by chance.
#[test]
fn measured_busy_threads_run_or_wait_for_a_processor() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("thread-time");
        let (view, truths) = record(jdk, &place, "Steady60", "seconds=5 threads=6", &[]);
        let recording = &view.recording;
        let mut threads: BTreeMap<String, [f64; 4]> = BTreeMap::new();
        for event in recording.events_named("dwell.ThreadTime") {
            let Some(Value::Thread(place)) = event.get("sampledThread") else {
                panic!("{event:?}");
            };
            let thread = &recording.threads[*place as usize];
            let name = thread.java_name.as_deref().unwrap_or(&thread.os_name);
            let sums = threads.entry(name.to_owned()).or_default();
            for (sum, field) in sums.iter_mut().zip(["duration", "cpu", "waited", "turns"]) {
                *sum += number(event, field);
            }
        }
        let mut cpu_ns = 0.0;
        let mut busy = 0;
        for (name, [duration, cpu, waited, turns]) in &threads {
            if !name.starts_with("steady-") {
                continue;
            }
            busy += 1;
            cpu_ns += cpu;
            println!("{name}: {cpu:.0} + {waited:.0} of {duration:.0} ns, {turns} turns");
            // A wait is told when it is over: one turn's wait may be missing or be too much at each
            // end, and the clocks of the two are read one after the other.
            let off = (cpu + waited - duration).abs();
            assert!(off <= 0.02 * duration + 100e6, "{name}: {off} ns");
            assert!(*turns > 0.0, "{name}");
        }
        assert_eq!(busy, 6, "{threads:?}");
        // All but the time before the first account and after the last one, of two seconds at most.
        let truth = truths.ns("steadyRoot") as f64;
        assert!(
            cpu_ns <= 1.02 * truth && cpu_ns >= 0.5 * truth,
            "{cpu_ns} of {truth}"
        );
    });
}
