//! Waits for locks of a program that knows how long it waited.

use dwell_e2e::{Jdk, Place, Starter, Truths, View, both, each, must, since, stats};
use dwell_profile::{MonitorSums, Profile, WallFilter, Weight};

/// Waits that last so long are all recorded.
const INTERVAL_NS: u64 = 500_000;
/// The chance of a false alarm of all that is compared in one run of a program.
const FALSE_ALARM: f64 = 1e-6;
/// Comparisons in one run.
const COMPARISONS: f64 = 8.0;
/// The maximum excess of the program's times over the JVM's, as a part. The program reads its clock
/// before the JVM spins, and after the thread has the lock.
const AROUND: f64 = 0.05;
/// The additional error of one wait: the thread has the monitor, and loses its processor before the
/// program reads its clock.
const PREEMPTED_NS: f64 = 10e6;
/// Standard errors of looks that chance may be off, with a chance of [`FALSE_ALARM`]
/// / [`COMPARISONS`]: 1e-7, on both sides.
const ERRORS: f64 = 5.4;

/// The kinds of waits that are all longer than the interval, and the others.
const LONG: [&str; 2] = ["ledger", "stock"];
const SHORT: [&str; 2] = ["tick", "spark"];

fn class_of(kind: &str) -> String {
    let (first, rest) = kind.split_at(1);
    format!("io.dwell.test.LockWaits${}{rest}", first.to_uppercase())
}

/// The recorded waits of one kind.
#[derive(Default)]
struct Told {
    weight: f64,
    longest: u64,
    waits: usize,
    /// Waits among them with an unknown owner: the monitor was free by the time that the owner was
    /// read.
    free: usize,
}

/// The events of a kind. Each must have the waiting thread, the place and the owner of the program.
fn told(profile: &Profile, kind: &str) -> Told {
    let class = class_of(kind);
    let mut told = Told::default();
    for wait in profile.monitor_waits() {
        if profile.names().text(wait.class) != class {
            continue;
        }
        let place = profile.place(profile.tree().parent(wait.node));
        let place = place.unwrap_or_default();
        must!(
            place == "io.dwell.test.LockWaits.waitForMonitor",
            "{kind}: waits in {place}"
        );
        let thread = profile.thread_name(wait.thread);
        must!(thread == format!("waiter-{kind}"), "{thread} waits");
        let owner = wait.owner.map(|owner| profile.thread_name(owner));
        must!(
            owner.is_none_or(|owner| owner == format!("owner-{kind}")),
            "{kind}: had by {owner:?}"
        );
        told.free += usize::from(owner.is_none());
        told.weight += wait.weight_ns as f64;
        told.longest = told.longest.max(wait.duration_ns);
        told.waits += 1;
    }
    told
}

/// Long waits are recorded with times within those that the program measured.
fn check_long(profile: &Profile, truths: &Truths) {
    for kind in LONG {
        let told = told(profile, kind);
        let waits = truths.number(&format!("waits.{kind}"));
        let waited = truths.number(&format!("waited.{kind}"));
        let longest = truths.number(&format!("longest.{kind}"));
        let part = told.weight / waited as f64;
        println!(
            "{kind:8} {part:.4} of {waited} ns in {} of {waits} waits, longest {} of {longest}",
            told.waits, told.longest
        );
        must!(told.waits as u64 <= waits, "more waits than there were");
        assert!(told.free * 10 <= told.waits, "{} had by nobody", told.free);
        must!(
            part <= 1.0 && told.longest <= longest,
            "longer than they lasted"
        );
        assert!(part >= 1.0 - AROUND, "{kind}: {part} of the time");
        let missing = (longest - told.longest) as f64 - AROUND * longest as f64;
        assert!(missing <= PREEMPTED_NS, "{kind}: {missing} ns of one wait");
    }
}

/// The weights of short waits add up to the JVM's total of all waits, in the mean.
///
/// A wait of d is recorded with the probability d/I and stands for I, which adds d (I - d) to the
/// variance: I^2/4 or less. Each weight differs from its mean by I or less. Detects weights with an
/// error of more than a fifth.
fn check_short(profile: &Profile, sums: &MonitorSums) {
    let waits = profile.monitor_waits();
    let long = waits.iter().filter(|wait| wait.duration_ns >= INTERVAL_NS);
    let (mut number, mut long_ns) = (0u64, 0u64);
    for wait in long {
        must!(wait.weight_ns == wait.duration_ns, "{wait:?}");
        (number, long_ns) = (number + 1, long_ns + wait.duration_ns);
    }
    let short = waits.iter().filter(|wait| wait.duration_ns < INTERVAL_NS);
    let short: f64 = short.map(|wait| wait.weight_ns as f64).sum();
    let truth = (sums.blocked_ns - long_ns) as f64;
    let interval = INTERVAL_NS as f64;
    let all = (sums.waits - number) as f64;
    // Of so much time no more waits can be of half an interval.
    let variance = (all * interval * interval / 4.0).min(truth * interval);
    let bound = stats::sum_bound(variance, interval, FALSE_ALARM / COMPARISONS);
    println!(
        "short: {:.4} of {truth:.0} ns in {all} waits, may be off by {:.4}",
        short / truth,
        bound / truth
    );
    let off = (short - truth).abs();
    assert!(
        off <= bound + sums.lost_ns as f64,
        "{off} ns off of {truth}"
    );
}

