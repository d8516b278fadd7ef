//! Answers of tools: rows with units and errors, in pages of limited size, with inert texts.

use dwell_profile::{Unit as Counted, Weight};
use dwell_report::{count, duration, plain, size};
use serde_json::{Map, Value, json};

/// The size of an answer as JSON, in bytes.
pub(crate) const BYTES_MAX: usize = 16_384;
/// Lengths of a text in characters: the first at which an answer fits.
const TEXTS_MAX: [usize; 4] = [600, 200, 80, 30];

/// Unit of a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Nanoseconds,
    Samples,
    Bytes,
}

impl Unit {
    /// The unit of a profile's samples.
    pub(crate) fn of(unit: Counted) -> Unit {
        match unit {
            Counted::Nanoseconds => Unit::Nanoseconds,
            Counted::Samples => Unit::Samples,
        }
    }

    pub(crate) fn label(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Samples => "samples",
            Unit::Bytes => "bytes",
        }
    }

    /// A number with its unit.
    pub(crate) fn shown(self, number: u64) -> String {
        match self {
            Unit::Nanoseconds => duration(number),
            Unit::Samples => format!("{} samples", count(number)),
            Unit::Bytes => size(number),
        }
    }
}

/// A sum, its share of a whole, and the standard error of that share, which cannot exceed 100.
pub(crate) fn amount(weight: &Weight, whole: &Weight, unit: Unit) -> Value {
    json!({
        "value": weight.sum,
        "text": unit.shown(weight.sum),
        "percent": rounded(weight.share(whole) * 100.0),
        "plusMinus": rounded(weight.share_error(whole).min(1.0) * 100.0),
        "samples": weight.samples,
    })
}

/// Two digits after the point.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// The rows that a client wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Page {
    /// The rows of this page.
    pub(crate) fn of<T>(self, rows: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
        rows.into_iter().skip(self.offset).take(self.limit)
    }
}

/// The answer of a tool.
#[derive(Debug)]
pub(crate) struct Answer {
    /// One line without names of the program.
    pub(crate) what: String,
    /// Fields before the rows.
    pub(crate) head: Map<String, Value>,
    /// The rows of the page.
    pub(crate) rows: Vec<Value>,
    /// The number of all rows.
    pub(crate) rows_in_all: usize,
    /// Losses, and limits of the data.
    pub(crate) notes: Vec<String>,
}

impl Answer {
    pub(crate) fn new(what: impl Into<String>) -> Answer {
        Answer {
            what: what.into(),
            head: Map::new(),
            rows: Vec::new(),
            rows_in_all: 0,
            notes: Vec::new(),
        }
    }

    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.head.insert(name.to_owned(), value.into());
    }

    /// The answer as JSON that fits, with the place of the next row.
    pub(crate) fn finish(self, page: Page) -> Value {
        let mut last = Value::Null;
        for length in TEXTS_MAX {
            let (value, is_fitting) = self.fitted(page, length);
            if is_fitting {
                return value;
            }
            last = value;
        }
        last
    }

    /// The answer with as many rows as fit, at least one, and whether it fits.
    fn fitted(&self, page: Page, length: usize) -> (Value, bool) {
        let rows = self.rows.iter().map(|row| inert(row, length));
        let mut rows: Vec<Value> = rows.collect();
        let mut head = self.head.clone();
        head.insert("what".to_owned(), self.what.clone().into());
        head.insert("notes".to_owned(), self.notes.clone().into());
        head.insert("rowsInAll".to_owned(), self.rows_in_all.into());
        // Its number is written in at most 20 digits.
        head.insert("next".to_owned(), u64::MAX.into());
        let Value::Object(mut head) = inert(&Value::Object(head), length) else {
            return (Value::Null, false);
        };
        let empty = json!(head).to_string().len() + r#","rows":[]"#.len();
        let mut room = BYTES_MAX.saturating_sub(empty);
        let fitting = rows.iter().take_while(|row| {
            let bytes = row.to_string().len() + 1;
            let is_fitting = bytes <= room;
            room = room.saturating_sub(bytes);
            is_fitting
        });
        let fitting = fitting.count();
        let is_fitting = empty <= BYTES_MAX && (fitting > 0 || rows.is_empty());
        rows.truncate(fitting.max(1));
        let next = page.offset.saturating_add(rows.len());
        match next < self.rows_in_all && !rows.is_empty() {
            true => head.insert("next".to_owned(), next.into()),
            false => head.remove("next"),
        };
        head.insert("rows".to_owned(), rows.into());
        (Value::Object(head), is_fitting)
    }
}

