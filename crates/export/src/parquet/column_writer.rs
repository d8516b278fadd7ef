//! A Parquet file of rows, written group by group. Each column is a function of a row, so that only
//! one column of one group is in memory.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

/// Rows of a group.
const GROUP_ROWS: usize = 64 << 10;
/// Elements of the lists of a group, about.
const GROUP_ELEMENTS: usize = 1 << 20;
/// Columns of times, which increase by little.
const TIME: &str = "time_ns";

/// A value of a row and its index.
type Of<'a, R, V> = Box<dyn Fn(usize, &R) -> Option<V> + 'a>;
/// The same for a list, whose elements it adds.
type Fill<'a, R> = Box<dyn Fn(usize, &R, &mut Vec<i64>) + 'a>;

/// The values of a column.
pub enum Value<'a, R> {
    /// A whole number.
    Int(Of<'a, R, i64>),
    /// An estimate.
    Double(Of<'a, R, f64>),
    /// A truth value.
    Bool(Of<'a, R, bool>),
    /// A text in UTF-8.
    Text(Of<'a, R, ByteArray>),
    /// A list of whole numbers.
    List(Fill<'a, R>),
}

impl<R> Value<'_, R> {
    /// The column's type, in the language of Parquet's schemas.
    fn declared(&self, name: &str) -> String {
        match self {
            Value::Int(_) => format!("optional int64 {name};"),
            Value::Double(_) => format!("optional double {name};"),
            Value::Bool(_) => format!("optional boolean {name};"),
            Value::Text(_) => format!("optional binary {name} (UTF8);"),
            Value::List(_) => format!(
                "required group {name} (LIST) {{ repeated group list {{ \
                 required int64 element; }} }}"
            ),
        }
    }

    fn write(&self, first: usize, rows: &[R], out: &mut SerializedColumnWriter<'_>) -> Result {
        let rows = (first..).zip(rows);
        match self {
            Value::Int(of) => {
                let (present, values) = split(rows.map(|(place, row)| of(place, row)));
                let out = out.typed::<Int64Type>();
                out.write_batch(&values, Some(&present), None)?;
            }
            Value::Double(of) => {
                let (present, values) = split(rows.map(|(place, row)| of(place, row)));
                let out = out.typed::<DoubleType>();
                out.write_batch(&values, Some(&present), None)?;
            }
            Value::Bool(of) => {
                let (present, values) = split(rows.map(|(place, row)| of(place, row)));
                let out = out.typed::<BoolType>();
                out.write_batch(&values, Some(&present), None)?;
            }
            Value::Text(of) => {
                let (present, values) = split(rows.map(|(place, row)| of(place, row)));
                let out = out.typed::<ByteArrayType>();
                out.write_batch(&values, Some(&present), None)?;
            }
            Value::List(of) => {
                let mut lists = Lists::default();
                for (place, row) in rows {
                    lists.add(|elements| of(place, row, elements));
                }
                let out = out.typed::<Int64Type>();
                out.write_batch(
                    &lists.elements,
                    Some(&lists.present),
                    Some(&lists.continued),
                )?;
            }
        }
        Ok(())
    }
}

type Result = std::result::Result<(), ParquetError>;

/// Which rows have a value, and the values.
fn split<V>(cells: impl Iterator<Item = Option<V>>) -> (Vec<i16>, Vec<V>) {
    let (mut present, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        present.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    (present, values)
}

/// Lists in Parquet's form: for each element, or empty list, whether there is an element, and
/// whether it continues the list before it.
#[derive(Default)]
struct Lists {
    present: Vec<i16>,
    continued: Vec<i16>,
    elements: Vec<i64>,
}

impl Lists {
    fn add(&mut self, fill: impl FnOnce(&mut Vec<i64>)) {
        let before = self.elements.len();
        fill(&mut self.elements);
        let added = self.elements.len() - before;
        self.present.push(i16::from(added > 0));
        self.continued.push(0);
        let others = added.saturating_sub(1);
        self.present.extend(std::iter::repeat_n(1, others));
        self.continued.extend(std::iter::repeat_n(1, others));
    }
}

/// The columns of a table, by name.
pub struct Columns<'a, R>(Vec<(&'static str, Value<'a, R>)>);

impl<R> Default for Columns<'_, R> {
    fn default() -> Self {
        Columns(Vec::new())
    }
}

impl<'a, R> Columns<'a, R> {
    /// Adds a column.
    pub fn with(mut self, name: &'static str, value: Value<'a, R>) -> Self {
        self.0.push((name, value));
        self
    }

    /// Adds a number without a sign.
    pub fn int(self, name: &'static str, of: impl Fn(&R) -> u64 + 'a) -> Self {
        let value = move |_, row: &R| Some(i64::try_from(of(row)).unwrap_or(i64::MAX));
        self.with(name, Value::Int(Box::new(value)))
    }

    /// Adds an id, or a number with a sign.
    pub fn id(self, name: &'static str, of: impl Fn(&R) -> Option<i64> + 'a) -> Self {
        self.with(name, Value::Int(Box::new(move |_, row| of(row))))
    }

    /// Adds an estimate.
    pub fn double(self, name: &'static str, of: impl Fn(&R) -> Option<f64> + 'a) -> Self {
        self.with(name, Value::Double(Box::new(move |_, row| of(row))))
    }

    /// Adds a truth value.
    pub fn flag(self, name: &'static str, of: impl Fn(&R) -> bool + 'a) -> Self {
        self.with(name, Value::Bool(Box::new(move |_, row| Some(of(row)))))
    }

    /// Adds a text.
    pub fn text(self, name: &'static str, of: impl Fn(&R) -> Option<ByteArray> + 'a) -> Self {
        self.with(name, Value::Text(Box::new(move |_, row| of(row))))
    }
}

/// Writes a file of these rows. `elements` is the number of a row's elements in lists.
///
/// # Errors
///
/// Only those of `out`.
pub fn write<R, W: Write + Send>(
    out: W,
    rows: &[R],
    columns: &Columns<'_, R>,
    elements: impl Fn(&R) -> usize,
) -> io::Result<()> {
    let declared = columns.0.iter().map(|(name, value)| value.declared(name));
    let schema = format!("message dwell {{ {} }}", declared.collect::<String>());
    let schema = parse_message_type(&schema).map_err(error)?;
    let time = || ColumnPath::from(TIME);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_column_dictionary_enabled(time(), false)
        .set_column_encoding(time(), Encoding::DELTA_BINARY_PACKED)
        .set_created_by(format!("dwell version {}", env!("CARGO_PKG_VERSION")))
        .build();
    let mut file = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties));
    let file = file.as_mut().map_err(|e| io::Error::other(e.to_string()))?;
    let mut first = 0;
    while let Some(rest) = rows.get(first..).filter(|rest| !rest.is_empty()) {
        let group = rest.get(..group_len(rest, &elements)).unwrap_or(rest);
        let mut writer = file.next_row_group().map_err(error)?;
        for (_, value) in &columns.0 {
            let Some(mut column) = writer.next_column().map_err(error)? else {
                break;
            };
            value.write(first, group, &mut column).map_err(error)?;
            column.close().map_err(error)?;
        }
        writer.close().map_err(error)?;
        first += group.len();
    }
    file.finish().map_err(error)?;
    file.inner_mut().flush()
}

/// The rows of the next group: at least one.
fn group_len<R>(rest: &[R], elements: &impl Fn(&R) -> usize) -> usize {
    let mut sum = 0usize;
    let is_full = |row: &R| {
        sum = sum.saturating_add(elements(row));
        sum > GROUP_ELEMENTS
    };
    let most = rest.get(..GROUP_ROWS).unwrap_or(rest);
    let len = most.iter().position(is_full).unwrap_or(most.len());
    len.max(1)
}

/// The error of the output, if it is one.
fn error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_a_level_for_each_element_or_none() {
        let mut lists = Lists::default();
        for list in [&[7, 8, 9][..], &[], &[5]] {
            lists.add(|elements| elements.extend_from_slice(list));
        }
        assert_eq!(lists.elements, [7, 8, 9, 5]);
        assert_eq!(lists.present, [1, 1, 1, 0, 1]);
        assert_eq!(lists.continued, [0, 1, 1, 0, 0]);
    }

    #[test]
    fn groups_end_at_their_rows_or_elements() {
        let rows = vec![1usize; GROUP_ROWS + 5];
        assert_eq!(group_len(&rows, &|_| 0), GROUP_ROWS);
        assert_eq!(group_len(&rows[..3], &|_| 0), 3);
        assert_eq!(group_len(&rows, &|_| GROUP_ELEMENTS / 2), 2);
        assert_eq!(group_len(&rows, &|_| 2 * GROUP_ELEMENTS), 1);
    }
}