/// Samples of waits agree with the program's measurements, and with events.
fn check_looks(profile: &Profile, truths: &Truths) {
    let mut looks = Weight::default();
    for it in profile.locked(&WallFilter::default()) {
        if !it.is_look {
            continue;
        }
        let class = profile.names().text(it.class);
        if !class.contains("ReentrantLock") {
            continue;
        }
        let owner = it.owner.map(|owner| profile.thread_name(owner));
        must!(
            owner.is_none_or(|owner| owner == "owner-reentrant"),
            "{owner:?}"
        );
        looks += &it.weight;
    }
    agree("reentrant", looks, truths.number("waited.reentrant") as f64);
    let filter = WallFilter {
        causes: vec!["monitor".into()],
        thread: Some("waiter-ledger".into()),
        ..WallFilter::default()
    };
    let mut of_monitor = Weight::default();
    for wall in profile.wall(&filter) {
        of_monitor += &wall.weight;
    }
    agree("ledger", of_monitor, told(profile, "ledger").weight);
}

fn agree(what: &str, looks: Weight, truth: f64) {
    let error = looks.standard_error();
    println!(
        "{what:8} by looks {:.4} of {truth:.0} ns, +- {:.4}",
        looks.sum as f64 / truth,
        error / truth
    );
    let off = (looks.sum as f64 - truth).abs();
    assert!(
        off <= ERRORS * error + AROUND * truth,
        "{what}: looks are {off} ns off of {truth}"
    );
}

fn record(jdk: &Jdk, arguments: &str) -> (Profile, Truths) {
    record_with(jdk, arguments, "lock=500us,maxrate=0")
}

fn record_with(jdk: &Jdk, arguments: &str, how: &str) -> (Profile, Truths) {
    let place = Place::new("locks");
    let file = place.path("a.jfr");
    let mut program = Starter::new(jdk, &place, "LockWaits")
        .with(arguments)
        .start();
    program.tell(&format!(
        "start,cpu=10ms,wall=20ms,wall-budget=10%,{how},file={}",
        file.display()
    ));
    let truths = program.work();
    program.tell("stop");
    program.end();
    let profile = Profile::as_recorded(View::read(&file).recording);
    println!(
        "{} waits recorded: {:?}",
        profile.monitor_waits().len(),
        profile.monitor_sums()
    );
    (profile, truths)
}

/// Times of waits are those of the program, short ones in the mean. The waiting thread, the place
/// and the owner are right for each.
///
/// Assumes the variance of `check_short`, and the recorded precision of samples. Assumes that waits
/// for a processor do not exceed a twentieth of a thread's waits next to them. Assumes that waiting
/// threads keep their processor until the owner is read: half of those with a short wait, nine of
/// ten of the others. Detects errors of a twentieth, or of a fifth for waits shorter than the
/// interval. False alarm: 1e-6 for each JDK.
#[test]
fn measured_lock_waits_equal_the_programs() {
    each(&both(), |jdk| {
        let (profile, truths) = record(jdk, "percent=50");
        let sums = *profile.monitor_sums().expect("waits are told");
        assert_eq!(sums.interval_ns, INTERVAL_NS);
        check_long(&profile, &truths);
        for kind in SHORT {
            let told = told(&profile, kind);
            let waited = truths.number(&format!("waited.{kind}"));
            let (waits, free) = (told.waits, told.free);
            println!("{kind:8} {waits} recorded of {waited} ns, {free} had by nobody");
            assert!(free * 2 <= waits, "{kind}: {free} of {waits} had by nobody");
        }
        check_short(&profile, &sums);
        check_looks(&profile, &truths);
    });
}

