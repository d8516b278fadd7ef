//! The CPU time of the process, read as often as it costs little. The kernel adds up all threads
//! for it, a tenth of a microsecond each.

use crate::sys::process;
use std::time::{Duration, Instant};

/// Asking may take this part of the time.
const SHARE_MAX: u32 = 10_000;
/// However long it took, it is read again after this time.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Asks.
#[derive(Debug)]
pub struct ProcessCpu {
    not_before: Instant,
}

impl Default for ProcessCpu {
    fn default() -> ProcessCpu {
        ProcessCpu {
            not_before: Instant::now(),
        }
    }
}

impl ProcessCpu {
    /// User and system time, unless they were read a short time ago.
    pub fn ask(&mut self) -> Option<(Duration, Duration)> {
        if Instant::now() < self.not_before {
            return None;
        }
        // CPU time, not elapsed time: this thread may have to wait for a processor in between.
        let before = process::own_cpu();
        let answer = process::cpu_split();
        let took = process::own_cpu().saturating_sub(before);
        self.not_before = Instant::now() + took.saturating_mul(SHARE_MAX).min(PAUSE_MAX);
        Some(answer)
    }
}
