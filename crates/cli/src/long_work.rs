//! Progress of a report that takes long: a line that is updated on a terminal, with the step and
//! the part of the recording that is read, else one plain line. Printed to standard error, which is
//! for people.

use crate::units;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Shorter work prints nothing.
const AFTER: Duration = Duration::from_secs(2);
/// Time between two lines on a terminal.
const RENEW: Duration = Duration::from_secs(1);

/// A step of the work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Reading,
    Summing,
    Findings,
    Page,
}

impl Step {
    const ALL: [Step; 4] = [Step::Reading, Step::Summing, Step::Findings, Step::Page];

    const fn words(self) -> &'static str {
        match self {
            Step::Reading => "reading",
            Step::Summing => "summing up",
            Step::Findings => "finding causes",
            Step::Page => "writing the page",
        }
    }
}

/// The present step, by its place in [`Step::ALL`] plus 1, and the bytes to read and already read.
/// The command does one such work at a time.
static STEP: AtomicU8 = AtomicU8::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static READ: AtomicU64 = AtomicU64::new(0);

/// Sets the step that the line shows from now on.
pub fn begin(step: Step) {
    STEP.store(step as u8 + 1, Relaxed);
}

/// Begins to read an input of this many bytes. Gives the counter of those that have been read.
pub fn begin_reading(bytes: u64) -> &'static AtomicU64 {
    BYTES.store(bytes, Relaxed);
    READ.store(0, Relaxed);
    begin(Step::Reading);
    &READ
}

/// The line after some time, with the step and the bytes read out of all.
fn line(what: &str, step: Option<Step>, (read, bytes): (u64, u64), elapsed: Duration) -> String {
    let part = match step {
        None => String::new(),
        Some(Step::Reading) if bytes > 0 => {
            let percent = (u128::from(read) * 100 / u128::from(bytes)).min(100);
            format!("{} ({percent} %), ", Step::Reading.words())
        }
        Some(step) => format!("{}, ", step.words()),
    };
    format!("{what}: {part}{}", units::age(elapsed))
}

/// Does some work. Prints `what` if it takes long. The work itself prints nothing.
pub fn with_progress<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let is_terminal = std::io::stderr().is_terminal();
    telling_to(what, std::io::stderr(), (is_terminal, AFTER), work)
}

fn telling_to<T>(
    what: &str,
    out: impl Write + Send + 'static,
    (is_terminal, after): (bool, Duration),
    work: impl FnOnce() -> T,
) -> T {
    let (done, wait) = channel::<()>();
    let what = what.to_owned();
    let teller = std::thread::Builder::new()
        .name("waiting".to_owned())
        .spawn(move || show_progress(&what, out, (is_terminal, after), &wait));
    let result = work();
    drop(done);
    if let Ok(teller) = teller {
        let _ = teller.join();
    }
    result
}

/// Prints the elapsed time until the work is done. Ignores errors of the output.
fn show_progress(
    what: &str,
    mut out: impl Write,
    (is_terminal, after): (bool, Duration),
    wait: &Receiver<()>,
) {
    let began = Instant::now();
    let (mut pause, mut is_told) = (after, false);
    while wait.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let _ = match (is_terminal, is_told) {
            (true, _) => {
                let step = usize::from(STEP.load(Relaxed)).checked_sub(1);
                let step = step.and_then(|at| Step::ALL.get(at)).copied();
                let bytes = (READ.load(Relaxed), BYTES.load(Relaxed));
                let line = line(what, step, bytes, began.elapsed());
                write!(out, "\r\x1b[K{line}")
            }
            (false, false) => writeln!(out, "{what} ..."),
            (false, true) => Ok(()),
        };
        let _ = out.flush();
        (pause, is_told) = (RENEW, true);
    }
    if is_told && is_terminal {
        let _ = write!(out, "\r\x1b[K");
        let _ = out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Screen {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The output during work that lasts until there is output, or ends at once.
    fn said(is_terminal: bool, is_long: bool) -> String {
        let screen = Screen::default();
        let after = match is_long {
            true => Duration::ZERO,
            false => Duration::from_secs(3600),
        };
        let done = telling_to(
            "reading a.jfr",
            screen.clone(),
            (is_terminal, after),
            || {
                let began = Instant::now();
                while is_long && screen.text().is_empty() && began.elapsed().as_secs() < 60 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                7
            },
        );
        assert_eq!(done, 7);
        screen.text()
    }

    #[test]
    fn line_has_the_step_and_the_part_that_is_read() {
        let after = Duration::from_secs(12);
        let of = |step, bytes| line("report of a.jfr", step, bytes, after);
        assert_eq!(of(None, (0, 0)), "report of a.jfr: 12 s");
        let reading = of(Some(Step::Reading), (4_299, 10_000));
        assert_eq!(reading, "report of a.jfr: reading (42 %), 12 s");
        let more = of(Some(Step::Reading), (10_080, 10_000));
        assert_eq!(more, "report of a.jfr: reading (100 %), 12 s");
        let page = of(Some(Step::Page), (10_000, 10_000));
        assert_eq!(page, "report of a.jfr: writing the page, 12 s");
    }

    #[test]
    fn steps_are_in_the_order_of_their_numbers() {
        for (at, step) in Step::ALL.iter().enumerate() {
            assert_eq!(*step as usize, at);
        }
    }

    #[test]
    fn long_work_is_reported_and_short_work_is_not() {
        assert_eq!(said(true, false), "");
        assert_eq!(said(false, false), "");
        assert_eq!(said(false, true), "reading a.jfr ...\n");
        let on_terminal = said(true, true);
        assert!(
            on_terminal.starts_with("\r\x1b[Kreading a.jfr: "),
            "{on_terminal:?}"
        );
        assert!(
            on_terminal.ends_with("\r\x1b[K"),
            "the line is cleared: {on_terminal:?}"
        );
    }
}
