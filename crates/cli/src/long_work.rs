//! Progress of a report that takes long: a line that is updated on a terminal, else one plain line.
//! Printed to standard error, which is for people.

use crate::units;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Shorter work prints nothing.
const AFTER: Duration = Duration::from_secs(2);
/// Time between two lines on a terminal.
const RENEW: Duration = Duration::from_secs(1);

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
            (true, _) => write!(out, "\r\x1b[K{what}: {}", units::age(began.elapsed())),
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
