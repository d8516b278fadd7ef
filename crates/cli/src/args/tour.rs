//! The command line of `dwell demo`.

use crate::units;
use clap::Args;
use std::time::Duration;

/// `dwell demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// How long to record (30s, 2m, or plain seconds)
    #[arg(short, long, value_name = "TIME", default_value = "15s",
          value_parser = units::recording_time)]
    pub duration: Duration,
    /// CPU time between two samples of a thread, from 20us to 10s
    #[arg(short, long, value_name = "TIME", default_value = "10ms", value_parser = units::interval)]
    pub interval: Duration,
}
