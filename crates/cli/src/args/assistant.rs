//! The command line of `dwell mcp`.

use super::Redaction;
use clap::Args;
use std::path::PathBuf;

/// `dwell mcp`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads JSON-RPC lines from standard input until it ends. An assistant starts this command itself:
docs/mcp.md has the configurations, the tools, and what can mislead.

Examples:
  dwell mcp app.jfr                     questions about a recording
  dwell mcp before.jfr after.jfr        and about differences
  claude mcp add dwell -- dwell mcp /var/tmp/app.jfr")]
pub struct Mcp {
    /// Recordings of dwell, the JDK, async-profiler or ddprof
    #[arg(value_name = "FILE.jfr", required = true)]
    pub inputs: Vec<PathBuf>,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
}
