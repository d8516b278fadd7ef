//! Tests of the self-check, on profiles that are built for them: exact numbers.

use super::*;
use crate::builder::Builder;
use crate::sample::{Context, Look, Sample, ThreadId};
use crate::thread_time::ThreadTime;

const MS: u64 = 1_000_000;
const START_NS: u64 = 1_000_000 * MS;
/// Nothing is left to chance.
const CERTAIN: u64 = 1_000_000_000;

/// Ten seconds, all of which is sampled. Times are in milliseconds since the beginning.
struct Scene {
    builder: Builder,
    thread: ThreadId,
    choices: u64,
}

impl Scene {
    fn new() -> Scene {
        let mut scene = Scene::silent();
        let idle = scene.builder.thread("idle", 99, 99, false);
        let here = std::mem::replace(&mut scene.thread, idle);
        scene.look("", (0, 0), 0, 10_000);
        scene.thread = here;
        scene
    }

    /// The same without any look.
    fn silent() -> Scene {
        let mut builder = Builder::default();
        builder.info.start_ns = START_NS;
        builder.info.duration_ns = 10_000 * MS;
        Scene {
            thread: builder.thread("http-1", 1, 1, false),
            builder,
            choices: CERTAIN,
        }
    }

    fn at(ms: i64) -> u64 {
        START_NS.saturating_add_signed(ms * MS as i64)
    }

    fn context(&mut self, endpoint: &str, (root, span): (u64, u64)) -> Option<u32> {
        let endpoint = (!endpoint.is_empty()).then(|| self.builder.name(endpoint));
        if endpoint.is_none() && root == 0 {
            return None;
        }
        let context = Context {
            trace_id: 7,
            span_id: span,
            local_root_span_id: root,
            endpoint,
            ..Context::default()
        };
        Some(self.builder.context(context))
    }

    /// The thread waits from then on for so long, in a scope of this root and span.
    fn look(&mut self, endpoint: &str, ids: (u64, u64), from: i64, ms: u64) -> &mut Scene {
        let context = self.context(endpoint, ids);
        self.builder.look(Look {
            time_ns: Scene::at(from),
            duration_ns: ms * MS,
            thread: self.thread,
            weight_ns: ms * MS,
            count: (ms / 20).max(1),
            choices: self.choices,
            context,
            ..Look::PLAIN
        });
        self
    }

    fn run(&mut self, endpoint: &str, ids: (u64, u64), at: i64, ms: u64) -> &mut Scene {
        let (context, node) = (self.context(endpoint, ids), self.builder.stack([]));
        self.builder.sample(Sample {
            time_ns: Scene::at(at),
            thread: self.thread,
            node,
            weight: ms * MS,
            count: 1,
            failure: None,
            context,
        });
        self
    }

    /// A request with a latency.
    fn request(&mut self, endpoint: &str, root: u64, from: i64, ms: u64) -> &mut Scene {
        self.requests(endpoint, root, (from, ms), 1)
    }

    fn requests(
        &mut self,
        endpoint: &str,
        root: u64,
        (from, ms): (i64, u64),
        count: u64,
    ) -> &mut Scene {
        let endpoint = (!endpoint.is_empty()).then(|| self.builder.name(endpoint));
        self.builder.requests.push(Request {
            time_ns: Scene::at(from),
            duration_ns: ms * MS,
            trace_id: 7,
            local_root_span_id: root,
            endpoint,
            count,
        });
        self
    }

    fn on(&mut self, name: &str, is_virtual: bool) -> &mut Scene {
        let number = self.thread as i64 + 50;
        self.thread = self.builder.thread(name, number, number, is_virtual);
        self
    }

    /// Of the endpoint: seen and latency in milliseconds, and what that says.
    fn found(&self, endpoint: &str) -> (u64, u64, Agreement) {
        let profile = self.builder.clone().finish();
        let check = profile.self_check(None).unwrap();
        let wanted = (!endpoint.is_empty()).then_some(endpoint);
        let row = check
            .endpoints
            .iter()
            .find(|row| row.endpoint.as_deref() == wanted);
        let accounted = row.unwrap().accounted;
        (
            accounted.seen_ns / MS,
            accounted.latency_ns / MS,
            accounted.agreement,
        )
    }

    fn warnings(&self) -> Vec<String> {
        let profile = self.builder.clone().finish();
        profile.self_check(None).unwrap().warnings()
    }

    fn note(&self) -> String {
        let profile = self.builder.clone().finish();
        let check = profile.self_check(None).unwrap();
        check.endpoints[0].note(&check).unwrap_or_default()
    }
}

