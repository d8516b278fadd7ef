//! The CPU time of the process, read as often as it costs little. The kernel adds up all threads
//! for it, a tenth of a microsecond each.

use crate::sys::process;
use dwell_jfr::writer::Event;
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

    /// The next time asks, however short ago it was. A file needs the CPU time of its begin and of
    /// its end: its samples are compared with the difference.
    pub fn ask_at_once(&mut self) {
        self.not_before = Instant::now();
    }

    /// The CPU time used since `start`, at the `end` of sampling or now, if that is known.
    pub fn load(
        &mut self,
        ticks: u64,
        start: (Duration, Duration),
        end: Option<(Duration, Duration)>,
    ) -> Option<Event<'static>> {
        let (user, system) = end.or_else(|| self.ask())?;
        Some(Event::CpuLoad {
            ticks,
            process_user_ns: user.saturating_sub(start.0).as_nanos() as u64,
            process_system_ns: system.saturating_sub(start.1).as_nanos() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_known_at_the_ends_of_a_file() {
        let mut cpu = ProcessCpu::default();
        let start = (Duration::ZERO, Duration::ZERO);
        cpu.not_before = Instant::now() + PAUSE_MAX;
        assert!(cpu.load(1, start, None).is_none());
        assert!(cpu.load(1, start, Some(start)).is_some());
        cpu.ask_at_once();
        assert!(cpu.load(1, start, None).is_some());
    }
}
