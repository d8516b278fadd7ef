//! Exceptions as control flow: making and throwing them takes processor time.

use super::NOT_SEEN;
use super::libraries::{Hot, hot};
use crate::evidence::Facts;
use crate::finding::Verdict;

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
        Verdict::Found(found) if found.is_empty() && !facts.sees_the_jvm() => {
            Verdict::lacks(NOT_SEEN)
        }
        verdict => verdict,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

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