use Agreement::{Chance, Close, High, Low, OtherScopes, SeveralThreads};

#[test]
fn waits_and_running_add_up_to_latency() {
    let mut scene = Scene::new();
    for root in 1..=9 {
        let from = root as i64 * 1000;
        scene.look("GET /a", (root, root), from, 90);
        scene.run("GET /a", (root, root), from + 95, 10);
        scene.request("GET /a", root, from, 100);
    }
    // Not of a Java thread, and of no request.
    scene.run("", (0, 0), 500, 10);
    scene.thread = scene.builder.thread("native", 3, 0, false);
    scene.run("GET /a", (1, 1), 1095, 10);
    assert_eq!(scene.found("GET /a"), (900, 900, Close));
    assert_eq!(scene.warnings(), [""; 0]);
}

#[test]
fn requests_are_clipped_to_the_recording() {
    let mut scene = Scene::new();
    scene
        .look("GET /a", (1, 1), 0, 1000)
        .request("GET /a", 1, -2000, 3000);
    scene
        .look("GET /a", (2, 2), 4000, 500)
        .request("GET /a", 2, 4000, 500);
    assert_eq!(scene.found("GET /a"), (1500, 1500, Close));
}

#[test]
fn requests_are_clipped_to_the_sampled_time() {
    let mut scene = Scene::silent();
    scene
        .request("GET /a", 1, 1000, 6000)
        .request("GET /a", 2, 8000, 1000);
    // The last sample is at 8.5 s, the first one at 5 s.
    scene
        .look("GET /a", (1, 1), 5000, 2000)
        .look("GET /a", (2, 2), 8000, 500);
    assert_eq!(scene.found("GET /a"), (2500, 2500, Close));
}

#[test]
fn unended_requests_are_left_out() {
    let mut scene = Scene::new();
    scene
        .look("GET /a", (1, 1), 1000, 1000)
        .request("GET /a", 1, 1000, 1000);
    scene.look("GET /a", (2, 2), 8500, 1500);
    assert_eq!(scene.found("GET /a"), (1000, 1000, Close));
}

#[test]
fn thinned_requests_end_before_an_unfinished_one() {
    let mut scene = Scene::new();
    // Two a second, of which one in two is recorded; each takes a second.
    for number in 0..20u64 {
        let (root, from) = (number + 1, number as i64 * 500);
        scene.look("GET /a", (root, root), from, 1000.min(10_000 - from as u64));
        if number % 2 == 0 && number < 18 {
            scene.requests("GET /a", root, (from, 1000), 2);
        }
    }
    // Until 9 s: two at a time, but for the first half second. The request of 8 s, which is one
    // of the recorded ones, stands for two whole ones, the unrecorded ends 0.5 s later.
    let (seen, latency, agreement) = scene.found("GET /a");
    assert_eq!((seen, latency, agreement), (17_500, 18_000, Close));
    // A stream that never ends has no latency.
    scene.look("GET /a", (1000, 1000), 0, 10_000);
    assert_eq!(scene.found("GET /a"), (17_500, 18_000, Close));
}

#[test]
fn inner_scopes_belong_to_the_request() {
    let mut scene = Scene::new();
    scene.request("GET /a", 1, 1000, 1000);
    scene
        .look("GET /a", (1, 1), 1000, 400)
        .look("cache", (1, 2), 1400, 600);
    assert_eq!(scene.found("GET /a"), (1000, 1000, Close));
    let profile = scene.builder.clone().finish();
    assert_eq!(profile.self_check(None).unwrap().endpoints.len(), 1);
    // The own scope of an unrecorded request has its endpoint.
    scene.requests("GET /a", 3, (3000, 1000), 2);
    scene.look("GET /a", (3, 3), 3000, 1000);
    scene
        .look("GET /a", (4, 4), 4000, 300)
        .look("cache", (4, 5), 4300, 700);
    assert_eq!(scene.found("GET /a"), (3000, 3000, Close));
}

