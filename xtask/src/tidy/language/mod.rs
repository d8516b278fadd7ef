//! Plain English, held by a ratchet: the homely wording of each area of the repository is counted,
//! by kind of text and by rule. A count may not exceed the one in the committed baseline. Pure.
//!
//! Must not decide whether a hit is wrong: the baseline has those that are left.

pub mod passages;
pub mod patterns;

use crate::tidy::Violation;
use anyhow::{Context, Result};
use std::collections::BTreeMap;

/// The baseline's path from the repository's root.
pub const BASELINE: &str = "xtask/language.tsv";
/// The command that lowers the baseline.
pub const LOWER: &str = "cargo run -p xtask -- tidy --lower";
/// Violations of one count that are listed.
const LISTED: usize = 10;
/// Files of other origin, or with text that is data.
const FOREIGN: [&str; 2] = ["fixtures/", "bench/history/"];

/// A place with homely wording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The file.
    pub path: String,
    /// The line.
    pub line: usize,
    /// The words.
    pub words: String,
}

/// The unit of counting: area, kind of text and rule.
pub type Key = (String, &'static str, &'static str);

/// The hits of the repository.
pub type Hits = BTreeMap<Key, Vec<Hit>>;

/// The counts of a baseline, by area, kind and rule.
pub type Baseline = BTreeMap<(String, String, String), usize>;

/// Adds the hits of a file.
pub fn add(path: &str, content: &str, hits: &mut Hits) {
    if FOREIGN.iter().any(|folder| path.starts_with(folder)) {
        return;
    }
    for passage in passages::of(path, content) {
        for found in patterns::matches(&passage) {
            let key = (area(path), passage.kind.name(), found.rule);
            hits.entry(key).or_default().push(Hit {
                path: path.to_owned(),
                line: found.line,
                words: found.words,
            });
        }
    }
}

/// The crate or the folder at the root that a file is in.
fn area(path: &str) -> String {
    let mut folders = path.split('/');
    match (folders.next(), folders.next(), folders.next()) {
        (Some("crates"), Some(name), Some(_)) => format!("crates/{name}"),
        (Some(folder), Some(_), _) => folder.to_owned(),
        _ => "(root)".to_owned(),
    }
}

/// Reads a baseline.
///
/// # Errors
/// A line that is not `area kind rule count` with tabs between.
pub fn parse(text: &str) -> Result<Baseline> {
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let entries = lines.map(|(number, line)| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().map(str::to_owned);
        let entry = (|| Some(((field()?, field()?, field()?), field()?.parse().ok()?)))();
        entry.with_context(|| format!("{BASELINE}:{number}: not `area kind rule count`: {line}"))
    });
    entries.collect()
}

/// The text of a baseline.
#[must_use]
pub fn format(baseline: &Baseline) -> String {
    let head =
        format!("# Homely wording that is left, counted by `xtask tidy`.\n# Lower: {LOWER}\n");
    let lines = baseline.iter().filter(|(_, count)| **count > 0);
    lines.fold(head, |text, ((area, kind, rule), count)| {
        format!("{text}{area}\t{kind}\t{rule}\t{count}\n")
    })
}

fn owned((area, kind, rule): &Key) -> (String, String, String) {
    (area.clone(), (*kind).to_owned(), (*rule).to_owned())
}

/// Reports the counts that exceed the baseline, each with its places.
pub fn check(hits: &Hits, baseline: &Baseline, violations: &mut Vec<Violation>) {
    for (key, places) in hits {
        let (area, kind, rule) = key;
        let allowed = baseline.get(&owned(key)).copied().unwrap_or(0);
        if places.len() <= allowed {
            continue;
        }
        let count = places.len();
        for (number, hit) in (1..).zip(places.iter().take(LISTED)) {
            let more = match number == LISTED && count > LISTED {
                true => format!(" ({} more places)", count - LISTED),
                false => String::new(),
            };
            violations.push(Violation {
                path: hit.path.clone(),
                line: hit.line,
                rule: "language",
                what: format!(
                    "\"{}\" [{rule}: {}]; {kind} of {area} have {count}, the baseline has \
                     {allowed}{more}",
                    hit.words,
                    patterns::advice(rule),
                ),
            });
        }
    }
}

