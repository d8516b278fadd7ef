//! Decides what happens to the oldest body of a spool: it is sent, tried again later, or dropped.
//! Time and randomness are arguments, so that this module can be tested exactly.

use crate::{Body, Spool};
use std::io;
use std::time::Duration;

/// The wait after the first failure; it doubles with each further one.
const WAIT_FIRST: Duration = Duration::from_secs(1);
/// The longest wait.
const WAIT_MAX: Duration = Duration::from_mins(5);
/// The longest wait that a receiver can ask for.
const ASKED_MAX: Duration = Duration::from_hours(1);

/// The text of a server that has no connection to another one of its kind.
const UNAVAILABLE: &str = "code = Unavailable";

/// A receiver's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A status of HTTP.
    Status {
        /// Its number.
        code: u16,
        /// The wait that the receiver asks for.
        retry_after: Option<Duration>,
        /// The beginning of its text; may be empty.
        text: String,
    },
    /// No answer, and why.
    Failed(String),
}

/// Carries a body to the receiver.
pub trait Transport {
    /// Sends a body and waits for the answer, for a limited time.
    fn send(&mut self, body: &Body) -> Answer;
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The spool has no body.
    Empty,
    /// It is not yet time to try again.
    Waiting(Duration),
    /// The receiver has the oldest body.
    Sent,
    /// The oldest body is tried again at this time. The text says why, once for failures in a row.
    Later(Duration, Option<String>),
    /// The oldest body is lost; the text says why.
    Dropped(String),
}

/// The state between two attempts.
#[derive(Debug, Default)]
pub struct Sender {
    /// Failures in a row.
    failures: u32,
    /// The time of the next attempt.
    next: Duration,
    sent: u64,
    dropped: u64,
}

impl Sender {
    /// Bodies sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Bodies that the receiver refused, or that were damaged.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Handles the oldest body. `now` is the time since any fixed moment, `random` is from 0 to 1.
    ///
    /// # Errors
    /// Those of the spool's file system.
    pub fn step(
        &mut self,
        now: Duration,
        random: f64,
        spool: &mut Spool,
        transport: &mut impl Transport,
    ) -> io::Result<Step> {
        if now < self.next {
            return Ok(Step::Waiting(self.next));
        }
        let Some(entry) = spool.oldest() else {
            return Ok(Step::Empty);
        };
        let Some(body) = spool.read(&entry)? else {
            spool.done(&entry)?;
            self.dropped += 1;
            return Ok(Step::Dropped("a damaged file of the spool".to_owned()));
        };
        let (why, asked) = match transport.send(&body) {
            Answer::Status {
                code: 200..=299, ..
            } => {
                spool.done(&entry)?;
                self.failures = 0;
                self.sent += 1;
                return Ok(Step::Sent);
            }
            Answer::Status {
                code,
                retry_after,
                text,
            } if !is_about_body(code, &text) => (said(code, &text), retry_after),
            Answer::Status { code, text, .. } => {
                spool.done(&entry)?;
                self.failures = 0;
                self.dropped += 1;
                return Ok(Step::Dropped(said(code, &text)));
            }
            Answer::Failed(why) => (why, None),
        };
        self.failures = self.failures.saturating_add(1);
        let wait = match asked {
            Some(asked) => asked.min(ASKED_MAX),
            None => backoff(self.failures, random),
        };
        self.next = now.saturating_add(wait);
        let is_first = self.failures == 1;
        Ok(Step::Later(self.next, is_first.then_some(why)))
    }
}

/// Whether an answer refuses this body, so that it would be refused again. Others are about the
/// address, the credentials or the receiver's state, and change while the body waits. Pyroscope
/// answers 422 also if a part of it is not there, and repeats the code that this part has in gRPC.
fn is_about_body(code: u16, text: &str) -> bool {
    let is_state = matches!(code, 401 | 403 | 404 | 407 | 408 | 429)
        || (code == 422 && text.contains(UNAVAILABLE));
    matches!(code, 400..=499) && !is_state
}

/// The wait after so many failures in a row: from half of the full wait to the full one.
fn backoff(failures: u32, random: f64) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
    let full = WAIT_FIRST.saturating_mul(doubled.unwrap_or(u32::MAX));
    full.min(WAIT_MAX)
        .mul_f64(0.5 + 0.5 * random.clamp(0.0, 1.0))
}

/// An answer in words.
fn said(code: u16, text: &str) -> String {
    match text.is_empty() {
        true => format!("the receiver answered {code}"),
        false => format!("the receiver answered {code}: {text}"),
    }
}