#[test]
fn inner_scopes_of_unknown_requests_are_no_fault() {
    let mut scene = Scene::new();
    scene.requests("GET /a", 1, (1000, 1000), 2);
    scene
        .look("GET /a", (1, 1), 1000, 400)
        .look("cache", (1, 2), 1400, 600);
    assert_eq!(scene.found("GET /a"), (1000, 2000, Low));
    scene.look("cache", (8, 9), 4000, 900);
    assert_eq!(scene.found("GET /a"), (1000, 2000, OtherScopes));
    assert_eq!(scene.warnings(), [""; 0]);
    let note = scene.note();
    assert!(note.contains("inner scopes of other endpoints"), "{note}");
    // On threads that never work for the endpoint they are no inner scopes of it.
    let mut scene = Scene::new();
    scene.request("GET /a", 1, 1000, 1000);
    scene.look("GET /a", (1, 1), 1000, 400);
    scene.on("stream-1", false);
    scene.look("GET /stream", (5, 5), 1000, 8000);
    assert_eq!(scene.found("GET /a"), (400, 1000, Low));
    // A scope of another trace has no request of its own either.
    let mut scene = Scene::new();
    scene.request("GET /a", 1, 1000, 1000);
    scene
        .look("GET /a", (1, 1), 1000, 400)
        .look("job", (5, 5), 1400, 600);
    assert_eq!(scene.found("GET /a"), (400, 1000, OtherScopes));
}

#[test]
fn requests_on_several_threads_at_once_are_no_fault() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("GET /a", (1, 1), 1000, 1000);
    scene.on("pool-1", false).look("GET /a", (1, 1), 1100, 900);
    assert_eq!(scene.found("GET /a"), (1900, 1000, SeveralThreads));
    assert_eq!(scene.warnings(), [""; 0]);
    let note = scene.note();
    assert!(
        note.contains("1.90") && note.contains("several threads at once"),
        "{note}"
    );
}

#[test]
fn work_of_another_group_of_threads_was_handed_over() {
    // Each request is seen once only.
    let mut scene = Scene::new();
    for root in 1..=6u64 {
        scene.request("GET /a", root, root as i64 * 500, 500);
        scene.look("GET /a", (root, root), root as i64 * 500, 500);
    }
    scene.on("pool-1", false);
    for root in 7..=12u64 {
        scene.request("GET /a", root, root as i64 * 500, 500);
        scene.look("GET /a", (root, root), root as i64 * 500, 900);
    }
    assert_eq!(scene.found("GET /a"), (8400, 6000, SeveralThreads));
    // That explains more than there was, not less.
    for root in 13..=22 {
        scene.request("GET /a", root, 5000, 2000);
    }
    assert_eq!(scene.found("GET /a"), (8400, 26_000, Low));
}

#[test]
fn requests_that_move_between_threads_are_no_fault() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("GET /a", (1, 1), 1000, 100);
    scene.on("http-2", false).look("GET /a", (1, 1), 1900, 100);
    assert_eq!(scene.found("GET /a"), (200, 1000, SeveralThreads));
    let note = scene.note();
    assert!(note.contains("move between threads"), "{note}");
}

#[test]
fn ids_used_again_say_nothing_of_threads() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("GET /a", (1, 1), 1000, 1000);
    scene.request("GET /b", 1, 1000, 1000).on("http-2", false);
    scene.look("GET /b", (1, 1), 1000, 2000);
    assert_eq!(scene.found("GET /a"), (1000, 1000, Close));
    assert_eq!(scene.found("GET /b"), (2000, 1000, High));
}

#[test]
fn ids_used_again_leave_no_time_out() {
    let mut scene = Scene::new();
    // Two threads, each with ids of its own for all of its requests; one in two is recorded, of
    // the second thread none.
    for number in 0..10i64 {
        scene.look("GET /a", (1, 1), number * 900, 400);
        scene.requests("GET /a", 1, (number * 900, 400), 2);
    }
    scene.on("http-2", false);
    for number in 0..10i64 {
        scene.look("GET /a", (2, 2), number * 900, 400);
    }
    assert_eq!(scene.found("GET /a"), (8000, 8000, Close));
}

#[test]
fn error_has_the_chance_of_thinned_requests() {
    let mut scene = Scene::new();
    scene
        .requests("GET /a", 1, (1000, 100), 10)
        .requests("GET /a", 2, (2000, 300), 10);
    // Half of each of the two; the other half is of requests that are not recorded.
    scene.look("GET /a", (1, 1), 1000, 50);
    scene.look("GET /a", (2, 2), 2000, 150);
    scene.look("GET /a", (3, 3), 3000, 900);
    scene.look("GET /a", (4, 4), 4000, 900);
    let profile = scene.builder.clone().finish();
    let found = profile.self_check(None).unwrap().endpoints[0].accounted;
    assert_eq!((found.seen_ns, found.latency_ns), (2000 * MS, 4000 * MS));
    // sqrt(2 * 10 * 9 * 100^2) = 1342 of 4000, times a half; 1.5 times the square of the heaviest
    // look, 20 ms, is next to nothing.
    assert!(
        (found.error - 0.5 * 1341.64 / 4000.0).abs() < 1e-3,
        "{found:?}"
    );
    assert_eq!(found.agreement, Low);
    // More endpoints than the recorder separates share the kept requests, and therefore the
    // weights.
    for number in 0..64 {
        scene.request(&format!("GET /{number}"), 100 + number, 5000, 1);
    }
    let profile = scene.builder.finish();
    let found = profile.self_check(Some("GET /a")).unwrap().endpoints[0].accounted;
    let shared = (90.0 * (100.0f64.powi(2) + 300.0f64.powi(2))).sqrt();
    assert!(
        (found.error - 0.5 * shared / 4000.0).abs() < 1e-3,
        "{found:?}"
    );
}

