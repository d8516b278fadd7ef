//! Recordings that must not outlive the command that requested them. The agent ends such a
//! recording when its time is over or its lease expires. So it also ends if the command is killed,
//! or if its request reaches the JVM too late.

use crate::agent::Agent;
use crate::reply::Reply;
use crate::units;
use std::time::{Duration, Instant, SystemTime};

/// How long the agent continues without a renewal.
const LEASE: Duration = Duration::from_secs(30);
/// Time between two renewals. A JVM may take long to answer. While all its threads are stopped, for
/// a heap dump for example, the lease does not expire.
const RENEW: Duration = Duration::from_secs(5);
/// The agent ends a recording so much later than this command, which normally ends it.
const SLACK: Duration = Duration::from_secs(1);

/// The part of the agent's `start` options for a recording of `wanted` length.
pub fn options(wanted: Option<Duration>) -> String {
    let lease = format!(",lease={}ms", LEASE.as_millis());
    lease + &duration(wanted.map(|wanted| wanted.saturating_add(SLACK)))
}

/// The same without a lease.
pub fn duration(wanted: Option<Duration>) -> String {
    wanted.map_or(String::new(), |wanted| {
        format!(",duration={}ms", wanted.as_millis())
    })
}

/// The command that requests the status and renews the lease.
pub fn status() -> String {
    format!("status,lease={}ms", LEASE.as_millis())
}

/// The reason why a recording ended early, if it did.
pub fn early(reply: &Reply) -> Option<String> {
    let text = match reply.get("ended")? {
        "lease" => format!(
            "the recording ended early: the JVM did not answer for {} s",
            LEASE.as_secs()
        ),
        "memory" => "the recording ended early: the JVM is out of memory".to_owned(),
        _ => return None,
    };
    Some(text)
}

/// When and why the recording ended, if it did.
pub fn ended(reply: &Reply, now: SystemTime) -> Option<String> {
    let why = match reply.get("ended")? {
        "duration" => "its time was over",
        "lease" => "the command that started it was gone",
        "memory" => "the JVM was out of memory",
        "stop" => "a command stopped it",
        "error" => "of an internal error",
        _ => "of a limit",
    };
    let since = reply.number("ended_epoch_ms").and_then(|ms| {
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(ms))?;
        let ago = units::age(now.duration_since(at).unwrap_or_default());
        let date = dwell_report::date(ms.saturating_mul(1_000_000));
        Some(format!("{ago} ago ({date}), "))
    });
    Some(format!("{}because {why}", since.unwrap_or_default()))
}

/// When the recording will end.
pub fn ends(reply: &Reply) -> Option<String> {
    let age = |key| {
        let ms = reply.number(key)?;
        Some(units::age(Duration::from_millis(ms)))
    };
    if reply.get("state") == Some("stopped") {
        return None;
    }
    let text = match (age("left_ms"), age("lease_left_ms")) {
        (Some(left), None) => format!("in {left}"),
        (Some(left), Some(lease)) => {
            format!("in {left}; in {lease} if the command that started it is gone")
        }
        (None, Some(lease)) => format!("in {lease} if the command that started it is gone"),
        (None, None) => return None,
    };
    Some(text)
}

/// Time of the next renewal.
pub struct Lease {
    next: Instant,
}

impl Lease {
    /// Begins with a new recording.
    pub fn begin() -> Lease {
        Lease {
            next: Instant::now() + RENEW,
        }
    }

    /// Renews the lease when it is time.
    pub fn keep(&mut self, agent: &Agent) {
        if Instant::now() >= self.next {
            // The JVM is too busy to answer; the next renewal may be in time.
            let _ = agent.command(&status());
            self.next = Instant::now() + RENEW;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ends_recordings_after_their_command() {
        assert_eq!(options(None), ",lease=30000ms");
        let wanted = Some(Duration::from_millis(1500));
        assert_eq!(options(wanted), ",lease=30000ms,duration=2500ms");
        assert_eq!(duration(wanted), ",duration=1500ms");
        assert_eq!(duration(None), "");
        assert_eq!(status(), "status,lease=30000ms");
    }

    #[test]
    fn early_end_has_a_reason() {
        let of = |text: &str| early(&Reply::parse(text.as_bytes()).unwrap());
        assert_eq!(of("ok\nstate=stopped\n"), None);
        assert_eq!(of("ok\nended=duration\n"), None);
        assert!(of("ok\nended=lease\n").unwrap().contains("30 s"));
        assert!(of("ok\nended=memory\n").unwrap().contains("memory"));
    }

    #[test]
    fn status_says_when_a_recording_ends() {
        let of = |text: &str| ends(&Reply::parse(text.as_bytes()).unwrap());
        assert_eq!(of("ok\nstate=running\n"), None);
        let both = of("ok\nleft_ms=61000\nlease_left_ms=42000\n").unwrap();
        assert_eq!(
            both,
            "in 1m01s; in 42.0s if the command that started it is gone"
        );
        assert_eq!(of("ok\nleft_ms=2500\n").unwrap(), "in 2.5s");
        assert_eq!(of("ok\nstate=stopped\nleft_ms=2500\n"), None);
    }

    #[test]
    fn status_says_when_and_why_a_recording_ended() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_123);
        let of = |text: &str| ended(&Reply::parse(text.as_bytes()).unwrap(), now);
        assert_eq!(of("ok\nstate=running\nleft_ms=5\n"), None);
        for (why, told) in [
            ("stop", "a command stopped it"),
            ("duration", "its time was over"),
            ("lease", "the command that started it was gone"),
            ("memory", "the JVM was out of memory"),
            ("error", "of an internal error"),
        ] {
            let text = of(&format!("ok\nended={why}\nended_epoch_ms=1700000000000\n"));
            let expected = format!("2m03s ago (2023-11-14 22:13:20 UTC), because {told}");
            assert_eq!(text.as_deref(), Some(&expected[..]));
        }
        assert_eq!(
            of("ok\nended=stop\n").unwrap(),
            "because a command stopped it"
        );
    }
}
