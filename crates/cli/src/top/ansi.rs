//! Colours for terminals with sixteen colours. The drawing library names a colour by its number
//! among 256, which old terminals misread. Pure, except for the writer.

use std::io::{self, Write};

/// Begin of a sequence.
const BEGIN: &[u8] = b"\x1b[";
/// Maximum bytes held back.
const PENDING_MAX: usize = 1 << 20;

/// Collects the drawn bytes, and writes them with the sixteen colours.
pub struct Ansi<W> {
    out: W,
    pending: Vec<u8>,
}

impl<W: Write> Ansi<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Ansi<W> {
        Ansi {
            out,
            pending: Vec::new(),
        }
    }
}

impl<W: Write> Write for Ansi<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() > PENDING_MAX {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        self.out.write_all(&of_sixteen(&bytes))?;
        self.out.flush()
    }
}

/// The same bytes, with the first sixteen of 256 colours in the old notation.
fn of_sixteen(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        let attributes = rest.strip_prefix(BEGIN).and_then(attributes);
        match attributes {
            Some((attributes, after)) => {
                all.extend_from_slice(format!("\x1b[{}m", renamed(attributes)).as_bytes());
                rest = after;
            }
            None => {
                all.push(*byte);
                rest = after;
            }
        }
    }
    all
}

/// The numbers of a sequence that changes the look of text, and the text after it.
fn attributes(after: &[u8]) -> Option<(&str, &[u8])> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
    let end = after.iter().position(|byte| !is_number(byte))?;
    let (numbers, after) = after.split_at(end);
    let after = after.strip_prefix(b"m")?;
    Some((std::str::from_utf8(numbers).ok()?, after))
}

fn renamed(attributes: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut rest: &[&str] = &attributes.split(';').collect::<Vec<_>>();
    while let [first, after @ ..] = rest {
        let colour = match (*first, after) {
            ("38", ["5", number, ..]) => number.parse().ok().map(|number: u8| (30, number)),
            ("48", ["5", number, ..]) => number.parse().ok().map(|number: u8| (40, number)),
            _ => None,
        };
        (words, rest) = match colour {
            Some((base, number @ 0..16)) => {
                let bright = if number < 8 { 0 } else { 60 };
                words.push((base + bright + number % 8).to_string());
                (words, after.get(2..).unwrap_or(&[]))
            }
            _ => {
                words.push((*first).to_owned());
                (words, after)
            }
        };
    }
    words.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sixteen_colours_have_the_old_notation() {
        let shown = |text: &str| String::from_utf8(of_sixteen(text.as_bytes())).unwrap();
        assert_eq!(shown("a\x1b[38;5;1mb\x1b[0m"), "a\x1b[31mb\x1b[0m");
        assert_eq!(shown("\x1b[38;5;8;49m\x1b[38;5;15m"), "\x1b[90;49m\x1b[97m");
        assert_eq!(shown("\x1b[1;48;5;9;38;5;7m"), "\x1b[1;101;37m");
        for other in [
            "\x1b[38;5;16m",
            "\x1b[38;5;",
            "\x1b[38;5;xm",
            "38;5;1m",
            "\x1b[38;5m",
            "\x1b[m",
            "",
        ] {
            assert_eq!(shown(other), other);
        }
    }

    #[test]
    fn sequences_may_come_in_parts() {
        let mut out = Ansi::new(Vec::new());
        for part in ["x\x1b[38", ";5;", "2", "my"] {
            out.write_all(part.as_bytes()).unwrap();
        }
        out.flush().unwrap();
        assert_eq!(out.out, b"x\x1b[32my");
    }
}
