//! Relative links in documents lead to a file that exists, and to a heading that it has. Tests that
//! the invariants name exist. Pure: texts in, violations out.

use super::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// The document that names tests.
const INVARIANTS: &str = "docs/invariants.md";

/// Checks the links of all documents. `texts` are paths and contents of all files, `is_there` says
/// whether a path below the root exists.
pub fn check(
    texts: &[(String, String)],
    is_there: impl Fn(&str) -> bool,
    violations: &mut Vec<Violation>,
) {
    let documents = || texts.iter().filter(|(path, _)| path.ends_with(".md"));
    let anchors: BTreeMap<&str, BTreeSet<String>> = documents()
        .map(|(path, content)| (path.as_str(), anchors(content)))
        .collect();
    for (path, content) in documents() {
        for (line, target) in links(content) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let full = match file {
                "" => path.clone(),
                _ => resolve(path, file),
            };
            let what = if !is_there(&full) {
                format!("the link {target} leads to no file")
            } else if anchor.is_empty() {
                continue;
            } else {
                match anchors.get(full.as_str()) {
                    Some(known) if known.contains(anchor) => continue,
                    Some(_) => format!("{full} has no heading for the link {target}"),
                    None => continue,
                }
            };
            violations.push(Violation {
                path: path.clone(),
                line,
                rule: "link",
                what,
            });
        }
    }
}

/// Checks that each test that the invariants name is in the code, or is a file.
pub fn check_tests(texts: &[(String, String)], violations: &mut Vec<Violation>) {
    let (documents, code): (Vec<_>, Vec<_>) =
        texts.iter().partition(|(path, _)| path.ends_with(".md"));
    let invariants = documents.iter().find(|(path, _)| path == INVARIANTS);
    let content = invariants.map_or("", |(_, content)| content);
    for (line, name) in tests(content) {
        let is_there = |(path, content): &&(String, String)| {
            content.contains(name) || path.contains(&format!("/{name}."))
        };
        if !code.iter().any(is_there) {
            violations.push(Violation {
                path: INVARIANTS.to_owned(),
                line,
                rule: "named-test",
                what: format!("{name} is not in the code"),
            });
        }
    }
}

/// Names like those of tests in a document's code: lower case, with two underscores or more.
fn tests(content: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in prose(content) {
        let codes = text.split('`').skip(1).step_by(2);
        found.extend(codes.filter(|it| is_test(it)).map(|it| (line, it)));
    }
    found
}

fn is_test(name: &str) -> bool {
    let is_of_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
    name.bytes().all(is_of_name) && name.matches('_').count() >= 2
}

/// The lines of a document outside blocks of code, with their numbers.
fn prose(content: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    (1..).zip(content.lines()).filter(move |(_, text)| {
        let is_fence = text.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Targets of links to files, with their lines. Text in backticks is skipped.
fn links(content: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (line, text) in prose(content) {
        for (at, start) in text.match_indices("](") {
            let is_code = text[..at].matches('`').count() % 2 == 1;
            let rest = &text[at + start.len()..];
            let target = rest.split([')', ' ']).next().unwrap_or("");
            let is_outside = target.contains("://") || target.starts_with("mailto:");
            if !is_code && !is_outside {
                found.push((line, target));
            }
        }
    }
    found
}

/// Anchors that GitHub gives to the headings: in lower case, without punctuation, with hyphens for
/// spaces, and numbered where they repeat.
fn anchors(content: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (_, text) in prose(content) {
        let title = text.trim_start_matches('#');
        if title.len() == text.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title
            .trim()
            .chars()
            .filter_map(|character| match character {
                ' ' => Some('-'),
                '-' | '_' => Some(character),
                _ if character.is_alphanumeric() => Some(character),
                _ => None,
            });
        let anchor: String = kept.flat_map(char::to_lowercase).collect();
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(match *count {
            0 => anchor,
            number => format!("{anchor}-{number}"),
        });
        *count += 1;
    }
    found
}

/// The path from the root to which `link` leads in the document `from`.
fn resolve(from: &str, link: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(content: &str) -> Vec<String> {
        let texts = [
            ("docs/a.md".to_owned(), content.to_owned()),
            (
                "docs/b.md".to_owned(),
                "# One `two`, three\n```sh\n# no heading\n```\n## Again\n## Again\n".to_owned(),
            ),
        ];
        let there = ["docs/a.md", "docs/b.md", "README.md", "crates/x"];
        let mut violations = Vec::new();
        check(&texts, |path| there.contains(&path), &mut violations);
        let told = violations.iter();
        told.map(|it| format!("{}: {}", it.line, it.what)).collect()
    }

    #[test]
    fn links_that_resolve_pass() {
        let content = "# Here\n[a](b.md) and [b](b.md#one-two-three), [c](#here)\n\
                       [d](../README.md) ![e](../crates/x/) [f](./b.md#again-1)\n\
                       [g](https://example.org/x#y) `[h](none.md)`\n```\n[i](none.md)\n```\n";
        assert_eq!(found(content), [] as [&str; 0]);
    }

    #[test]
    fn link_without_file_is_reported() {
        let told = ["2: the link none.md leads to no file"];
        assert_eq!(found("# A\n[a](b.md), [b](none.md)\n"), told);
        let told = ["1: the link ../docs/c.md#x leads to no file"];
        assert_eq!(found("[a](../docs/c.md#x)\n"), told);
    }

    #[test]
    fn named_test_that_is_missing_is_reported() {
        let text = |path: &str, content: &str| (path.to_owned(), content.to_owned());
        let names = "| `a_test_here`, `x.rs` | `short_one`, `gone_for_good` `not_one...` |\n";
        let texts = [
            text(INVARIANTS, &format!("# A\n{names}`a_fuzz_target`\n")),
            text("docs/a.md", "`gone_for_good`\n"),
            text("crates/a/src/x.rs", "fn a_test_here() {}\n"),
            text("fuzz/a_fuzz_target.rs", ""),
        ];
        let mut violations = Vec::new();
        check_tests(&texts, &mut violations);
        let told = violations.iter();
        let told: Vec<String> = told.map(|it| format!("{}: {}", it.line, it.what)).collect();
        assert_eq!(told, ["2: gone_for_good is not in the code"]);
    }

    #[test]
    fn link_without_heading_is_reported() {
        let told = [
            "2: docs/b.md has no heading for the link b.md#no-heading",
            "3: docs/a.md has no heading for the link #one",
        ];
        assert_eq!(found("# A\n[a](b.md#no-heading)\n[b](#one)\n"), told);
        let told = ["1: docs/b.md has no heading for the link b.md#again-2"];
        assert_eq!(found("[a](b.md#again-2)\n"), told);
    }
}
