//! Live objects of a program that knows which ones it keeps.

use crate::allocations::{CONSTANTS_MAX, may_be_constant};
use dwell_e2e::{
    Jdk, Place, Starter, Truths, View, both, each, is_whole, jdks, must, since, stats,
    turn_beside_jdk,
};
use dwell_profile::{LiveObject, Profile};

/// The bytes between two samples.
const INTERVAL: f64 = 4096.0;
/// The chance of a false alarm of all that is compared in one run of a program.
const FALSE_ALARM: f64 = 1e-6;

/// The kept objects: the method that allocates them, and their class.
const KINDS: [(&str, &str); 3] = [
    ("leak", "io.dwell.test.Kept$Leaked"),
    ("cache", "io.dwell.test.Kept$Cached"),
    ("buffer", "byte[]"),
];

/// Collectors, with a heap in which they have to work.
const COLLECTORS: [&str; 5] = [
    "-XX:+UseG1GC -Xmn8m",
    "-XX:+UseParallelGC -Xmn8m",
    "-XX:+UseSerialGC -Xmn8m",
    "-XX:+UseZGC -Xmx128m",
    "-XX:+UseShenandoahGC -Xmx128m",
];

fn start(jdk: &Jdk, place: &Place, collector: &str, arguments: &str) -> dwell_e2e::Program {
    let starter = Starter::new(jdk, place, "Kept").with(arguments);
    let options = collector.split(' ');
    options
        .fold(starter, |starter, option| starter.jvm(option))
        .start()
}

fn profile(path: &std::path::Path) -> Profile {
    Profile::from_recording(View::read(path).recording)
}

/// The objects of `kind`, each of which is what the program says. Others are string constants.
fn found<'p>(profile: &'p Profile, (name, class): (&str, &str), size: u64) -> Vec<&'p LiveObject> {
    let own = format!("io.dwell.test.Kept.{name}");
    let is_own = |object: &&LiveObject| {
        let of = &object.allocated;
        let stack = profile.tree().stack(of.node).skip(1);
        let mut methods = stack.filter_map(|frame| profile.method_of(frame));
        let innermost = methods.next().map(|(id, _)| profile.method_name(id));
        innermost.as_ref() == Some(&own) && profile.thread_name(of.thread) == "kept-1"
    };
    let class_of = |object: &LiveObject| profile.names().text(object.allocated.class);
    let is_kind = |object: &&LiveObject| (class_of(object), object.allocated.size) == (class, size);
    let all = profile.live().iter().filter(is_own);
    let (found, others): (Vec<&LiveObject>, Vec<&LiveObject>) = all.partition(is_kind);
    for object in &others {
        let (class, size) = (class_of(object), object.allocated.size);
        must!(may_be_constant(class, size), "{name}: {class} {object:?}");
        println!("{name}: a constant of the JVM, {class}");
    }
    let constants = others.len();
    must!(constants <= CONSTANTS_MAX, "{name}: {constants} constants");
    found
}