/// Where too many waits are recorded the interval grows, and what is recorded stands for all that
/// the JVM told, in the mean.
///
/// Assumes that a wait is drawn by the interval of its end, which follows from those before it:
/// errors are steps of a martingale then. A wait of d that stands for w adds w (w - d) to an
/// unbiased estimate of their variance, which twice holds for sums of many waits
/// (`stats::sum_bound`). Detects sums that are off by half. False alarm: 1e-6.
#[test]
fn measured_rate_limited_waits_stand_for_all() {
    const RATE: f64 = 400.0;
    each(&both(), |jdk| {
        let (profile, _) = record_with(jdk, "percent=50", "lock=20us,maxrate=400/s");
        let sums = *profile.monitor_sums().expect("waits are told");
        assert_eq!(sums.asked_ns, 20_000);
        let (mut sum, mut variance, mut largest) = (0.0, 0.0, 0.0_f64);
        for wait in profile.monitor_waits() {
            let (weight, duration) = (wait.weight_ns as f64, wait.duration_ns as f64);
            must!(weight >= duration.max(20_000.0), "{wait:?}");
            sum += weight;
            variance += weight * (weight - duration);
            if weight > duration {
                largest = largest.max(weight);
            }
        }
        let truth = sums.blocked_ns as f64;
        let bound = stats::sum_bound(2.0 * variance, largest, FALSE_ALARM) + sums.lost_ns as f64;
        let samples = profile.monitor_waits().len() as f64;
        let seconds = sums.told_ns as f64 / 1e9;
        println!(
            "{samples} of {} waits in {seconds:.1} s: {:.4} of {truth:.0} ns, may be off by {:.4}",
            sums.waits,
            sum / truth,
            bound / truth
        );
        assert!((sum - truth).abs() <= bound, "{} ns off", sum - truth);
        assert!(bound < 0.75 * truth, "it must see wrong weights");
        let all = sums.waits as f64;
        assert!(samples < all / 2.0, "{samples} of {all}: none was too many");
        let most = 2.0 * RATE * (seconds + 3.0);
        assert!(samples <= most, "{samples} waits, {most} at most");
    });
}

/// Waits of virtual threads are recorded under their own names, with the times that the program has
/// measured, also if they continue on another carrier (from 24 on).
///
/// Assumes that no thread waits for a processor for a twentieth of its waits next to them. Detects
/// times that are off by a twentieth. False alarm: 0, as nothing is left to chance.
#[test]
fn measured_virtual_threads_wait_in_their_own_name() {
    each(&since(21), |jdk| {
        let (profile, truths) = record(jdk, "percent=50 virtual=1 kinds=stock,ledger");
        check_long(&profile, &truths);
        for wait in profile.monitor_waits() {
            let thread = profile.threads()[wait.thread as usize];
            let is_ours = profile.thread_name(wait.thread).starts_with("waiter-");
            must!(thread.is_virtual || !is_ours, "{wait:?}");
        }
        assert_eq!(profile.monitor_sums().unwrap().untold, 0);
    });
}

#[test]
fn lock_waits_follow_the_options_of_each_recording() {
    each(&both(), |jdk| {
        let place = Place::new("locks-again");
        let mut program = Starter::new(jdk, &place, "LockWaits")
            .with("percent=10 kinds=stock")
            .start();
        let (first, second) = (place.text("first.jfr"), place.text("second.jfr"));
        let status = program.tell(&format!("start,lock=1ms,file={first}"));
        assert!(status.contains("lock_interval_ns=1000000"), "{status}");
        let refused = program
            .attach(&format!("start,lock=2ms,file={second}"))
            .unwrap_err();
        assert!(refused.contains("already recording"), "{refused}");
        program.tell("stop");
        let status = program.tell(&format!("start,file={second}"));
        assert!(!status.contains("lock_"), "{status}");
        let _ = program.work();
        program.tell("stop");
        program.end();
        let view = View::read(&place.path("second.jfr"));
        let counts = &view.recording.counts;
        assert!(
            !counts.contains_key("jdk.JavaMonitorEnter")
                && !counts.contains_key("dwell.MonitorWaits"),
            "{counts:?}"
        );
    });
}

/// Where an owner of the program `LockOwners` was: the method that has the monitor.
fn owner_method(profile: &Profile, node: dwell_profile::NodeId) -> String {
    let names: Vec<String> = profile
        .tree()
        .stack(node)
        .filter_map(|frame| profile.method_of(frame))
        .map(|(id, _)| profile.method_name(id))
        .collect();
    let of_owner = |name: &&String| name.starts_with("io.dwell.test.LockOwners.");
    let held = names.iter().filter(of_owner).find(|name| {
        let method = name.rsplit('.').next().unwrap_or("");
        !matches!(method, "spin" | "awaitComing")
    });
    held.unwrap_or_else(|| panic!("no method of the owner: {names:?}"))
        .clone()
}

