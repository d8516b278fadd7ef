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
The URL's scheme names the receiver: otlp+http (OTLP profiles), pyroscope+http, or http (files by
PUT), and the same with https. Credentials come from $DWELL_SHIP_AUTHORIZATION or --header-file.
A URL with a signature belongs into $DWELL_SHIP_TO. See docs/ship.md.

Examples:
  dwell ship --to otlp+http://localhost:4318 app.jfr
  dwell ship --to pyroscope+http://localhost:4040 --header-file headers.txt 4711
  dwell ship --to https://files.example.com/dwell/ /var/log/recordings
  dwell ship --to http://localhost/     sends the bodies that an earlier run has left")]
pub struct Ship {
    /// The receiver.
    #[command(flatten)]
    pub to: To,
    /// Form of the bodies [default: pprof for Pyroscope, jfr for files]
    #[arg(long, value_enum)]
    pub format: Option<BodyForm>,
    /// Time that a body covers, from 1s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::part)]
    pub every: Duration,
    /// Send the recordings as they are now, and do not follow those that go on
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

/// The form of a body.
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
