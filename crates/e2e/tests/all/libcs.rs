//! The same library in JVMs on other libcs: an older glibc, and musl. `xtask/libcs` provides them;
//! they are tried by `./test --all`, and where `DWELL_LIBCS` names their folder.

use dwell_e2e::{Jdk, Place, Starter, View, WAITS, is_whole, must, record_outside};
use dwell_profile::{Profile, WallFilter};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The JVM on this libc; `None` without it, with the reason on a line of its own.
fn jvm(test: &str, libc: &str) -> Option<Jdk> {
    let named = std::env::var_os("DWELL_LIBCS").map(PathBuf::from);
    let why = if named.is_none() && !is_whole() {
        "only ./test --all tries other libcs"
    } else {
        let cache = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/dwell-libcs"));
        let home = named.or_else(cache)?.join(libc);
        if home.join("bin/java").exists() {
            return Some(Jdk { feature: 17, home });
        }
        "there is no JVM on this libc; xtask/libcs provides it"
    };
    // Directly to the stream, because the harness captures the output of passing tests.
    let _ = writeln!(std::io::stderr(), "\nskipped: {test}: {why}");
    None
}

/// Records `Waits` from its start to a stop through attaching, and for 2 s from outside.
fn check_recorded(test: &str, libc: &str) {
    let Some(jdk) = jvm(test, libc) else {
        return;
    };
    let place = Place::new(test);
    let file = place.path("w.jfr");
    let mut program = Starter::new(&jdk, &place, "Waits")
        .with("seconds=5 run_us=100 wait_us=100000")
        .recorded("cpu=1ms,wall=10ms,wall-threads=1000", &file)
        .start();
    program.pass();
    let (cpu, step) = (Duration::from_millis(1), Duration::from_millis(10));
    let (outside, began) = (place.path("o.jfr"), Instant::now());
    let sum = record_outside(program.pid, &outside, cpu, step, || {
        began.elapsed() < Duration::from_secs(2)
    });
    let _ = program.truths();
    program.tell("stop");
    program.end();
    let view = View::read(&file);
    view.check_failures();
    check_weights(&view);
    check_roots(&view);
    check_causes(&Profile::as_recorded(view.recording));
    match sum {
        Some(_) => View::read(&outside).check_failures(),
        None => println!("not tried: recording from outside, perf events are not permitted"),
    }
}

/// The samples' weights add up to the CPU time of the process.
fn check_weights(view: &View) {
    const END_NS: u64 = 50_000_000;
    let (weight, cpu) = (view.weight_ns() + view.lost_ns(), view.cpu_load_ns());
    must!(
        weight.abs_diff(cpu) <= cpu / 50 + END_NS,
        "{weight} of {cpu}"
    );
}

/// Each stack of a Java thread that is whole ends where its thread started: in the C library.
fn check_roots(view: &View) {
    let (mut whole, mut other) = (0, Vec::new());
    for sample in view.samples() {
        let is_ours = WAITS.iter().any(|(name, _)| *name == sample.thread());
        if !is_ours || sample.failure().is_some() {
            continue;
        }
        let outermost = sample.frames().last().map(|frame| frame.class.to_owned());
        match outermost {
            Some(name) if name.starts_with("libc") || name.starts_with("ld-musl") => whole += 1,
            name => other.push(name),
        }
    }
    must!(whole > 10 && other.is_empty(), "{whole}, other: {other:?}");
}

/// Each thread waits for its own cause, apart from the JVM's own causes: few samples see another.
fn check_causes(profile: &Profile) {
    for (name, expected) in WAITS {
        let filter = WallFilter {
            thread: Some(name.to_owned()),
            ..WallFilter::default()
        };
        let causes = profile.wall_by(&filter, |wall| wall.cause.to_owned());
        println!("{name}: {causes:?}");
        let (mut right, mut other) = (0, 0);
        for (cause, weight) in &causes {
            match cause.as_str() {
                cause if cause == expected => right += weight.samples,
                "running" | "runnable" | "safepoint" | "vm-lock" => {}
                _ => other += weight.samples,
            }
        }
        // At its end it waits for the threads that wrote to it.
        assert!(right > 10 && other <= right / 10 + 5, "{name}: {causes:?}");
    }
}

/// Detects one failed stack in a hundred, or one wait in ten without its cause. False alarm: 1e-6,
/// that of `check_failures`.
#[test]
fn measured_waits_on_an_older_glibc_have_their_causes() {
    check_recorded("libc-glibc-2.31", "glibc-2.31");
}

/// Detects the same as the test above. False alarm: 1e-6.
#[test]
fn measured_waits_on_musl_have_their_causes() {
    check_recorded("libc-musl", "musl");
}
