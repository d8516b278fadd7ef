//! The screen as lines of text, each part with a meaning; without colours or a terminal. Pure. All
//! names of the program go through [`dwell_report::shortened`] or [`dwell_report::plain`].

use super::sheet::{Column, Row, Target};
use super::state::{State, Tab};
use super::tabs;
use super::window::{Snapshot, Stops};
use crate::units;
use dwell_profile::{KINDS, plural};
use dwell_report::{beginning, columns, padded, plain, shortened};
use dwell_wall::cause::Cause;

/// Meaning of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// Nothing special.
    Plain,
    /// A number or a name that matters.
    Strong,
    /// Less important text.
    Faint,
    /// Titles of a table, the selected tab.
    Title,
    /// The row that is selected.
    Selected,
    /// A warning.
    Alert,
    /// A cause of wall time.
    Of(Cause),
}

/// A part of a line.
pub type Part = (String, Ink);
/// A line.
pub type Line = Vec<Part>;

/// Minimum size of the screen.
const LEAST: (usize, usize) = (20, 4);
/// Minimum room for names.
const NAME_LEAST: usize = 20;
/// At lower heights the head is one line.
const HEAD_FROM: usize = 14;

const HELP: &[&str] = &[
    "100 % is one CPU, or one thread, for the whole window. WALL% is the",
    "time of Java threads, running or waiting; self: in the method itself.",
    "",
    "1-7 Tab       methods, threads, endpoints, causes, safepoints, stacks, calls",
    "Up Down j k   another row; also PgUp, PgDn, Home, End, g, G",
    "Enter Right   open the row: callers of a method, stacks of a thread, causes",
    "              of an endpoint, threads late for a safepoint, a stack's frames",
    "Esc Left      back, or clear the filter",
    "Space p       pause, resume",
    "s r           sort by the next column or the name; reverse",
    "/             filter rows by a text; Enter keeps it, Esc drops it",
    "i             include or exclude idle pool threads",
    "t             single threads, or groups by name",
    "c             callers or callees of a method",
    "q Ctrl-C      end, and end the recording in the JVM",
];

/// The lines of a screen of this size.
pub fn screen(state: &mut State, width: usize, height: usize) -> Vec<Line> {
    if width < LEAST.0 || height < LEAST.1 {
        let text: String = "too small".chars().take(width).collect();
        return vec![vec![(text, Ink::Plain)]];
    }
    let mut lines = vec![title(state, width)];
    if height >= HEAD_FROM {
        lines.extend(head(state, width));
    }
    lines.push(bar(state, width));
    let room = height.saturating_sub(lines.len() + 1);
    if state.is_help {
        let help = HELP.iter().take(room);
        lines.extend(help.map(|line| vec![(beginning(line, width), Ink::Plain)]));
    } else {
        state.room = room.saturating_sub(1);
        lines.extend(body(state, width, room));
    }
    lines.resize(height - 1, Line::new());
    lines.push(foot(state, width));
    lines
}

