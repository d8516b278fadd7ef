//! The command line of `dwell query`.

use clap::{Args, ValueEnum};
use std::ffi::OsString;

/// `dwell query`.
#[derive(Debug, Args)]
#[command(
    override_usage = "dwell query [OPTIONS] <FILE.jfr|DIR>... <SQL>",
    after_help = "\
Views of time: samples, waits, wall (both), locks, owners, late.
Other views: allocations, live, requests, spans, safepoints, threads, stacks, frames, recording.
Macros: top(VIEW), totals(VIEW), callers(VIEW, 'METHOD'), callees(VIEW, 'METHOD'), folded(VIEW).
See docs/query.md. Needs DuckDB: `duckdb` of the search path, or $DWELL_DUCKDB.

Examples:
  dwell query app.jfr 'FROM top(samples) LIMIT 10'
  dwell query app.jfr 'SELECT cause, sum(weight_ns) FROM wall GROUP BY 1'
  dwell query a.jfr b.jfr --format csv 'FROM totals(wall)'"
)]
pub struct Query {
    /// Recordings, or directories that `dwell convert` wrote; the last word is the question
    #[arg(value_name = "FILE.jfr|DIR|SQL", required = true, num_args = 1..)]
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
