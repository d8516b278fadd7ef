//! Samples carry the spans of OpenTelemetry's SDK, whose jars `java/build.sh --otel` downloads.

use dwell_e2e::{Place, Starter, View, both, each, turn};
use dwell_profile::Profile;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const TRACE: u128 = 0x0af7651916cd43dd8448eb211c80319c;
const REMOTE_TRACE: u128 = 0x1af7651916cd43dd8448eb211c80319c;

fn build() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut build = Command::new(root.join("java/build.sh"));
    let output = build.arg("--otel").output().expect("java/build.sh");
    let reason = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "no SDK to test with: {reason}");
}

/// Trace, span, local root and endpoint that belong to a method.
fn expected(method: &str) -> Option<(u128, u64, u64, &'static str)> {
    Some(match method {
        "burnInRoot" => (TRACE, 0xa1, 0xa1, "GET /late/{id}"),
        "burnInChild" | "burnInTask" => (TRACE, 0xa2, 0xa1, "GET /late/{id}"),
        "burnInGrandchild" => (TRACE, 0xa3, 0xa1, "GET /late/{id}"),
        "burnInRemote" => (REMOTE_TRACE, 0xb1, 0xb1, "POST /early"),
        "burnInMessage" => (TRACE, 0xc1, 0xc1, "orders process"),
        "burnNone" => return None,
        other => panic!("what is {other}?"),
    })
}

/// Each round ends three local roots: these are the requests, whatever else is in them.
fn check_requests(profile: &Profile, rounds: u64) {
    let latencies = profile.latencies();
    let found: BTreeMap<_, _> = latencies
        .iter()
        .map(|(endpoint, latency)| (*endpoint, latency.requests))
        .collect();
    println!("{rounds} rounds: {found:?}");
    assert!(rounds > 3, "{rounds}");
    let endpoints = ["GET /late/{id}", "POST /early", "orders process"];
    let expected = endpoints.map(|endpoint| (Some(endpoint), rounds));
    assert_eq!(found, BTreeMap::from(expected));
    // One goes through another thread as well, and does seven times as much.
    let median = |endpoint| latencies[&Some(endpoint)].percentile_ns(50.0);
    assert!(
        median("GET /late/{id}") > median("POST /early"),
        "{found:?}"
    );
}

/// Checks a recording as its readers see it: endpoints that were known late are joined.
fn check(profile: &Profile) {
    let name = |id| profile.names().text(id);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for sample in profile.samples() {
        let mut methods = profile.tree().stack(sample.node).map(|frame| {
            let method = profile.frames()[frame as usize].method;
            name(profile.methods()[method as usize].name).to_owned()
        });
        let Some(method) = methods.find(|name| name.starts_with("burn") && name != "burn") else {
            continue;
        };
        let context = sample.context.map(|id| &profile.contexts()[id as usize]);
        let found = context.map(|context| {
            let endpoint = context.endpoint.map_or("", name);
            let (span, root) = (context.span_id, context.local_root_span_id);
            (context.trace_id, span, root, endpoint)
        });
        assert_eq!(found, expected(&method), "{method}");
        *seen.entry(method).or_default() += 1;
    }
    println!("{seen:?}");
    assert_eq!(seen.len(), 7, "{seen:?}");
}

#[test]
fn never_does_a_sample_carry_another_span_than_the_current_one() {
    build();
    each(&turn(&both()), |jdk| {
        let place = Place::new("otel");
        let file = place.text("out.jfr");
        let mut program = Starter::new(jdk, &place, "OtelRequests")
            .with("cpu_ms=1500")
            .agent(&format!("start,cpu=1ms,file={file}"))
            .start();
        let rounds = program.work().number("rounds");
        program.end();
        let profile = Profile::from_recording(View::read(&place.path("out.jfr")).recording);
        check(&profile);
        check_requests(&profile, rounds);
        let place = Place::new("otel-attach");
        let file = place.text("out.jfr");
        let mut program = Starter::new(jdk, &place, "OtelRequests")
            .with("cpu_ms=1500")
            .start();
        program.tell(&format!("start,cpu=1ms,file={file}"));
        let rounds = program.work().number("rounds");
        program.tell("stop");
        program.end();
        let profile = Profile::from_recording(View::read(&place.path("out.jfr")).recording);
        check(&profile);
        check_requests(&profile, rounds);
    });
}
