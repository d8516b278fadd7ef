//! The command line of `dwell ship`, and the receiver of `dwell record`.

use super::Redaction;
use crate::{checked, units};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `dwell ship`.
#[derive(Debug, Args)]
#[command(after_help = "\
URL is otlp+http://HOST:4318 (OTLP profiles), pyroscope+http://HOST:4040, or http://HOST/FOLDER/ for
files by PUT; https as well. Put credentials into $DWELL_SHIP_AUTHORIZATION or --header-file, and a
URL with a signature into $DWELL_SHIP_TO. See docs/ship.md.

Examples:
  dwell ship --to otlp+http://localhost:4318 app.jfr
  dwell ship --to pyroscope+https://profiles.example.com --header-file headers.txt 4711
  dwell ship --to https://files.example.com/dwell/ /var/log/recordings
  dwell ship --to otlp+http://localhost:4318
                                        sends what an earlier run has left in the spool")]
pub struct Ship {
    /// The receiver.
    #[command(flatten)]
    pub to: To,
    /// What is sent [default: pprof for Pyroscope, jfr for files]
    #[arg(long, value_enum)]
    pub format: Option<BodyForm>,
    /// Time that a body covers, from 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::part)]
    pub every: Duration,
    /// Send what there is now, and do not follow recordings that go on
    #[arg(long)]
    pub once: bool,
    /// Directory for bodies that wait to be sent, of this receiver only
    /// [default: below $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// Maximum size of these bodies, at least 1m; above it the oldest are dropped
    #[arg(long, value_name = "SIZE", default_value = "100m", value_parser = checked::spool)]
    pub spool_max: u64,
    /// Redaction options.
    #[command(flatten)]
    pub redaction: Redaction,
    /// A recording, a directory of recordings, or a JVM with a continuous recording
    #[arg(value_name = "FILE|DIR|PID|NAME")]
    pub input: Option<OsString>,
}

/// The receiver of profiles.
#[derive(Debug, Clone, Default, Args)]
pub struct To {
    /// Send to this receiver; see docs/ship.md [default for ship: $DWELL_SHIP_TO]
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    /// A file with a line `Name: value` for each header to send to the receiver
    #[arg(long, value_name = "FILE")]
    pub header_file: Option<PathBuf>,
}

/// The form of what is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BodyForm {
    /// OTLP profiles
    Otlp,
    /// pprof
    Pprof,
    /// A recording
    Jfr,
    /// Tables in Parquet
    Parquet,
}
