//! Rules that some files may break, each with its reason. An unused exception is a violation.

use crate::tidy::Violation;

struct Exception {
    path: &'static str,
    rules: &'static [&'static str],
    /// Why; for readers.
    _reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[Exception {
    path: "crates/recorder/src/runtime/mod.rs",
    rules: &["untested"],
    _reason: "it only declares the functions of a runtime; their callers are tested",
}];

/// Removes waived violations. Reports exceptions whose file is absent or keeps the rule.
pub fn apply(violations: &mut Vec<Violation>, paths: &[String]) {
    let mut unneeded = Vec::new();
    for exception in EXCEPTIONS {
        if !paths.iter().any(|path| path == exception.path) {
            unneeded.push(stale(exception.path, "the file is gone"));
        }
        for rule in exception.rules {
            let before = violations.len();
            violations.retain(|v| v.path != exception.path || v.rule != *rule);
            if violations.len() == before {
                unneeded.push(stale(exception.path, &format!("{rule} is kept by now")));
            }
        }
    }
    violations.append(&mut unneeded);
}

fn stale(path: &str, why: &str) -> Violation {
    let what = format!("remove the exception for {path}: {why}");
    Violation {
        path: "xtask/src/tidy/waived.rs".to_owned(),
        line: 1,
        rule: "exception",
        what,
    }
}
