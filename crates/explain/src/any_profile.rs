//! No rule panics on any profile, and all findings are plausible: a property test over random
//! profiles with everything that rules search.

use crate::art::Art;
use crate::{Options, explain};
use proptest::prelude::*;

const FRAMES: &[&str] = &[
    "java.lang.Thread.run",
    "java.lang.Thread.sleep",
    "java.lang.Thread.yield",
    "jdk.internal.misc.Unsafe.park",
    "java.util.concurrent.locks.LockSupport.parkNanos",
    "java.util.concurrent.FutureTask.get",
    "java.util.concurrent.ThreadPoolExecutor.runWorker",
    "java.util.concurrent.ArrayBlockingQueue.take",
    "java.util.concurrent.ArrayBlockingQueue.put",
    "java.util.concurrent.CountDownLatch.await",
    "sun.net.www.http.HttpClient.parseHTTP",
    "io.netty.channel.nio.NioEventLoop.run",
    "java.io.FileInputStream.readBytes",
    "java.util.regex.Pattern.compile",
    "java.lang.Throwable.fillInStackTrace",
    "com.zaxxer.hikari.pool.HikariPool.getConnection",
    "org.postgresql.core.Stream.read",
    "libjvm.so.MemAllocator::allocate[native]",
    "app.A.run:3",
    "app.B.call:7",
    "noclass",
];

const CAUSES: &[&str] = &[
    "running",
    "runnable",
    "throttled",
    "monitor",
    "lock",
    "park",
    "sleep",
    "object-wait",
    "socket",
    "file",
    "page-fault",
    "safepoint",
    "gc-stall",
    "class-init",
    "idle-pool",
    "unknown",
    "new cause",
];

const ENDPOINTS: &[&str] = &["", "GET /a", "POST /b"];
const THREADS: &[&str] = &["main", "w-1", "w-2", "GC Thread#0", "C2 CompilerThre"];
const DETAILS: &[&str] = &["", "app.L@1", "peer 1.2.3.4:5", "/etc/f"];

#[derive(Clone, Debug)]
struct Fact {
    what: u8,
    stack: Vec<usize>,
    picks: [usize; 4],
    count: u64,
    ms: u64,
}

fn fact() -> impl Strategy<Value = Fact> {
    let stack = prop::collection::vec(0..FRAMES.len(), 1..6);
    (0u8..9, stack, any::<[u16; 4]>(), 0u64..200, 0u64..100_000).prop_map(
        |(what, stack, picks, count, ms)| Fact {
            what,
            stack,
            picks: picks.map(usize::from),
            count,
            ms,
        },
    )
}

fn add(art: &mut Art, fact: &Fact) {
    let stack: Vec<&str> = fact.stack.iter().map(|&frame| FRAMES[frame]).collect();
    let stack = stack.join(";");
    let pick = |from: &'static [&'static str], which: usize| from[fact.picks[which] % from.len()];
    let (thread, endpoint) = (pick(THREADS, 0), pick(ENDPOINTS, 1));
    let (cause, detail) = (pick(CAUSES, 2), pick(DETAILS, 3));
    match fact.what {
        0 | 1 => drop(art.cpu(thread, endpoint, &stack, fact.count.min(40), fact.ms)),
        2 | 3 => {
            art.look(thread, endpoint, cause, &stack, fact.count, fact.ms)
                .detail(detail);
            if fact.picks[3].is_multiple_of(2) {
                art.owner("w-2", fact.picks[0].is_multiple_of(2).then_some(&stack));
            }
        }
        4 => art.pause(fact.ms, fact.count),
        5 => drop(
            art.safepoint(fact.ms % 1000, fact.count % 5)
                .late(thread, &stack, "java", 9),
        ),
        7 => {
            let seconds = fact.ms % 30;
            let seconds = seconds..seconds + fact.count % 30;
            let class = pick(FRAMES, 2);
            art.alive(
                &stack,
                class,
                (fact.ms, fact.count),
                seconds,
                fact.count % 5,
            );
        }
        6 => drop(art.pinned("v-1", cause, &stack, fact.count, fact.ms, "carrier")),
        _ => {
            art.processors(fact.count, fact.ms, fact.count, fact.count / 2)
                .cpu_used(fact.count);
            art.machine(fact.count % 10, 2, fact.ms % 900, fact.count);
            art.turns(thread, fact.ms, fact.count)
                .requests(endpoint, fact.count, fact.ms);
        }
    }
}

