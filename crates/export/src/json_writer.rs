//! JSON that is written value by value, because a whole document would need many times the memory
//! of the profile.

use std::fmt::Display;
use std::io::{self, Write};

use dwell_profile::plain;
use serde_json::Value;

/// Nanoseconds of a millisecond.
const MS: u128 = 1_000_000;

/// A document under construction. Its methods add the commas.
pub struct JsonWriter<W: Write> {
    out: W,
    needs_comma: bool,
}

impl<W: Write> JsonWriter<W> {
    /// A document without a value.
    pub fn new(out: W) -> JsonWriter<W> {
        JsonWriter {
            out,
            needs_comma: false,
        }
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn separate(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.needs_comma, true) {
            self.out.write_all(b",")?;
        }
        Ok(())
    }

    /// The key of the next value.
    pub fn key(&mut self, key: &str) -> io::Result<()> {
        self.text(key)?;
        self.needs_comma = false;
        self.out.write_all(b":")
    }

    /// An object, whose content `write` adds.
    pub fn object(
        &mut self,
        write: impl FnOnce(&mut JsonWriter<W>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.enclosed([b"{", b"}"], write)
    }

    /// An array, whose content `write` adds.
    pub fn array(
        &mut self,
        write: impl FnOnce(&mut JsonWriter<W>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.enclosed([b"[", b"]"], write)
    }

    fn enclosed(
        &mut self,
        [open, close]: [&[u8]; 2],
        write: impl FnOnce(&mut JsonWriter<W>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.separate()?;
        self.out.write_all(open)?;
        self.needs_comma = false;
        write(self)?;
        self.needs_comma = true;
        self.out.write_all(close)
    }

    /// An array as the value of a key, with an element for each item.
    pub fn column<T>(
        &mut self,
        key: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut JsonWriter<W>, T) -> io::Result<()>,
    ) -> io::Result<()> {
        self.key(key)?;
        self.array(|json| items.into_iter().try_for_each(|item| write(json, item)))
    }

    /// An array with as many equal values as the other columns of a table have.
    pub fn constant(&mut self, key: &str, value: &str, len: usize) -> io::Result<()> {
        self.column(key, 0..len, |json, _| json.number(value))
    }

    /// A text without characters that could act in a terminal.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.separate()?;
        serde_json::to_writer(&mut self.out, &plain(text)).map_err(io::Error::from)
    }

    /// A number, `true`, `false` or `null`.
    pub fn number(&mut self, number: impl Display) -> io::Result<()> {
        self.separate()?;
        write!(self.out, "{number}")
    }

    /// A number, or `null`.
    pub fn optional(&mut self, number: Option<impl Display>) -> io::Result<()> {
        match number {
            Some(number) => self.number(number),
            None => self.number("null"),
        }
    }

    /// Nanoseconds as milliseconds, exactly.
    pub fn milliseconds(&mut self, ns: i128) -> io::Result<()> {
        self.separate()?;
        let sign = if ns < 0 { "-" } else { "" };
        let (whole, rest) = (ns.unsigned_abs() / MS, ns.unsigned_abs() % MS);
        if rest == 0 {
            return write!(self.out, "{sign}{whole}");
        }
        let digits = format!("{rest:06}");
        write!(self.out, "{sign}{whole}.{}", digits.trim_end_matches('0'))
    }

    /// A small value.
    pub fn value(&mut self, value: &Value) -> io::Result<()> {
        self.separate()?;
        serde_json::to_writer(&mut self.out, value).map_err(io::Error::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut JsonWriter<Vec<u8>>) -> io::Result<()>) -> String {
        let mut json = JsonWriter::new(Vec::new());
        write(&mut json).unwrap();
        String::from_utf8(json.into_inner()).unwrap()
    }

    #[test]
    fn commas_are_between_values_only() {
        let text = written(|json| {
            json.object(|json| {
                json.column("a", [1, 2], |json, it| json.number(it))?;
                json.key("b")?;
                json.array(|_| Ok(()))?;
                json.constant("c", "null", 2)?;
                json.key("d\"\n")?;
                json.text("e\u{1b}")
            })
        });
        let expected = r#"{"a":[1,2],"b":[],"c":[null,null],"d\"�":"e�"}"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn milliseconds_have_all_digits_of_nanoseconds() {
        let ms = |ns: i128| written(|json| json.milliseconds(ns));
        assert_eq!([ms(0), ms(1), ms(1_000_000)], ["0", "0.000001", "1"]);
        assert_eq!([ms(-1_500_000), ms(12_345_678)], ["-1.5", "12.345678"]);
        assert_eq!(ms(u64::MAX.into()), "18446744073709.551615");
    }
}
