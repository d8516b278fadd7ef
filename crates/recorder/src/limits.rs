//! The end of a recording: when, and why. Limits end it without a command: its time is over, the
//! command that asked for it has exited, or there is no memory.
//!
//! A killed command cannot end a recording. So it sets how long the recording is to last, and
//! renews a lease on it. If the lease is not renewed, the recording ends, and its file is
//! complete.

use crate::options::Options;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// At most this much of a lease passes between two checks. If the process was stopped, by a signal
/// or with its machine, the command may have been stopped, too.
const ROUND_MAX_NS: u64 = 2_000_000_000;

/// Why a recording has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its time is over.
    Duration,
    /// The lease was not renewed.
    Lease,
    /// An allocation has failed.
    Memory,
    /// A command stopped it.
    Stop,
    /// The drainer has failed.
    Error,
}

impl End {
    /// The word in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            End::Duration => "duration",
            End::Lease => "lease",
            End::Memory => "memory",
            End::Stop => "stop",
            End::Error => "error",
        }
    }
}

/// The state at a check.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// The time.
    pub ns: u64,
    /// There is no memory.
    pub is_out: bool,
    /// All threads of the runtime stand still, so that no command can be carried out.
    pub is_stopped: bool,
}

#[derive(Debug, Default)]
struct State {
    /// The lease, and the remaining time of it, in ns.
    lease: Option<(u64, u64)>,
    /// When the time is over, on the monotonic clock.
    until_ns: Option<u64>,
    looked_ns: u64,
    /// The limit that was reached.
    ended: Option<(End, u64)>,
    /// The end without a limit.
    closed: Option<(End, u64)>,
}

/// How long a recording may last. Times are those of the monotonic clock, in ns.
#[derive(Debug, Default)]
pub struct Limits(Mutex<State>);

