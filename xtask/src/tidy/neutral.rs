//! Crates that serve any runtime name none: neither in their code nor in their literals. Comments
//! may, as examples. Must not know of any other rule.

use crate::tidy::Violation;
use crate::tidy::lexer::{self, Lines};

/// Where no runtime is named, by the beginnings of paths. The tests of `native` read libraries of
/// real ones.
const PLACES: [&str; 6] = [
    "crates/context/",
    "crates/host/",
    "crates/native/src/",
    "crates/recorder/",
    "crates/signal/",
    "crates/wall/",
];

/// The words that must not appear there, as parts of words: runtimes, and names of one runtime
/// only.
const RUNTIMES: [&str; 16] = [
    "java",
    "jvm",
    "libjvm",
    "jdk",
    "jni",
    "hotspot",
    "mono",
    "clr",
    "dotnet",
    "klass",
    "oop",
    "oops",
    "nmethod",
    "nmethods",
    "safepoint",
    "safepoints",
];

/// But for what is called so by the format of files: names of the crate that writes it.
const FORMAT: [&str; 12] = [
    "JvmInformation",
    "Safepoint",
    "SafepointLate",
    "java_arguments",
    "java_name",
    "java_tid",
    "jvm_arguments",
    "jvm_flags",
    "jvm_name",
    "jvm_start_epoch_ms",
    "jvm_version",
    "safepoint_id",
];

/// A literal that has to stay.
struct Literal {
    path: &'static str,
    words: &'static [&'static str],
    /// Why; for readers.
    _reason: &'static str,
}

const LITERALS: [Literal; 3] = [
    Literal {
        path: "crates/wall/src/facts.rs",
        words: &["safepoint"],
        _reason: "the name of a cause in files and options, from the first version on",
    },
    Literal {
        path: "crates/recorder/src/session/tests.rs",
        words: &["jdk", "jvmVersion"],
        _reason: "an event and a field of the format, as its readers call them",
    },
    Literal {
        path: "crates/recorder/tests/any_runtime.rs",
        words: &["jdk", "jvmName", "jvmVersion"],
        _reason: "an event and fields of the format, as its readers call them",
    },
];

/// Checks one file.
pub(crate) fn check(path: &str, lines: &Lines, violations: &mut Vec<Violation>) {
    if !PLACES.iter().any(|place| path.starts_with(place)) {
        return;
    }
    let mut add = |line: usize, what: String| {
        violations.push(Violation {
            path: path.to_owned(),
            line,
            rule: "runtime",
            what,
        });
    };
    for (number, _, word) in lexer::words(&lines.code) {
        if let Some(named) = named(word).filter(|_| !FORMAT.contains(&word)) {
            let what = format!("`{word}`: this crate serves any runtime, and {named} is of one");
            add(number + 1, what);
        }
    }
    let here = LITERALS.iter().filter(|literal| literal.path == path);
    let mut unused: Vec<&str> = here.flat_map(|literal| literal.words).copied().collect();
    let may_stay = unused.clone();
    for (number, _, word) in lexer::words(&lines.literals) {
        let Some(named) = named(word) else {
            continue;
        };
        if may_stay.contains(&word) {
            unused.retain(|it| *it != word);
        } else {
            let what = format!("\"{word}\": this crate serves any runtime, and {named} is of one");
            add(number + 1, what);
        }
    }
    for word in unused {
        let what = format!("\"{word}\" may stay in a literal here, and is in none by now");
        add(1, what);
    }
}

/// Reports literals that may stay in files that are gone.
pub(crate) fn check_list(paths: &[String], violations: &mut Vec<Violation>) {
    for literal in &LITERALS {
        if !paths.iter().any(|path| path == literal.path) {
            violations.push(Violation {
                path: "xtask/src/tidy/neutral.rs".to_owned(),
                line: 1,
                rule: "runtime",
                what: format!("remove the literals of {}: the file is gone", literal.path),
            });
        }
    }
}

/// The runtime that a word belongs to.
fn named(word: &str) -> Option<String> {
    parts(word).find(|part| RUNTIMES.contains(&part.as_str()))
}

/// The parts of a name, in small letters: `JavaThread` and `java_thread` have the same.
fn parts(word: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut before = '_';
    for c in word.chars() {
        if c == '_' || c.is_uppercase() && before.is_lowercase() {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c != '_') {
            part.extend(c.to_lowercase());
        }
        before = c;
    }
    // HotSpot is written as two words in names of types.
    let pairs: Vec<String> = parts.windows(2).map(|pair| pair.concat()).collect();
    parts.into_iter().chain(pairs)
}
