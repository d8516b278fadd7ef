//! Wall time of virtual threads that no platform thread runs.
#![allow(missing_docs)]

use dwell_e2e::{Jdk, Place, Starter, View, each, since};
use dwell_profile::{Profile, WallFilter, Weight};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

fn profile(file: &Path) -> Profile {
    Profile::from_recording(View::read(file).recording)
}

/// The profile of a time in which all threads of `VirtualWaits` waited, and how long it was.
fn record(jdk: &Jdk, threads: usize, options: &str, seconds: u64) -> (Profile, WallFilter, f64) {
    let place = Place::new("virtual-waits");
    let file = place.path("v.jfr");
    let monitors = u32::from(jdk.feature >= 24);
    let program = Starter::new(jdk, &place, "VirtualWaits")
        .with(&format!("threads={threads} monitors={monitors}"))
        .agent(&format!("start,cpu=10ms,{options},file={}", file.display()))
        .start();
    // From here on all of them are there.
    std::thread::sleep(Duration::from_millis(500));
    let began = Instant::now();
    std::thread::sleep(Duration::from_secs(seconds));
    let elapsed = began.elapsed();
    program.tell("stop");
    program.end();
    let profile = profile(&file);
    let looks = profile.looks().iter();
    let end_ns = looks.map(|look| look.time_ns + look.duration_ns).max();
    let end_ns = end_ns.expect("looks") - profile.info().start_ns;
    let filter = WallFilter {
        from_ns: Some(end_ns - elapsed.as_nanos() as u64),
        to_ns: Some(end_ns),
        ..WallFilter::default()
    };
    (profile, filter, elapsed.as_secs_f64())
}

/// Wall time by kind of thread, which its name begins with, and cause.
fn by_kind(profile: &Profile, filter: &WallFilter) -> BTreeMap<String, BTreeMap<String, Weight>> {
    let mut kinds: BTreeMap<String, BTreeMap<String, Weight>> = BTreeMap::new();
    for wall in profile.wall(filter) {
        let name = profile.thread_name(wall.thread);
        let Some((kind, number)) = name.rsplit_once('-') else {
            continue;
        };
        if number.starts_with(['d', 'e']) {
            let causes = kinds.entry(kind.to_owned()).or_default();
            *causes.entry(wall.cause.to_owned()).or_default() += &wall.weight;
        }
    }
    kinds
}

/// The most that one look stands for, in seconds.
fn heaviest(profile: &Profile, filter: &WallFilter) -> f64 {
    let looks = profile.wall(filter).map(|wall| wall.weight);
    let each = looks.map(|weight| weight.sum as f64 / weight.samples.max(1) as f64);
    each.fold(0.0, f64::max) / 1e9
}

/// All of the time of the threads of a kind is there, and what they waited for.
///
/// Looks come by buckets, each with the same probability in a tick, so the sum is unbiased. Its
/// standard error, computed from the looks that there are, is right in the mean, and too small
/// where by chance few of the heavy looks of the first seconds are there, in which the budget
/// still grows: of 100,000 simulated runs with 60 looks 27 were off by more than five of them and
/// 2 %. With one and a half looks more of the heaviest in its square (as in Wilson's and Agresti
/// and Coull's intervals for shares) none was. This holds while the number of buckets looked at in
/// a tick moves, as it does where the budget decides; see docs/limits.md for where it stands
/// still.
fn check_kind(kind: &str, causes: &BTreeMap<String, Weight>, truth: f64, heaviest: f64) {
    let mut all = Weight::default();
    causes.values().for_each(|weight| all += weight);
    let found = all.sum as f64 / 1e9;
    let error = (all.standard_error() / 1e9).hypot(1.5_f64.sqrt() * heaviest);
    let tolerance = 5.0 * error + 0.02 * truth;
    println!("{kind}: {found:.0} s of {truth:.0} s +- {tolerance:.0} s, {causes:?}");
    assert!((found - truth).abs() <= tolerance, "{kind}: {causes:?}");
    let right = causes.get(kind).map_or(0, |weight| weight.samples);
    let wrong = all.samples - right;
    assert!(wrong <= all.samples / 100 + 1, "{kind}: {causes:?}");
}