impl Limits {
    /// Those of a recording that begins at `began_ns`.
    #[must_use]
    pub fn of(options: &Options, began_ns: u64) -> Limits {
        let ns = |time: Duration| Some(time.as_nanos() as u64).filter(|ns| *ns != 0);
        Limits(Mutex::new(State {
            lease: ns(options.lease).map(|lease_ns| (lease_ns, lease_ns)),
            until_ns: ns(options.duration).map(|ns| began_ns.saturating_add(ns)),
            looked_ns: began_ns,
            ended: None,
            closed: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The command still runs: the lease starts again, if there is one.
    pub fn renew(&self) {
        if let Some((lease_ns, left_ns)) = &mut self.state().lease {
            *left_ns = *lease_ns;
        }
    }

    /// How long to wait until the next check, if `wait` is wanted.
    #[must_use]
    pub fn within(&self, wait: Duration, now_ns: u64) -> Duration {
        match self.state().until_ns {
            Some(until_ns) => wait.min(Duration::from_nanos(until_ns.saturating_sub(now_ns))),
            None => wait,
        }
    }

    /// Whether the recording ends now, or has reached a limit before.
    pub fn look(&self, now: Now) -> Option<End> {
        let mut state = self.state();
        if let Some((why, _)) = state.ended {
            return Some(why);
        }
        let passed_ns = now.ns.saturating_sub(state.looked_ns).min(ROUND_MAX_NS);
        state.looked_ns = now.ns;
        if let Some((_, left_ns)) = &mut state.lease
            && !now.is_stopped
        {
            *left_ns = left_ns.saturating_sub(passed_ns);
        }
        let why = if now.is_out {
            End::Memory
        } else if state.until_ns.is_some_and(|until_ns| now.ns >= until_ns) {
            End::Duration
        } else if matches!(state.lease, Some((_, 0))) {
            End::Lease
        } else {
            return None;
        };
        state.ended = Some((why, now.ns));
        Some(why)
    }

    /// The limit that has ended the recording, and the time.
    #[must_use]
    pub fn ended(&self) -> Option<(End, u64)> {
        self.state().ended
    }

    /// The recording has ended for this reason, unless a limit or another reason ended it before.
    pub fn close(&self, why: End, now_ns: u64) {
        self.state().closed.get_or_insert((why, now_ns));
    }

    /// Why and when the recording ended, with or without a limit.
    #[must_use]
    pub fn end(&self) -> Option<(End, u64)> {
        let state = self.state();
        state.ended.or(state.closed)
    }

    /// The remaining time at `now_ns`, as `key=value` lines, or why the recording ended, and the
    /// time since 1970 in ms. That is `epoch_ns` now.
    #[must_use]
    pub fn status(&self, now_ns: u64, epoch_ns: u64) -> String {
        if let Some((why, at_ns)) = self.end() {
            let at_ms = epoch_ns.saturating_sub(now_ns.saturating_sub(at_ns)) / 1_000_000;
            return format!("ended={}\nended_epoch_ms={at_ms}\n", why.word());
        }
        let state = self.state();
        let mut text = String::new();
        if let Some(until_ns) = state.until_ns {
            let left_ms = until_ns.saturating_sub(now_ns) / 1_000_000;
            text += &format!("left_ms={left_ms}\n");
        }
        if let Some((_, left_ns)) = state.lease {
            text += &format!("lease_left_ms={}\n", left_ns / 1_000_000);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::parse;

    const SECOND: u64 = 1_000_000_000;
    const EPOCH: u64 = 1_700_000_001 * SECOND;

    fn limits(options: &str) -> Limits {
        Limits::of(&parse(options).unwrap(), 5 * SECOND)
    }

    fn look(limits: &Limits, ns: u64) -> Option<End> {
        limits.look(Now {
            ns,
            ..Now::default()
        })
    }

    #[test]
    fn limits_without_options_never_end() {
        let limits = limits("");
        for at in 0..1000 {
            assert_eq!(look(&limits, at * 1000 * SECOND), None);
        }
        let wait = Duration::from_secs(9);
        assert_eq!(limits.within(wait, 0), wait);
        assert_eq!(limits.status(0, EPOCH), "");
    }

    #[test]
    fn duration_ends_permanently_at_its_time() {
        let limits = limits("duration=3s");
        assert_eq!(look(&limits, 8 * SECOND - 1), None);
        let wait = Duration::from_secs(1);
        let left = limits.within(wait, 8 * SECOND - 7);
        assert_eq!(left, Duration::from_nanos(7));
        assert_eq!(limits.within(wait, 7 * SECOND), wait);
        assert_eq!(limits.status(6 * SECOND, EPOCH), "left_ms=2000\n");
        assert_eq!(look(&limits, 8 * SECOND), Some(End::Duration));
        limits.renew();
        assert_eq!(look(&limits, 9 * SECOND), Some(End::Duration));
        assert_eq!(limits.ended(), Some((End::Duration, 8 * SECOND)));
        // One second ago.
        let status = "ended=duration\nended_epoch_ms=1700000000000\n";
        assert_eq!(limits.status(9 * SECOND, EPOCH), status);
    }

    #[test]
    fn lease_ends_unless_it_is_renewed() {
        let limits = limits("lease=10s");
        let mut now_ns = 5 * SECOND;
        for _ in 0..100 {
            for _ in 0..9 {
                now_ns += SECOND;
                assert_eq!(look(&limits, now_ns), None);
            }
            assert_eq!(limits.status(now_ns, EPOCH), "lease_left_ms=1000\n");
            limits.renew();
        }
        assert_eq!(look(&limits, now_ns), None);
        for _ in 0..9 {
            now_ns += SECOND;
            assert_eq!(look(&limits, now_ns), None);
        }
        assert_eq!(look(&limits, now_ns + SECOND), Some(End::Lease));
    }

    #[test]
    fn lease_of_a_stopped_process_does_not_pass() {
        let limits = limits("lease=10s");
        assert_eq!(look(&limits, 5 * SECOND + 3600 * SECOND), None);
        assert_eq!(limits.status(0, EPOCH), "lease_left_ms=8000\n");
    }

    #[test]
    fn lease_does_not_pass_while_the_runtime_stands_still() {
        let limits = limits("lease=10s");
        for at in 6..100 {
            let now = Now {
                ns: at * SECOND,
                is_stopped: true,
                ..Now::default()
            };
            assert_eq!(limits.look(now), None);
        }
        assert_eq!(look(&limits, 100 * SECOND), None);
        assert_eq!(limits.status(0, EPOCH), "lease_left_ms=9000\n");
    }

    #[test]
    fn lack_of_memory_ends_any_recording() {
        let limits = limits("lease=10s,duration=1h");
        assert_eq!(
            limits.look(Now {
                ns: 6 * SECOND,
                is_out: true,
                is_stopped: true,
            }),
            Some(End::Memory)
        );
        let status = limits.status(6 * SECOND, EPOCH);
        assert_eq!(status, "ended=memory\nended_epoch_ms=1700000001000\n");
    }

    #[test]
    fn stop_is_the_end_unless_a_limit_came_first() {
        let stopped = limits("duration=1h,lease=1h");
        stopped.close(End::Stop, 7 * SECOND);
        stopped.close(End::Error, 8 * SECOND);
        assert_eq!(stopped.end(), Some((End::Stop, 7 * SECOND)));
        let status = stopped.status(9 * SECOND, EPOCH);
        assert_eq!(status, "ended=stop\nended_epoch_ms=1699999999000\n");
        // The drainer still waits for its order.
        assert_eq!(look(&stopped, 8 * SECOND), None);
        let over = limits("duration=1s");
        assert_eq!(look(&over, 6 * SECOND), Some(End::Duration));
        over.close(End::Stop, 9 * SECOND);
        assert_eq!(over.end(), Some((End::Duration, 6 * SECOND)));
    }
}
