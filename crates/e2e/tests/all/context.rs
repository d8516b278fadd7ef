//! Request contexts: the requests of samples, on platform and virtual threads, with the agent from
//! the beginning, attached later, and without it.

use dwell_e2e::{
    ContextView, Jdk, Place, SampleView, Starter, View, each, jdks, number_of, perf_is_permitted,
    since, turn, verify,
};
use dwell_jfr::FrameKind;
use dwell_profile::Profile;
use std::collections::BTreeMap;

const TRACE: u128 = 0x0af7651916cd43dd8448eb211c80319c;

/// The context that a sample must carry for the `burn...` method on its stack.
fn expected(method: &str, attached: bool) -> Option<ContextView<'static>> {
    let of = |trace, span, root, endpoint, labels| ContextView {
        trace,
        span,
        root,
        endpoint,
        labels,
    };
    Some(match method {
        "burnInEarlyScope" if !attached => of(TRACE, 0xee, 0xee, "GET /early", ""),
        // The scope around it is not known to an agent that came later.
        "burnInLaterScope" if attached => of(TRACE, 0xef, 0xef, "GET /later", ""),
        "burnInLaterScope" => of(TRACE, 0xef, 0xee, "GET /later", ""),
        "burnPlainA" => of(TRACE, 0xa1, 0xa1, "GET /a", ""),
        "burnPlainB" => of(TRACE, 0xb1, 0xb0, "GET /b", ""),
        "burnOuter" => of(TRACE, 0xc1, 0xc0, "GET /outer", ""),
        "burnInner" => of(TRACE, 0xc2, 0xc0, "GET /outer", ""),
        "burnInnermost" => of(0, 0xc3, 0xc3, "GET /innermost", ""),
        "burnTenant" => of(TRACE, 0xd1, 0xd1, "", "tenant=acme%2C inc"),
        "burnTenantInherited" => of(TRACE, 0xd2, 0xd1, "", "tenant=acme%2C inc"),
        "burnBothLabels" => of(TRACE, 0xd2, 0xd1, "", "shard=7,tenant=other"),
        "burnShard" => of(TRACE, 0xd2, 0xd1, "", "shard=7"),
        "burnBeforeEndpoint" => of(TRACE, 0xe1, 0xe1, "", ""),
        "burnAfterEndpoint" => of(TRACE, 0xe1, 0xe1, "GET /late/{id}", ""),
        "burnMisused" => of(TRACE, 0xf1, 0xf1, "GET /misuse", ""),
        "burnWrapped" => of(TRACE, 0x91, 0x90, "GET /wrapped", "shard=9"),
        "burnInEarlyScope" | "burnNone" => return None,
        other => panic!("what is {other}?"),
    })
}

fn method<'a>(sample: &SampleView<'a>) -> Option<&'a str> {
    let is = |name: &str| name.starts_with("burn") && name != "burn";
    let frame = sample.under(|frame| is(frame.name) && frame.class == "io.dwell.test.Requests")?;
    Some(frame.name)
}

/// Whether the next debug information may name another method. Compiled code lacks it for some
/// instructions. The last ones of an inlined call that opens, names or closes a scope are
/// attributed to the next inlined method. They appear at its entry, without a bytecode index or
/// line.
fn may_be_the_call_before(sample: &SampleView<'_>) -> bool {
    let leaf = sample.frames().next();
    leaf.is_some_and(|leaf| leaf.kind == FrameKind::Inlined && leaf.line == -1)
}

/// Every sample in a method with an open scope carries its context.
fn check_requests(view: &View, attached: bool) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut not_compared = 0;
    for sample in view.samples() {
        let Some(method) = method(&sample) else {
            continue;
        };
        let (found, expected) = (sample.context(), expected(method, attached));
        if found != expected && may_be_the_call_before(&sample) {
            not_compared += 1;
            continue;
        }
        assert_eq!(found, expected, "{}", sample.line());
        *seen.entry(method).or_default() += 1;
    }
    println!("{seen:?}, {not_compared} not compared: inlined, at the entry");
    assert_eq!(seen.len(), 16, "every method has samples: {seen:?}");
}

