//! Arrows go downwards only: between crates as ARCHITECTURE.md lists them, and between the modules
//! of a crate without circles. Pure: texts in, violations out.

use super::Violation;
use super::lexer;
use std::collections::{BTreeMap, BTreeSet};

/// Where the list of crates is: a block of code that begins with this line.
const BLOCK: &str = "```crates";

/// The attribute before an item that is only for tests.
const TEST: &str = "#[cfg(test)]";

/// A graph by names.
pub type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks the crates' manifests against the list in ARCHITECTURE.md. `manifests` are names of
/// folders below `crates/`, and what their `Cargo.toml` says.
pub fn crates(architecture: &str, manifests: &[(String, String)], found: &mut Vec<Violation>) {
    let mut say = |path: &str, line: usize, what: String| {
        found.push(Violation {
            path: path.to_owned(),
            line,
            rule: "crate-arrow",
            what,
        });
    };
    let lines = architecture.lines().enumerate();
    let mut lines = lines.skip_while(|(_, line)| line.trim() != BLOCK).skip(1);
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (number, line) in lines.by_ref() {
        let Some((name, uses)) = line.split_once(':') else {
            break;
        };
        let uses: BTreeSet<&str> = uses.split_whitespace().collect();
        for used in &uses {
            if !listed.contains_key(used) {
                let what = format!("{name} uses {used}, which is not above it in the list");
                say("ARCHITECTURE.md", number + 1, what);
            }
        }
        listed.insert(name, uses);
    }
    for (name, manifest) in manifests {
        let path = format!("crates/{name}/Cargo.toml");
        let uses = dependencies(manifest);
        match listed.get(name.as_str()) {
            None => say(&path, 1, format!("{name} is not in ARCHITECTURE.md's list")),
            Some(allowed) => {
                let used: BTreeSet<&str> = uses.iter().map(String::as_str).collect();
                for more in used.difference(allowed) {
                    say(
                        &path,
                        1,
                        format!("{name} uses {more}, which is not in its list"),
                    );
                }
                for less in allowed.difference(&used) {
                    say(
                        &path,
                        1,
                        format!("{name} is listed to use {less}, and does not"),
                    );
                }
            }
        }
    }
}

/// Our own crates among the dependencies of a manifest, but for those of tests.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut is_in = false;
    let mut uses = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        let name = match line.strip_prefix('[') {
            Some(table) => {
                let table = table.trim_end_matches(']');
                is_in = table.ends_with("dependencies") && table != "dev-dependencies";
                table.strip_prefix("dependencies.")
            }
            None if is_in => line.split([' ', '=', '.']).next(),
            None => None,
        };
        let own = |name: &str| name.strip_prefix("dwell-").map(str::to_owned);
        let name = name.filter(|name| name.starts_with("dwell-") || *name == "jvm-sys");
        uses.extend(name.map(|name| own(name).unwrap_or_else(|| name.to_owned())));
    }
    uses
}

/// Checks that no circle leads through the modules of a crate. `files` are paths below its `src`
/// and what is in them.
pub fn modules(name: &str, files: &[(String, String)], found: &mut Vec<Violation>) {
    let on_circles = on_circles(&graph(files));
    found.extend(on_circles.iter().map(|module| Violation {
        path: format!("crates/{name}/src"),
        line: 1,
        rule: "module-circle",
        what: format!("{module} is on a circle: {on_circles:?} use each other"),
    }));
}

