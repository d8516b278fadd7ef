//! The terminal: takes it over, draws the lines of [`screen`](super::screen), reads keys, and
//! always restores the terminal at the end.

use super::ansi::Ansi;
use super::feed::{Feed, News};
use super::screen::{Ink, Line, screen};
use super::state::{Action, Key, State};
use crate::sys;
use anyhow::{Context, Result};
use dwell_wall::cause::Cause;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::style::{Color, Modifier, Style};
use std::io::{Stdout, stdout};
use std::mem::ManuallyDrop;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Time to wait for a key or for news.
const WAIT: Duration = Duration::from_millis(50);
/// Keys to handle before the screen is drawn again.
const EVENTS_MAX: usize = 64;

/// Whether this process has taken over the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal while it is taken over. It is restored when dropped.
struct Screen {
    /// Never dropped: it would panic over a closed terminal.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Ansi<Stdout>>>>,
}

impl Screen {
    fn take() -> Result<Screen> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        take_over().context("taking the terminal over")?;
        let terminal = Terminal::new(CrosstermBackend::new(Ansi::new(stdout())));
        let terminal = terminal.inspect_err(|_| give_back());
        Ok(Screen {
            terminal: ManuallyDrop::new(terminal.context("taking the terminal over")?),
        })
    }

    fn show(&mut self, state: &mut State, colours: bool) -> std::io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            let lines = screen(state, area.width.into(), area.height.into());
            paint(&lines, frame.buffer_mut(), colours);
        })?;
        Ok(())
    }

    /// Suspends the process until the shell continues it.
    fn suspend(&mut self) -> std::io::Result<()> {
        give_back();
        sys::suspend();
        take_over()?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take_over() -> std::io::Result<()> {
    IS_TAKEN.store(true, Ordering::Relaxed);
    let taken = enable_raw_mode().and_then(|()| execute!(stdout(), EnterAlternateScreen));
    taken.inspect_err(|_| give_back())
}

fn give_back() {
    if IS_TAKEN.swap(false, Ordering::Relaxed) {
        // Each step is tried; there is no place to report an error.
        let _ = execute!(stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// Keys and changes of size, read by a thread of its own, because reading from a closed terminal
/// may block for ever.
fn events() -> Receiver<Event> {
    let (sender, events) = sync_channel(EVENTS_MAX);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                break;
            }
        }
    });
    events
}

/// Shows snapshots until the user ends it, or so many screens were shown. Returns the closing
/// message.
pub fn run(feed: &mut Feed, state: &mut State, count: Option<u32>) -> Result<String> {
    let mut screen = Screen::take()?;
    match watch(&mut screen, feed, state, count) {
        // The terminal is gone, so the error cannot be shown.
        Err(_) if sys::terminal_is_gone() => Ok(String::new()),
        other => other,
    }
}

fn watch(
    screen: &mut Screen,
    feed: &mut Feed,
    state: &mut State,
    count: Option<u32>,
) -> Result<String> {
    let colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let events = events();
    let mut shown = 0;
    screen.show(state, colours)?;
    while !sys::interrupted() && !sys::terminal_is_gone() {
        let mut is_new = false;
        while let Some(news) = feed.next(Duration::ZERO)? {
            is_new = true;
            match news {
                News::Snapshot(snapshot) => {
                    state.take(*snapshot);
                    shown += 1;
                }
                News::End(why) => return Ok(why),
                News::Ready(_) => {}
            }
        }
        let mut wait = if is_new { Duration::ZERO } else { WAIT };
        for _ in 0..EVENTS_MAX {
            let event = match events.recv_timeout(wait) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(String::new()),
            };
            (is_new, wait) = (true, Duration::ZERO);
            let action = match event {
                Event::Key(key) => meaning(key).map(|key| state.press(key)),
                _ => None,
            };
            match action {
                Some(Action::Quit) => return Ok(String::new()),
                Some(Action::Suspend) => screen.suspend()?,
                Some(Action::Redraw) => screen.terminal.clear()?,
                Some(Action::Show) | None => {}
            }
        }
        if is_new {
            screen.show(state, colours)?;
        }
        if count.is_some_and(|count| shown >= count) {
            break;
        }
    }
    Ok(String::new())
}

