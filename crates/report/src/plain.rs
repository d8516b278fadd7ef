//! Names of a profiled program as plain text: nothing in them can steer a terminal or a reader's
//! eye, and they fit into a column.

pub use dwell_profile::plain;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Where a shortened name was cut.
const CUT: &str = "...";

/// `text` made [`plain`] and at most `columns` wide on a terminal. Longer text loses its middle,
/// because the ends of a qualified name matter most.
pub fn shortened(text: &str, columns: usize) -> String {
    let text = plain(text);
    if text.width() <= columns {
        return text;
    }
    let room = columns.saturating_sub(CUT.len());
    // The end holds the method: give it a little more.
    let mut head = take(text.chars(), room * 2 / 5);
    let tail = take(
        text.chars().rev(),
        room.saturating_sub(head.as_str().width()),
    );
    let mut tail: std::collections::VecDeque<char> = tail.chars().rev().collect();
    let cut = &CUT[..CUT.len().min(columns)];
    // Characters can be wider together than one by one.
    loop {
        let whole = format!("{head}{cut}{}", tail.iter().collect::<String>());
        if whole.width() <= columns {
            return whole;
        }
        if tail.pop_front().is_none() && head.pop().is_none() {
            return cut.to_owned();
        }
    }
}

/// `text` made [`plain`] and at most `columns` wide. Longer text loses its end, because the
/// beginning of sentences and lists matters most.
pub fn beginning(text: &str, columns: usize) -> String {
    let text = plain(text);
    if text.width() <= columns {
        return text;
    }
    let cut = &CUT[..CUT.len().min(columns)];
    let head = take(text.chars(), columns - cut.len());
    // Characters can be wider together than one by one.
    match head.as_str().width() + cut.len() <= columns {
        true => format!("{head}{cut}"),
        false => cut.to_owned(),
    }
}

/// How wide a text is on a terminal.
pub fn columns(text: &str) -> usize {
    text.width()
}

fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut width = 0;
    chars
        .take_while(|c| {
            width += c.width().unwrap_or(0);
            width <= columns
        })
        .collect()
}

/// `text` shortened and filled with blanks to exactly `columns`.
pub fn padded(text: &str, columns: usize) -> String {
    let text = shortened(text, columns);
    let blanks = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(blanks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(
            shortened("org.example.VeryLongName.method", 15),
            "org....e.method"
        );
        assert_eq!(shortened("short", 15), "short");
        assert_eq!(shortened(&"x".repeat(10_000), 40).len(), 40);
        assert_eq!(shortened("abcdef", 2), "..");
        assert_eq!(shortened("abcdef", 0), "");
        // A star and a selector of its form are wider than both.
        let stars = "*\u{fe0f}".repeat(40);
        for columns in 0..80 {
            assert!(shortened(&stars, columns).width() <= columns, "{columns}");
        }
        assert_eq!(beginning("a sentence of words", 10), "a sente...");
        assert_eq!(beginning("short", 5), "short");
    }

    proptest! {

        #[test]
        fn always_fits(text in "\\PC{0,60}", columns in 0usize..50) {
            prop_assert!(shortened(&text, columns).width() <= columns);
            prop_assert!(beginning(&text, columns).width() <= columns);
            prop_assert_eq!(padded(&text, columns).width(), columns);
        }
    }
}