/// The uses between modules right below a crate's root, by the paths that name them. An export of
/// the root (`crate::Name`) belongs to its module. Test files are ignored, like tests within a
/// file.
#[must_use]
pub fn graph(files: &[(String, String)]) -> Graph {
    let module_of = |path: &str| {
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
        if matches!(
            parts.last().map(String::as_str),
            Some("mod" | "lib" | "main")
        ) {
            parts.pop();
        }
        parts
    };
    let tops: BTreeSet<String> = files
        .iter()
        .filter_map(|(path, _)| module_of(path).into_iter().next())
        .collect();
    let is_root = |path: &str| matches!(path, "lib.rs" | "main.rs");
    let roots = files.iter().filter(|(path, _)| is_root(path));
    let exported: BTreeMap<String, String> = roots
        .flat_map(|(_, content)| exports_of(&code_of(content)))
        .collect();
    let mut graph = Graph::new();
    for (path, content) in files {
        let module = module_of(path);
        let Some(top) = module.first() else {
            continue;
        };
        if path.ends_with("/tests.rs") || path.ends_with("_tests.rs") {
            continue;
        }
        let uses = graph.entry(top.clone()).or_default();
        for used in uses_of(&code_of(content), &module) {
            let of_root = exported.get(&used).filter(|_| !tops.contains(&used));
            let used = of_root.unwrap_or(&used).clone();
            if used != *top && tops.contains(&used) {
                uses.insert(used);
            }
        }
    }
    graph
}

/// The code of a file on one line, without tests.
fn code_of(content: &str) -> String {
    let code = lexer::split(content).code.join(" ");
    let mut kept = String::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find(TEST) {
        kept.push_str(&rest[..at]);
        rest = &rest[at + TEST.len()..];
        rest = &rest[end_of_item(rest)..];
    }
    kept + rest
}

/// Where an item ends: behind its semicolon, or its last brace.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The names that the code of a root exports, each with the module right below that it is from.
fn exports_of(code: &str) -> Vec<(String, String)> {
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let mut found = Vec::new();
    for (at, start) in code.match_indices("pub use ") {
        let path = code[at + start.len()..].split(';').next().unwrap_or("");
        let mut words = path.split(|it| !is_word(it)).filter(|it| !it.is_empty());
        let module = words.find(|it| !matches!(*it, "crate" | "self"));
        let module = module.unwrap_or("").to_owned();
        found.extend(words.map(|name| (name.to_owned(), module.clone())));
    }
    found
}

/// The modules right below the root that paths in `code` lead to, which is in `module`.
fn uses_of(code: &str, module: &[String]) -> BTreeSet<String> {
    let mut uses = BTreeSet::new();
    for (start, depth) in [("crate::", None), ("super::", module.len().checked_sub(1))] {
        let mut rest = code;
        while let Some(at) = rest.find(start) {
            let before = rest[..at].chars().next_back();
            let is_path = before.is_none_or(|it| !it.is_alphanumeric() && !"_:$".contains(it));
            rest = &rest[at + start.len()..];
            if is_path {
                let base = depth.map_or(&module[..0], |depth| &module[..depth]);
                follow(rest, base, &mut uses);
            }
        }
    }
    uses
}

/// Adds where a path leads that goes on with `rest` from `base`: each of what is in braces.
fn follow(rest: &str, base: &[String], uses: &mut BTreeSet<String>) {
    let rest = rest.trim_start();
    if let Some(list) = rest.strip_prefix('{') {
        let (mut depth, mut start) = (0usize, 0);
        for (at, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    follow(&list[start..at], base, uses);
                    start = at + 1;
                    if character == '}' {
                        return;
                    }
                }
                _ => {}
            }
        }
        return;
    }
    if let Some(rest) = rest.strip_prefix("super::") {
        return follow(rest, &base[..base.len().saturating_sub(1)], uses);
    }
    let is_word = |it: char| it.is_alphanumeric() || it == '_';
    let word: String = rest.chars().take_while(|it| is_word(*it)).collect();
    let top = base
        .first()
        .cloned()
        .or(Some(word).filter(|it| !it.is_empty()));
    uses.extend(top);
}

/// Those from which a way leads back to themselves.
#[must_use]
pub fn on_circles(graph: &Graph) -> BTreeSet<String> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = graph.get(from).into_iter().flatten().collect();
        while let Some(name) = next.pop() {
            if seen.insert(name) {
                next.extend(graph.get(name).into_iter().flatten());
            }
        }
        seen.contains(from)
    };
    graph.keys().filter(|it| reached(it)).cloned().collect()
}
