//! Finds the times in which the whole process was stopped: by SIGSTOP, a debugger, or the freezer
//! of a control group.
//!
//! The drainer waits for a short time again and again. Such a wait can last much longer than the
//! drainer asked for. If the drainer did not wait for a processor, and the process used next to no
//! CPU time, then the process was stopped.

use crate::sys::process;
use crate::sys::task::TaskFiles;
use std::time::Duration;

/// Shorter times are not reported: they may be anything.
const LATE_MIN_NS: u64 = 500_000_000;
/// Enough of `/proc/self/task/TID/schedstat`.
const TEXT_BYTES: usize = 64;

/// Accounts at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    /// On the monotonic clock.
    now_ns: u64,
    /// CPU time of the process.
    cpu_ns: u64,
    /// How long this thread has waited for a processor, in all.
    delayed_ns: u64,
}

/// A time in which the process was stopped, on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedTime {
    /// It was stopped by then.
    pub since_ns: u64,
    /// It went on then, or a little before.
    pub until_ns: u64,
}

/// When the process was stopped between two moments, of which `wait_ns` were asked for.
fn between(before: &Moment, wait_ns: u64, after: &Moment) -> Option<StoppedTime> {
    let since_ns = before.now_ns.saturating_add(wait_ns);
    let delayed_ns = after.delayed_ns.saturating_sub(before.delayed_ns);
    // When it was let run it had to wait for a processor, as any other thread.
    let until_ns = after.now_ns.saturating_sub(delayed_ns);
    let late_ns = until_ns.saturating_sub(since_ns);
    // Before it was stopped the process may have run during the wait, on all processors.
    let used_ns = after.cpu_ns.saturating_sub(before.cpu_ns);
    let is_idle = used_ns < wait_ns.saturating_add(late_ns / 4);
    let is_stopped = late_ns >= LATE_MIN_NS && delayed_ns <= late_ns / 4 && is_idle;
    is_stopped.then_some(StoppedTime { since_ns, until_ns })
}

/// The waits of the thread that made it.
pub struct Waits {
    files: TaskFiles,
    tid: i32,
    before: Option<Moment>,
}

impl Waits {
    /// No wait has begun yet.
    pub fn of_this_thread() -> Waits {
        Waits {
            files: TaskFiles::open(),
            tid: process::own_tid(),
            before: None,
        }
    }

    /// The accounts now; `None` if the kernel does not report how long threads wait for CPUs.
    fn now(&self) -> Option<Moment> {
        let mut buffer = [0; TEXT_BYTES];
        let text = self.files.read(self.tid, "schedstat", &mut buffer)?;
        let delayed_ns = delayed_ns(std::str::from_utf8(text).ok()?)?;
        Some(Moment {
            now_ns: process::monotonic_ns(),
            cpu_ns: process::process_cpu().as_nanos() as u64,
            delayed_ns,
        })
    }

    /// A wait begins.
    pub fn begin(&mut self) {
        self.before = self.now();
    }

    /// It is over; it was to last `wait`.
    pub fn end(&mut self, wait: Duration) -> Option<StoppedTime> {
        let before = self.before.take()?;
        let wait_ns = u64::try_from(wait.as_nanos()).ok()?;
        // Usually no file needs to be read.
        let late_ns = process::monotonic_ns().saturating_sub(before.now_ns);
        (late_ns.saturating_sub(wait_ns) >= LATE_MIN_NS).then_some(())?;
        between(&before, wait_ns, &self.now()?)
    }
}

/// How long a thread has waited for a processor, by its schedstat: the second number.
fn delayed_ns(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn found(waited_ms: u64, delayed_ms: u64, cpu_ms: u64) -> Option<(u64, u64)> {
        let before = Moment {
            now_ns: 7 * MS,
            cpu_ns: 11 * MS,
            delayed_ns: 13 * MS,
        };
        let after = Moment {
            now_ns: before.now_ns + waited_ms * MS,
            cpu_ns: before.cpu_ns + cpu_ms * MS,
            delayed_ns: before.delayed_ns + delayed_ms * MS,
        };
        let found = between(&before, 20 * MS, &after)?;
        Some((found.since_ns / MS, found.until_ns / MS))
    }

    #[test]
    fn long_wait_of_an_idle_process_was_a_stop() {
        assert_eq!(found(4020, 0, 0), Some((27, 4027)));
        // It ran until it was stopped, and came late to a processor afterwards.
        assert_eq!(found(4020, 100, 40), Some((27, 3927)));
        assert_eq!(found(519, 0, 0), None, "too short");
        assert_eq!(found(520, 0, 0), Some((27, 527)));
        assert_eq!(found(10, 0, 0), None, "an order came");
    }

    #[test]
    fn drainer_without_a_processor_was_not_stopped() {
        assert_eq!(found(4020, 3900, 0), None, "others had the processors");
        assert_eq!(found(4020, 0, 4000), None, "the process ran");
    }

    #[test]
    fn waits_find_nothing_where_the_wait_was_as_asked() {
        let mut waits = Waits::of_this_thread();
        assert_eq!(waits.end(Duration::ZERO), None, "nothing has begun");
        waits.begin();
        assert_eq!(waits.end(Duration::from_secs(600)), None);
        assert_eq!(delayed_ns("1 22 3\n"), Some(22));
        assert_eq!(delayed_ns("1\n"), None);
    }
}