fn versions() -> Vec<&'static Jdk> {
    let found: Vec<_> = jdks()
        .iter()
        .filter(|jdk| matches!(jdk.feature, 8 | 17 | 21 | 25))
        .collect();
    assert!(found.len() >= 2, "JDK 17 and 25 are needed; set DWELL_JDKS");
    found
}

#[test]
fn never_does_a_sample_carry_another_scope_than_the_open_one() {
    each(&turn(&versions()), |jdk| {
        let place = Place::new("context");
        let file = place.text("out.jfr");
        let mut program = Starter::new(jdk, &place, "Requests")
            .with("cpu_ms=2000")
            .agent(&format!("start,cpu=1ms,file={file}"))
            .start();
        let truths = program.work();
        // Each round of one thread closes two scopes twice, one elsewhere, one out of order.
        let elsewhere = truths.number("CLOSED_ELSEWHERE");
        assert!(elsewhere > 0);
        assert_eq!(truths.number("CLOSED_TWICE"), 2 * elsewhere);
        assert_eq!(truths.number("CLOSED_OUT_OF_ORDER"), elsewhere);
        for nothing in [
            "TEXT_OVERFLOW",
            "TOO_MANY_LABELS",
            "NO_RECORD",
            "MALFORMED_ID",
        ] {
            assert_eq!(truths.number(nothing), 0, "{nothing}");
        }
        program.end();
        let view = View::read(&place.path("out.jfr"));
        check_requests(&view, false);
        if jdk.feature >= 11 {
            let verified = verify(jdk, &place.path("out.jfr"), &[]);
            let samples = view.recording.samples.len() as u64;
            assert_eq!(verified.events["jdk.ExecutionSample"], samples);
        }
    });
}

/// A thread that opens its first scope records its own context from then on, although the kernel
/// copied its stack before.
#[test]
fn never_does_a_sample_without_a_signal_miss_the_open_scope() {
    each(&turn(&versions()), |jdk| {
        let place = Place::new("context-kernel");
        let file = place.text("out.jfr");
        let mut program = Starter::new(jdk, &place, "Requests")
            .with("cpu_ms=3000 before_ms=600")
            .agent(&format!("start,cpu=1ms,engine=kernel,file={file}"))
            .start();
        let _ = program.work();
        if perf_is_permitted() {
            // The two threads that only waited before their first scope.
            let samples = number_of(&program.tell("status"), "unsignalled");
            assert!(samples > 100, "{samples} samples without a signal");
        }
        program.end();
        check_requests(&View::read(&place.path("out.jfr")), false);
    });
}

#[test]
fn never_does_a_late_agent_see_another_scope() {
    each(&turn(&versions()), |jdk| {
        let place = Place::new("context-attach");
        let mut program = Starter::new(jdk, &place, "Requests")
            .with("seconds=600")
            .start();
        let first = place.text("first.jfr");
        program.tell(&format!("start,cpu=1ms,file={first}"));
        program.pass();
        // A round has some twenty parts of equal length: of so many samples each has one but once
        // in e^75 times.
        program.await_samples(1500);
        program.tell("stop");
        let second = place.text("second.jfr");
        // Threads that work for requests get signals. Others get signals until they are known to
        // have no scopes.
        program.tell(&format!("start,cpu=1ms,engine=kernel,file={second}"));
        program.await_samples(1500);
        program.tell("stop");
        assert!(program.is_running(), "{}", program.errors());
        drop(program);
        check_requests(&View::read(&place.path("first.jfr")), true);
        check_requests(&View::read(&place.path("second.jfr")), true);
    });
}

