//! Exceptions as control flow: making and throwing them takes processor time.

use super::NOT_SEEN;
use super::libraries::{Hot, hot};
use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Focus, Sure, Verdict, View};
use crate::numbers::whole;
use crate::share::Share;
use dwell_profile::TracedKind;

/// Frames in which exceptions are made, thrown and caught.
const THROWING: &[&str] = &[
    "java.lang.Throwable.fillInStackTrace",
    "java.lang.Throwable.getStackTrace",
    "java.lang.Throwable.printStackTrace",
    "java.lang.StackTraceElement*",
    "libjvm.so.*java_lang_Throwable::*",
    "libjvm.so.*Exceptions::_throw*",
    "libjvm.so.*OptoRuntime::handle_exception*",
    "libjvm.so.*OptoRuntime::rethrow*",
    "libjvm.so.*SharedRuntime::compute_compiled_exc_handler*",
    "libjvm.so.*SharedRuntime::raw_exception_handler*",
    "libjvm.so.*Runtime1::exception_handler*",
    "libjvm.so.*InterpreterRuntime::exception_handler*",
];

/// An exception takes microseconds with its stack trace: fewer cost less than a few percent.
const MANY_A_SECOND: f64 = 2_000.0;

/// When they cost too much.
pub(super) const EXCEPTIONS: Hot = Hot {
    patterns: THROWING,
    share: 0.05,
    surely: 0.025,
    what: "making and throwing exceptions",
    remedy: "return a value (null, Optional, a result type) for expected cases; else reuse one \
     exception without a stack trace (Throwable's constructor with writableStackTrace = false)",
};

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    match hot(facts, &EXCEPTIONS) {
        Verdict::Found(found) if found.is_empty() && !facts.sees_the_jvm() => by_count(facts),
        verdict => verdict,
    }
}

/// Exceptions that the JVM has counted, where its own frames are not among the samples.
fn by_count(facts: &Facts<'_>) -> Verdict {
    let thrown = facts.profile.thrown();
    let Some(per_second) = thrown.and_then(|thrown| thrown.per_second) else {
        return Verdict::lacks(NOT_SEEN);
    };
    if per_second < MANY_A_SECOND {
        return Verdict::Found(Vec::new());
    }
    let tables = facts.profile.event_tables();
    let place = (tables.iter()).position(|table| table.kind == TracedKind::Exception);
    let rows = place.and_then(|place| tables.get(place));
    let rows = rows.map_or(&[][..], |table| &table.rows);
    let number = |(_, cells): &(String, Vec<u64>)| cells.first().copied().unwrap_or(0);
    let all: u64 = rows.iter().map(number).sum();
    let first = rows.first().map_or(0, number);
    let (mostly, share) = match rows.first() {
        Some((name, _)) => (
            format!(", mostly {name}"),
            Share::counted(first, all, "the exceptions that have events"),
        ),
        None => (String::new(), Share::counted(1, 1, "the exceptions")),
    };
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!(
            "the program throws {} exceptions a second{mostly}",
            whole(per_second)
        ),
        share: Share { ns: 0, ..share },
        evidence: vec![Evidence {
            text: "the JVM counts exceptions (jdk.ExceptionStatistics)".to_owned(),
            view: View {
                focus: Some(Focus::Part(match place {
                    Some(place) => format!("events-{place}"),
                    None => "recording".to_owned(),
                })),
                ..View::default()
            },
            stack: Vec::new(),
        }],
        remedy: EXCEPTIONS.remedy.to_owned(),
        sure: Sure::Low,
        because: "their number is certain, but not the time that they cost".to_owned(),
        weight: 0.0,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;
    use dwell_profile::{ThrownSum, Traced};

    #[test]
    fn the_method_that_throws_is_named() {
        let mut art = Art::default();
        let stack = "java.lang.Throwable.fillInStackTrace;java.lang.Exception.<init>;app.Parse.int";
        art.cpu("w", "", stack, 20, 10);
        art.cpu("w", "", "app.Parse.all", 80, 10);
        let found = art.found(check);
        assert!(
            found[0].what.starts_with("20 % of the CPU time"),
            "{found:?}"
        );
        assert!(found[0].what.contains("app.Parse.int"), "{found:?}");
    }

    #[test]
    fn foreign_recording_reports_only_sampled_exceptions() {
        let mut art = Art::default();
        art.builder.info.profiler_version.clear();
        art.cpu("w", "", "app.Parse.all", 80, 10);
        assert!(art.lacks(check).contains("not made by dwell"));
        let stack = "java.lang.Throwable.fillInStackTrace;app.Parse.int";
        art.cpu("w", "", stack, 20, 10);
        assert_eq!(art.found(check).len(), 1);
    }

    #[test]
    fn exceptions_that_the_jvm_counts_are_found_with_their_place() {
        for (per_second, expected) in [(1_000.0, 0), (5_000.0, 1)] {
            let mut art = Art::default();
            art.builder.info.profiler_version.clear();
            art.cpu("w", "", "app.Parse.all", 80, 10);
            art.builder.thrown = Some(ThrownSum {
                all: 100_000,
                per_second: Some(per_second),
            });
            let what = art.builder.name("a.Fault");
            let traced = Traced::one(TracedKind::Exception, what, None);
            art.builder.traced.push(Traced { count: 9, ..traced });
            let found = art.found(check);
            assert_eq!(found.len(), expected);
            for finding in found {
                let what = &finding.what;
                assert!(
                    what.ends_with("5,000 exceptions a second, mostly a.Fault"),
                    "{what}"
                );
            }
        }
    }

    #[test]
    fn an_exception_now_and_then_is_fine() {
        let mut art = Art::default();
        art.cpu(
            "w",
            "",
            "java.lang.Throwable.fillInStackTrace;app.Parse.int",
            1,
            10,
        );
        art.cpu("w", "", "app.Parse.all", 99, 10);
        assert_eq!(art.found(check), []);
    }
}
