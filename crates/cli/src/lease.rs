//! Recordings in a JVM that must not outlive the command that asked for them: the agent ends one
//! when its time is over, or when nobody has renewed its lease, so also after a command that was
//! killed, or whose request reached the JVM after it had given up.

use crate::agent::Agent;
use crate::reply::Reply;
use crate::units;
use std::time::{Duration, Instant};

/// How long the agent goes on without us.
const LEASE: Duration = Duration::from_secs(30);
/// How often it hears of us. A JVM can take long to answer; while all its threads stand still, as
/// for a heap dump, the lease does not pass.
const RENEW: Duration = Duration::from_secs(5);
/// So much later than we the agent ends a recording: while we are there we end it.
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

/// The command that asks how it goes, and renews the lease.
pub fn status() -> String {
    format!("status,lease={}ms", LEASE.as_millis())
}

/// Why a recording ended before we ended it, if it did by itself.
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

/// When the recording ends by itself, or why it did.
pub fn ends(reply: &Reply) -> Option<String> {
    let age = |key| {
        let ms = reply.number(key)?;
        Some(units::age(Duration::from_millis(ms)))
    };
    let text = match reply.get("ended") {
        Some("duration") => "when its time was over".to_owned(),
        Some("lease") => "when the command that had begun it was gone".to_owned(),
        Some("memory") => "when the JVM was out of memory".to_owned(),
        _ => match (age("left_ms"), age("lease_left_ms")) {
            (Some(left), None) => format!("in {left}"),
            (Some(left), Some(lease)) => {
                format!("in {left}; in {lease} if the command that began it is gone")
            }
            (None, Some(lease)) => format!("in {lease} if the command that began it is gone"),
            (None, None) => return None,
        },
    };
    Some(text)
}

/// When the agent is to hear of us next.
pub struct Lease {
    next: Instant,
}

impl Lease {
    /// The recording has just begun.
    pub fn begin() -> Lease {
        Lease {
            next: Instant::now() + RENEW,
        }
    }

    /// Renews the lease when it is time.
    pub fn keep(&mut self, agent: &Agent) {
        if Instant::now() >= self.next {
            // Too busy to answer: the next one may come in time.
            let _ = agent.command(&status());
            self.next = Instant::now() + RENEW;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_ends_what_its_command_does_not_end_in_time() {
        assert_eq!(options(None), ",lease=30000ms");
        let wanted = Some(Duration::from_millis(1500));
        assert_eq!(options(wanted), ",lease=30000ms,duration=2500ms");
        assert_eq!(duration(wanted), ",duration=1500ms");
        assert_eq!(duration(None), "");
        assert_eq!(status(), "status,lease=30000ms");
    }

    #[test]
    fn early_ends_have_a_reason_and_others_none() {
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
            "in 1m01s; in 42.0s if the command that began it is gone"
        );
        assert_eq!(of("ok\nleft_ms=2500\n").unwrap(), "in 2.5s");
        let gone = of("ok\nended=lease\nlease_left_ms=0\n").unwrap();
        assert_eq!(gone, "when the command that had begun it was gone");
    }
}
