//! Rules for all text files: nothing unfinished, nothing of the machine it was written on.

use crate::tidy::Violation;

const ENDINGS: [&str; 17] = [
    ".rs", ".toml", ".md", ".java", ".ts", ".tsx", ".js", ".mjs", ".css", ".html", ".sh", ".py",
    ".yml", ".yaml", ".json", ".c", ".h",
];

/// Whether a file of that name is written by people.
#[must_use]
pub fn is_text(name: &str) -> bool {
    let generated = name == "package-lock.json" || name.ends_with(".min.js");
    !generated && ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Split so that this file does not break its own rules.
const UNFINISHED: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const PLACES: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/."),
    concat!("/tmp/tar", "get"),
];

/// Checks one file.
pub fn check(path: &str, content: &str, violations: &mut Vec<Violation>) {
    for (line, text) in (1..).zip(content.lines()) {
        let mut add = |rule, what| {
            violations.push(Violation {
                path: path.to_owned(),
                line,
                rule,
                what,
            });
        };
        if let Some(word) = UNFINISHED.iter().find(|word| has_word(text, word)) {
            add("unfinished", format!("{word} is not for keeping"));
        }
        if let Some(place) = PLACES.iter().find(|place| text.contains(**place)) {
            add(
                "machine-path",
                format!("{place} exists on one machine only"),
            );
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    let boundary = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        boundary(text[..at].chars().next_back()) && boundary(text[at + word.len()..].chars().next())
    })
}
