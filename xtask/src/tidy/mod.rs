//! `tidy`: the house rules, checked over the whole repository. Must not change any file but the
//! baseline of the language, on request.
//!
//! Read next: [`rust`] (rules for Rust files), [`prose`] (for documents), [`every_file`] (for all
//! files), [`links`] (in documents). Then [`neutral`] (code that names no runtime), [`arrows`]
//! (allowed uses), [`untested`] (long files without tests), [`alike`] (files of one name),
//! [`language`] (plain English), [`commits`] (subjects), [`waived`].

pub mod alike;
pub mod arrows;
mod commits;
pub mod every_file;
pub mod language;
pub mod lexer;
pub mod links;
mod neutral;
pub mod prose;
pub mod rust;
pub mod untested;
mod waived;

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Files by their paths.
type Files = Vec<(String, String)>;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Path from the repository's root, with forward slashes.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// The rule's short name, for the list of exceptions.
    pub rule: &'static str,
    /// The problem.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {} [{}]",
            self.path, self.line, self.what, self.rule
        )
    }
}

/// Runs the task; true if no rule is broken.
///
/// # Errors
/// Files that cannot be read or written, and unknown options.
pub fn run(options: &[String]) -> Result<bool> {
    let root = crate::repository();
    match options.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        ["--lower"] => return lower(&root),
        ["--language", ref paths @ ..] => return list(&root, paths),
        _ => bail!("tidy has the options --lower and --language [PATH]..."),
    }
    let findings = examine(&root)?;
    for violation in &findings.violations {
        println!("{violation}");
    }
    if findings.fewer > 0 {
        let (fewer, command) = (findings.fewer, language::LOWER);
        println!("language: {fewer} fewer hits than the baseline has; lower it with: {command}");
    }
    let is_tidy = findings.violations.is_empty();
    println!("tidy: {}", if is_tidy { "ok" } else { "NOT OK" });
    Ok(is_tidy)
}

/// Lowers the baseline of the language, or writes a first one.
fn lower(root: &Path) -> Result<bool> {
    let hits = hits(root)?;
    let path = root.join(language::BASELINE);
    let baseline = match std::fs::read_to_string(&path) {
        Ok(text) => language::lowered(&hits, &language::parse(&text)?).0,
        Err(_) => language::first(&hits),
    };
    std::fs::write(&path, language::format(&baseline))
        .with_context(|| path.display().to_string())?;
    println!("{} is written", language::BASELINE);
    Ok(true)
}

/// Lists the homely wording in files whose paths begin with one of `paths`; in all without any.
fn list(root: &Path, paths: &[&str]) -> Result<bool> {
    let is_asked = |path: &str| paths.is_empty() || paths.iter().any(|it| path.starts_with(it));
    for ((_, kind, rule), places) in hits(root)? {
        for hit in places.iter().filter(|hit| is_asked(&hit.path)) {
            println!("{}:{}: {kind}: {rule}: {}", hit.path, hit.line, hit.words);
        }
    }
    Ok(true)
}

fn hits(root: &Path) -> Result<language::Hits> {
    let mut hits = language::Hits::new();
    for (path, content) in texts(root)? {
        language::add(&path, &content, &mut hits);
    }
    Ok(hits)
}

/// Checks all files under `root`.
///
/// # Errors
/// Files that cannot be read.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    Ok(examine(root)?.violations)
}

/// The outcome of a check.
struct Findings {
    violations: Vec<Violation>,
    /// Hits of the language that the baseline has and the files have not.
    fewer: usize,
}

fn examine(root: &Path) -> Result<Findings> {
    let files = texts(root)?;
    let mut violations = Vec::new();
    let mut hits = language::Hits::new();
    let mut paths = Vec::new();
    let mut heads = Vec::new();
    let mut crates: BTreeMap<String, Files> = BTreeMap::new();
    let mut manifests = Vec::new();
    let mut architecture = String::new();
    for (path, content) in files {
        language::add(&path, &content, &mut hits);
        if !every_file::is_text(&path) {
            continue;
        }
        every_file::check(&path, &content, &mut violations);
        if path.ends_with(".rs") {
            rust::check(&path, &content, &mut violations);
        }
        if path.ends_with(".md") {
            prose::check(&path, &content, &mut violations);
        }
        paths.push(path.clone());
        heads.push((path.clone(), content.clone()));
        match path
            .strip_prefix("crates/")
            .and_then(|it| it.split_once('/'))
        {
            Some((name, "Cargo.toml")) => manifests.push((name.to_owned(), content)),
            Some((name, below)) if below.ends_with(".rs") => {
                if let Some(source) = below.strip_prefix("src/") {
                    let files = crates.entry(name.to_owned()).or_default();
                    files.push((source.to_owned(), content));
                }
            }
            _ if path == "ARCHITECTURE.md" => architecture = content,
            _ => {}
        }
    }
    arrows::crates(&architecture, &manifests, &mut violations);
    for (name, files) in &crates {
        arrows::modules(name, files, &mut violations);
        untested::check(name, files, &mut violations);
    }
    alike::check(&heads, &mut violations);
    links::check(&heads, |path| root.join(path).exists(), &mut violations);
    links::check_tests(&heads, &mut violations);
    neutral::check_list(&paths, &mut violations);
    commits::check(root, &mut violations);
    let path = root.join(language::BASELINE);
    let baseline = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: write it with: {}", path.display(), language::LOWER))?;
    let baseline = language::parse(&baseline)?;
    language::check(&hits, &baseline, &mut violations);
    waived::apply(&mut violations, &paths);
    violations.sort();
    let fewer = language::lowered(&hits, &baseline).1;
    Ok(Findings { violations, fewer })
}

/// All files that people have written, with their paths: texts by their endings, and scripts.
fn texts(root: &Path) -> Result<Files> {
    let mut files = Vec::new();
    collect(root, &mut files).with_context(|| root.display().to_string())?;
    let mut texts = Files::new();
    for file in files {
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let path = relative(root, &file);
        if let Ok(content) = String::from_utf8(bytes)
            && (every_file::is_text(&path) || content.starts_with("#!"))
        {
            texts.push((path, content));
        }
    }
    texts.sort();
    Ok(texts)
}

fn relative(root: &Path, file: &Path) -> String {
    let path = file.strip_prefix(root).unwrap_or(file);
    path.components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

/// Directories of things that are built or fetched, not written.
const SKIPPED: [&str; 7] = [
    "target",
    "node_modules",
    "dist",
    "build",
    ".git",
    "__pycache__",
    "proptest-regressions",
];

fn may_be_text(name: &str) -> bool {
    every_file::is_text(name) || !name.contains('.')
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
            collect(&entry.path(), files)?;
        } else if kind.is_file() && may_be_text(&name.to_string_lossy()) {
            files.push(entry.path());
        }
    }
    Ok(())
}
