//! Threads that their control group holds back.

use dwell_e2e::{Jdk, Place, Quota, Starter, View, both, each, record_outside_with, turn};
use dwell_profile::{Profile, WallFilter, Weight};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

/// Threads that always want to run; they get a quota of this many processors.
const THREADS: usize = 6;
const QUOTA: f64 = 0.6;
const SECONDS: f64 = 8.0;
/// Each test wants all processors, and how they are shared is what is measured.
static MACHINE: Mutex<()> = Mutex::new(());

/// Wall time of the busy threads by cause.
fn causes(profile: &Profile) -> BTreeMap<String, Weight> {
    let mut causes: BTreeMap<String, Weight> = BTreeMap::new();
    for wall in profile.wall(&WallFilter::default()) {
        if profile.thread_name(wall.thread).starts_with("steady-") {
            *causes.entry(wall.cause.to_owned()).or_default() += &wall.weight;
        }
    }
    causes
}

fn record(jdk: &Jdk, quota: Option<&Quota>) -> (Profile, f64) {
    let _alone = MACHINE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = Place::new("throttled");
    let file = place.path("t.jfr");
    // Nothing has to be counted where there is no quota.
    let seconds = quota.map_or(2.0, |_| SECONDS);
    let mut program = Starter::new(jdk, &place, "Steady60")
        .with(&format!("seconds={seconds} threads={THREADS}"))
        .start();
    // The group that a process is in is looked for when a recording begins.
    if let Some(quota) = quota {
        quota.take(program.pid);
    }
    program.tell(&format!(
        "start,cpu=10ms,wall=10ms,wall-threads=100,file={}",
        file.display()
    ));
    let before_ns = quota.map_or(0, Quota::throttled_ns);
    let _ = program.work();
    let held_ns = quota.map_or(0, Quota::throttled_ns) - before_ns;
    program.tell("stop");
    program.end();
    let profile = Profile::from_recording(View::read(&file).recording);
    (profile, held_ns as f64)
}

/// The same by a recorder in another process; `None` where the kernel allows no samples.
fn record_from_outside(jdk: &Jdk, quota: &Quota) -> Option<(Profile, f64)> {
    let _alone = MACHINE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let place = Place::new("throttled-outside");
    let file = place.path("t.jfr");
    let mut program = Starter::new(jdk, &place, "Steady60")
        .with(&format!("seconds={SECONDS} threads={THREADS}"))
        .start();
    quota.take(program.pid);
    let (pid, over) = (program.pid, AtomicBool::new(false));
    let (held_ns, sum) = std::thread::scope(|scope| {
        let (begins, begun) = mpsc::channel();
        let (file, over) = (&file, &over);
        let recording = scope.spawn(move || {
            let (cpu, step) = (Duration::from_millis(10), Duration::from_millis(10));
            record_outside_with((pid, 20.0), file, cpu, step, || {
                let _ = begins.send(());
                !over.load(Ordering::Relaxed)
            })
        });
        let _ = begun.recv();
        let before_ns = quota.throttled_ns();
        let _ = program.work();
        let held_ns = quota.throttled_ns() - before_ns;
        over.store(true, Ordering::Relaxed);
        (held_ns, recording.join().expect("no panic"))
    });
    program.end();
    sum?;
    let profile = Profile::from_recording(View::read(&file).recording);
    Some((profile, held_ns as f64))
}

/// While a processor is held back, all its ready threads stop. All threads here are always ready,
/// so the part is the same for each.
fn held_back(jdk: &Jdk, record: impl FnOnce(&Quota) -> Option<(Profile, f64)>) {
    let quota = match Quota::new(QUOTA) {
        Ok(quota) => quota,
        Err(error) => {
            println!("skipped: no control group can be made here ({error})");
            return;
        }
    };
    let Some((profile, held_ns)) = record(&quota) else {
        println!("skipped: perf events are not permitted here");
        return;
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
    let truth = held_ns * THREADS as f64 / processors;
    let causes = causes(&profile);
    let of = |cause: &str| causes.get(cause).copied().unwrap_or_default();
    let (told, runnable) = (of("throttled"), of("runnable"));
    println!(
        "JDK {}: throttled {:.2} +- {:.2} s of {:.2} s, runnable {:.2} s, running {:.2} s",
        jdk.feature,
        told.sum as f64 / 1e9,
        told.standard_error() / 1e9,
        truth / 1e9,
        runnable.sum as f64 / 1e9,
        of("running").sum as f64 / 1e9
    );
    // Its weight is such that others leave it more than its quota, even when all want to run.
    assert!(truth > 0.1 * THREADS as f64 * SECONDS * 1e9, "{held_ns}");
    // The kernel adds a time when it is over, and the agent reads it each second. That amount may
    // belong to the second before, or be missing at the end.
    let bound = 4.0 * told.standard_error() + truth / SECONDS;
    assert!((told.sum as f64 - truth).abs() <= bound, "{causes:?}");
    let text = dwell_report::text(&profile);
    assert!(text.contains("the quota of 0.6 CPUs"), "{text}");
    assert!(text.contains("throttled"), "{text}");
}

/// Detects throttled time under another cause. False alarm: 6e-7, five standard errors of the
/// samples.
#[test]
fn measured_quota_waits_equal_the_kernels_count() {
    each(&turn(&both()), |jdk| {
        held_back(jdk, |quota| Some(record(jdk, Some(quota))));
    });
}

/// The same from outside. False alarm: 6e-7, five standard errors of the looks.
#[test]
fn measured_quota_waits_are_seen_from_outside() {
    each(&both()[1..], |jdk| {
        held_back(jdk, |quota| record_from_outside(jdk, quota));
    });
}

/// Detects a quota that is not there. False alarm: not by chance.
#[test]
fn measured_no_thread_is_throttled_without_a_quota() {
    each(&both()[1..], |jdk| {
        let (profile, _) = record(jdk, None);
        let causes = causes(&profile);
        assert!(causes.contains_key("runnable"), "{causes:?}");
        // A machine may have a quota of its own.
        let limit = profile.cpu_limit().expect("the limit");
        assert_eq!(causes.contains_key("throttled"), limit.throttled > 0);
    });
}
