//! `dwell top` on a real JVM and a real terminal: its screens, and the state that it leaves.

use crate::harness::common::modern;
use crate::harness::{Busy, Done, Place, signal, until};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

const COLUMNS: usize = 80;
const ROWS: usize = 24;
/// The first row of the table.
const FIRST: usize = 7;

/// A terminal with a command on it.
struct OnTerminal {
    control: File,
    /// Keeps the terminal alive when the command has ended.
    line: File,
    reader: Option<JoinHandle<()>>,
    is_read: Arc<AtomicBool>,
    output: Arc<Mutex<Vec<u8>>>,
    modes: String,
    child: Child,
}

fn modes(control: &File) -> String {
    let all = tcgetattr(control).unwrap();
    format!("{:?}", (all.input_modes, all.output_modes, all.local_modes))
}

impl OnTerminal {
    fn start(place: &Place, args: &[&str], no_color: bool) -> OnTerminal {
        let control =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&control).unwrap();
        unlockpt(&control).unwrap();
        let name = ptsname(&control, Vec::new())
            .unwrap()
            .into_string()
            .unwrap();
        let size = Winsize {
            ws_row: ROWS as u16,
            ws_col: COLUMNS as u16,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&control, size).unwrap();
        let control = File::from(control);
        // It must not become this test's own terminal, whatever session the test is in.
        let mut line = File::options();
        line.read(true).write(true).custom_flags(libc::O_NOCTTY);
        let line = line.open(name).unwrap();
        let modes = modes(&control);
        let side = || Stdio::from(line.try_clone().unwrap());
        let mut command = place.command(args);
        command.stdin(side()).stdout(side()).stderr(side());
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let child = command.spawn().unwrap();
        let output = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (control.try_clone().unwrap(), Arc::clone(&output));
        let is_read = Arc::new(AtomicBool::new(true));
        let go_on = Arc::clone(&is_read);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().extend(&bytes[..count]);
                if !go_on.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        OnTerminal {
            control,
            line,
            reader: Some(reader),
            is_read,
            output,
            modes,
            child,
        }
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&self.output.lock().unwrap()).into_owned()
    }

    /// The visible lines.
    fn screen(&self) -> Vec<String> {
        seen(&self.output())
    }

    /// Waits until the hot method is in the first row.
    fn until_hot(&self) {
        until("the hot method on top", || {
            self.screen()[FIRST]
                .trim_end()
                .ends_with(" io.dwell.test.Burn.unit")
        });
    }

    /// Waits for the first drawing: from then on it records.
    fn until_drawn(&self) {
        until("the first screen", || {
            self.screen()[0].starts_with("dwell top")
        });
    }

    fn press(&mut self, keys: &str) {
        self.control.write_all(keys.as_bytes()).unwrap();
    }

    /// Closes the terminal without a signal, and waits for the end.
    #[track_caller]
    fn loses_its_terminal(mut self) {
        self.is_read.store(false, Ordering::Relaxed);
        // The next output lets the reader see that its receiver is gone.
        self.reader.take().unwrap().join().unwrap();
        drop((self.control, self.line));
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }

    /// Waits for the end. The terminal must be restored.
    #[track_caller]
    fn ends(mut self) -> String {
        let status = self.child.wait().unwrap();
        // This test's own bytes reach the terminal after all output of the child.
        let end = "-- the end --";
        self.line.write_all(end.as_bytes()).unwrap();
        until("the last output", || self.output().ends_with(end));
        let output = self.output().trim_end_matches(end).to_owned();
        assert_eq!(status.code(), Some(0), "{output:?}");
        assert!(
            output.contains("\x1b[?25h"),
            "the cursor is shown: {output:?}"
        );
        assert_eq!(modes(&self.control), self.modes);
        output
    }
}

/// The text of a terminal after these bytes, without attributes.
fn seen(output: &str) -> Vec<String> {
    let mut cells = vec![vec![' '; COLUMNS]; ROWS];
    let (mut x, mut y) = (0, 0);
    let mut chars = output.chars();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' if chars.next() == Some('[') => {
                let mut sequence = String::new();
                let end = chars.by_ref().find(|c| {
                    sequence.push(*c);
                    c.is_ascii_alphabetic()
                });
                if end == Some('H') {
                    let numbers = sequence.trim_end_matches('H').split(';');
                    let mut numbers = numbers.map(|number| number.parse().unwrap_or(1));
                    y = numbers.next().unwrap_or(1) - 1;
                    x = numbers.next().unwrap_or(1) - 1;
                }
            }
            '\r' => x = 0,
            '\n' => y += 1,
            c if x < COLUMNS && y < ROWS => {
                cells[y][x] = c;
                x += 1;
            }
            _ => {}
        }
    }
    cells.into_iter().map(String::from_iter).collect()
}

