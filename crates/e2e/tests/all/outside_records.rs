//! Recordings from outside: whose virtual thread a sample is, frames of the kernel, libraries that
//! are loaded later.

use dwell_e2e::{Place, Starter, Truths, View, WAITS, both, each, record_outside, since, turn};
use dwell_jfr::FrameKind;
use dwell_jfr::reader::GenericEvent;
use dwell_profile::{Profile, WallFilter};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Records a program while it works; `None` where the kernel allows no samples.
fn record(starter: Starter, place: &Place) -> Option<(View, Truths)> {
    record_every(Duration::from_millis(1), starter, place)
}

/// The same, with this CPU time between two samples of a thread.
fn record_every(cpu: Duration, starter: Starter, place: &Place) -> Option<(View, Truths)> {
    let file = place.path("o.jfr");
    let mut program = starter.start();
    let (pid, over) = (program.pid, AtomicBool::new(false));
    let (truths, sum) = std::thread::scope(|scope| {
        let (begins, begun) = mpsc::channel();
        let (file, over) = (&file, &over);
        let recording = scope.spawn(move || {
            let step = Duration::from_millis(10);
            record_outside(pid, file, cpu, step, || {
                let _ = begins.send(());
                !over.load(Ordering::Relaxed)
            })
        });
        // The program is at its gate until then; an error says that there will be no recording.
        let _ = begun.recv();
        let truths = program.work();
        over.store(true, Ordering::Relaxed);
        (truths, recording.join().expect("no panic"))
    });
    program.end();
    if sum.is_none() {
        println!("perf events are not permitted here");
    }
    sum.map(|sum| {
        println!("{sum:?}");
        (View::read(&file), truths)
    })
}

/// Detects names that are missing or another thread's. False alarm: not by chance on an idle
/// machine; a sample without a known name is marked.
#[test]
fn measured_mounted_virtual_threads_have_names_from_outside() {
    each(&since(21), |jdk| {
        let place = Place::new("outside-virtual");
        let starter = Starter::new(jdk, &place, "VirtualThreads");
        let Some((view, truths)) = record(starter.with("seconds=3 threads=8 cpu_ms=1500"), &place)
        else {
            return;
        };
        let (mut bursts, mut known, mut whole, mut wrong) = (0u64, 0u64, 0u64, 0u64);
        let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
        let mut ids: BTreeMap<&str, i64> = BTreeMap::new();
        for sample in view.samples().filter(|it| it.has("burstOfVirtualThread")) {
            bursts += 1;
            // Frames that were in the heap at that moment may be missing, and then the sample says
            // so. The thread runs while it is read, so a few names are wrong.
            if sample.failure().is_none() {
                let deep = sample.frames().filter(|it| it.name == "descend").count();
                wrong += u64::from(deep != 30);
                whole += 1;
            }
            let thread = &view.recording.threads[sample.sample.thread as usize];
            if !thread.is_virtual {
                continue;
            }
            known += 1;
            let id = ids.entry(sample.thread()).or_insert(thread.java_tid);
            assert_eq!(*id, thread.java_tid, "{}", sample.line());
            let carrier = sample.sample.carrier.expect("a carrier");
            assert!(!view.recording.threads[carrier as usize].is_virtual);
            *weights.entry(sample.thread()).or_default() += sample.weight_ns();
        }
        println!(
            "{}: {known} of {bursts}, {whole} whole, {wrong} wrong, {weights:?}",
            jdk.feature
        );
        assert!(bursts > 40 && whole > 0, "{bursts} samples");
        assert!(wrong * 20 <= whole + 20, "{wrong} of {whole}");
        // A collector may have moved one, or a new one may have had no name yet.
        assert!(known * 100 >= bursts * 95, "{known} of {bursts}");
        // Each has its own part: the same bound as with the agent, at one interval a sample.
        let interval = 1_000_000.0;
        let (found, truth): (u64, u64) = (weights.values().sum(), truths.ns("vt_total"));
        for (name, weight) in &weights {
            let truth = truths.ns(name) as f64 * found as f64 / truth as f64;
            let bound = 0.05 * truth + 8.0 * (truth * interval).sqrt() + 2.0 * interval;
            let off = (*weight as f64 - truth).abs();
            assert!(off <= bound, "{name}: {weight}, in truth {truth}");
        }
        assert_eq!(weights.len(), 8, "{weights:?}");
    });
}

