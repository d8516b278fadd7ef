//! A process that the freezer of its control group stops.

use dwell_e2e::{FrozenGroup, Jdk, Place, Starter, View, both, each, must, turn};
use dwell_profile::{Gap, Profile, STOPPED, WallFilter};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Before and after the stop.
const RUNS: Duration = Duration::from_millis(500);
const FROZEN: Duration = Duration::from_millis(1200);
/// The recorded time lacks the part of the drainer's sleep that had not passed, and the processes
/// of a busy machine freeze and thaw later than the test asks.
const EDGES: Duration = Duration::from_millis(300);

/// A recording of a program with one thread that always runs, and for how long it was frozen.
/// `None` if it cannot be frozen here.
fn record(jdk: &Jdk) -> Option<(Profile, Duration)> {
    let group = match FrozenGroup::new() {
        Ok(group) => group,
        Err(error) => {
            println!("skipped: no control group can be frozen here ({error})");
            return None;
        }
    };
    let place = Place::new("frozen");
    let file = place.path("f.jfr");
    let mut program = Starter::new(jdk, &place, "Steady60")
        .with("seconds=2 threads=1")
        .start();
    if let Err(error) = group.take(program.pid) {
        println!("skipped: the process cannot change its control group ({error})");
        return None;
    }
    program.tell(&format!("start,cpu=10ms,wall=20ms,file={}", file.display()));
    program.pass();
    std::thread::sleep(RUNS);
    group.freeze();
    let began = Instant::now();
    std::thread::sleep(FROZEN);
    let frozen = began.elapsed();
    group.thaw();
    let _ = program.truths();
    program.tell("stop");
    program.end();
    drop(group);
    let profile = Profile::from_recording(View::read(&file).recording);
    Some((profile, frozen))
}

/// Detects a stop that is not found, is not as long, or that a thread lacks: those that run and
/// those that wait have the same. False alarm: not by chance, as a stop is found whatever the
/// drainer does.
#[test]
fn measured_frozen_process_is_stopped_in_all_threads() {
    each(&turn(&both()), |jdk| {
        let Some((profile, frozen)) = record(jdk) else {
            return;
        };
        let is_stop = |gap: &&Gap| gap.cause == STOPPED;
        let stops: Vec<&Gap> = profile.gaps().iter().filter(is_stop).collect();
        let stopped = Duration::from_nanos(stops.iter().map(|gap| gap.duration_ns).sum());
        println!(
            "frozen for {frozen:?}, {} stops of {stopped:?}",
            stops.len()
        );
        assert_eq!(stops.len(), 1, "{stops:?}");
        assert!(stopped.abs_diff(frozen) < EDGES, "{stopped:?}");
        let mut threads: BTreeMap<&str, u64> = BTreeMap::new();
        for wall in profile.wall(&WallFilter::default()) {
            if wall.cause == STOPPED {
                *threads.entry(profile.thread_name(wall.thread)).or_default() += wall.weight.sum;
            }
        }
        println!("{threads:?}");
        for name in ["main", "steady-1", "Finalizer", "Signal Dispatcher"] {
            must!(
                threads.contains_key(name),
                "{name} is not stopped: {threads:?}"
            );
        }
        for (name, sum_ns) in &threads {
            let off = Duration::from_nanos(*sum_ns).abs_diff(stopped);
            must!(off < Duration::from_millis(1), "{name}: {sum_ns} ns");
        }
    });
}
