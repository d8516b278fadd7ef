//! `dwell top`: the present activity of a JVM, in the terminal, or as text screen by screen.
//!
//! It follows its own recording while that is written ([`feed`]). The model ([`window`],
//! [`drilled`], [`sheet`] and the modules of tables), the actions of keys ([`state`]) and the
//! screen's content ([`screen`]) are independent of terminal and target.

mod ansi;
mod drilled;
mod feed;
mod screen;
mod sheet;
mod stacks;
mod state;
mod still;
mod stops;
mod tabs;
mod tail;
mod terminal;
#[cfg(test)]
mod tests;
mod window;

use crate::args::{Table, Top};
use crate::record::outside;
use crate::{Usage, sys};
use anyhow::{Context, Result};
use feed::{Feed, News};
use state::{State, Tab};
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Columns of text if the terminal reports none.
const COLUMNS: usize = 100;
/// A larger number of columns is an error.
const COLUMNS_MAX: usize = 1000;
const WAIT: Duration = Duration::from_millis(100);

/// Runs until the user ends it, the JVM ends, or all screens were shown.
pub fn run(args: &Top) -> Result<()> {
    if args.no_agent {
        outside::check(&args.sampling)?;
    }
    if !args.batch {
        check_terminal()?;
    }
    sys::count_interrupts().context("installing the handler for Ctrl-C")?;
    let mut feed = Feed::start(args);
    let mut state = State::new(feed.ready()?, tab(args.view));
    let shown = match args.batch {
        true => batch(args, &mut feed, &mut state),
        false => terminal::run(&mut feed, &mut state, args.count),
    };
    // The recording ends first, because errors of the output must not prevent that.
    let ended = feed.end();
    let why = shown?;
    if !why.is_empty() {
        // The terminal may be gone.
        let _ = writeln!(std::io::stderr(), "{why}");
    }
    ended
}

fn tab(table: Table) -> Tab {
    match table {
        Table::Methods => Tab::Methods,
        Table::Threads => Tab::Threads,
        Table::Endpoints => Tab::Endpoints,
        Table::Causes => Tab::Causes,
        Table::Stops => Tab::Stops,
        Table::Stacks => Tab::Stacks,
    }
}

/// Refuses to draw without a usable terminal.
fn check_terminal() -> Result<(), Usage> {
    let refuse = |what: &str| {
        Err(Usage(format!(
            "top: {what}; add --batch for plain text, -n N for so many screens of it"
        )))
    };
    if !std::io::stdout().is_terminal() {
        return refuse("standard output is not a terminal");
    }
    if !std::io::stdin().is_terminal() {
        return refuse("standard input is not a terminal");
    }
    match std::env::var("TERM").as_deref() {
        Ok("dumb") => refuse("this terminal (TERM=dumb) cannot move its cursor"),
        _ => Ok(()),
    }
}

/// Prints screens.
fn batch(args: &Top, feed: &mut Feed, state: &mut State) -> Result<String> {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.parse().ok());
    let width: usize = columns.unwrap_or(COLUMNS).clamp(1, COLUMNS_MAX);
    let every = args.every.unwrap_or(args.window);
    let (mut next, mut left) = (Instant::now() + every, args.count);
    while !sys::interrupted() && left != Some(0) {
        match feed.next(WAIT)? {
            Some(News::Snapshot(snapshot)) if Instant::now() >= next => {
                next += every;
                state.take(*snapshot);
                let text = screen::text(state, width, args.rows) + "\n";
                let mut out = std::io::stdout().lock();
                match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
                    Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                    other => other?,
                }
                left = left.map(|left| left - 1);
            }
            Some(News::End(why)) => return Ok(why),
            _ => {}
        }
    }
    Ok(String::new())
}
