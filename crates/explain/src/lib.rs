//! Rules over a profile that find the causes of slowness. A finding names the problem, its cost,
//! the evidence, the fix and the confidence.
//!
//! Each rule is one small file in `rules`, and all use [`Facts`](evidence::Facts). A rule that
//! lacks data reports that and never guesses. This crate opens no files and knows no output format.

#![forbid(unsafe_code)]

mod allocators;
mod application;
mod evidence;
mod exact_waits;
mod finding;
mod lost;
mod machine;
mod names;
mod numbers;
mod operation;
mod own_calls;
mod owners;
mod rules;
mod services;
mod share;
mod stacks;
mod sure;
mod waits;

#[cfg(test)]
mod any_profile;
#[cfg(test)]
mod art;

pub use application::own_methods;
pub use finding::{Evidence, Explanation, Finding, Focus, Measure, Skipped, Sure, View};
pub use numbers::short;
pub use operation::Operation;
pub use rules::names as rule_names;
pub use share::Share;

use dwell_profile::{Profile, Unit, WallFilter};
use finding::Verdict;

/// The most findings of one explanation: more are not read.
const FINDINGS_MAX: usize = 12;

/// Selection of the data to explain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only requests of such endpoints, `*` for anything.
    pub endpoint: Option<String>,
}

/// The findings of a profile, the gravest first.
#[must_use]
pub fn explain(profile: &Profile, options: &Options) -> Explanation {
    let filter = WallFilter {
        endpoint: options.endpoint.clone(),
        ..WallFilter::default()
    };
    let facts = evidence::Facts::new(profile, &filter);
    let mut explanation = Explanation {
        idle: profile.has_wall().then(|| profile.idle(&filter)).flatten(),
        self_check: profile.self_check(options.endpoint.as_deref()),
        waits_note: match profile.info().event_waits {
            Some(waits) => waits.in_words(),
            None => String::new(),
        },
        has_derived_endpoints: profile.has_derived_endpoints(),
        event_tables: match options.endpoint {
            Some(_) => Vec::new(),
            None => profile.event_tables(),
        },
        ..Explanation::default()
    };
    explanation.lost_of = facts.lost_of();
    for rule in rules::ALL {
        match (rule.check)(&facts) {
            Verdict::Found(found) => {
                if found.is_empty() {
                    explanation.passed.push(rule.name);
                }
                let named = found.into_iter().map(|finding| finding.of_rule(rule.name));
                explanation.findings.extend(named);
            }
            Verdict::Lacks(why) => explanation.not_applicable.push(Skipped {
                rule: rule.name,
                why,
            }),
        }
    }
    if profile.unit() != Unit::Nanoseconds {
        (explanation.findings.iter_mut()).for_each(|finding| count_only(&mut finding.share));
    }
    let gravest_first = |a: &Finding, b: &Finding| b.weight.total_cmp(&a.weight);
    explanation.findings.sort_by(gravest_first);
    explanation.left_out = explanation.findings.len().saturating_sub(FINDINGS_MAX);
    explanation.findings.truncate(FINDINGS_MAX);
    explanation
}