/// The baseline with each count lowered to the present one, and how many hits that are fewer.
#[must_use]
pub fn lowered(hits: &Hits, baseline: &Baseline) -> (Baseline, usize) {
    let present: Baseline = hits
        .iter()
        .map(|(key, it)| (owned(key), it.len()))
        .collect();
    let of = |key| present.get(key).copied().unwrap_or(0);
    let counts = baseline.iter();
    let lowered: Baseline = counts
        .map(|(key, count)| (key.clone(), (*count).min(of(key))))
        .collect();
    let fewer = baseline.values().sum::<usize>() - lowered.values().sum::<usize>();
    (lowered, fewer)
}

/// A first baseline: the present counts.
#[must_use]
pub fn first(hits: &Hits) -> Baseline {
    hits.iter()
        .map(|(key, it)| (owned(key), it.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(files: &[(&str, &str)]) -> Hits {
        let mut hits = Hits::new();
        for (path, content) in files {
            add(path, content, &mut hits);
        }
        hits
    }

    fn listed(hits: &Hits, baseline: &Baseline) -> Vec<(String, usize)> {
        let mut violations = Vec::new();
        check(hits, baseline, &mut violations);
        violations
            .into_iter()
            .map(|it| (it.path, it.line))
            .collect()
    }

    const TOLD: &str = "// It is told.\n";

    #[test]
    fn hits_are_counted_by_area_kind_and_rule() {
        let hits = hits(&[
            ("crates/a/src/x.rs", TOLD),
            ("crates/a/tests/y.rs", TOLD),
            ("crates/b/src/x.rs", TOLD),
            ("docs/z.md", "It tells. Beside it.\n"),
            ("README.md", "It is told.\n"),
            ("fixtures/a.md", "It is told.\n"),
        ]);
        let counts: Vec<_> = hits
            .iter()
            .map(|(key, it)| (key.clone(), it.len()))
            .collect();
        let key = |area: &str, kind, rule, count| ((area.to_owned(), kind, rule), count);
        let expected = [
            key("(root)", "documents", "told", 1),
            key("crates/a", "comments", "told", 2),
            key("crates/b", "comments", "told", 1),
            key("docs", "documents", "beside", 1),
            key("docs", "documents", "told", 1),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn count_above_the_baseline_is_a_violation() {
        let found = hits(&[("crates/a/src/x.rs", TOLD), ("crates/a/src/y.rs", TOLD)]);
        assert_eq!(listed(&found, &first(&found)), []);
        let one = parse("crates/a\tcomments\ttold\t1\n").unwrap();
        let expected = [
            ("crates/a/src/x.rs".to_owned(), 1),
            ("crates/a/src/y.rs".to_owned(), 1),
        ];
        assert_eq!(listed(&found, &one), expected);
        let other = parse("crates/b\tcomments\ttold\t9\ncrates/a\tcomments\twho\t9\n").unwrap();
        assert_eq!(listed(&found, &other).len(), 2);
    }

    #[test]
    fn violation_says_how_many_and_how_to_write() {
        let found = hits(&[("docs/a.md", &"It is told.\n".repeat(12))]);
        let mut violations = Vec::new();
        check(&found, &Baseline::new(), &mut violations);
        assert_eq!(violations.len(), LISTED);
        let told = patterns::advice("told");
        let words = "is told";
        let first =
            format!("\"{words}\" [told: {told}]; documents of docs have 12, the baseline has 0");
        assert_eq!(violations[0].what, first);
        assert_eq!(violations[9].what, format!("{first} (2 more places)"));
    }

    #[test]
    fn lowering_never_raises_a_count() {
        let found = hits(&[("crates/a/src/x.rs", TOLD), ("docs/a.md", "It is told.\n")]);
        let before = parse(
            "crates/a\tcomments\ttold\t3\ncrates/gone\tcomments\ttold\t2\n\
             docs\tdocuments\ttold\t0\n",
        );
        let (after, fewer) = lowered(&found, &before.unwrap());
        assert_eq!(fewer, 4);
        assert_eq!(
            format(&after).lines().skip(2).collect::<Vec<_>>(),
            ["crates/a\tcomments\ttold\t1"]
        );
        assert_eq!(lowered(&found, &after).1, 0);
    }

    #[test]
    fn written_baseline_is_read_back() {
        let baseline = first(&hits(&[("crates/a/src/x.rs", TOLD)]));
        assert_eq!(parse(&format(&baseline)).unwrap(), baseline);
        let wrong = parse("# head\n\ncrates/a\tcomments\ttold\n").unwrap_err();
        assert!(wrong.to_string().starts_with("xtask/language.tsv:3: "));
        assert!(parse("a\tb\tc\tmany\n").is_err());
    }
}