#[test]
fn few_samples_are_chance_and_many_are_not() {
    let mut scene = Scene::new();
    scene.request("GET /a", 1, 1000, 1000);
    // Three looks of 200 ms: 600 +- sqrt(3 * 200^2 + 1.5 * 200^2) = 424.
    scene.choices = 3;
    scene.look("GET /a", (1, 1), 1000, 600);
    assert_eq!(scene.found("GET /a"), (600, 1000, Chance));
    assert_eq!(scene.warnings(), [""; 0]);
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("GET /a", (1, 1), 1000, 600);
    assert_eq!(scene.found("GET /a"), (600, 1000, Low));
    assert_eq!(
        scene.warnings(),
        [
            "sampled wall time for GET /a is 0.60 +- 0.02 of its latencies: too few samples; \
             record with --wall-budget 5%"
        ]
    );
}

#[test]
fn unseen_endpoints_are_listed() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .request("", 2, 3000, 10);
    assert_eq!(scene.found("GET /a"), (0, 1000, Low));
    // A look that was not made would have weighed more.
    assert_eq!(scene.found(""), (0, 10, Chance));
}

#[test]
fn deviations_up_to_a_tenth_are_close() {
    for (ms, expected) in [(880, Low), (900, Close), (1100, Close), (1150, High)] {
        let mut scene = Scene::new();
        scene
            .request("GET /a", 1, 1000, 1000)
            .look("GET /a", (1, 1), 1000, ms);
        assert_eq!(scene.found("GET /a").2, expected, "{ms}");
    }
}

#[test]
fn total_is_off_where_single_endpoints_are_chance() {
    let mut scene = Scene::new();
    scene.choices = 10;
    for number in 1..=16u64 {
        let endpoint = format!("GET /{number}");
        scene.request(&endpoint, number, 1000, 1000);
        scene.look(&endpoint, (number, number), 1000, 700);
        assert_eq!(scene.found(&endpoint), (700, 1000, Chance));
    }
    let warnings = scene.warnings();
    assert_eq!(warnings.len(), 1);
    let begin = "sampled wall time for all endpoints is 0.70 +- 0.06 of their latencies: too few";
    assert!(warnings[0].starts_with(begin), "{warnings:?}");
    let profile = scene.builder.finish();
    let one = profile.self_check(Some("GET /1")).unwrap();
    assert_eq!((one.endpoints.len(), one.total.seen_ns), (1, 700 * MS));
    assert_eq!(one.warnings(), [""; 0]);
    assert!(
        one.summary().ends_with("of the latencies of GET /1"),
        "{}",
        one.summary()
    );
    assert_eq!(profile.self_check(Some("POST *")), None);
}

/// Time that one request gets from another comes in lumps.
#[test]
fn lumps_of_single_requests_are_chance() {
    let mut scene = Scene::new();
    for root in 1..=20u64 {
        scene.request("GET /a", root, root as i64 * 100, 1000);
        if root <= 7 {
            scene.look("GET /a", (root, root), root as i64 * 100, 2000);
        }
    }
    assert_eq!(scene.found("GET /a"), (14_000, 20_000, Chance));
    let profile = scene.builder.finish();
    let error = profile.self_check(None).unwrap().total.error;
    let scatter = (7.0 * 1.3f64.powi(2) + 13.0 * 0.7f64.powi(2)) * 20.0 / 19.0;
    assert!((error - scatter.sqrt() / 20.0).abs() < 1e-6, "{error}");
    // A difference that all requests have is not chance.
    let mut scene = Scene::new();
    for root in 1..=20u64 {
        scene.request("GET /a", root, root as i64 * 100, 1000);
        scene.look("GET /a", (root, root), root as i64 * 100, 700);
    }
    assert_eq!(scene.found("GET /a"), (14_000, 20_000, Low));
}

