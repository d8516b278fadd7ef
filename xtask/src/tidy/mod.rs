//! `tidy`: the house rules, checked over the whole repository. Must not change any file.
//!
//! Read next: [`rust`] (rules for Rust files), [`prose`] (for documents), [`every_file`] (for all
//! files). Then [`neutral`] (code that names no runtime), [`arrows`] (allowed uses), [`untested`]
//! (long files without tests), [`alike`] (files of one name), [`waived`].

pub mod alike;
pub mod arrows;
pub mod every_file;
pub mod lexer;
mod neutral;
pub mod prose;
pub mod rust;
pub mod untested;
mod waived;

use anyhow::{Context, Result};
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
    /// What is wrong.
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
/// Files that cannot be read.
pub fn run() -> Result<bool> {
    let violations = check(&crate::repository())?;
    for violation in &violations {
        println!("{violation}");
    }
    println!(
        "tidy: {}",
        if violations.is_empty() {
            "ok"
        } else {
            "NOT OK"
        }
    );
    Ok(violations.is_empty())
}

/// Checks all files under `root`.
///
/// # Errors
/// Files that cannot be read.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let mut files = Vec::new();
    collect(root, &mut files).with_context(|| root.display().to_string())?;
    let mut violations = Vec::new();
    let mut paths = Vec::new();
    let mut heads = Vec::new();
    let mut crates: BTreeMap<String, Files> = BTreeMap::new();
    let mut manifests = Vec::new();
    let mut architecture = String::new();
    for file in files {
        let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
        let Ok(content) = String::from_utf8(bytes) else {
            continue;
        };
        let path = relative(root, &file);
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
    neutral::check_list(&paths, &mut violations);
    waived::apply(&mut violations, &paths);
    violations.sort();
    Ok(violations)
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

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let kind = entry.file_type()?;
        if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
            collect(&entry.path(), files)?;
        } else if kind.is_file() && every_file::is_text(&name.to_string_lossy()) {
            files.push(entry.path());
        }
    }
    Ok(())
}
