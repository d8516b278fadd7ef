//! Go's own `pprof` reads the exports, with the sums of the profile.
#![allow(missing_docs)]

use dwell_export::{Encoding, Program};
use dwell_profile::{Context, Look, Profile, text_art};
use std::process::Command;

/// The output of `go tool pprof` for a profile; `None` without Go.
fn by_go(name: &str, profile: &Profile, options: &[&str]) -> Option<String> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{name}.pb.gz"));
    let mut bytes = Vec::new();
    dwell_export::pprof(profile, &program(), &mut bytes).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let mut go = Command::new("go");
    go.args(["tool", "pprof"]).args(options).arg(&path);
    let Ok(output) = go.env("PPROF_TMPDIR", folder).output() else {
        println!("skipped: go is not installed");
        return None;
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    // No warnings: there are no symbols to search for.
    assert_eq!(errors, "");
    Some(String::from_utf8(output.stdout).unwrap())
}

fn program() -> Program {
    Program {
        name: "shop".to_owned(),
        ..Program::default()
    }
}

fn profile() -> Profile {
    let mut builder = text_art::builder(
        "thread: main       main       gc
         weight: 3000000007 2000000000 5000000000
         a.A.x   a.A.x   vm.so.y[vm]
         a.A.z:7 -       -",
    );
    let endpoint = Some(builder.name("GET /x"));
    let context = Some(builder.context(Context {
        trace_id: 0xab,
        span_id: 0xcd,
        endpoint,
        ..Context::default()
    }));
    let cause = builder.cause("monitor");
    builder.look(Look {
        thread: 0,
        node: 1,
        cause,
        weight_ns: 9_000_000_000,
        count: 4,
        context,
        ..Look::default()
    });
    builder.info.duration_ns = 10_000_000_000;
    builder.finish()
}

#[test]
fn go_reads_every_value_and_label() {
    let Some(raw) = by_go("raw", &profile(), &["-raw"]) else {
        return;
    };
    println!("{raw}");
    let samples = raw.split("Samples:\n").nth(1).unwrap();
    let (samples, places) = samples.split_once("Locations\n").unwrap();
    let mut lines = samples.lines();
    let types = lines.next().unwrap();
    assert_eq!(
        types,
        "samples/count cpu/nanoseconds[dflt] wall/nanoseconds"
    );
    let mut sums = [0u64; 3];
    for line in lines {
        let Some((values, stack)) = line.split_once(": ") else {
            continue;
        };
        let values: Vec<u64> = values.split_whitespace().flat_map(str::parse).collect();
        // A line of labels has no values.
        if values.len() == 3 && stack.trim_start().starts_with(|c: char| c.is_ascii_digit()) {
            sums.iter_mut()
                .zip(values)
                .for_each(|(sum, value)| *sum += value);
        }
    }
    let profile = profile();
    let (cpu, wall) = (profile.total(), profile.wall_totals().0.sum);
    assert_eq!(sums, [cpu.samples, cpu.sum, wall]);
    for label in [
        "thread:[main]",
        "cause:[monitor]",
        "endpoint:[GET /x]",
        "thread_id:[1]",
    ] {
        assert!(samples.contains(label), "no {label}");
    }
    assert!(places.contains("a.A.z :7"), "{places}");
    assert!(places.contains("vm.so"), "{places}");
}

#[test]
fn go_sums_by_label() {
    let options = [
        "-top",
        "-sample_index=wall",
        "-tagfocus=cause=monitor",
        "-unit=ms",
    ];
    let Some(top) = by_go("top", &profile(), &options) else {
        return;
    };
    println!("{top}");
    assert!(top.contains("File: shop"));
    assert!(
        top.lines()
            .any(|line| line.contains("9000ms") && line.ends_with("a.A.x"))
    );
}

/// The collector's own code, from Go's module proxy. It is built once.
#[test]
fn collector_reads_every_profile() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let reader = folder.join("collector-reader");
    let profile = profile();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collector");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&reader).current_dir(source);
    match build.output() {
        Ok(built) if built.status.success() => {}
        Ok(built) => {
            let reason = String::from_utf8_lossy(&built.stderr);
            println!("skipped: the collector's code cannot be built: {reason}");
            return;
        }
        Err(_) => {
            println!("skipped: go is not installed");
            return;
        }
    }
    let read = |name: &str, encoding| {
        let path = folder.join(name);
        let mut bytes = Vec::new();
        dwell_export::otlp(&profile, &program(), encoding, &mut bytes).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let output = Command::new(&reader).arg(&path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let told = read("collector.otlp", Encoding::Protobuf);
    println!("{told}");
    assert_eq!(read("collector.otlp.json", Encoding::Json), told);
    let (cpu, wall) = (profile.total().sum, profile.wall_totals().0.sum);
    assert_eq!(
        told.lines().collect::<Vec<_>>(),
        [
            "resource service.name=shop".to_owned(),
            format!(
                "cpu nanoseconds {cpu} vm.so.y dwell.cause=running thread.id=2 thread.name=gc "
            ),
            format!(
                "wall nanoseconds {wall} a.A.x dwell.cause=monitor dwell.endpoint=GET /x \
                 http.request.method=GET http.route=/x thread.id=1 thread.name=main \
                 000000000000000000000000000000ab"
            ),
        ]
    );
}
