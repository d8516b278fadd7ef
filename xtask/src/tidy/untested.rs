//! Long files have a unit test, in crates with many decisions: in the file itself, or in one that
//! it declares for tests. Must not count tests of a whole crate.

use crate::tidy::Violation;
use crate::tidy::lexer;
use std::collections::BTreeSet;

/// Longer files have a unit test.
const LINES_MAX: usize = 200;
/// Crates, and where in their `src`.
const PLACES: [(&str, &str); 4] = [
    ("inside", ""),
    ("recorder", ""),
    ("wall", ""),
    ("walker", "hotspot/"),
];
const TEST_ONLY: &str = "#[cfg(test)]";
const TEST: &str = "#[test]";

/// A module for tests alone.
enum Module {
    /// With its tests in the file, or without any.
    Here { has_tests: bool },
    /// In one of these files.
    Elsewhere([String; 2]),
}

/// Checks the files of a crate: paths below its `src`, and what is in them.
pub fn check(name: &str, files: &[(String, String)], found: &mut Vec<Violation>) {
    let Some((_, under)) = PLACES.iter().find(|(place, _)| *place == name) else {
        return;
    };
    let content_of = |path: &String| files.iter().find(|(it, _)| it == path).map(|(_, it)| it);
    let (mut of_tests, mut long) = (BTreeSet::new(), Vec::new());
    for (path, content) in files {
        let mut is_tested = false;
        for module in modules(path, content) {
            match module {
                Module::Here { has_tests } => is_tested |= has_tests,
                Module::Elsewhere(paths) => {
                    let tests = paths.iter().filter_map(content_of);
                    is_tested |= tests.into_iter().any(|it| has_tests(it));
                    of_tests.extend(paths);
                }
            }
        }
        let count = content.lines().count();
        if !is_tested && count > LINES_MAX && path.starts_with(under) {
            long.push((path, count));
        }
    }
    let is_production = |(path, _): &(&String, usize)| !is_of_tests(path, &of_tests);
    found.extend(long.into_iter().filter(is_production).map(|(path, count)| {
        let what = format!(
            "{count} lines without a unit test beside them: from {} on there is one",
            LINES_MAX + 1
        );
        Violation {
            path: format!("crates/{name}/src/{path}"),
            line: 1,
            rule: "untested",
            what,
        }
    }));
}

/// Whether a file is declared for tests alone, or below one that is.
fn is_of_tests(path: &str, of_tests: &BTreeSet<String>) -> bool {
    of_tests.iter().any(|declared| {
        let folder = declared.strip_suffix("mod.rs");
        let folder = folder.or(declared.strip_suffix(".rs")).unwrap_or(declared);
        let below = path.strip_prefix(folder.trim_end_matches('/'));
        path == declared || below.is_some_and(|rest| rest.starts_with('/'))
    })
}

fn has_tests(content: &str) -> bool {
    let code = lexer::split(content).code;
    code.iter().any(|line| line.contains(TEST))
}

/// The modules for tests alone that a file declares.
fn modules(path: &str, content: &str) -> Vec<Module> {
    let code = lexer::split(content).code;
    let text: Vec<&str> = content.lines().collect();
    let mut found = Vec::new();
    for (at, _) in code
        .iter()
        .enumerate()
        .filter(|(_, it)| it.trim() == TEST_ONLY)
    {
        let mut named = None;
        for (line, text) in code.iter().zip(&text).skip(at + 1) {
            let line = line.trim();
            if line.starts_with("#[path") {
                named = text.split('"').nth(1);
            }
            if line.starts_with("#[") || line.is_empty() {
                continue;
            }
            let item = line.rsplit_once("mod ").map(|(_, name)| name);
            found.extend(match item.map(|name| (name.trim_end_matches(';'), name)) {
                Some((name, whole)) if name != whole => {
                    Some(Module::Elsewhere(places(path, name, named)))
                }
                Some(_) => {
                    let rest = code.iter().skip(at);
                    let has_tests = rest.into_iter().any(|line| line.contains(TEST));
                    Some(Module::Here { has_tests })
                }
                None => None,
            });
            break;
        }
    }
    found
}

/// Where a module may be that the file at `path` declares, `named` by an attribute or not.
fn places(path: &str, name: &str, named: Option<&str>) -> [String; 2] {
    let (folder, file) = match path.rsplit_once('/') {
        Some((folder, file)) => (format!("{folder}/"), file),
        None => (String::new(), path),
    };
    if let Some(named) = named {
        return [format!("{folder}{named}"), String::new()];
    }
    let below = match file.trim_end_matches(".rs") {
        "mod" | "lib" | "main" => folder,
        stem => format!("{folder}{stem}/"),
    };
    [format!("{below}{name}.rs"), format!("{below}{name}/mod.rs")]
}
