//! Allocations of a program that knows what it allocates.

use dwell_e2e::{
    Jdk, Place, Starter, Truths, View, both, each, jdks, must, since, source_line, stats, turn,
    turn_beside_jdk,
};
use dwell_profile::{Allocation, Profile};

/// The bytes between two samples.
const INTERVAL: f64 = 65_536.0;
/// The chance of a false alarm of all that is compared in one run of a program.
const FALSE_ALARM: f64 = 1e-6;

/// The allocated objects: name, class, and innermost method, as in the file.
const KINDS: [(&str, &str, &str); 9] = [
    ("small", "io.dwell.test.Allocations$Small", ""),
    ("node", "io.dwell.test.Allocations$Node", ""),
    ("boxed", "java.lang.Long", "java.lang.Long.valueOf"),
    ("string", "java.lang.String", ""),
    ("bytes1k", "byte[]", ""),
    ("strings", "java.lang.String[]", ""),
    ("ints64k", "int[]", ""),
    ("longs1m", "long[]", ""),
    ("bytes8m", "byte[]", ""),
];

/// Most objects that the JVM may add for itself to those of a kind. The programs' classes and
/// `java.lang.Long` have fewer string constants. A constant is one object or two.
pub const CONSTANTS_MAX: usize = 64;
/// None of them is larger.
const CONSTANT_BYTES_MAX: u64 = 128;

/// Whether an object may belong to a string constant. Before C2 compiles a method, the JVM makes
/// all strings of its class that were not used yet, on the thread that has requested it
/// (`CompileBroker::compile_method` in src/hotspot/share/compiler/compileBroker.cpp). For the JVM,
/// too, that thread is then at the start of the method or at the end of its loop.
pub fn may_be_constant(class: &str, size: u64) -> bool {
    ["java.lang.String", "byte[]"].contains(&class) && size <= CONSTANT_BYTES_MAX
}

/// The line on which the program allocates objects of a kind. `None` if the JDK does it.
fn line_of_new(name: &str) -> Option<u32> {
    let text = match name {
        "small" => "new Small()",
        "node" => "new Node()",
        "string" => "new String(TEXT)",
        "bytes1k" => "new byte[1000]",
        "strings" => "new String[100]",
        "ints64k" => "new int[16 << 10]",
        "longs1m" => "new long[128 << 10]",
        "bytes8m" => "new byte[ARRAY_8M]",
        _ => return None,
    };
    u32::try_from(source_line("Allocations", text)).ok()
}

/// The line of the innermost method on the stack of an allocation.
fn line(profile: &Profile, allocation: &Allocation) -> u32 {
    let frame = profile.leaf(profile.tree().parent(allocation.node));
    frame.map_or(0, |frame| frame.line)
}

/// The methods on the stack of an allocation, innermost first, without the class.
fn methods(profile: &Profile, allocation: &Allocation) -> Vec<String> {
    let stack = profile.tree().stack(allocation.node).skip(1);
    let method = |frame| {
        profile
            .method_of(frame)
            .map(|(id, _)| profile.method_name(id))
    };
    stack.filter_map(method).collect()
}

/// Sums of what is found of one kind.
#[derive(Default)]
struct Found {
    bytes: f64,
    objects: f64,
    samples: u64,
}