/// For each kind and in total, the surviving bytes are those that the program keeps. The kind with
/// the most bytes comes first.
///
/// Assumes that an object of size s is chosen with the probability p = 1 - exp(-s / interval), and
/// followed with the probability 1 / 2^L by its key. The number found of n kept objects is then
/// binomial, and each is worth s 2^L / p. Compares four sums with a false alarm of 1e-6 together
/// (`stats::binomial_bound`, `stats::sum_bound`). The recording counts lost samples, which are
/// assumed to be spread evenly. Detects total errors of a twentieth, without thinning.
#[track_caller]
fn check(profile: &Profile, truths: &Truths) {
    let sampling = *profile.live_sampling().expect("it was followed");
    must!(sampling.interval_bytes as f64 == INTERVAL, "{sampling:?}");
    let lost = sampling.lost as f64 / sampling.samples.max(1) as f64;
    println!("{sampling:?}");
    assert!(lost < 0.05, "too busy a machine: {lost} were lost");
    let chance = FALSE_ALARM / (KINDS.len() + 1) as f64;
    let (mut all, mut sum, mut variances, mut largest) = (0.0, 0.0, 0.0, 0.0_f64);
    for kind in KINDS {
        let size = truths.number(&format!("size.{}", kind.0));
        let count = truths.number(&format!("kept.{}", kind.0)) as f64;
        let found = found(profile, kind, size);
        let survived = || found.iter().filter(|object| object.has_survived());
        let bytes: f64 = survived().map(|o| o.allocated.bytes as f64).sum();
        let size = size as f64;
        let p = -(-size / INTERVAL).exp_m1() / sampling.one_of as f64;
        let bound = stats::binomial_bound(count, p, chance) * size / p;
        let truth = count * size;
        println!(
            "{:8} {size:6} B: {:.4} of {truth:.0} bytes in {} samples, may be off by {:.4}",
            kind.0,
            bytes / truth,
            survived().count(),
            bound / truth
        );
        // Weights are whole bytes; the last object of each kind may be on the thread's stack.
        let whole = found.len() as f64 * sampling.one_of as f64;
        let allowed = bound + size / p + whole + lost * truth;
        let off = (bytes - truth).abs();
        assert!(off <= allowed, "{}: {off} bytes off", kind.0);
        (all, sum) = (all + truth, sum + bytes);
        variances += count * size * size * (1.0 - p) / p;
        largest = largest.max(size / p);
    }
    let bound = stats::sum_bound(variances, largest, chance);
    let off = (sum - all).abs();
    println!(
        "all: {:.4} of {all:.0} bytes, may be off by {:.4}, one of {}",
        sum / all,
        bound / all,
        sampling.one_of
    );
    assert!(
        off <= bound + 3.0 * largest + lost * all,
        "{off} bytes off, {bound} allowed"
    );
    let stacks = profile.alive_stacks();
    assert_eq!(
        stacks[0].frames[..2],
        [KINDS[0].1, "io.dwell.test.Kept.leak"]
    );
    let parts: u64 = stacks[0].alive.parts.iter().sum();
    assert_eq!(parts, stacks[0].alive.bytes.sum);
    assert_eq!(profile.alive_classes()[0].name, KINDS[0].1);
}

/// Assumes and detects what `check` says. False alarm: 1e-6 for each JDK and collector.
#[test]
fn measured_live_bytes_equal_the_kept_bytes() {
    // The sampler of 11 is off for arrays of this size: see docs/allocation.md.
    let jdks = if is_whole() { since(17) } else { both() };
    each(&jdks, |jdk| {
        for collector in turn_beside_jdk(&COLLECTORS) {
            println!("{collector}");
            let place = Place::new("alive");
            let file = place.path("a.jfr");
            let mut program = start(jdk, &place, collector, "mib=128 keep=10 pause_ms=3");
            program.tell(&format!(
                "start,cpu=10ms,live=4k,maxrate=0,file={}",
                file.display()
            ));
            let truths = program.work();
            let reachable = (truths.number("reachable"), truths.number("weak"));
            must!(
                reachable.0 == 0 && reachable.1 > 500,
                "{reachable:?}: objects were kept alive that nobody has"
            );
            let status = program.tell("stop");
            assert!(status.contains("live_interval=4096"), "{status}");
            program.end();
            let profile = profile(&file);
            must!(
                profile.allocations().is_empty() && !profile.has_allocations(),
                "nobody asked for them"
            );
            check(&profile, &truths);
        }
    });
}

