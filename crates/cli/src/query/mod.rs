//! `dwell query`: answers SQL about recordings, by DuckDB's command.
//!
//! The recordings become tables in Parquet, in the user's cache. DuckDB runs in a private directory
//! with links to them, can open no other file, and gets the SQL as one argument: no shell, no
//! commands of DuckDB's own prompt.

mod converted;
mod engine;
mod views;

use crate::tables_dir::{PrivateDir, has_tables};
use crate::{Usage, recording, tables_dir};
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use converted::Converted;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::Path;

/// `dwell query`.
#[derive(Debug, Args)]
#[command(
    override_usage = "dwell query [OPTIONS] <FILE.jfr|DIR>... <SQL>",
    after_help = "\
Views: samples, waits, wall (both), allocations, live, locks, requests, spans, safepoints, late,
threads, stacks, frames, stack_frames, recording. Macros: top(VIEW), totals(VIEW),
callers(VIEW, 'METHOD'), callees(VIEW, 'METHOD'), with_method('METHOD'), folded(VIEW).
docs/query.md has twenty questions. Needs DuckDB: `duckdb` of the search path, or $DWELL_DUCKDB.

Examples:
  dwell query app.jfr 'FROM top(samples) LIMIT 10'
  dwell query app.jfr 'SELECT cause, sum(weight_ns) / 1e6 AS ms FROM wall GROUP BY ALL'
  dwell query a.jfr b.jfr --format csv 'SELECT recording, sum(weight_ns) FROM samples GROUP BY 1'
  dwell query tables/ 'DESCRIBE samples'"
)]
pub struct Query {
    /// Recordings, or directories that `dwell convert` wrote; the last word is the question
    #[arg(value_name = "FILE.jfr|DIR|SQL", required = true, num_args = 2..)]
    pub words: Vec<OsString>,
    /// Form of the answer
    #[arg(long, value_enum, default_value_t = Form::Table)]
    pub format: Form,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A table for people
    Table,
    /// Comma-separated values
    Csv,
    /// An array of objects
    Json,
}

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

/// The question and the inputs.
fn split(words: &[OsString]) -> Result<(&str, &[OsString])> {
    let question = words.split_last();
    let question = question.and_then(|(sql, inputs)| Some((sql.to_str()?, inputs)));
    question.ok_or_else(|| Usage("SQL: is not valid UTF-8".to_owned()).into())
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