/// The same as text, with so many rows of the table.
pub fn text(state: &mut State, width: usize, rows: usize) -> String {
    let mut lines = vec![title(state, width)];
    lines.extend(head(state, width));
    lines.push(Line::new());
    lines.extend(body(state, width, rows + 1));
    let mut text = String::new();
    for line in lines {
        let line: String = line.into_iter().map(|(text, _)| text).collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Cuts a line off at a width. Each part is plain already.
fn fitting(parts: Line, width: usize) -> Line {
    let mut left = width;
    let mut line = Line::new();
    for (text, ink) in parts {
        let text = match columns(&text) {
            columns if columns <= left => text,
            _ => beginning(&text, left),
        };
        left -= columns(&text).min(left);
        line.push((text, ink));
    }
    line
}

fn title(state: &State, width: usize) -> Line {
    let mut parts = vec![
        ("dwell top  ".to_owned(), Ink::Strong),
        (plain(&state.title), Ink::Plain),
    ];
    if let Some(snapshot) = &state.snapshot {
        let seconds = snapshot.span_ns() as f64 / 1e9;
        parts.push((format!("  last {seconds:.0} s"), Ink::Plain));
    }
    if state.is_paused {
        parts.push(("  PAUSED".to_owned(), Ink::Alert));
    }
    fitting(parts, width)
}

fn stops(stops: &Stops) -> String {
    match stops.count {
        0 => "none".to_owned(),
        count => format!(
            "{count}, {} (longest {})",
            units::short(stops.sum_ns),
            units::short(stops.longest_ns)
        ),
    }
}

fn head(state: &State, width: usize) -> Vec<Line> {
    let Some(snapshot) = &state.snapshot else {
        return vec![vec![(
            "waiting for the first second".to_owned(),
            Ink::Faint,
        )]];
    };
    let lines = vec![
        cpu(snapshot),
        wall(snapshot, width),
        stood_still(snapshot),
        cost(snapshot),
    ];
    lines.into_iter().map(|line| fitting(line, width)).collect()
}

fn cpu(snapshot: &Snapshot) -> Line {
    let total = snapshot.total();
    let mut parts = vec![
        ("CPU   ".to_owned(), Ink::Faint),
        (
            format!("{:.1} %", snapshot.rate(total.cpu) * 100.0),
            Ink::Strong,
        ),
    ];
    if let Some(limit) = snapshot.recent().cpu_limit() {
        let processors = match limit.quota_ns {
            0 => limit.processors as f64,
            quota => quota as f64 / 1e9,
        };
        parts.push((format!(" of {:.0} %", processors * 100.0), Ink::Plain));
        if limit.throttled_ns > 0 {
            let text = format!("  throttled for {}", units::short(limit.throttled_ns));
            parts.push((text, Ink::Alert));
        }
    }
    let threads: std::collections::BTreeSet<u32> =
        snapshot.pieces.iter().map(|piece| piece.thread).collect();
    parts.push((
        format!("  {} seen", plural(threads.len() as u64, "thread")),
        Ink::Plain,
    ));
    let requests = snapshot.requests();
    if requests > 0 {
        let rate = requests as f64 * 1e9 / snapshot.span_ns() as f64;
        parts.push((format!("  {rate:.1} requests/s"), Ink::Plain));
    }
    parts
}

/// The wall time, with as many causes as there is room for.
fn wall(snapshot: &Snapshot, width: usize) -> Line {
    /// A smaller share would be shown as 0.0.
    const LEAST: f64 = 0.05;
    let (strip, idle) = tabs::strip(snapshot);
    const LABEL: &str = "wall  ";
    let mut parts = vec![(LABEL.to_owned(), Ink::Faint)];
    if strip.is_empty() && idle == 0.0 {
        let text = "not recorded, or no Java thread was seen";
        parts.push((text.to_owned(), Ink::Faint));
    }
    let idle = match idle >= LEAST {
        true => format!("(idle-pool {idle:.1})"),
        false => String::new(),
    };
    let mut left = width.saturating_sub(LABEL.len() + idle.len());
    for (cause, rate) in strip.into_iter().filter(|(_, rate)| *rate >= LEAST) {
        let text = format!("{} {rate:.1}  ", plain(cause));
        if text.len() > left {
            break;
        }
        left -= text.len();
        parts.push((text, ink_of(cause)));
    }
    parts.push((idle, Ink::Faint));
    parts
}

fn stood_still(snapshot: &Snapshot) -> Line {
    let mut parts = vec![("safepoints ".to_owned(), Ink::Faint)];
    let kinds = KINDS.iter().filter(|kind| kind.words.all_stand);
    if snapshot.profile.info().engine.contains("outside") {
        let others: Vec<_> = kinds.map(|kind| format!("{}s", kind.words.one)).collect();
        let text = format!("not available from outside, like {}", others.join(", "));
        parts.push((text, Ink::Faint));
        return parts;
    }
    parts.push((stops(&snapshot.stops()), Ink::Plain));
    for kind in kinds {
        parts.push((format!("  {}s ", kind.words.one), Ink::Faint));
        parts.push((stops(&snapshot.stretches(kind)), Ink::Plain));
    }
    parts
}

fn cost(snapshot: &Snapshot) -> Line {
    let samples = snapshot
        .pieces
        .iter()
        .filter(|piece| piece.cause.is_none())
        .count();
    let looks = snapshot.pieces.len() - samples;
    let (samples, looks) = (samples as u64, looks as u64);
    let mut text = format!("{}, {}", plural(samples, "sample"), plural(looks, "wait"));
    if let Some(share) = snapshot.recent().self_cost_share() {
        text += &format!("; the agent takes {:.1} % of a CPU", share * 100.0);
    }
    let lost: u64 = snapshot
        .recent()
        .losses()
        .iter()
        .map(|loss| loss.samples)
        .sum();
    let mut parts = vec![("seen  ".to_owned(), Ink::Faint), (text, Ink::Plain)];
    if lost > 0 {
        parts.push((format!("  {} lost", plural(lost, "sample")), Ink::Alert));
    }
    parts
}

fn ink_of(cause: &str) -> Ink {
    Cause::from_name(cause).map_or(Ink::Plain, Ink::Of)
}

/// The tabs, or the drilled path.
fn bar(state: &State, width: usize) -> Line {
    let page = state.page();
    let mut parts = Line::new();
    for (place, tab) in page.tabs().iter().enumerate() {
        let ink = match *tab == page.tab {
            true => Ink::Title,
            false => Ink::Faint,
        };
        parts.push((format!("{} {}", place + 1, tab.name()), ink));
        parts.push((" ".to_owned(), Ink::Plain));
    }
    let used: usize = parts.iter().map(|(text, _)| text.len()).sum();
    let scope: Vec<String> = page.scope.parts().into_iter().map(plain).collect();
    if scope.is_empty() {
        return fitting(parts, width);
    }
    let scope = format!("> {}", scope.join(" > "));
    // If there is little room, the path is more important than the tabs.
    if used + NAME_LEAST > width || used + columns(&scope) > width {
        parts.retain(|(_, ink)| *ink == Ink::Title);
        parts.push((" ".to_owned(), Ink::Plain));
    }
    parts.push((scope, Ink::Strong));
    fitting(parts, width)
}

/// The table with its titles, or the frames of a stack.
fn body(state: &State, width: usize, room: usize) -> Vec<Line> {
    let page = state.page();
    if let Some(frames) = &page.frames {
        return stack(frames, page.selected, width, room);
    }
    if state.snapshot.is_none() || room == 0 {
        return Vec::new();
    }
    let table = &state.table;
    let columns = fitting_columns(table.columns, width);
    let sort = page.sort();
    let mut titles = Line::new();
    for (place, column) in columns.iter().enumerate() {
        let ink = match !table.is_tree && sort.column == place {
            true => Ink::Selected,
            false => Ink::Title,
        };
        titles.push((field(column, column.title), ink));
        titles.push((" ".to_owned(), Ink::Title));
    }
    let used: usize = columns.iter().map(|column| column.width + 1).sum();
    let ink = match !table.is_tree && sort.column >= table.columns.len() {
        true => Ink::Selected,
        false => Ink::Title,
    };
    titles.push((padded(table.title, width.saturating_sub(used)), ink));
    let mut lines = vec![titles];
    if table.rows.is_empty() {
        let text = match page.filter.is_empty() {
            true => table.empty,
            false => "no row has the filter's text",
        };
        lines.push(vec![(shortened(text, width), Ink::Faint)]);
        return lines;
    }
    let rows = room - 1;
    let first = first_shown(page.selected, table.rows.len(), rows);
    for (place, row) in table.rows.iter().enumerate().skip(first).take(rows) {
        lines.push(line(row, columns, width, place == page.selected));
    }
    lines
}

/// As many columns as leave room for the name.
fn fitting_columns(columns: &[Column], width: usize) -> &[Column] {
    let mut used = 0;
    let count = columns.iter().take_while(|column| {
        used += column.width + 1;
        used + NAME_LEAST <= width
    });
    columns.get(..count.count()).unwrap_or(columns)
}

fn field(column: &Column, text: &str) -> String {
    match column.is_text {
        true => padded(text, column.width),
        false => format!(
            "{:>width$}",
            shortened(text, column.width),
            width = column.width
        ),
    }
}

fn line(row: &Row, columns: &[Column], width: usize, is_selected: bool) -> Line {
    let mut parts = Line::new();
    let mut left = width;
    for (column, cell) in columns.iter().zip(&row.cells) {
        let ink = match column.is_text {
            true => ink_of(cell.text.split(' ').next().unwrap_or("")),
            false => Ink::Plain,
        };
        parts.push((field(column, &cell.text), ink));
        parts.push((" ".to_owned(), Ink::Plain));
        left -= (column.width + 1).min(left);
    }
    let indent = row.depth.min(left / 2);
    let name = match row.target {
        Target::Stack(_) | Target::Cause(_) => beginning(&row.name, left - indent),
        _ => shortened(&row.name, left - indent),
    };
    let name = " ".repeat(indent) + &name;
    parts.push((padded(&name, left), Ink::Plain));
    if is_selected {
        parts.iter_mut().for_each(|(_, ink)| *ink = Ink::Selected);
    }
    parts
}

fn stack(frames: &[String], selected: usize, width: usize, room: usize) -> Vec<Line> {
    let first = first_shown(selected, frames.len(), room);
    let frames = frames.iter().enumerate().skip(first).take(room);
    let line = |(place, frame): (usize, &String)| {
        let ink = match place == selected {
            true => Ink::Selected,
            false => Ink::Plain,
        };
        vec![(padded(frame, width), ink)]
    };
    frames.map(line).collect()
}

/// The first row to show, so that the selected one is visible.
fn first_shown(selected: usize, rows: usize, room: usize) -> usize {
    let last = rows.saturating_sub(room);
    selected.saturating_sub(room / 2).min(last)
}

fn foot(state: &State, width: usize) -> Line {
    if let Some(filter) = &state.typing {
        let text = shortened(filter, width.saturating_sub(2));
        return vec![
            (format!("/{text}"), Ink::Strong),
            (" ".to_owned(), Ink::Selected),
        ];
    }
    let page = state.page();
    if !page.filter.is_empty() {
        let text = format!("only rows with '{}'; Esc shows all", plain(&page.filter));
        return vec![(shortened(&text, width), Ink::Alert)];
    }
    if !state.note.is_empty() {
        return vec![(shortened(&state.note, width), Ink::Alert)];
    }
    let keys = match page.tab {
        Tab::Calls => "c calls  ",
        Tab::Threads => "t group  ",
        _ => "",
    };
    let text = format!(
        "q quit  Enter open  Esc back  Space pause  s sort  / filter  {keys}? keys{}",
        if state.hides_idle() {
            ""
        } else {
            "  idle shown"
        }
    );
    vec![(beginning(&text, width), Ink::Faint)]
}