/// The meaning of a key.
fn meaning(key: KeyEvent) -> Option<Key> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c' | 'd') => Some(Key::Interrupt),
            KeyCode::Char('z') => Some(Key::Suspend),
            KeyCode::Char('l') => Some(Key::Redraw),
            KeyCode::Char('h') => Some(Key::Delete),
            _ => None,
        };
    }
    Some(match key.code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter | KeyCode::Right => Key::Enter,
        KeyCode::Esc | KeyCode::Left => Key::Back,
        KeyCode::Backspace => Key::Delete,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        _ => return None,
    })
}

/// Draws lines into a buffer. Without colours, words and attributes carry the same meaning.
pub fn paint(lines: &[Line], buffer: &mut Buffer, colours: bool) {
    let area = buffer.area;
    for (line, y) in lines.iter().zip(area.top()..area.bottom()) {
        let mut x = area.left();
        for (text, ink) in line {
            let left = area.right().saturating_sub(x);
            let (after, _) = buffer.set_stringn(x, y, text, left.into(), style(*ink, colours));
            x = after;
        }
    }
}

fn style(ink: Ink, colours: bool) -> Style {
    let style = Style::default();
    let colour = |colour| match colours {
        true => style.fg(colour),
        false => style,
    };
    match ink {
        Ink::Plain => style,
        Ink::Strong => style.add_modifier(Modifier::BOLD),
        // One of the sixteen greys may equal the background.
        Ink::Faint => style.add_modifier(Modifier::DIM),
        Ink::Title => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        Ink::Selected => style.add_modifier(Modifier::REVERSED),
        Ink::Alert => colour(Color::Red).add_modifier(Modifier::BOLD),
        Ink::Of(cause) => colour(match cause {
            Cause::Running => Color::Green,
            Cause::Runnable | Cause::Throttled => Color::Yellow,
            Cause::Monitor | Cause::Lock | Cause::ClassInit => Color::Red,
            Cause::Socket | Cause::File | Cause::PageFault => Color::Cyan,
            Cause::Stopped | Cause::GcStall | Cause::JitWait | Cause::VmLock => Color::Magenta,
            _ => Color::Reset,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::Screen;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::tcgetattr;
    use std::fs::File;
    use std::io::Read;
    use std::process::{Command, Stdio};

    const ROLE: &str = "DWELL_TEST_PANICS_ON_A_TERMINAL";
    const NAME: &str = "top::terminal::tests::panic_restores_terminal_before_its_message";

    #[test]
    fn panic_restores_terminal_before_its_message() {
        if std::env::var_os(ROLE).is_some() {
            let _screen = Screen::take().unwrap();
            panic!("as it must");
        }
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let control = openpt(flags).unwrap();
        grantpt(&control).unwrap();
        unlockpt(&control).unwrap();
        let name = ptsname(&control, Vec::new()).unwrap();
        let mut control = File::from(control);
        let name = name.into_string().unwrap();
        let line = File::options().read(true).write(true).open(name).unwrap();
        let modes = |line: &File| {
            let all = tcgetattr(line).unwrap();
            format!("{:?}", (all.input_modes, all.output_modes, all.local_modes))
        };
        let before = modes(&line);
        let side = || Stdio::from(line.try_clone().unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture", "--test-threads=1"])
            .env(ROLE, "1")
            .env("TERM", "xterm")
            .stdin(side())
            .stdout(side())
            .stderr(side())
            .spawn()
            .unwrap();
        assert!(!child.wait().unwrap().success());
        assert_eq!(modes(&line), before);
        let mut output = String::new();
        // All output has been written; it is not empty, and smaller than the buffer.
        while !output.contains("test result") {
            let mut bytes = [0; 4096];
            let count = control.read(&mut bytes).unwrap();
            output.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        let places = ["\x1b[?1049h", "\x1b[?1049l", "as it must"].map(|it| output.find(it));
        assert!(places[0].is_some() && places.is_sorted(), "{output:?}");
    }
}
