//! Events of other recorders that are no time of threads, as tables.

use dwell_profile::{CellUnit, EventTable};

use super::{COLUMNS, ROWS, Report, more, paragraph};
use crate::number::{bytes, count, duration};
use crate::plain::shortened;

impl Report<'_> {
    /// A table for each kind of which there is something.
    pub(super) fn event_tables(&mut self) {
        for table in self.profile.event_tables() {
            self.raw("");
            self.text.push_str(&event_table(&table, ROWS));
        }
    }
}

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

#[cfg(test)]
mod tests {
    use dwell_profile::{Builder, Traced, TracedKind};

    #[test]
    fn tables_have_numbers_with_units_before_names() {
        let mut builder = Builder::default();
        let what = builder.name("/var/data.bin");
        builder.traced.push(Traced {
            bytes: [0, 64 << 20],
            duration_ns: 48_800_000,
            longest_ns: 48_800_000,
            ..Traced::one(TracedKind::File, what, None)
        });
        let text = crate::text(&builder.finish());
        let row = "           1     64.0 MiB      48.8 ms      48.8 ms  /var/data.bin";
        assert!(text.contains(row), "{text}");
        let head = "      events      written         time      longest  path";
        assert!(text.contains(head), "{text}");
    }
}