#[test]
fn without_an_agent_nothing_happens() {
    each(&versions(), |jdk| {
        let place = Place::new("context-none");
        let mut program = Starter::new(jdk, &place, "Requests")
            .with("seconds=1")
            .start();
        let truths = program.work();
        for (name, value) in &truths.info {
            let expected = if name == "active" { "false" } else { "0" };
            assert_eq!(value, expected, "{name}");
        }
        let errors = program.errors();
        program.end();
        assert!(!errors.contains("dwell"), "{errors}");
    });
}

/// The context that a sample of `VirtualRequests` must carry.
fn expected_virtual(method: &str, thread: &str) -> Option<ContextView<'static>> {
    let number: u64 = thread
        .split_once('-')
        .expect("a-1")
        .1
        .parse()
        .expect("a number");
    let of = |trace, span, endpoint| ContextView {
        trace,
        span,
        root: span,
        endpoint,
        labels: "",
    };
    Some(match method {
        "burnKindA" => of(0xaaaa, 0x100000 + number, "GET /a"),
        "burnKindB" => of(0xbbbb, 0x200000 + number, "GET /b"),
        "burnOuter" => of(0xbbbb, 7, "GET /outer"),
        _ => return None,
    })
}

#[test]
fn never_does_a_virtual_thread_get_another_threads_span() {
    each(&since(21), |jdk| {
        for walk in ["snapshot", "handler"] {
            virtual_threads(jdk, walk);
        }
    });
}

/// Carriers are signalled, whatever the kernel may do.
#[test]
fn never_does_the_kernel_copy_virtual_thread_stacks() {
    each(&since(21), |jdk| {
        virtual_threads(jdk, "snapshot,engine=kernel")
    });
}

fn virtual_threads(jdk: &Jdk, walk: &str) {
    let place = Place::new("context-virtual");
    let file = place.text("out.jfr");
    let mut program = Starter::new(jdk, &place, "VirtualRequests")
        .jvm("-Djdk.virtualThreadScheduler.parallelism=4")
        .with("threads=1000 cpu_ms=3000")
        .agent(&format!("start,cpu=1ms,walk={walk},file={file}"))
        .start();
    let truths = program.work();
    program.end();
    let hops = truths.number("hops");
    assert!(hops > 1000, "{hops} hops");
    let view = View::read(&place.path("out.jfr"));
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut wrong, mut not_compared) = (Vec::new(), 0);
    for sample in view.samples() {
        let frame = sample.under(|frame| frame.name.starts_with("burn") && frame.name != "burn");
        let Some(frame) = frame.filter(|frame| frame.class.ends_with(".VirtualRequests")) else {
            continue;
        };
        let thread = sample.thread();
        let (kind, _) = thread.split_once('-').unwrap_or(("", ""));
        let right = matches!(kind, "a" | "b")
            && sample.context() == expected_virtual(frame.name, thread)
            && (frame.name != "burnKindA" || kind == "a")
            && (frame.name != "burnKindB" || kind == "b");
        *seen.entry(frame.name).or_default() += 1;
        if !right && may_be_the_call_before(&sample) {
            not_compared += 1;
        } else if !right {
            wrong.push(format!("{:?} {}", sample.context(), sample.line()));
        }
    }
    println!(
        "{walk}: {hops} hops, {seen:?}, {} wrong, {not_compared} not compared",
        wrong.len()
    );
    for line in wrong.iter().take(5) {
        println!("{line}");
    }
    assert!(wrong.is_empty(), "{} samples are wrong", wrong.len());
    for method in ["burnKindA", "burnKindB", "burnOuter", "burnNoKind"] {
        assert!(
            seen.get(method).is_some_and(|count| *count > 30),
            "{seen:?}"
        );
    }
}