/// The allocations of `kind`, each of which is what the program says, at the line that the program
/// says. Objects at other lines are the JVM's own.
fn found(profile: &Profile, kind: (&str, &str, &str), size: u64) -> Found {
    let (name, class, innermost) = kind;
    let own = format!("io.dwell.test.Allocations.kind_{name}");
    let top = if innermost.is_empty() {
        &own
    } else {
        innermost
    };
    let mut found = Found::default();
    let (mut made_at, mut constants) = (line_of_new(name), 0);
    for allocation in profile.allocations() {
        let methods = methods(profile, allocation);
        let at = methods.iter().position(|method| *method == own);
        let thread = profile.thread_name(allocation.thread);
        // On the main thread it was measured.
        if at.is_none() || !thread.starts_with("allocations-") {
            continue;
        }
        let told = profile.names().text(allocation.class);
        let line = line(profile, allocation);
        if made_at.is_none() && told == class {
            made_at = Some(line);
        }
        let is_made = methods[0] == *top && made_at == Some(line);
        if !is_made && may_be_constant(told, allocation.size) {
            println!("{name}: a constant of the JVM, {told} at line {line} of {methods:?}");
            constants += 1;
            must!(constants <= CONSTANTS_MAX, "{name}: {constants} constants");
            continue;
        }
        must!(
            is_made,
            "{name}: {told} is allocated at line {line} of {methods:?}"
        );
        must!(
            (told, allocation.size) == (class, size),
            "{name}: {told} {allocation:?}"
        );
        found.bytes += allocation.bytes as f64;
        found.objects += allocation.objects();
        found.samples += 1;
    }
    found
}

/// Each kind's bytes and objects, and the sum of all, are what was allocated.
///
/// Assumes that an object of size s is chosen with a chance of p = 1 - exp(-s / interval), whatever
/// else is: of n of them a binomial number is, each worth s / p, which has a variance of
/// n s^2 (1 - p) / p. Compares ten sums with a false alarm of 1e-6 together
/// (`stats::binomial_bound`, `stats::sum_bound`). Detects weights that are off by more than a tenth
/// for any size, and by some hundredths in all.
#[track_caller]
fn check(profile: &Profile, truths: &Truths) {
    let sampling = profile.allocation_sampling().expect("it was sampled");
    assert_eq!(sampling.interval_bytes as f64, INTERVAL);
    let lost = sampling.lost_bytes as f64;
    let chance = FALSE_ALARM / (KINDS.len() + 1) as f64;
    let (mut all, mut sum) = (0.0, 0.0);
    let (mut variances, mut largest, mut certain) = (0.0, 0.0_f64, 0.0);
    for kind in KINDS {
        let size = truths.number(&format!("size.{}", kind.0));
        let count = truths.number(&format!("objects.{}", kind.0)) as f64;
        let found = found(profile, kind, size);
        let size = size as f64;
        let p = -(-size / INTERVAL).exp_m1();
        let bound = stats::binomial_bound(count, p, chance) * size / p;
        let truth = count * size;
        println!(
            "{:8} {size:8} B: {:.4} of {truth:.0} bytes in {} samples, may be off by {:.4}",
            kind.0,
            found.bytes / truth,
            found.samples,
            bound / truth
        );
        // Weights are whole bytes.
        let allowed = bound + lost + found.samples as f64;
        let off = (found.bytes - truth).abs();
        assert!(off <= allowed, "{}: {off} bytes off", kind.0);
        let off = (found.objects - count).abs() * size;
        assert!(off <= allowed, "{}: objects of {off} bytes off", kind.0);
        (all, sum) = (all + truth, sum + found.bytes);
        if p > 0.99 {
            certain += bound;
        } else {
            variances += count * size * size * (1.0 - p) / p;
            largest = largest.max(size / p);
        }
    }
    let bound = stats::sum_bound(variances, largest, chance) + certain;
    let off = (sum - all).abs();
    println!(
        "all: {:.4} of {all:.0} bytes, may be off by {:.4}, lost {lost}",
        sum / all,
        bound / all
    );
    assert!(off <= bound + lost, "{off} bytes off, {bound} allowed");
}

fn record(jdk: &Jdk, collector: &str, arguments: &str) -> (Profile, Truths) {
    record_with(jdk, collector, arguments, "alloc=64k,maxrate=0")
}