/// Whether one of the sixteen colours is used.
fn is_coloured(output: &str) -> bool {
    assert!(
        !output.contains("\x1b[38;"),
        "more than sixteen: {output:?}"
    );
    let mut codes = output.split("\x1b[").skip(1);
    codes.any(|code| {
        let (code, _) = code.split_once('m').unwrap_or_default();
        let is_one = |code: &str| matches!(code.as_bytes(), [b'3' | b'9', b'0'..=b'7']);
        code.split(';').any(is_one)
    })
}

/// Whether files of a recording of this JVM remain.
#[track_caller]
fn nothing_is_left(place: &Place, pid: &str) {
    let status: Done = place.dwell(&["status", pid]).exits(0);
    assert!(status.out.starts_with("state      stopped"), "{status:?}");
    let names = std::fs::read_dir("/tmp").unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = names
        .filter(|name| name.starts_with(&format!("dwell-{pid}-")))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn top_shows_the_hot_method_and_leaves_no_files() {
    let place = Place::new("top");
    let mut busy = Busy::start(&modern());
    let pid = busy.pid();
    let args = ["top", "--window", "5s", &pid];
    let mut top = OnTerminal::start(&place, &args, true);
    top.until_hot();
    let again = place.dwell(&["top", "--batch", &pid]).exits(1);
    assert!(again.error().contains("already recording to"), "{again:?}");
    top.press("q");
    let output = top.ends();
    assert!(!is_coloured(&output), "no colours are wanted: {output:?}");
    nothing_is_left(&place, &pid);
    // A closed terminal sends one signal, and the shell another.
    let top = OnTerminal::start(&place, &args, false);
    top.until_drawn();
    signal(top.child.id(), Signal::HUP);
    signal(top.child.id(), Signal::HUP);
    top.ends();
    nothing_is_left(&place, &pid);
    for polite in [Signal::TERM, Signal::INT] {
        let top = OnTerminal::start(&place, &args, false);
        top.until_drawn();
        signal(top.child.id(), polite);
        top.ends();
        nothing_is_left(&place, &pid);
    }
    let top = OnTerminal::start(&place, &args, false);
    top.until_drawn();
    top.loses_its_terminal();
    nothing_is_left(&place, &pid);
    busy.assert_running();
    let top = OnTerminal::start(&place, &args, false);
    top.until_hot();
    signal(busy.pid, Signal::KILL);
    busy.child.wait().unwrap();
    let output = top.ends();
    assert!(is_coloured(&output));
    assert!(
        output.ends_with(&format!("JVM {pid} has ended\r\n")),
        "{output:?}"
    );
    let refused = place.dwell(&["top", "--batch", &pid]).exits(1);
    assert!(refused.error().contains("no process"), "{refused:?}");
}

/// The average number of threads, by a screen's line of wall time.
fn threads_of(line: &str) -> f64 {
    let words = line.split([' ', '(', ')']);
    words.filter_map(|word| word.parse::<f64>().ok()).sum()
}

/// Waiting threads are in all screens, although a wait is written only once a minute.
///
/// Detects a tenth of the threads that is missing or too much. False alarm: not by chance, because
/// all threads are followed, and time that is missing in the file goes to their last wait.
#[test]
fn measured_wall_time_is_steady_under_steady_load() {
    let place = Place::new("steady");
    let busy = Busy::start(&modern());
    let batch = [
        "top", "--batch", "--window", "2s", "--every", "3s", "-n", "6",
    ];
    let shown = place.dwell(&[&batch[..], &[&busy.pid()]].concat()).exits(0);
    let lines = shown.out.lines().filter(|line| line.starts_with("wall  "));
    // Without the first screen, in which threads are discovered.
    let threads: Vec<f64> = lines.map(threads_of).skip(1).collect();
    println!("{threads:?}");
    let [least, most] = [f64::min, f64::max].map(|of| threads.iter().copied().reduce(of).unwrap());
    assert_eq!(threads.len(), 5);
    assert!(least > 3.0 && most <= 1.1 * least, "{threads:?}");
}