/// The middle of what the file says lies between what the program says of its 34th and 66th
/// percentile: of 250 requests kept, 64 a second, it is elsewhere once in a million times (its rank
/// has a deviation of 3.2 points); of fewer than 64 a second all are kept.
///
/// False alarm: 2e-6 for each of four medians; the count is exact within what is derived below.
#[test]
fn measured_requests_are_counted_and_their_latencies_are_right() {
    each(&turn(&versions()), |jdk| {
        let place = Place::new("context-latency");
        let file = place.text("out.jfr");
        let mut program = Starter::new(jdk, &place, "Latency")
            .agent(&format!("start,file={file}"))
            .start();
        let truths = program.work();
        program.end();
        let profile = Profile::from_recording(View::read(&place.path("out.jfr")).recording);
        let latencies = profile.latencies();
        for name in ["slow", "fast", "tiny"] {
            let endpoint = format!("GET /{name}");
            let found = latencies.get(&Some(&*endpoint)).expect("requests");
            let number = |what: &str| truths.number(&format!("{name}.{what}"));
            let (count, p50) = (number("count"), found.percentile_ns(50.0));
            println!(
                "{name}: {} of {count}, kept {}, median {p50} ns",
                found.requests, found.kept
            );
            // Each of these is timed, except the tiny ones: one in up to 1024 is timed and stands
            // for those before it. Up to 2046 after the last timed one are therefore unknown.
            let most = if name == "tiny" { 2 * 1024 - 2 } else { 0 };
            assert!(
                found.requests <= count && count - found.requests <= most,
                "{name}: {} of {count}",
                found.requests
            );
            if name != "tiny" {
                let bounds = number("p34")..=number("p66");
                assert!(bounds.contains(&p50), "{name}: {p50} not in {bounds:?}");
            }
        }
        let others: Vec<_> = latencies.keys().filter(|e| e.is_none()).collect();
        assert!(others.is_empty(), "requests without an endpoint");
    });
}

/// The expected contexts of the methods of `ContextLimits`.
fn expected_at_limits(method: &str) -> Option<ContextView<'static>> {
    let of = |span, endpoint, labels| ContextView {
        trace: TRACE,
        span,
        root: span,
        endpoint,
        labels,
    };
    Some(match method {
        "burnInFirst" => of(0xa1, "GET /first", ""),
        "burnInSecond" => of(0xb1, "GET /second", ""),
        "burnInThird" => of(0xc1, "GET /third", ""),
        "burnWithOther" => of(0xe2, "(other)", ""),
        "burnWithKept" => of(0xe3, "GET /many/17", "label0=kept"),
        "burnNone" => return None,
        other => panic!("what is {other}?"),
    })
}

/// Two copies of the API write the same context. Records of threads that ended with an open scope
/// are reused. Endpoints and labels above the limits are counted, and replaced or left out.
#[test]
fn two_api_copies_and_excess_texts_keep_contexts_right() {
    let mut jdks = versions();
    jdks.retain(|jdk| matches!(jdk.feature, 17 | 25));
    each(&jdks, |jdk| {
        let place = Place::new("context-limits");
        let file = place.text("out.jfr");
        let mut program = Starter::new(jdk, &place, "ContextLimits")
            .agent(&format!("start,cpu=1ms,file={file}"))
            .start();
        let truths = program.work();
        program.end();
        let view = View::read(&place.path("out.jfr"));
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for sample in view.samples() {
            let is = |name: &str| name.starts_with("burn") && name != "burn";
            let frame =
                sample.under(|frame| is(frame.name) && frame.class.ends_with(".ContextLimits"));
            if let Some(frame) = frame {
                let found = sample.context();
                assert_eq!(found, expected_at_limits(frame.name), "{}", sample.line());
                *seen.entry(frame.name).or_default() += 1;
            }
        }
        println!("{seen:?} {:?}", truths.info);
        assert_eq!(seen.len(), 6, "{seen:?}");
        // 10,000 are kept. There are four before the 10,050; the late one is asked for ten times.
        assert_eq!(truths.number("TEXT_OVERFLOW"), 4 + 50 + 10);
        assert_eq!(truths.number("TOO_MANY_LABELS"), 1);
        assert_eq!(truths.number("NO_RECORD"), 0);
        // 400 threads had one.
        assert!(truths.number("held_at_most") <= 100, "{:?}", truths.info);
        assert!(truths.number("held_in_the_end") <= 50, "{:?}", truths.info);
    });
}
