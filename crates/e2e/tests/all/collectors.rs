//! Every collector with signals at 200 us and the JVM's own verification of the heap. A signal that
//! disturbed an allocation, a barrier or a collection would show there.

use dwell_e2e::{Jdk, Place, Starter, Truths, View, both, each, turn};

const INTERVAL_NS: u64 = 200_000;
const WORKERS: usize = 2;
/// The program goes on until there were so many, however slow the machine.
const COLLECTIONS_MIN: u64 = 8;

/// The option `walk=`, and what the file says of it.
const VANTAGES: [(&str, &str); 3] = [
    ("snapshot", "walked from snapshots"),
    ("handler", "walked in the handler"),
    ("paused", "walked while paused"),
];

/// Words of the JVM's verifiers and of its last message.
const SAID_OF_A_BROKEN_HEAP: [&str; 6] = [
    "corrupt",
    "verification failed",
    "fatal error",
    "guarantee(",
    "bad oop",
    "should not",
];

/// The verification that a collector is asked for. Its log then mentions it, unless nothing is
/// expected there.
struct Collector {
    flag: &'static str,
    verify: &'static [&'static str],
    /// Flags that JVMs since this release take in addition.
    since: (u32, &'static [&'static str]),
    logged: &'static [&'static str],
}

const BEFORE_AND_AFTER: Collector = Collector {
    flag: "",
    verify: &["-XX:+VerifyBeforeGC", "-XX:+VerifyAfterGC"],
    since: (0, &[]),
    logged: &["Verifying Before GC", "Verifying After GC"],
};

#[test]
fn never_does_serial_find_its_heap_broken() {
    verified_with_all_vantages(&Collector {
        flag: "-XX:+UseSerialGC",
        ..BEFORE_AND_AFTER
    });
}

#[test]
fn never_does_parallel_find_its_heap_broken() {
    verified_with_all_vantages(&Collector {
        flag: "-XX:+UseParallelGC",
        ..BEFORE_AND_AFTER
    });
}

#[test]
fn never_does_g1_find_its_heap_broken() {
    verified_with_all_vantages(&Collector {
        flag: "-XX:+UseG1GC",
        ..BEFORE_AND_AFTER
    });
}

/// Z knows nothing of the common flags and says nothing of its own: it ends the JVM or is content.
#[test]
fn never_does_z_find_its_heap_broken() {
    verified_with_all_vantages(&Collector {
        flag: "-XX:+UseZGC",
        verify: &[
            "-XX:+ZVerifyRoots",
            "-XX:+ZVerifyObjects",
            "-XX:+ZVerifyMarking",
            "-XX:+ZVerifyForwarding",
        ],
        since: (21, &["-XX:+ZVerifyRemembered"]),
        logged: &[],
    });
}

const SHENANDOAH: Collector = Collector {
    flag: "-XX:+UseShenandoahGC",
    verify: &["-XX:+ShenandoahVerify", "-XX:ShenandoahVerifyLevel=4"],
    since: (0, &[]),
    logged: &["Verify Before Mark", "Verify Before Evacuation"],
};

#[test]
fn never_does_shenandoah_find_its_heap_broken() {
    verified_with_all_vantages(&SHENANDOAH);
}

#[test]
fn never_does_generational_shenandoah_find_its_heap_broken() {
    let collector = Collector {
        since: (25, &["-XX:ShenandoahGCMode=generational"]),
        ..SHENANDOAH
    };
    let has_it: Vec<_> = both().into_iter().filter(|jdk| jdk.feature >= 25).collect();
    verified(&has_it, &collector);
}

fn verified_with_all_vantages(collector: &Collector) {
    verified(&both(), collector);
}

fn verified(jdks: &[&Jdk], collector: &Collector) {
    each(jdks, |jdk| {
        for vantage in turn(&VANTAGES) {
            run(jdk, collector, vantage);
        }
    });
}

fn run(jdk: &Jdk, collector: &Collector, (walk, told): (&str, &str)) {
    let place = Place::new("collectors");
    let file = place.path("c.jfr");
    let mut starter = Starter::new(jdk, &place, "HeapStress")
        // The last of two counts. Small buffers, so that much of the allocation is in the VM.
        .jvm("-Xmx32m")
        .jvm("-XX:TLABSize=8k")
        .jvm("-XX:-ResizeTLAB")
        .jvm(&format!("-Xlog:gc*:file={}", place.text("gc.log")))
        .jvm("-XX:+UnlockDiagnosticVMOptions")
        .jvm("-XX:+UnlockExperimentalVMOptions")
        .jvm(collector.flag)
        .with("seconds=1 live_mb=1 warm_ms=10 provoke_ms=20")
        .with(&format!("threads={WORKERS} collections={COLLECTIONS_MIN}"));
    let (since, more) = collector.since;
    let more = if jdk.feature >= since { more } else { &[] };
    for flag in collector.verify.iter().chain(more) {
        starter = starter.jvm(flag);
    }
    let mut program = starter
        .agent(&format!(
            "start,cpu={INTERVAL_NS}ns,walk={walk},file={}",
            file.display()
        ))
        .start();
    let truths = program.work();
    let errors = program.errors();
    program.end();

    let what = format!("JDK {} {} {walk}", jdk.feature, collector.flag);
    let collections = truths.number("collections");
    println!("{what}: {collections} collections");
    assert!(
        collections >= COLLECTIONS_MIN,
        "{what}: {collections} collections"
    );
    assert!(truths.number("chains_checked") > 0, "{what}");
    check_log(&what, &place, collector, &errors);
    let view = View::read(&file);
    let engine = view.recording.events_named("dwell.Recording").next();
    let engine = engine.and_then(|event| event.text("engine")).expect(&what);
    assert!(engine.contains(told), "{what}: {engine}");
    check_samples(&what, &view, &truths);
}

/// Checks the collector's messages about its verification, and that the JVM had no reason for
/// others.
fn check_log(what: &str, place: &Place, collector: &Collector, errors: &str) {
    let log = std::fs::read_to_string(place.path("gc.log")).expect("the collector's log");
    for text in collector.logged {
        let times = log.lines().filter(|line| line.contains(text)).count();
        assert!(times >= 2, "{what}: {text} is {times} times in the log");
    }
    for line in log.lines().chain(errors.lines()) {
        let lower = line.to_lowercase();
        let is_bad = SAID_OF_A_BROKEN_HEAP
            .iter()
            .any(|word| lower.contains(word));
        assert!(!is_bad, "{what}: {line}");
    }
    let left = std::fs::read_dir(&place.dir).expect("the test's directory");
    for entry in left.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        assert!(!name.starts_with("hs_err"), "{what}: {name}");
    }
}

/// There are samples of the workers: the signals came while the collector was at work. How good
/// stacks and how true weights are is a matter of other tests, which are alone on the machine.
fn check_samples(what: &str, view: &View, truths: &Truths) {
    let of_workers = view.of_threads("stress-").count();
    let (failed, causes) = view.failures();
    let all = view.recording.samples.len();
    let (own, weights) = (view.cpu_load_ns(), view.weight_ns());
    println!(
        "{what}: {all} samples, {of_workers} of the workers, which used {} ns, {failed} failed \
         {causes:?}; weights {weights} ns of {own} ns",
        truths.ns("stressHeap")
    );
    // They use 100 ms or more, which are 500 intervals.
    assert!(of_workers > 50, "{what}: {of_workers} samples");
}