fn record_with(jdk: &Jdk, collector: &str, arguments: &str, how: &str) -> (Profile, Truths) {
    let place = Place::new("allocations");
    let file = place.path("a.jfr");
    let mut program = Starter::new(jdk, &place, "Allocations")
        .jvm(collector)
        .with(arguments)
        .start();
    program.tell(&format!("start,cpu=10ms,{how},file={}", file.display()));
    let truths = program.work();
    program.tell("stop");
    program.end();
    let profile = Profile::from_recording(View::read(&file).recording);
    let failed = profile.allocations().iter().filter(|a| {
        let stack = profile.tree().parent(a.node);
        profile
            .leaf(stack)
            .is_none_or(|frame| frame.kind == dwell_profile::FrameKind::Failed)
    });
    println!(
        "{} samples, {} failed",
        profile.allocations().len(),
        failed.count()
    );
    (profile, truths)
}

const COLLECTORS: [&str; 4] = [
    "-XX:+UseG1GC",
    "-XX:+UseParallelGC",
    "-XX:+UseSerialGC",
    "-XX:+UseZGC",
];

/// Assumes and detects what `check` says. False alarm: 1e-6 for each of the two JDKs.
#[test]
fn measured_allocated_bytes_and_objects_are_true() {
    each(&both(), |jdk| {
        for collector in turn_beside_jdk(&COLLECTORS) {
            println!("{collector}");
            let (profile, truths) = record(jdk, collector, "mib=96");
            check(&profile, &truths);
        }
    });
}

/// While the interval adapts, sums of bytes and of all objects of a kind are what was allocated,
/// and samples come about as often as is wanted; or not more often, where they are limited.
///
/// Assumes that an object is chosen with the chance of the interval by which its thread's point was
/// drawn. Errors of objects are steps of a martingale then; a sample of weight w and size s adds
/// w (w - s) to an unbiased estimate of their variance, which twice holds for sums of many samples
/// (`stats::sum_bound`). That no thread is between its callback's first moment and its end, which
/// are microseconds, at more than a few of the changes: it would weigh one object by the other
/// interval. Detects sums that are off by a quarter. False alarm: 1e-6.
#[test]
fn measured_allocations_are_true_while_the_interval_adapts() {
    // Samples in a second that are wanted, and the most.
    const RATE: f64 = 500.0;
    const MOST: f64 = 2000.0;
    each(&turn(&both()), |jdk| {
        let (profile, truths) = adapting(jdk, "alloc=4k,alloc-rate=500/s");
        let sampling = profile.allocation_sampling().expect("it was sampled");
        assert_eq!(sampling.rate as f64, RATE);
        let (samples, seconds) = check_adapted(&profile, &truths);
        let least = RATE / 8.0 * seconds;
        assert!(samples >= least, "{samples} samples, {least} at least");
        // Four times as many as are wanted in a second end it before its time, and twice as many
        // are let be; in the first moments many more come, until the interval is large enough.
        let most = 4.0 * RATE * (seconds + 5.0);
        assert!(samples <= most, "{samples} samples, {most} at most");
        let (profile, truths) = adapting(jdk, "alloc=4k,maxrate=2000/s");
        let sampling = profile.allocation_sampling().expect("it was sampled");
        assert_eq!((sampling.rate, sampling.asked_bytes), (0, 4096));
        must!(sampling.has_grown(), "{sampling:?}");
        let (samples, seconds) = check_adapted(&profile, &truths);
        let least = MOST / 8.0 * seconds;
        assert!(samples >= least, "{samples} samples, {least} at least");
        // The limit ends a second before its time; a few quarters of it come on top, until the
        // interval is large enough.
        let most = 2.0 * MOST * (seconds + 3.0);
        assert!(samples <= most, "{samples} samples, {most} at most");
    });
}

fn adapting(jdk: &Jdk, how: &str) -> (Profile, Truths) {
    record_with(jdk, "-XX:+UseG1GC", "mib=400 threads=4", how)
}