/// Detects owners that are missing, 1 % of looks. False alarm: not by chance on an idle machine.
#[test]
fn measured_wall_samples_have_lock_owners_from_outside() {
    each(&turn(&since(8)), |jdk| {
        let place = Place::new("outside-owners");
        let file = place.path("o.jfr");
        let program = Starter::new(jdk, &place, "Stands")
            .with("deadlock=1 shared=1")
            .start();
        // Counted from when it records.
        let (mut began, time) = (None, Duration::from_secs(2));
        let (cpu, step) = (Duration::from_millis(10), Duration::from_millis(10));
        let sum = record_outside(program.pid, &file, cpu, step, || {
            began.get_or_insert_with(Instant::now).elapsed() < time
        });
        program.end();
        if sum.is_none() {
            println!("perf events are not permitted here");
            return;
        }
        let profile = Profile::as_recorded(View::read(&file).recording);
        let filter = WallFilter::default();
        for (name, cause, owner) in [
            ("monitor-wanter", "monitor", Some("holder \u{e9}\u{20ac}")),
            ("lock-wanter", "lock", Some("locker")),
            ("shared-wanter", "lock", None),
            ("dead-left", "monitor", Some("dead-right")),
            ("dead-right", "monitor", Some("dead-left")),
            ("locked-left", "lock", Some("locked-right")),
            ("waiter", "object-wait", None),
            ("deep", "sleep", None),
            ("reader", "socket", None),
            ("pool-0", "park", None),
        ] {
            let looks = profile.wall(&filter);
            let looks = looks.filter(|it| profile.thread_name(it.thread) == name);
            // Those that want a monitor wake now and then to try again, up to 22.
            let tries = cause == "monitor" && jdk.feature <= 22;
            let is_try = |at: &str| at == "runnable" || (tries && at == "running");
            let looks = looks.filter(|it| !is_try(it.cause));
            let mut told = BTreeSet::new();
            for look in looks {
                told.insert((look.cause, look.owner.map(|it| profile.thread_name(it.0))));
                // All owners here wait, in one of the program's methods.
                let at = look
                    .owner
                    .map(|it| it.1.and_then(|node| profile.place(node)));
                let is_in = |at: &str| at.contains("Stands$") && at.contains(".stand");
                let is_right = at
                    .as_ref()
                    .is_none_or(|at| at.as_deref().is_some_and(is_in));
                assert!(is_right, "{name}'s owner is in {at:?}");
            }
            let expected = BTreeSet::from([(cause, owner)]);
            assert_eq!(told, expected, "{name} on {}", jdk.feature);
        }
    });
}