/// A value whose texts are plain and short. Long texts lose their middle, because the ends of a
/// qualified name matter most.
fn inert(value: &Value, length: usize) -> Value {
    match value {
        Value::String(text) => short(text, length).into(),
        Value::Array(list) => list.iter().map(|it| inert(it, length)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, it)| (name.clone(), inert(it, length)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// A text of at most so many characters, without control characters.
pub(crate) fn short(text: &str, length: usize) -> String {
    const CUT: &str = "...";
    let text = plain(text);
    let all = text.chars().count();
    if all <= length {
        return text;
    }
    let room = length.saturating_sub(CUT.len());
    let head = room * 2 / 5;
    let tail = text.chars().skip(all - (room - head));
    let head: String = text.chars().take(head).collect();
    format!("{head}{CUT}{}", tail.collect::<String>())
}

/// The schema of a list.
pub(crate) fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

/// The schema of an object with these fields, of which those with `?` may be missing.
pub(crate) fn object(fields: &[(&str, Value)]) -> Value {
    let name = |name: &str| name.trim_end_matches('?').to_owned();
    let required = fields.iter().filter(|(name, _)| !name.ends_with('?'));
    let required: Vec<&str> = required.map(|(name, _)| *name).collect();
    let properties = fields.iter().map(|(of, schema)| (name(of), schema.clone()));
    json!({
        "type": "object",
        "properties": properties.collect::<Map<String, Value>>(),
        "required": required,
        "additionalProperties": false,
    })
}

/// The schema of a value of one of these types.
pub(crate) fn typed(types: &[&str]) -> Value {
    match types {
        [one] => json!({ "type": one }),
        several => json!({ "type": several }),
    }
}

pub(crate) fn string() -> Value {
    typed(&["string"])
}

pub(crate) fn integer() -> Value {
    typed(&["integer"])
}

pub(crate) fn number() -> Value {
    typed(&["number"])
}

/// The schema of [`amount`].
pub(crate) fn amount_schema() -> Value {
    object(&[
        ("value", integer()),
        ("text", string()),
        ("percent", number()),
        ("plusMinus", number()),
        ("samples", integer()),
    ])
}

/// The schema of an answer with these fields before its rows.
pub(crate) fn schema(head: &[(&str, Value)], row: Value) -> Value {
    let mut fields = head.to_vec();
    fields.extend([
        ("what", string()),
        ("rows", list(row)),
        ("rowsInAll", integer()),
        ("next?", integer()),
        ("notes", list(string())),
    ]);
    object(&fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: Page = Page {
        offset: 0,
        limit: 20,
    };

    fn answer(rows: Vec<Value>, rows_in_all: usize) -> Answer {
        Answer {
            rows,
            rows_in_all,
            ..Answer::new("rows")
        }
    }

    #[test]
    fn amount_has_unit_share_and_error() {
        let whole = Weight {
            sum: 2_000_000_000,
            squares: 100.0 * 2e7f64.powi(2),
            samples: 100,
            heaviest: 0.0,
        };
        let part = Weight {
            sum: 500_000_000,
            squares: 25.0 * 2e7f64.powi(2),
            samples: 25,
            ..whole
        };
        // sqrt(0.25 * 0.75 / 100) = 4.33 %
        let expected = json!({
            "value": 500_000_000, "text": "500 ms", "percent": 25.0, "plusMinus": 4.33,
            "samples": 25,
        });
        assert_eq!(amount(&part, &whole, Unit::Nanoseconds), expected);
        assert_eq!(Unit::Samples.shown(1234), "1,234 samples");
        assert_eq!(Unit::Bytes.shown(64 << 20), "64.0 MiB");
    }

    #[test]
    fn large_answers_have_fewer_rows_and_the_next_place() {
        let row = |number: usize| json!({ "name": format!("{number:04}{}", "x".repeat(500)) });
        let rows: Vec<Value> = (0..100).map(row).collect();
        let page = Page {
            offset: 40,
            limit: 100,
        };
        let value = answer(rows, 500).finish(page);
        let shown = value["rows"].as_array().unwrap().len();
        assert!((20..40).contains(&shown), "{shown}");
        assert_eq!(value["next"], json!(40 + shown));
        assert!(value.to_string().len() <= BYTES_MAX);
        let last = answer(vec![row(0)], 41).finish(page);
        assert_eq!(last.get("next"), None);
        // An offset beyond the last row leads nowhere.
        assert_eq!(answer(Vec::new(), 3).finish(page).get("next"), None);
    }

    #[test]
    fn one_large_row_is_shortened_until_it_fits() {
        let text = |number: usize| format!("{number}{}", "\u{10ffff}\"\\".repeat(3_000));
        let texts: Vec<String> = (0..60).map(text).collect();
        let value = answer(vec![json!({ "texts": texts })], 1).finish(PAGE);
        assert!(value.to_string().len() <= BYTES_MAX);
        assert_eq!(value["rows"][0]["texts"].as_array().unwrap().len(), 60);
    }

    #[test]
    fn texts_are_plain_and_keep_their_ends() {
        let hostile = "a\u{1b}[2J\n\u{202e}b";
        let value = answer(vec![json!({ "deep": [{ "name": hostile }] })], 1).finish(PAGE);
        assert_eq!(
            value["rows"][0]["deep"][0]["name"],
            "a\u{fffd}[2J\u{fffd}\u{fffd}b"
        );
        assert_eq!(short("org.example.Long.method", 13), "org....method");
        // Marks without width count too.
        let marks = "\u{301}".repeat(10_000);
        assert_eq!(short(&marks, 600).chars().count(), 600);
    }
}