/// Checks the sums of a recording whose interval has adapted. Returns the samples and the seconds.
#[track_caller]
fn check_adapted(profile: &Profile, truths: &Truths) -> (f64, f64) {
    let sampling = profile.allocation_sampling().expect("it was sampled");
    println!("at last one for {} bytes", sampling.interval_bytes);
    must!(
        (4096..=64 << 20).contains(&sampling.interval_bytes),
        "{sampling:?}"
    );
    let (mut all, mut sum, mut variance, mut largest) = (0.0, 0.0, 0.0, 0.0_f64);
    for kind in KINDS {
        let size = truths.number(&format!("size.{}", kind.0));
        let count = truths.number(&format!("objects.{}", kind.0)) as f64;
        let found = found(profile, kind, size);
        let part = found.bytes / (count * size as f64);
        println!("{:8} {part:.4} in {} samples", kind.0, found.samples);
        (all, sum) = (all + count * size as f64, sum + found.bytes);
    }
    for allocation in profile.allocations() {
        let (weight, size) = (allocation.bytes as f64, allocation.size as f64);
        variance += weight * (weight - size).max(0.0);
        // An exact amount has no error.
        if weight > size {
            largest = largest.max(weight);
        }
    }
    let samples = profile.allocations().len() as f64;
    let seconds = sampling.sampled_ns as f64 / 1e9;
    let bound = stats::sum_bound(2.0 * variance, largest, FALSE_ALARM)
        + sampling.lost_bytes as f64
        + samples;
    println!(
        "all: {:.4} of {all:.0} bytes in {samples} samples in {seconds:.1} s, may be off by \
         {:.4}",
        sum / all,
        bound / all
    );
    assert!((sum - all).abs() <= bound, "{} bytes off", sum - all);
    assert!(bound < all / 4.0, "it must see wrong weights");
    (samples, seconds)
}

/// Assumptions and detection as in `check`; in addition, each allocation belongs to a virtual
/// thread. False alarm: 1e-6.
#[test]
fn measured_virtual_threads_allocate_in_their_own_name() {
    let jdks = since(21);
    let jdk = jdks
        .iter()
        .find(|jdk| jdk.feature == 25)
        .unwrap_or(&jdks[0]);
    let (profile, truths) = record(jdk, "-XX:+UseG1GC", "mib=16 threads=6 virtual=1");
    check(&profile, &truths);
    for allocation in profile.allocations() {
        let thread = profile.threads()[allocation.thread as usize];
        let name = profile.thread_name(allocation.thread);
        let is_ours = methods(&profile, allocation)
            .iter()
            .any(|method| method.starts_with("io.dwell.test.Allocations.kind_"));
        if is_ours && name != "main" {
            must!(
                thread.is_virtual && name.starts_with("allocations-"),
                "{name}"
            );
        }
    }
}

/// The loop allocates nothing. All objects below it are strings that the JVM makes for C2: 500
/// strings and their arrays, of 24 bytes each. They are 23 samples in the mean, so a run without
/// one has a chance of 1e-10.
#[test]
fn constants_of_a_compiled_loop_are_allocated_at_its_end() {
    each(&turn(&both()), |jdk| {
        let place = Place::new("constants");
        let file = place.path("a.jfr");
        let mut program = Starter::new(jdk, &place, "Constants")
            .recorded("cpu=10ms,alloc=1k,maxrate=0", &file)
            .start();
        let _ = program.work();
        program.tell("stop");
        program.end();
        let profile = Profile::from_recording(View::read(&file).recording);
        let at = u32::try_from(source_line("Constants", "for (long i")).unwrap();
        let mut constants = 0;
        for allocation in profile.allocations() {
            let methods = methods(&profile, allocation);
            if !methods.iter().any(|m| m == "io.dwell.test.Constants.spin") {
                continue;
            }
            let class = profile.names().text(allocation.class);
            let line = line(&profile, allocation);
            assert!(
                may_be_constant(class, allocation.size),
                "{class} {methods:?}"
            );
            assert_eq!(methods[0], "io.dwell.test.Constants.spin", "{class}");
            assert_eq!(line, at, "{class} in {methods:?}");
            constants += 1;
        }
        println!("{constants} constants");
        assert!(constants > 0);
    });
}

