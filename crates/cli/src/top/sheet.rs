//! A table, the common form of all tabs: columns, rows, sorting and filtering. Pure.

use super::drilled::Who;
use dwell_profile::NodeId;

/// Maximum number of rows.
const ROWS_MAX: usize = 1000;

/// A column in front of the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The title.
    pub title: &'static str,
    /// The width.
    pub width: usize,
    /// Whether it is text, which is aligned left.
    pub is_text: bool,
}

impl Column {
    /// A column of numbers.
    pub const fn number(title: &'static str, width: usize) -> Column {
        Column {
            title,
            width,
            is_text: false,
        }
    }

    /// A column of text.
    pub const fn text(title: &'static str, width: usize) -> Column {
        Column {
            title,
            width,
            is_text: true,
        }
    }
}

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The text.
    pub text: String,
    /// The sort value, largest first.
    pub value: f64,
}

impl Cell {
    /// A share of one processor or of one thread, in percent.
    pub fn share(rate: f64) -> Cell {
        let percent = rate * 100.0;
        Cell {
            text: match percent {
                0.0 => "-".to_owned(),
                0.0..999.95 => format!("{percent:.1}"),
                _ => format!("{percent:.0}"),
            },
            value: percent,
        }
    }

    /// A number of something.
    pub fn count(count: u64) -> Cell {
        Cell {
            text: count.to_string(),
            value: count as f64,
        }
    }

    /// A time; 0 is shown as none.
    pub fn time(ns: u64) -> Cell {
        Cell {
            text: match ns {
                0 => "-".to_owned(),
                _ => crate::units::short(ns),
            },
            value: ns as f64,
        }
    }

    /// Words, sorted by a number.
    pub fn words(text: String, value: f64) -> Cell {
        Cell { text, value }
    }
}

/// The target of a row for drilling down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A method.
    Method(String),
    /// A thread or a group.
    Who(Who),
    /// An endpoint, or no endpoint.
    Endpoint(Option<String>),
    /// A cause.
    Cause(String),
    /// An operation at a safepoint.
    Operation(String),
    /// A stack, by its node in the snapshot that the row was made from.
    Stack(NodeId),
    /// No target.
    Nothing,
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Identifies the row, also in the next table.
    pub key: String,
    /// The fields before the name.
    pub cells: Vec<Cell>,
    /// The last field; as wide as there is room.
    pub name: String,
    /// Depth in a tree.
    pub depth: usize,
    /// The target.
    pub target: Target,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The columns before the name.
    pub columns: &'static [Column],
    /// The title of the names.
    pub title: &'static str,
    /// The rows.
    pub rows: Vec<Row>,
    /// Whether the rows are a tree, which is not sorted.
    pub is_tree: bool,
    /// Text in place of an empty table.
    pub empty: &'static str,
}

/// Sort order: by a column, or by name, which has the number after the last column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    /// The column.
    pub column: usize,
    /// Smallest first.
    pub is_reversed: bool,
}

impl Table {
    /// The rows with this text in their name or words, sorted and limited.
    #[must_use]
    pub fn arranged(mut self, filter: &str, sort: Sort) -> Table {
        let filter = filter.to_lowercase();
        if !filter.is_empty() {
            let columns = self.columns;
            self.rows.retain(|row| {
                let has = |text: &str| text.to_lowercase().contains(&filter);
                let mut cells = columns.iter().zip(&row.cells);
                has(&row.name) || cells.any(|(column, cell)| column.is_text && has(&cell.text))
            });
        }
        if !self.is_tree {
            let value = |row: &Row| row.cells.get(sort.column).map(|cell| cell.value);
            self.rows.sort_by(|a, b| {
                let by_value = match (value(a), value(b)) {
                    (Some(a), Some(b)) => b.total_cmp(&a),
                    _ => a.name.cmp(&b.name),
                };
                let by_value = match sort.is_reversed {
                    true => by_value.reverse(),
                    false => by_value,
                };
                // If the sort column has equal values, the others decide.
                let rest = || {
                    let pairs = a.cells.iter().zip(&b.cells);
                    pairs
                        .map(|(a, b)| b.value.total_cmp(&a.value))
                        .find(|order| order.is_ne())
                };
                by_value
                    .then_with(|| rest().unwrap_or(std::cmp::Ordering::Equal))
                    .then_with(|| a.name.cmp(&b.name))
            });
        }
        self.rows.truncate(ROWS_MAX);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[Column::text("X", 5), Column::number("Y", 5)];

    fn row(name: &str, values: [f64; 2]) -> Row {
        Row {
            key: name.to_owned(),
            cells: values.map(Cell::share).to_vec(),
            name: name.to_owned(),
            depth: 0,
            target: Target::Nothing,
        }
    }

    fn names(filter: &str, column: usize, is_reversed: bool) -> String {
        let table = Table {
            rows: vec![
                row("c", [0.1, 0.5]),
                row("b", [0.1, 0.7]),
                row("a", [0.9, 0.0]),
                row("BB", [0.0, 0.0]),
            ],
            columns: COLUMNS,
            ..Table::default()
        };
        let sort = Sort {
            column,
            is_reversed,
        };
        let rows = table.arranged(filter, sort).rows;
        rows.iter()
            .map(|row| row.name.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn rows_are_sorted_and_filtered() {
        assert_eq!(names("", 0, false), "a b c BB");
        assert_eq!(names("", 1, false), "b c a BB");
        assert_eq!(names("", 1, true), "a BB c b");
        assert_eq!(names("", 2, false), "BB a b c");
        assert_eq!(names("b", 0, false), "b BB");
        assert_eq!(names("nothing", 0, false), "");
        assert_eq!(names("90.0", 0, false), "a", "text counts");
        assert_eq!(names("50.0", 0, false), "", "numbers do not");
    }

    #[test]
    fn shares_fit_their_columns() {
        let text = |rate| Cell::share(rate).text;
        assert_eq!(
            [0.0, 0.0123, 1.0, 9.9999, 123.4].map(text),
            ["-", "1.2", "100.0", "1000", "12340"]
        );
    }
}
