//! Progress of a recording: a line that is updated on a terminal, else a plain line at intervals.
//! Printed to standard error, which is for people.

use crate::reply::Reply;
use crate::units;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two requests of the agent's counters.
const RENEW_TERMINAL: Duration = Duration::from_secs(1);
const RENEW_PLAIN: Duration = Duration::from_secs(10);

/// The progress of one recording.
pub struct Progress {
    terminal: bool,
    wanted: Option<Duration>,
    began: Instant,
    next: Instant,
}

impl Progress {
    /// Begins now; `wanted` is the duration of the recording, if it is limited.
    pub fn new(wanted: Option<Duration>) -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let began = Instant::now();
        Progress {
            terminal,
            wanted,
            began,
            next: began + renew(terminal),
        }
    }

    /// Elapsed time.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Whether the recording's time is over.
    pub fn is_over(&self) -> bool {
        self.wanted.is_some_and(|wanted| self.elapsed() >= wanted)
    }

    /// Whether the next line is due.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Prints the progress.
    pub fn show(&mut self, status: &Reply) {
        self.say(&numbers(status));
    }

    /// Prints the progress with these numbers.
    pub fn say(&mut self, numbers: &str) {
        self.postpone();
        let line = line(self.elapsed(), self.wanted, numbers);
        let mut out = std::io::stderr().lock();
        // An error of this output is ignored.
        let _ = match self.terminal {
            true => write!(out, "\r\x1b[K{line}").and_then(|()| out.flush()),
            false => writeln!(out, "{line}"),
        };
    }

    /// Skips a line.
    pub fn postpone(&mut self) {
        self.next = Instant::now() + renew(self.terminal);
    }

    /// Clears the terminal's line.
    pub fn clear(&self) {
        if self.terminal {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn renew(terminal: bool) -> Duration {
    if terminal {
        RENEW_TERMINAL
    } else {
        RENEW_PLAIN
    }
}

fn line(elapsed: Duration, wanted: Option<Duration>, numbers: &str) -> String {
    let of = wanted.map_or(String::new(), |wanted| {
        format!(" of {}", units::age(wanted))
    });
    format!("recording {}{of}{numbers}", units::age(elapsed))
}

fn numbers(status: &Reply) -> String {
    let mut text = String::new();
    for (key, label) in [
        ("samples", "samples"),
        ("failed", "failed"),
        ("lost", "lost"),
    ] {
        match status.number(key) {
            Some(0) if key != "samples" => {}
            Some(number) => text.push_str(&format!(", {} {label}", dwell_report::count(number))),
            None => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_contain_known_values() {
        let status = Reply::parse(b"ok\nsamples=12345\nfailed=0\nlost=3\n").unwrap();
        let time = Duration::from_secs;
        assert_eq!(
            line(time(61), None, &numbers(&status)),
            "recording 1m01s, 12,345 samples, 3 lost"
        );
        let empty = Reply::parse(b"ok\n").unwrap();
        assert_eq!(
            line(time(1), Some(time(30)), &numbers(&empty)),
            "recording 1.0s of 30.0s"
        );
    }
}