/// The recorded owners: weights by the method, and the weight of failures.
#[derive(Default)]
struct OwnersTold {
    sleep: Weight,
    burn: Weight,
    unknown: Weight,
}

impl OwnersTold {
    /// Each of them is the thread with the monitor, in a method that has it.
    fn of(profile: &Profile) -> OwnersTold {
        let mut told = OwnersTold::default();
        for it in profile.monitor_owners() {
            if profile.names().text(it.class) != "io.dwell.test.LockOwners$Vault" {
                continue;
            }
            let waiter = it.waiter.map(|waiter| profile.thread_name(waiter));
            must!(waiter == Some("waiter"), "{waiter:?} waits");
            let place = profile.place(it.waiter_node).unwrap_or_default();
            must!(place == "io.dwell.test.LockOwners.take", "waits in {place}");
            let Some(node) = it.node else {
                let why = it.failure.map(|why| profile.names().text(why));
                println!("not known: {why:?}, of {} ns", it.duration_ns);
                told.unknown += &it.weight();
                continue;
            };
            let owner = it.owner.map(|owner| profile.thread_name(owner));
            must!(owner == Some("owner"), "had by {owner:?}");
            match &*owner_method(profile, node) {
                "io.dwell.test.LockOwners.sleepInside" => told.sleep += &it.weight(),
                "io.dwell.test.LockOwners.burnInside" => told.burn += &it.weight(),
                other => panic!("the owner had nothing in {other}"),
            }
        }
        told
    }

    fn all(&self) -> u64 {
        self.sleep.sum + self.burn.sum + self.unknown.sum
    }
}

fn record_owners(jdk: &Jdk, arguments: &str, how: &str) -> (Profile, Truths) {
    let place = Place::new("lock-owners");
    let file = place.path("a.jfr");
    let mut program = Starter::new(jdk, &place, "LockOwners")
        .with(arguments)
        .start();
    program.tell(&format!("start,cpu=10ms,{how},file={}", file.display()));
    let truths = program.work();
    program.tell("stop");
    program.end();
    (Profile::as_recorded(View::read(&file).recording), truths)
}

/// Without a clock for wall time, waits record where the owner was when they began. So few waits
/// come that all record it, each with its own time, however long that takes.
///
/// Assumes that waits for a processor do not exceed a twentieth of a thread's waits next to them.
/// Assumes that in seven of ten waits an owner is still at its place when it is read. Detects an
/// answer of a thread without the monitor, errors of a twentieth, and owners that are missed while
/// they run or sleep. False alarm: 0, as nothing is random.
#[test]
fn measured_owners_are_where_they_had_the_monitor() {
    each(&both(), |jdk| check_owners(jdk, ROUNDS, 0.7));
}

/// The same of virtual threads, which have the monitor with a carrier while they run and without
/// one while they sleep (from 24 on).
///
/// Assumes that each owner is found with the probability 0.7. It is missed if it is just being
/// mounted, or gives its carrier up, when many of the waits begin. Detects the activity of the
/// previous owner, and fewer than four found owners of twenty. False alarm: 2e-6 for each JDK
/// (binomial, three or fewer).
#[test]
fn measured_virtual_owners_are_where_they_had_the_monitor() {
    each(&since(24), |jdk| {
        check_owners(jdk, &format!("{ROUNDS} virtual=1"), 0.25);
    });
}

/// The stack of an owner in a wall-clock sample is one in which it had the monitor. Many threads
/// have it for 50 us each and then rest, so a stack that was read too late is in `rest`.
///
/// Assumes that no owner gives the monitor up, rests, and has it again within the few us of a
/// check. Detects owners that are read without a check (1 to 6 % of the stacks). False alarm: 0 but
/// for a check that a preempted sampler stretches, for which one in 100 is allowed.
#[test]
fn measured_sampled_owners_still_have_the_monitor() {
    each(&both(), |jdk| {
        let place = Place::new("sampled-owners");
        let file = place.path("a.jfr");
        let mut program = Starter::new(jdk, &place, "LockCrowd")
            .with("seconds=8")
            .start();
        let options = "start,wall=2ms,wall-budget=10%,file=";
        program.tell(&format!("{options}{}", file.display()));
        let _ = program.work();
        program.tell("stop");
        program.end();
        let profile = Profile::as_recorded(View::read(&file).recording);
        let filter = WallFilter {
            causes: vec!["monitor".to_owned()],
            ..WallFilter::default()
        };
        let (mut inside, mut outside) = (0, 0);
        for wall in profile.wall(&filter) {
            let Some((_, Some(node))) = wall.owner else {
                continue;
            };
            let names = profile.tree().stack(node);
            let names = names.filter_map(|frame| profile.method_of(frame));
            let mut names = names.map(|(id, _)| profile.method_name(id));
            let ours = names.find(|name| name.starts_with("io.dwell.test.LockCrowd."));
            match ours.as_deref() {
                Some("io.dwell.test.LockCrowd.hold") => inside += 1,
                _ => outside += 1,
            }
        }
        println!("{inside} inside, {outside} outside");
        assert!(inside >= 20, "{inside}");
        assert!(100 * outside <= inside, "{outside} of {inside}");
    });
}