/// Four threads sample each KiB, which is far more than the drainer can take. So the slots fill up,
/// and the callback itself finds the method of each sample that is lost.
#[test]
fn lost_objects_name_their_allocating_methods() {
    each(&turn(&both()), |jdk| {
        let arguments = "mib=8 threads=4";
        let (profile, _) = record_with(jdk, "-XX:+UseSerialGC", arguments, "alloc=1k,maxrate=0");
        let (mut known, mut all) = (0, 0);
        for lost in profile.lost_allocations() {
            let method = lost.method.map(|method| profile.names().text(method));
            (known, all) = match method {
                Some(_) => (known + lost.samples, all + lost.samples),
                None => (known, all + lost.samples),
            };
            let class = profile.names().text(lost.class);
            let kinds = [
                "io.dwell.test.Allocations$Small",
                "io.dwell.test.Allocations$Node",
            ];
            let kind = kinds.iter().position(|kind| *kind == class);
            let wanted = kind.and_then(|kind| ["kind_small", "kind_node"].get(kind));
            if let (Some(wanted), Some(method)) = (wanted, method) {
                assert_eq!(method, format!("io.dwell.test.Allocations.{wanted}"));
            }
        }
        println!("{known} of {all} lost samples have a method");
        assert!(all > 1000, "the slots do not fill up: {all}");
        assert!(known * 20 > all * 19, "{known} of {all}");
        let text = dwell_report::text(&profile);
        let words: Vec<_> = text.split_whitespace().collect();
        assert!(words.join(" ").contains("; by method: "), "{text}");
    });
}

#[test]
fn allocations_are_refused_where_the_jvm_cannot_sample_them() {
    let old: Vec<&Jdk> = jdks().iter().filter(|jdk| jdk.feature < 11).collect();
    if old.is_empty() {
        println!("skipped: no JDK before 11 is here, or asked for");
        return;
    }
    each(&old, |jdk| {
        let place = Place::new("no-allocations");
        let mut program = Starter::new(jdk, &place, "Idle").with("seconds=1").start();
        let file = place.text("a.jfr");
        let refused = program
            .attach(&format!("start,alloc=512k,file={file}"))
            .unwrap_err();
        assert!(refused.contains("alloc=524288"), "{refused}");
        assert!(
            refused.contains("JDK 11") && !refused.contains('\n'),
            "{refused}"
        );
        assert!(
            !place.path("a.jfr").exists(),
            "a refused start leaves no file"
        );
        program.tell(&format!("start,file={file}"));
        program.tell("stop");
        let _ = program.work();
        program.end();
    });
}

#[test]
fn allocation_samples_follow_the_options_of_each_recording() {
    each(&both(), |jdk| {
        let place = Place::new("allocations-again");
        let program = Starter::new(jdk, &place, "Steady60")
            .with("seconds=600")
            .start();
        let (first, second) = (place.text("first.jfr"), place.text("second.jfr"));
        let status = program.tell(&format!("start,alloc=1k,maxrate=0,file={first}"));
        assert!(status.contains("alloc_interval=1024"), "{status}");
        let refused = program
            .attach(&format!("start,alloc=2k,file={second}"))
            .unwrap_err();
        assert!(refused.contains("already recording"), "{refused}");
        program.tell("stop");
        let status = program.tell(&format!("start,file={second}"));
        assert!(!status.contains("alloc_"), "{status}");
        program.tell("stop");
        let view = View::read(&place.path("second.jfr"));
        let counts = &view.recording.counts;
        assert!(
            !counts.contains_key("jdk.ObjectAllocationSample"),
            "{counts:?}"
        );
        let status = program.tell(&format!("start,alloc=512k,file={second}"));
        assert!(status.contains("alloc_interval=524288"), "{status}");
        program.tell("stop");
        drop(program);
    });
}
