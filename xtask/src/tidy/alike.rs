//! Files of one name and language have one subject. The glossary lists the names that two or more
//! files have, each with its subject and with words of which the first sentences of each such file
//! have one. Must not know of any other rule.

use crate::tidy::Violation;
use std::collections::BTreeMap;

/// The document with the list, and the heading above it.
const GLOSSARY: &str = "docs/glossary.md";
const HEADING: &str = "## Files of one name";
/// Names that describe a file's place, not its subject.
const PLACES: [&str; 5] = ["lib", "main", "mod", "tests", "index"];
/// Endings of names of files that test the one without it.
const TESTS: [&str; 2] = ["_tests", ".test"];

/// A file of the product by its path, with the comment at its head.
struct File<'a> {
    path: &'a str,
    head: String,
}

/// A line of the list.
struct Entry {
    line: usize,
    words: Vec<String>,
    is_used: bool,
}

/// Checks all files, of which the list is one: paths and contents.
pub fn check(files: &[(String, String)], found: &mut Vec<Violation>) {
    let list = files.iter().find(|(path, _)| path == GLOSSARY);
    let mut entries = list.map_or_else(BTreeMap::new, |(_, text)| entries(text));
    for (name, files) in shared(files) {
        let Some(entry) = entries.get_mut(name) else {
            let all: Vec<&str> = files.iter().map(|file| file.path).collect();
            let what = format!(
                "files named `{name}`: {}; are they about one thing? Then {GLOSSARY} says which, \
                 under '{HEADING}'; else rename",
                all.join(", ")
            );
            found.push(violation(files[0].path, 1, what));
            continue;
        };
        entry.is_used = true;
        for file in files {
            if !entry.words.iter().any(|word| file.head.contains(word)) {
                let what = format!(
                    "its first sentences lack the words that {GLOSSARY} lists for files named \
                     `{name}`: {}",
                    entry.words.join(", ")
                );
                found.push(violation(file.path, 1, what));
            }
        }
    }
    let unused = entries.iter().filter(|(_, entry)| !entry.is_used);
    found.extend(unused.map(|(name, entry)| {
        let what = format!("no two files are named `{name}`");
        violation(GLOSSARY, entry.line, what)
    }));
}

fn violation(path: &str, line: usize, what: String) -> Violation {
    Violation {
        path: path.to_owned(),
        line,
        rule: "alike",
        what,
    }
}

/// The rows below the heading: a name, what files of that name are about, words.
fn entries(text: &str) -> BTreeMap<String, Entry> {
    let below = text.lines().enumerate();
    let below = below.skip_while(|(_, line)| *line != HEADING).skip(1);
    let table = below.take_while(|(_, line)| !line.starts_with("## "));
    let rows = table.filter_map(|(index, line)| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`').to_owned();
        let words = cells.nth(1)?.split(", ").map(str::to_lowercase);
        let entry = Entry {
            line: index + 1,
            words: words.filter(|word| !word.is_empty()).collect(),
            is_used: false,
        };
        Some((name, entry))
    });
    rows.collect()
}

/// Names that two or more files of one language have, with these.
fn shared(files: &[(String, String)]) -> Vec<(&str, Vec<File<'_>>)> {
    let mut all: BTreeMap<(&str, bool), Vec<File<'_>>> = BTreeMap::new();
    for (path, content) in files {
        if let Some(name) = subject(path) {
            let head = head(content);
            let files = all.entry((name, path.ends_with(".rs"))).or_default();
            files.push(File { path, head });
        }
    }
    let shared = all.into_iter().filter(|(_, files)| files.len() > 1);
    shared.map(|((name, _), files)| (name, files)).collect()
}

/// The subject in a file's name, if the file is a part of the product or of its tools.
fn subject(path: &str) -> Option<&str> {
    let (directory, name) = path.rsplit_once('/')?;
    let mut folders = directory.split('/');
    let is_source = match folders.next()? {
        "crates" => folders.nth(1) == Some("src"),
        "xtask" | "viewer" => folders.next() == Some("src"),
        _ => false,
    };
    let (name, extension) = name.rsplit_once('.')?;
    let is_source = is_source && ["rs", "ts", "tsx"].contains(&extension);
    let is_test = TESTS.iter().any(|ending| name.ends_with(ending));
    (is_source && !is_test && !PLACES.contains(&name)).then_some(name)
}

/// The first paragraph of the comment that a file begins with, in small letters.
fn head(content: &str) -> String {
    let comment = |line: &str| {
        let text = line.strip_prefix("//!").or(line.strip_prefix("//"))?;
        Some(text.trim().to_lowercase())
    };
    let lines = content.lines().map_while(comment);
    let paragraph: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    paragraph.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# Words\n\n| `other` | not here | x |\n\n## Files of one name\n\n\
        | name | what | words |\n|---|---|---|\n\
        | `pool` | slots for snapshots | slot, snapshot |\n\n## More\n\n| `late` | x | y |\n";

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let owned = |(path, content): &(&str, &str)| ((*path).to_owned(), (*content).to_owned());
        let files: Vec<_> = files.iter().map(owned).collect();
        let mut found = Vec::new();
        check(&files, &mut found);
        let told = found.iter();
        told.map(|it| format!("{}:{}", it.path, it.line)).collect()
    }

    const GOOD: [(&str, &str); 3] = [
        (GLOSSARY, LIST),
        ("crates/a/src/pool.rs", "//! The Slots.\n"),
        (
            "crates/b/src/c/pool.rs",
            "//! Where a\n//! snapshot lies.\n\ncode",
        ),
    ];

    #[test]
    fn list_ends_at_the_next_heading() {
        let entries = entries(LIST);
        assert!(entries.keys().eq(["pool"]));
        assert_eq!(entries["pool"].words, ["slot", "snapshot"]);
    }

    #[test]
    fn files_of_one_name_have_the_listed_subject() {
        assert!(of(&GOOD).is_empty());
        let mut other = GOOD.to_vec();
        other[2].1 = "//! Constants.\n//!\n//! Not slots.\n";
        assert_eq!(of(&other), ["crates/b/src/c/pool.rs:1"]);
        let mut unlisted = GOOD.to_vec();
        unlisted.extend([("crates/a/src/x.rs", ""), ("xtask/src/x.rs", "")]);
        unlisted.extend([("crates/a/src/y.rs", ""), ("viewer/src/y.ts", "")]);
        assert_eq!(of(&unlisted), ["crates/a/src/x.rs:1"]);
    }

    #[test]
    fn listed_name_needs_two_files() {
        assert_eq!(of(&GOOD[..2]), ["docs/glossary.md:9"]);
    }

    #[test]
    fn only_names_of_subjects_count() {
        let is = |path| subject(path).is_some();
        assert!(is("crates/a/src/b/c.rs") && is("viewer/src/c.tsx") && is("xtask/src/c.rs"));
        let others = [
            "crates/a/tests/c.rs",
            "crates/a/src/mod.rs",
            "crates/a/src/c_tests.rs",
            "viewer/src/c.test.ts",
            "viewer/c.ts",
            "bench/a/src/c.rs",
            "crates/a/src/c.txt",
            "c.rs",
        ];
        assert!(!others.into_iter().any(is));
    }
}