/// All time of each thread is accounted, for a few that work among many that wait: their samples do
/// not depend on the number of the others.
///
/// Detects 3 % of the life of an idle thread missing or too much. Of working threads only 30 %:
/// their time on a processor is estimated. False alarm: not by chance on an idle machine, as the
/// time of a thread is divided, not estimated.
#[test]
fn measured_wall_time_from_outside_is_whole_among_many_threads() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("outside-many");
        let starter = Starter::new(jdk, &place, "Waits").with("seconds=3 idle=500");
        let cpu = Duration::from_millis(10);
        let Some((view, truths)) = record_every(cpu, starter, &place) else {
            return;
        };
        let ticks = view.recording.events_named("dwell.WallTick");
        let span = |tick: &GenericEvent| tick.int("span").expect("a number") as f64;
        let all_ns: f64 = ticks.map(span).sum();
        let profile = Profile::as_recorded(view.recording);
        let mut threads: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for wall in profile.wall(&WallFilter::default()) {
            let causes = threads.entry(profile.thread_name(wall.thread)).or_default();
            *causes.entry(wall.cause).or_default() += wall.weight.sum;
        }
        let idle = threads.keys().filter(|name| name.starts_with("idle-"));
        assert_eq!(idle.count(), 500);
        let told_s = |name: &str| {
            let causes = threads.get(name).unwrap_or_else(|| panic!("no {name}"));
            println!("{name}: {causes:?}");
            causes.values().sum::<u64>() as f64 / 1e9
        };
        for place in 1..=500 {
            let part = told_s(&format!("idle-{place}")) * 1e9 / all_ns;
            assert!((part - 1.0).abs() < 0.03, "idle-{place}: {part}");
        }
        for (name, _) in WAITS {
            let life_s = truths.number(&format!("wall.{name}.elapsed")) as f64 / 1e9;
            let part = told_s(name) / life_s;
            assert!((0.7..1.1).contains(&part), "{name}: {part} of {life_s} s");
        }
    });
}

/// Detects kernel frames that are missing. False alarm: not by chance.
#[test]
fn measured_the_kernels_frames_are_there_without_an_agent() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("outside-kernel");
        let arguments = "seconds=2 batch_ms=1 cpu_ms=1500 kinds=arrayCopy,hotLeaf";
        let starter = Starter::new(jdk, &place, "Accuracy").with(arguments);
        let Some((view, _)) = record(starter, &place) else {
            return;
        };
        let mut inside = 0;
        for sample in view.of_threads("accuracy-") {
            let kinds: Vec<FrameKind> = sample.frames().map(|frame| frame.kind).collect();
            let kernel = kinds.iter().take_while(|kind| **kind == FrameKind::Kernel);
            let kernel = kernel.count();
            let all = kinds.iter().filter(|kind| **kind == FrameKind::Kernel);
            assert_eq!(all.count(), kernel, "on top only: {}", sample.line());
            inside += usize::from(kernel > 0);
        }
        println!("{}: {inside} samples in the kernel", jdk.feature);
        let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let level: i32 = paranoid.unwrap().trim().parse().unwrap();
        if level < 2 || rustix::process::geteuid().is_root() {
            assert!(inside > 0, "clocks are read in the kernel");
        }
    });
}

#[test]
fn later_libraries_are_known_from_outside() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("outside-late");
        let starter = Starter::new(jdk, &place, "JniLoad").with("seconds=2 cpu_ms=1500");
        let Some((view, truths)) = record(starter, &place) else {
            return;
        };
        let (mut all, mut failed) = (0, 0);
        let mut weights: BTreeMap<&str, u64> = BTreeMap::new();
        for sample in view.of_threads("jniload") {
            all += 1;
            failed += u64::from(sample.failure().is_some());
            for name in ["exported_native_burn", "static_native_burn"] {
                if sample.has(name) {
                    assert!(sample.has("main") || sample.has("run"), "{}", sample.line());
                    *weights.entry(name).or_default() += sample.weight_ns();
                }
            }
        }
        println!("{}: {failed} of {all} failed, {weights:?}", jdk.feature);
        assert!(all > 100 && failed * 50 <= all, "{failed} of {all}");
        assert_eq!(weights.len(), 2, "{weights:?}");
        let (found, truth): (u64, u64) = weights.iter().fold((0, 0), |sum, (name, ns)| {
            (sum.0 + ns, sum.1 + truths.ns(name))
        });
        for (name, weight) in &weights {
            let share = *weight as f64 / found as f64;
            let off = (share - truths.ns(name) as f64 / truth as f64).abs();
            assert!(off <= 0.05, "{name}: {share}");
        }
        assert!(found * 10 >= truth * 9, "{found} of {truth} ns");
    });
}