/// Counted samples are not time, so their shares have no time either.
fn count_only(share: &mut Share) {
    if share.of == evidence::SAMPLES {
        share.ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;
    use dwell_profile::Measured;

    const HANDLER: &str = "app.Orders.get;\
                           org.springframework.web.method.support.InvocableHandlerMethod.doInvoke";

    /// Findings with endpoints from stacks.
    fn derived(mut art: Art) -> Explanation {
        let mut profile = art.profile();
        profile.derive_endpoints();
        assert!(profile.has_derived_endpoints());
        explain(&profile, &Options::default())
    }

    #[test]
    fn endpoints_from_stacks_have_findings_of_their_own() {
        let mut art = Art::default();
        let socket = format!("sun.nio.ch.Net.poll;app.Client.call;{HANDLER}");
        for _ in 0..20 {
            art.look("http-1", "", "socket", &socket, 10, 20);
        }
        art.cpu("http-1", "", HANDLER, 40, 10);
        let explained = derived(art);
        let slow = explained
            .findings
            .iter()
            .find(|it| it.rule == "slow-downstream");
        let slow = slow.unwrap_or_else(|| panic!("{explained:?}"));
        assert!(slow.what.contains("Orders.get (from stacks)"), "{slow:?}");
        let endpoint = slow.evidence[0].view.endpoint.as_deref();
        assert_eq!(endpoint, Some("Orders.get (from stacks)"));
        assert!(explained.self_check.is_none() && explained.has_derived_endpoints);
    }

    #[test]
    fn few_derived_endpoints_hide_no_other_thread() {
        let mut art = Art::default();
        // A batch job, and a server that reports its state.
        art.cpu("http-1", "", HANDLER, 10, 10);
        art.cpu("job-1", "", "app.Job.run", 300, 10);
        for _ in 0..20 {
            art.look(
                "job-1",
                "",
                "socket",
                "org.postgresql.Driver.ask;app.Job.load",
                10,
                20,
            );
        }
        let explained = derived(art);
        let slow = explained
            .findings
            .iter()
            .find(|it| it.rule == "slow-downstream");
        let slow = slow.unwrap_or_else(|| panic!("{explained:?}"));
        assert_eq!(slow.evidence[0].view.threads.as_deref(), Some("job-*"));
    }

    #[test]
    fn idle_time_is_excluded_from_shares() {
        let mut art = Art::default();
        let waits = "app.Stock.reserve";
        art.look("job-1", "", "monitor", waits, 60, 20);
        art.cpu("job-1", "", "app.Work.run", 60, 20);
        let take = "java.util.concurrent.ThreadPoolExecutor.getTask";
        art.look("job-1", "", "idle-pool", take, 600, 20);
        art.look("other-1", "", "idle-pool", take, 600, 20);
        let explained = explain(&art.profile(), &Options::default());
        let idle = explained.idle.unwrap();
        assert_eq!((idle.threads, idle.all_threads), (2, 2));
        assert!((idle.share() - 1200.0 / 1320.0).abs() < 1e-9, "{idle:?}");
        let lock = (explained.findings.iter()).find(|found| found.rule == "lock-contention");
        let share = &lock.unwrap().share;
        assert!((share.value - 0.5).abs() < 1e-9, "{share:?}");
        // Nothing was idle: nothing is said.
        let mut art = Art::default();
        art.look("job-1", "", "monitor", waits, 60, 20);
        assert_eq!(explain(&art.profile(), &Options::default()).idle, None);
    }

    /// A profile of which each rule on CPU time would find something.
    fn costly() -> Art {
        let mut art = Art::default();
        for stack in [
            "java.util.regex.Pattern.compile;app.Row.text",
            "java.lang.Throwable.fillInStackTrace;app.Parse.int",
            "java.io.FileInputStream.readBytes;app.Files.send",
            "java.util.Formatter.parse;java.lang.String.format;app.Row.line",
            "app.Work.run",
        ] {
            art.cpu("w", "", stack, 60, 10);
        }
        art.native("GC Thread#0", 90, 10)
            .native("C2 CompilerThre", 90, 10);
        art.builder.info.profiler_version.clear();
        art
    }

    fn texts(mut art: Art) -> (usize, String) {
        let found = explain(&art.profile(), &Options::default()).findings;
        let text = |it: &Finding| format!("{} {} {}", it.what, it.because, it.share.of);
        (
            found.len(),
            found.iter().map(text).collect::<Vec<_>>().join("\n"),
        )
    }

    #[test]
    fn counted_samples_are_never_named_cpu_time() {
        let (number, text) = texts(costly());
        assert!(number > 4 && text.contains("of the CPU time"), "{text}");
        // Samples of Java code are counted, and are no time.
        let mut art = costly();
        art.builder.unit = Unit::Samples;
        art.builder.info.measured = Measured::Java;
        let (number, text) = texts(art);
        assert!(number > 3 && text.contains("of the samples"), "{text}");
        assert!(!text.contains("of the CPU time"), "{text}");
        for measured in [
            Measured::Wall,
            Measured::Native,
            Measured::Event("page-faults".to_owned()),
        ] {
            let mut art = costly();
            art.builder.unit = Unit::Samples;
            art.builder.info.measured = measured.clone();
            let explained = explain(&art.profile(), &Options::default());
            assert_eq!(texts(art), (0, String::new()), "{measured:?}");
            let mut lacks = explained.not_applicable.iter();
            let hot_path = lacks.find(|skipped| skipped.rule == "hot-path").unwrap();
            assert!(hot_path.why.ends_with("not CPU time"), "{hot_path:?}");
        }
    }

    #[test]
    fn hot_path_with_known_reason_is_reported_once() {
        let mut art = Art::default();
        let read = "java.nio.file.Files.readAllBytes;app.Files.send";
        art.cpu("w", "", read, 60, 10);
        art.cpu("w", "", "app.Work.run", 60, 10);
        let explained = explain(&art.profile(), &Options::default());
        let told = |rule, place: &str| {
            let of_rule = explained.findings.iter().filter(|found| found.rule == rule);
            of_rule.filter(|found| found.what.contains(place)).count()
        };
        assert_eq!(told("repeated-reads", "app.Files.send"), 1);
        assert_eq!(told("hot-path", "app.Files.send"), 0);
        assert_eq!(told("hot-path", "app.Work.run"), 1);
        // Where the rule for the reason does not speak, the hot path does.
        let mut art = Art::default();
        let little = "java.lang.Throwable.fillInStackTrace;app.Parse.int";
        (art.cpu("w", "", little, 3, 10)).cpu("w", "", "app.Parse.int", 60, 10);
        let explained = explain(&art.profile(), &Options::default());
        assert!(
            explained
                .findings
                .iter()
                .any(|found| found.rule == "hot-path")
        );
    }
}