/// Of too many objects some stand for all: a table for far fewer than are kept at this interval.
///
/// Assumes and detects what `check` says, but that bounds are wider. False alarm: 1e-6.
#[test]
fn measured_thinned_live_objects_stand_for_all() {
    let jdk = both()[0];
    let place = Place::new("alive-thinned");
    let file = place.path("a.jfr");
    let mut program = start(
        jdk,
        &place,
        "-XX:+UseParallelGC -Xmn8m",
        "mib=64 keep=2 pause_ms=3",
    );
    program.tell(&format!(
        "start,cpu=10ms,live=4k,alloc=4k,maxrate=0,file={}",
        file.display()
    ));
    let truths = program.work();
    // An earlier state, which the last one replaces.
    program.tell("dump");
    let status = program.tell("stop");
    assert!(status.contains("alloc_interval=4096"), "{status}");
    program.end();
    let profile = profile(&file);
    let sampling = profile.live_sampling().unwrap();
    assert!((2..=16).contains(&sampling.one_of), "{sampling:?}");
    must!(profile.live().len() <= 16_384, "{}", profile.live().len());
    check(&profile, &truths);
    let allocated = profile.allocated().sum as f64;
    let all = 3.0 * f64::from(64 << 20);
    assert!((allocated / all - 1.0).abs() < 0.2, "{allocated} of {all}");
}

/// The live objects at the JVM's end are recorded, although no command stops the recording.
#[test]
fn live_objects_at_jvm_exit_are_recorded() {
    each(&both(), |jdk| {
        let place = Place::new("alive-end");
        let file = place.path("a.jfr");
        let mut program = Starter::new(jdk, &place, "Kept")
            .with("mib=16 keep=10")
            .jvm("-Xmn8m")
            .recorded("cpu=10ms,live=4k,maxrate=0", &file)
            .start();
        let _ = program.work();
        program.end();
        let profile = profile(&file);
        assert!(profile.has_live());
        assert!(profile.alive().bytes.sum > 1 << 20, "{:?}", profile.alive());
        assert_eq!(profile.info().mode, "cpu,live");
    });
}

#[test]
fn live_objects_follow_the_options_of_each_recording() {
    each(&both(), |jdk| {
        let place = Place::new("alive-again");
        let program = Starter::new(jdk, &place, "Steady60")
            .with("seconds=600")
            .start();
        let (first, second) = (place.text("first.jfr"), place.text("second.jfr"));
        let status = program.tell(&format!("start,live=1k,maxrate=0,file={first}"));
        assert!(status.contains("live_interval=1024"), "{status}");
        program.tell("stop");
        let status = program.tell(&format!("start,file={second}"));
        assert!(!status.contains("live_"), "{status}");
        program.tell("dump");
        program.tell("stop");
        let looks = |file: &str| {
            let view = View::read(&place.path(file));
            let count = |event| view.recording.counts.get(event).copied().unwrap_or(0);
            assert_eq!(count("jdk.ObjectAllocationSample"), 0);
            count("dwell.LiveObjects")
        };
        assert_eq!((looks("first.jfr"), looks("second.jfr")), (1, 0));
        program.tell(&format!("start,live=64k,file={second}"));
        let status = program.tell("dump");
        assert!(status.contains("live_one_of=1\n"), "{status}");
        program.tell("stop");
        assert_eq!(looks("second.jfr"), 2);
        drop(program);
    });
}

#[test]
fn live_objects_are_refused_without_allocation_samples() {
    let old: Vec<&Jdk> = jdks().iter().filter(|jdk| jdk.feature < 11).collect();
    if old.is_empty() {
        println!("skipped: no JDK before 11 is here, or asked for");
        return;
    }
    each(&old, |jdk| {
        let place = Place::new("no-alive");
        let mut program = Starter::new(jdk, &place, "Idle").with("seconds=1").start();
        let file = place.text("a.jfr");
        let refused = program
            .attach(&format!("start,live,file={file}"))
            .unwrap_err();
        assert!(refused.contains("live=524288"), "{refused}");
        assert!(
            refused.contains("JDK 11") && !refused.contains('\n'),
            "{refused}"
        );
        assert!(
            !place.path("a.jfr").exists(),
            "a refused start leaves no file"
        );
        let _ = program.work();
        program.end();
    });
}