/// A larger one has divided by next to nothing.
const RATIO_MAX: f64 = 10_000.0;

/// The largest number of times or per cent in a text.
fn largest_ratio(text: &str) -> f64 {
    let words: Vec<&str> = text.split_whitespace().collect();
    let ratios = words.windows(2).filter_map(|two| {
        let [number, unit] = two else { return None };
        let is_ratio = unit.starts_with('%') || unit.starts_with("times");
        let number = number.trim_matches(|c: char| !c.is_ascii_digit());
        is_ratio.then(|| number.parse::<f64>().ok()).flatten()
    });
    ratios.fold(0.0, f64::max)
}

/// Whether a text has a count without separators. Ports and names of methods are no counts.
fn has_ungrouped_count(text: &str) -> bool {
    let words = text.split_whitespace();
    let mut words = words.map(|word| word.trim_matches(|c: char| c.is_ascii_punctuation()));
    words.any(|word| word.len() > 3 && word.chars().all(|c| c.is_ascii_digit()))
}

#[test]
fn ungrouped_counts_are_found_in_texts() {
    assert!(has_ungrouped_count("its cost (4931 samples)"));
    assert!(!has_ungrouped_count(
        "4,931 of 999 waits for 127.0.0.1:40391"
    ));
}

#[test]
fn ratios_are_found_in_texts() {
    assert_eq!(
        largest_ratio("wait 113671649423.0 times as long"),
        113_671_649_423.0
    );
    assert_eq!(largest_ratio("of it (12.5 % of 3 s), 7 times"), 12.5);
    assert_eq!(largest_ratio("nothing"), 0.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn no_rule_panics_and_findings_make_sense(
        facts in prop::collection::vec(fact(), 0..30),
        of_endpoint in any::<bool>(),
    ) {
        let mut art = Art::lasting(30);
        facts.iter().for_each(|fact| add(&mut art, fact));
        let endpoint = of_endpoint.then(|| "GET *".to_owned());
        let explained = explain(&art.profile(), &Options { endpoint });
        for finding in &explained.findings {
            crate::art::leads_to_its_place(finding);
            let share = &finding.share;
            prop_assert!((0.0..=1.0).contains(&share.value), "{finding:?}");
            let near = 1e-9;
            prop_assert!(share.low <= share.value + near && share.value <= share.high + near);
            prop_assert!(finding.weight.is_finite(), "{finding:?}");
            let texts = [&finding.what, &finding.remedy, &finding.because];
            prop_assert!(texts.iter().all(|text| !text.is_empty()), "{finding:?}");
            prop_assert!(!finding.evidence.is_empty(), "{finding:?}");
            let shown = finding.evidence.iter().map(|it| &it.text);
            for text in texts.into_iter().chain(shown) {
                prop_assert!(largest_ratio(text) <= RATIO_MAX, "{text}");
                prop_assert!(!has_ungrouped_count(text), "{text}");
            }
        }
        // Each rule has said exactly one thing.
        let found = explained.findings.iter().map(|finding| finding.rule);
        let mut told: Vec<&str> = found.collect();
        told.dedup();
        told.extend(&explained.passed);
        told.extend(explained.not_applicable.iter().map(|skipped| skipped.rule));
        told.sort_unstable();
        told.dedup();
        prop_assert!(told.len() + explained.left_out >= crate::rule_names().len());
    }
}

#[test]
fn a_healthy_service_has_no_findings() {
    let mut art = Art::default();
    for thread in ["http-1", "http-2", "http-3"] {
        art.look(
            thread,
            "",
            "idle-pool",
            "java.util.concurrent.ThreadPoolExecutor.getTask",
            200,
            20,
        );
        for method in 0..12 {
            let stack = format!("app.Part{method}.run;java.lang.Thread.run");
            art.cpu(thread, "GET /a", &stack, 10, 10);
        }
        art.look(
            thread,
            "GET /a",
            "socket",
            "sun.nio.ch.Net.read;app.Db.ask",
            5,
            20,
        );
        art.look(thread, "GET /a", "runnable", "app.Part1.run", 2, 20);
        art.look(thread, "GET /a", "monitor", "app.Cache.get", 1, 20)
            .detail("app.Cache@1");
    }
    art.look(
        "main",
        "",
        "object-wait",
        "java.lang.Object.wait;app.Main.main",
        500,
        20,
    );
    art.look(
        "timer",
        "",
        "sleep",
        "java.lang.Thread.sleep;app.Timer.run",
        500,
        20,
    );
    art.look(
        "acceptor",
        "",
        "socket",
        "sun.nio.ch.Net.accept;app.Acceptor.run",
        500,
        20,
    );
    art.native("C2 CompilerThre", 10, 10)
        .native("GC Thread#0", 10, 10);
    art.processors(4, 0, 0, 0).cpu_used(4).safepoint(1, 20);
    (0..10).for_each(|i| art.pause(i * 900, 3));
    for second in 0..10 {
        art.machine(second, 4, 400, 100);
    }
    let explained = explain(&art.profile(), &Options::default());
    assert_eq!(explained.findings, []);
    assert!(explained.passed.len() > 12, "{explained:?}");
}

/// Threads of frameworks in a healthy service: their waits, as a number of looks of 20 ms.
const BESIDE: &[(&str, &str, &str, u64)] = &[
    // A timer that waits for its next turn in a semaphore.
    (
        "cleaner",
        "park",
        "jdk.internal.misc.Unsafe.park;java.util.concurrent.locks.LockSupport.parkNanos;\
         java.util.concurrent.Semaphore.tryAcquire;app.Cleaner.run",
        490,
    ),
    (
        "kotlinx.coroutines.DefaultExecutor",
        "park",
        "jdk.internal.misc.Unsafe.park;java.util.concurrent.locks.LockSupport.parkNanos;\
         kotlinx.coroutines.DefaultExecutor.run",
        490,
    ),
    (
        "data-plane-kafka-request-handler-0",
        "park",
        "jdk.internal.misc.Unsafe.park;\
         java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.awaitNanos;\
         java.util.concurrent.ArrayBlockingQueue.poll;\
         kafka.network.RequestChannel.receiveRequest;kafka.server.KafkaRequestHandler.run",
        490,
    ),
    (
        "container-0",
        "sleep",
        "java.lang.Thread.sleep;org.apache.catalina.core.StandardServer.await;\
         org.springframework.boot.web.embedded.tomcat.TomcatWebServer$1.run",
        490,
    ),
    // A framework's own loop waits for its own lock for a moment.
    (
        "grpc-worker-1",
        "monitor",
        "io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoop.register;\
         io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoop.run",
        60,
    ),
    (
        "grpc-worker-1",
        "idle-pool",
        "io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoop.select;\
         io.grpc.netty.shaded.io.netty.channel.nio.NioEventLoop.run",
        430,
    ),
    // Nearly all that wants to run is ready, of next to nothing, on an idle machine.
    ("ticker", "runnable", "app.Ticker.run", 20),
];

/// A healthy service that also has these threads, once with requests and once without.
fn healthy(endpoint: &str) -> Art {
    let mut art = Art::default();
    for thread in ["http-1", "http-2"] {
        let take = "java.util.concurrent.ThreadPoolExecutor.getTask";
        art.look(thread, "", "idle-pool", take, 430, 20);
        for method in 0..12 {
            let stack = format!("app.Part{method}.run;java.lang.Thread.run");
            art.cpu(thread, endpoint, &stack, 2, 10);
        }
    }
    for (thread, cause, stack, looks) in BESIDE {
        // Frequent wake-ups with little work each time.
        for _ in 0..10 {
            art.look(thread, "", cause, stack, looks / 10, 20);
        }
        art.turns(thread, 500, 10);
    }
    art.processors(2, 0, 0, 0);
    for second in 0..10 {
        art.machine(second, 2, 100, 100);
    }
    art
}

#[test]
fn idle_threads_of_frameworks_give_no_findings() {
    for endpoint in ["", "GET /a"] {
        let mut art = healthy(endpoint);
        let explained = explain(&art.profile_as_read(), &Options::default());
        let found: Vec<_> = explained
            .findings
            .iter()
            .map(|it| (it.rule, &it.what))
            .collect();
        assert_eq!(found, [], "{endpoint}");
    }
}