/// Twenty waits of each kind, which are few enough for all to ask.
const ROUNDS: &str = "rounds=40 sleep_us=120000 burn_us=80000";

/// At least this part of both kinds is known.
fn check_owners(jdk: &Jdk, arguments: &str, least: f64) {
    let (profile, truths) = record_owners(jdk, arguments, "lock=1us");
    let told = OwnersTold::of(&profile);
    let truth = |kind: &str| truths.number(&format!("waited.{kind}"));
    let (sleep, burn) = (truth("sleep"), truth("burn"));
    println!(
        "sleep {} of {sleep}, burn {} of {burn}, not known {}",
        told.sleep.sum, told.burn.sum, told.unknown.sum
    );
    must!(told.sleep.sum <= sleep && told.burn.sum <= burn, "longer");
    let all = (sleep + burn) as f64;
    assert!(
        told.all() as f64 >= (1.0 - AROUND) * all,
        "{} of {all}",
        told.all()
    );
    for (kind, known, truth) in [("sleep", told.sleep, sleep), ("burn", told.burn, burn)] {
        assert!(
            known.sum as f64 >= (least - AROUND) * truth as f64,
            "{kind}: {} of {truth} ns",
            known.sum
        );
    }
    let rows = profile.owner_rows();
    let first = rows.first().expect("owners are told");
    assert_eq!(first.group.as_deref(), Some("owner"));
    let class = profile.lock_classes();
    let class = class.iter().find(|class| class.name.contains("Vault"));
    assert!(class.is_some_and(|class| class.is_asked), "{class:?}");
}

/// Where more waits come than ask, those that do stand for all, in the mean.
///
/// Assumes that a wait is drawn by how many asked before it: errors are steps of a martingale then.
/// A wait of d that stands for w adds w (w - d) to an unbiased estimate of their variance, which
/// twice holds for sums of many waits (`stats::sum_bound`). Detects sums that are off by three
/// quarters: weights that are missing (one in fifty asks here), or counted twice. Where looks take
/// long they count as several, so that a third as many ask and the bound is as wide as 0.56.
/// False alarm: 1e-6.
#[test]
fn measured_owners_of_some_waits_stand_for_those_of_all() {
    each(&both(), |jdk| {
        let arguments = "rounds=30000 sleep_us=400 burn_us=200";
        let (profile, truths) = record_owners(jdk, arguments, "lock=200us,maxrate=0");
        let told = OwnersTold::of(&profile);
        let mut largest = 0.0_f64;
        let (mut asked, mut some) = (0u64, false);
        for it in profile.monitor_owners() {
            let weight = it.weight_ns as f64;
            largest = largest.max(weight);
            asked += 1;
            some |= it.weight_ns > 2 * it.duration_ns.max(200_000);
        }
        let sums = *profile.monitor_sums().expect("waits are told");
        let truth = sums.blocked_ns as f64;
        let variance: f64 = told.sleep.squares + told.burn.squares + told.unknown.squares;
        let bound = stats::sum_bound(2.0 * variance, largest, FALSE_ALARM) + sums.lost_ns as f64;
        let seconds = sums.told_ns as f64 / 1e9;
        println!(
            "{asked} of {} waits in {seconds:.1} s: {:.4} of {truth:.0} ns, may be off by {:.4}; \
             sleep {} of {}, burn {} of {}, not known {}",
            sums.waits,
            told.all() as f64 / truth,
            bound / truth,
            told.sleep.sum,
            truths.number("waited.sleep"),
            told.burn.sum,
            truths.number("waited.burn"),
            told.unknown.sum
        );
        assert!(some, "each wait asked");
        let off = (told.all() as f64 - truth).abs();
        assert!(off <= bound, "{off} ns off of {truth}");
        assert!(bound < 0.75 * truth, "it must see wrong weights");
        let most = 2.0 * 100.0 * (seconds + 3.0);
        assert!(asked as f64 <= most, "{asked} asked, {most} at most");
    });
}
