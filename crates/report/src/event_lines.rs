//! Tables of events of another recorder as lines of text. Names are not made plain here.

use dwell_profile::{CellUnit, EventTable};

use crate::number::{bytes, count, duration};
use crate::plain::shortened;

/// The widest line.
const COLUMNS: usize = 100;

/// A table with its title and its first rows.
pub(crate) fn event_table(table: &EventTable, most: usize) -> String {
    let mut text = String::new();
    let mut raw = |line: &str| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    raw(table.title);
    if !table.note.is_empty() {
        paragraph(&table.note).iter().for_each(|line| raw(line));
    }
    let heads = table.columns.iter();
    let heads: String = heads.map(|it| format!("{:>12} ", it.head)).collect();
    raw(&format!("{heads} {}", table.head));
    for (name, cells) in table.rows.iter().take(most) {
        let cells = cells.iter().zip(&table.columns).map(|(value, column)| {
            let text = match column.unit {
                CellUnit::Count => count(*value),
                CellUnit::Bytes => bytes(*value),
                CellUnit::Nanos => duration(*value),
            };
            format!("{text:>12} ")
        });
        let head = format!("{} ", cells.collect::<String>());
        let name = shortened(name, COLUMNS.saturating_sub(head.len()));
        raw(&format!("{head}{name}"));
    }
    more(table.rows.len(), most)
        .iter()
        .for_each(|line| raw(line));
    text
}

/// The line for rows that are not shown.
pub(crate) fn more(rows: usize, shown: usize) -> Option<String> {
    let left = rows.checked_sub(shown).filter(|left| *left > 0)?;
    Some(format!("           and {} more", count(left as u64)))
}

/// Words in lines that fit.
pub(crate) fn paragraph(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if line.len() + 1 + word.len() > COLUMNS {
            lines.push(std::mem::replace(&mut line, " ".to_owned()));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
