//! Limits that end a recording without a command: its time is over, the command that asked for it
//! has exited, or there is no memory.
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

/// Why a recording has ended without a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnEnd {
    /// Its time is over.
    Duration,
    /// The lease was not renewed.
    Lease,
    /// An allocation has failed.
    Memory,
}

impl OwnEnd {
    /// The word in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            OwnEnd::Duration => "duration",
            OwnEnd::Lease => "lease",
            OwnEnd::Memory => "memory",
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
    ended: Option<(OwnEnd, u64)>,
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
    pub fn look(&self, now: Now) -> Option<OwnEnd> {
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
            OwnEnd::Memory
        } else if state.until_ns.is_some_and(|until_ns| now.ns >= until_ns) {
            OwnEnd::Duration
        } else if matches!(state.lease, Some((_, 0))) {
            OwnEnd::Lease
        } else {
            return None;
        };
        state.ended = Some((why, now.ns));
        Some(why)
    }

    /// The limit that has ended the recording, and the time.
    #[must_use]
    pub fn ended(&self) -> Option<(OwnEnd, u64)> {
        self.state().ended
    }

    /// The remaining time at `now_ns`, as `key=value` lines, or the limit that was reached.
    #[must_use]
    pub fn status(&self, now_ns: u64) -> String {
        let state = self.state();
        if let Some((why, _)) = state.ended {
            return format!("ended={}\n", why.word());
        }
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

    fn limits(options: &str) -> Limits {
        Limits::of(&parse(options).unwrap(), 5 * SECOND)
    }

    fn look(limits: &Limits, ns: u64) -> Option<OwnEnd> {
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
        assert_eq!(limits.status(0), "");
    }

    #[test]
    fn duration_ends_permanently_at_its_time() {
        let limits = limits("duration=3s");
        assert_eq!(look(&limits, 8 * SECOND - 1), None);
        let wait = Duration::from_secs(1);
        let left = limits.within(wait, 8 * SECOND - 7);
        assert_eq!(left, Duration::from_nanos(7));
        assert_eq!(limits.within(wait, 7 * SECOND), wait);
        assert_eq!(limits.status(6 * SECOND), "left_ms=2000\n");
        assert_eq!(look(&limits, 8 * SECOND), Some(OwnEnd::Duration));
        limits.renew();
        assert_eq!(look(&limits, 9 * SECOND), Some(OwnEnd::Duration));
        assert_eq!(limits.ended(), Some((OwnEnd::Duration, 8 * SECOND)));
        assert_eq!(limits.status(9 * SECOND), "ended=duration\n");
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
            assert_eq!(limits.status(now_ns), "lease_left_ms=1000\n");
            limits.renew();
        }
        assert_eq!(look(&limits, now_ns), None);
        for _ in 0..9 {
            now_ns += SECOND;
            assert_eq!(look(&limits, now_ns), None);
        }
        assert_eq!(look(&limits, now_ns + SECOND), Some(OwnEnd::Lease));
    }

    #[test]
    fn lease_of_a_stopped_process_does_not_pass() {
        let limits = limits("lease=10s");
        assert_eq!(look(&limits, 5 * SECOND + 3600 * SECOND), None);
        assert_eq!(limits.status(0), "lease_left_ms=8000\n");
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
        assert_eq!(limits.status(0), "lease_left_ms=9000\n");
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
            Some(OwnEnd::Memory)
        );
        assert_eq!(limits.status(6 * SECOND), "ended=memory\n");
    }
}