/// However many there are, a few are looked at, and their weights add up to all.
///
/// Detects a kind of 3000 threads of which 15 % of the time is missing (of 500 threads 30 %), and
/// causes that are told for others. False alarm: 1e-5, see [`check_kind`].
#[test]
fn measured_unmounted_virtual_threads_have_their_time_and_its_cause() {
    each(&since(21), |jdk| {
        const THREADS: usize = 3000;
        let (profile, filter, elapsed) = record(jdk, THREADS, "wall=20ms,wall-budget=3%", 6);
        let kinds = by_kind(&profile, &filter);
        let mut expected = vec![
            ("park", 3000),
            ("sleep", 3000),
            ("lock", 3000),
            ("socket", 500),
        ];
        let heaviest = heaviest(&profile, &filter);
        if jdk.feature >= 24 {
            expected.extend([("monitor", 3000), ("object-wait", 3000)]);
        }
        for (kind, threads) in expected {
            let causes = kinds.get(kind).unwrap_or_else(|| panic!("no {kind}"));
            check_kind(kind, causes, f64::from(threads) * elapsed, heaviest);
        }
        check_stacks(&profile, &filter);
    });
}

/// Each look shows the method that waits; locks have their owner, and that one's stack.
fn check_stacks(profile: &Profile, filter: &WallFilter) {
    let (mut looks, mut owners) = (0, 0);
    for wall in profile.wall(filter) {
        let name = profile.thread_name(wall.thread);
        let is_lock = name.starts_with("lock-d") || name.starts_with("lock-e");
        if !is_lock {
            continue;
        }
        looks += 1;
        assert_eq!(wall.cause, "lock", "{name}");
        let (owner, node) = wall.owner.expect("an owner");
        assert_eq!(profile.thread_name(owner), "hold-1");
        let at = node.and_then(|node| profile.place(node));
        let at = at.as_deref().unwrap_or_default();
        owners += usize::from(at.starts_with("io.dwell.test.VirtualWaits.holdForEver"));
    }
    println!("{looks} looks at threads that wait for the lock, {owners} stacks of its owner");
    assert!(
        looks > 100 && owners * 100 >= looks * 99,
        "{owners} of {looks}"
    );
}

/// Moving collectors, and threads that come and go, make some looks fail, and none of them wrong.
///
/// Detects looks that read what was moved, 2 % of them (with ZGC but for those told as unknown,
/// see the limits). False alarm: less than 1e-6 where 1 % of 1000 looks is due; none are due but
/// at a thread's begin.
#[test]
fn measured_looks_at_virtual_threads_are_right_while_they_hop_and_the_collector_works() {
    each(&since(21), |jdk| {
        let all = ["UseG1GC", "UseZGC", "UseShenandoahGC", "UseSerialGC"];
        let collectors = if jdk.feature == 25 {
            &all[..]
        } else {
            &all[..2]
        };
        for collector in collectors {
            let place = Place::new("virtual-hops");
            let file = place.path("v.jfr");
            let mut program = Starter::new(jdk, &place, "VirtualRequests")
                .jvm(&format!("-XX:+{collector}"))
                .jvm("-Xmx64m")
                .with("seconds=3")
                .agent(&format!(
                    "start,cpu=10ms,wall=1ms,wall-budget=20%,file={}",
                    file.display()
                ))
                .start();
            let truths = program.work();
            program.tell("stop");
            program.end();
            let profile = profile(&file);
            let mut looks: BTreeMap<String, u64> = BTreeMap::new();
            for wall in profile.wall(&WallFilter::default()) {
                let name = profile.thread_name(wall.thread);
                if name.starts_with("a-") || name.starts_with("b-") {
                    *looks.entry(wall.cause.to_owned()).or_default() += wall.weight.samples;
                }
            }
            let hops = truths.number("hops");
            println!("{} {collector}: {looks:?}, {hops} hops", jdk.feature);
            let of = |cause: &str| looks.get(cause).copied().unwrap_or(0);
            let all: u64 = looks.values().sum();
            assert!(all > 1000, "{looks:?}");
            // They yield, park, sleep, wait for a lock and for processors, for memory, and at their
            // begin for classes. What is read while it moves would be told as unknown, or as
            // something that they never do. (ZGC has threads wait for its own work, which has no
            // name.)
            let never = ["socket", "object-wait", "idle-pool", "jit-wait"];
            let wrong: u64 = never.map(of).iter().sum();
            // What ZGC has moved is not found, and is told as unknown: see the limits.
            let is_z = *collector == "UseZGC";
            let unknown = if is_z { 0 } else { of("unknown") };
            assert!(wrong + unknown <= all / 50 + 3, "{looks:?}");
            // What ZGC has moved is not found until somebody uses it: see the limits.
            let seen: &[&str] = if is_z {
                &["runnable"]
            } else {
                &["runnable", "park", "sleep", "lock"]
            };
            for cause in seen {
                assert!(of(cause) > 10, "{cause}: {looks:?}");
            }
        }
    });
}