/// Of 20 endpoints one deviates by two standard errors, mostly.
#[test]
fn many_endpoints_have_to_deviate_more() {
    let mut scene = Scene::new();
    scene.request("GET /a", 1, 1000, 1000);
    scene.choices = 5;
    // Five looks of 140 ms: 700 +- sqrt(6.5) * 140 = 357 ms, and of 90 ms: 450 +- 229 ms.
    scene.look("GET /a", (1, 1), 1000, 450);
    assert_eq!(scene.found("GET /a"), (450, 1000, Low));
    scene.choices = CERTAIN;
    for number in 2..=20u64 {
        let endpoint = format!("GET /{number}");
        scene.request(&endpoint, number, 1000, 1000);
        scene.look(&endpoint, (number, number), 1000, 1000);
    }
    assert_eq!(scene.found("GET /a"), (450, 1000, Chance));
}

#[test]
fn total_is_no_fault_only_where_several_threads_explain_it() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("GET /a", (1, 1), 1000, 1000);
    scene.on("pool-1", false).look("GET /a", (1, 1), 1000, 1000);
    let total = |scene: &Scene| {
        let profile = scene.builder.clone().finish();
        profile.self_check(None).unwrap().total.agreement
    };
    assert_eq!(total(&scene), SeveralThreads);
    for root in 2..=9 {
        scene.request("GET /b", root, 0, 9000);
        scene.look("GET /b", (root, root), 0, 6000);
    }
    assert_eq!(total(&scene), Low);
}

#[test]
fn nothing_to_compare_gives_no_check() {
    let mut scene = Scene::new();
    scene.look("GET /a", (1, 1), 1000, 1000);
    assert_eq!(scene.builder.clone().finish().self_check(None), None);
    let mut scene = Scene::silent();
    scene
        .request("GET /a", 1, 1000, 1000)
        .run("GET /a", (1, 1), 1000, 10);
    assert_eq!(scene.builder.finish().self_check(None), None);
    // All of them were over before the first look.
    let mut scene = Scene::silent();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("", (0, 0), 5000, 1000);
    assert_eq!(scene.builder.finish().self_check(None), None);
}

#[test]
fn virtual_threads_are_named_as_a_reason() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .on("", true)
        .look("GET /a", (1, 1), 1000, 500);
    let warnings = scene.warnings();
    assert!(
        warnings[0].contains("virtual threads that are not sampled"),
        "{warnings:?}"
    );
}

#[test]
fn remedy_exceeds_the_recorded_rate() {
    for (options, remedy) in [
        ("", "record with --wall-budget 5%"),
        ("wall=20ms,wall-budget=0.5%", "record with --wall-budget 5%"),
        (
            "wall-budget=0.5%,wall-budget=5%",
            "record with --wall-budget 20%",
        ),
        ("wall-budget=20%", "record longer, and with --wall 5ms"),
        (
            "wall-threads=4,wall-budget=5%",
            "record with --wall-budget 5% instead of --wall-threads",
        ),
    ] {
        assert_eq!(wording::remedy(options), remedy);
    }
}

#[test]
fn threads_are_compared_with_their_lives() {
    let mut scene = Scene::new();
    scene
        .request("GET /a", 1, 1000, 1000)
        .look("GET /a", (1, 1), 1000, 1000);
    let mut lives = |name: &str, java_tid, from, ms: u64, seen: u64, is_carrier| {
        scene.thread = scene.builder.thread(name, 5, java_tid, false);
        scene.look("", (0, 0), from, seen);
        scene.builder.thread_times.push(ThreadTime {
            thread: scene.thread,
            since_ns: Scene::at(from),
            duration_ns: ms * MS,
            is_carrier,
            ..ThreadTime::default()
        });
    };
    lives("whole", 5, 1000, 8000, 9000, false);
    lives("half", 6, 1000, 8000, 4000, false);
    lives("most", 7, 1000, 8000, 7200, false);
    lives("not Java", 0, 1000, 8000, 80, false);
    lives("short", 8, 1000, 4000, 40, false);
    lives("carrier", 9, 1000, 8000, 80, true);
    let profile = scene.builder.clone().finish();
    let ledger = profile.self_check(None).unwrap().threads.unwrap();
    assert_eq!((ledger.threads, ledger.worst.name.as_str()), (3, "half"));
    assert!((ledger.median - 0.9).abs() < 1e-9, "{ledger:?}");
    assert!(
        (ledger.worst.accounted.ratio - 0.5).abs() < 1e-9,
        "{ledger:?}"
    );
    // If only requests are sampled, the other activity of threads is invisible.
    scene.builder.info.options = "filter=context".to_owned();
    assert_eq!(
        scene.builder.finish().self_check(None).unwrap().threads,
        None
    );
}
