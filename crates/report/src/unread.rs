//! Unread parts of a file, in words. Knows neither the file nor the output.

use dwell_profile::Unread;
use serde_json::{Value, json};

use crate::number::{count, plural};

/// Problem and remedy, as the part after the file's name in a sentence of one line.
#[must_use]
pub fn unread_words(unread: &Unread) -> String {
    format!("{}; {}", what(unread), remedy(unread))
}

/// The problem, as the part after the file's name.
pub(crate) fn what(unread: &Unread) -> String {
    format!("{}: {}", head(unread), missing(unread).join(", "))
}

/// The same in parts, for callers that break lines between them.
pub(crate) fn parts(unread: &Unread) -> Vec<String> {
    let mut parts = missing(unread);
    if let Some(first) = parts.first_mut() {
        *first = format!("{}: {first}", head(unread));
    }
    parts
}

/// Missing or unreadable parts of the file.
fn missing(unread: &Unread) -> Vec<String> {
    let mut parts = Vec::new();
    if unread.chunks > 0 {
        let is = if unread.chunks == 1 { "is" } else { "are" };
        parts.push(format!(
            "{} {is} incomplete",
            plural(unread.chunks, "chunk")
        ));
    }
    if unread.absent > 0 {
        parts.push(format!("{} are missing", bytes(unread.absent)));
    }
    if unread.bytes > 0 {
        parts.push(format!("{} could not be read", bytes(unread.bytes)));
    }
    parts
}

fn head(unread: &Unread) -> &'static str {
    match (unread.is_at_end, unread.bytes.saturating_add(unread.absent)) {
        (false, _) => "is damaged",
        (true, 0) => "was never finished",
        (true, _) => "is cut off",
    }
}

/// The remedy.
pub(crate) fn remedy(unread: &Unread) -> &'static str {
    match (unread.is_at_end, unread.absent) {
        (false, _) => "the report has all other data; copy the file again from its origin",
        (true, 0) => {
            "the report has all other data; if the file is still being written, stop or dump the \
             recording first"
        }
        (true, _) => {
            "the report has all other data; copy the file again, or record again on a \
         disk with enough room"
        }
    }
}

/// A file of many bytes, exactly: it is to be compared with the size that another copy has.
fn bytes(number: u64) -> String {
    match number {
        1 => "1 byte".to_owned(),
        _ => format!("{} bytes", count(number)),
    }
}

/// The same for programs; null where everything was read.
pub(crate) fn value(unread: Option<&Unread>) -> Value {
    unread.map_or(Value::Null, |unread| {
        json!({
            "chunks": unread.chunks,
            "bytes": unread.bytes,
            "absentBytes": unread.absent,
            "what": what(unread),
            "do": remedy(unread),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warning_names_missing_parts_and_the_remedy() {
        let cut = Unread {
            chunks: 1,
            bytes: 321,
            absent: 12_345,
            is_at_end: true,
        };
        assert_eq!(
            unread_words(&cut),
            "is cut off: 1 chunk is incomplete, 12,345 bytes are missing, 321 bytes could not be \
             read; the report has all other data; copy the file again, or record again on a disk \
             with enough room"
        );
        let tail = Unread {
            chunks: 0,
            bytes: 1,
            absent: 0,
            is_at_end: true,
        };
        assert_eq!(what(&tail), "is cut off: 1 byte could not be read");
        for unread in [&cut, &tail] {
            assert_eq!(parts(unread).join(", "), what(unread));
        }
        assert_eq!(parts(&cut).len(), 3);
        // Lengths are read from a file, and may be anything.
        let most = Unread {
            bytes: u64::MAX,
            absent: u64::MAX,
            ..cut
        };
        assert!(what(&most).starts_with("is cut off"));
        assert!(remedy(&tail).contains("stop or dump"));
        let open = Unread {
            chunks: 1,
            bytes: 0,
            ..tail
        };
        assert_eq!(what(&open), "was never finished: 1 chunk is incomplete");
        let amid = Unread {
            is_at_end: false,
            chunks: 2,
            ..cut
        };
        assert!(what(&amid).starts_with("is damaged: 2 chunks are incomplete"));
        assert_eq!(value(None), Value::Null);
        assert_eq!(value(Some(&cut))["absentBytes"], 12_345);
    }
}
