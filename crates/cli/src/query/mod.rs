//! `dwell query`: answers SQL about recordings, by DuckDB's command.
//!
//! The recordings become tables in Parquet, in the user's cache. DuckDB runs in a private directory
//! with links to them, can open no other file, and gets the SQL as one argument: no shell, no
//! commands of DuckDB's own prompt.

mod converted;
mod engine;
mod views;

use crate::query_args::Query;
use crate::tables_dir::{PrivateDir, has_tables};
use crate::{Usage, recording, tables_dir};
use anyhow::{Context, Result, bail};
use converted::Converted;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;

/// `dwell query`.
pub fn run(args: &Query) -> Result<()> {
    let (sql, inputs) = split(&args.words)?;
    // Before the work of reading a recording.
    let engine = engine::find()?;
    let links = PrivateDir::create(&std::env::temp_dir())
        .with_context(|| format!("writing {}", std::env::temp_dir().display()))?;
    let mut converted = Vec::new();
    let mut names = Vec::new();
    for (place, input) in inputs.iter().map(Path::new).enumerate() {
        let tables = tables_of(input)?;
        let link = links.path().join(place.to_string());
        symlink(tables.path(), &link).with_context(|| recording::shown(&link))?;
        names.push(recording::shown(input));
        converted.push(tables);
    }
    let setup = views::statements(&names);
    engine.answer(links.path(), &setup, sql, args.format)
}

/// The question, which is the last word, and the inputs.
fn split(words: &[OsString]) -> Result<(&str, &[OsString])> {
    let usage = |text: &str| Err(Usage(text.to_owned()).into());
    match words.split_last() {
        Some((sql, inputs)) if !inputs.is_empty() => match sql.to_str() {
            Some(sql) => Ok((sql, inputs)),
            None => usage("query: the SQL is not valid UTF-8"),
        },
        _ => usage("query: needs recordings and SQL: dwell query FILE.jfr 'FROM top(samples)'"),
    }
}

/// The tables of an input.
fn tables_of(input: &Path) -> Result<Converted> {
    if !input.is_dir() {
        return converted::of_recording(input);
    }
    let shown = recording::shown(input);
    if !has_tables(input) {
        let table = tables_dir::file_of(Path::new(""), "samples");
        bail!(
            "{shown}: has no {}; name a recording, or make the tables with: \
             dwell convert FILE.jfr --parquet DIR",
            table.display()
        );
    }
    let path = std::fs::canonicalize(input).with_context(|| shown)?;
    Ok(Converted::Kept(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn last_word_is_the_question() {
        let words = ["a.jfr", "b.jfr", "SELECT 1"].map(OsString::from);
        assert_eq!(split(&words).unwrap(), ("SELECT 1", &words[..2]));
        assert!(split(&words[..1]).unwrap_err().is::<Usage>());
        let bytes = ["a.jfr".into(), OsString::from_vec(vec![0xff])];
        assert!(split(&bytes).unwrap_err().is::<Usage>());
    }
}
