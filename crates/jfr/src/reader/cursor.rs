//! Reads the smallest pieces of the format, bounds-checked. No knowledge of types.

use super::error::Error;
use std::borrow::Cow;

/// A place in the file and the end of what may be read from there.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    /// The file up to the end of the part being read, so that places are file offsets.
    bytes: &'a [u8],
    at: usize,
}

/// A string as it stands in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RawText<'a> {
    Null,
    Text(Cow<'a, str>),
    /// A key of the string pool.
    Pooled(u64),
}

impl<'a> Cursor<'a> {
    /// Reads from `at` and never at or past `end`; both are cut to what there is.
    pub(crate) fn new(file: &'a [u8], at: usize, end: usize) -> Self {
        let bytes = file.get(..end).unwrap_or(file);
        Self {
            bytes,
            at: at.min(bytes.len()),
        }
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn malformed(&self, what: &'static str) -> Error {
        Error::Malformed {
            offset: self.at,
            what,
        }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        match self.bytes.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(Error::Truncated { offset: self.at }),
        }
    }

    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(Error::Truncated {
            offset: self.bytes.len(),
        })?;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// An unsigned little-endian base-128 number; the ninth byte carries eight bits.
    pub(crate) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Ok(value | u64::from(self.byte()?) << 56)
    }

    /// A count of things that take at least `size` bytes each: more than fit cannot be true, and
    /// would make loops and allocations as long as the file says.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, Error> {
        let start = self.at;
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.remaining() / size.max(1) => Ok(count),
            _ => Err(Error::Malformed {
                offset: start,
                what: "a count beyond the data",
            }),
        }
    }

    pub(crate) fn text(&mut self) -> Result<RawText<'a>, Error> {
        Ok(match self.byte()? {
            0 => RawText::Null,
            1 => RawText::Text(Cow::Borrowed("")),
            2 => RawText::Pooled(self.varint()?),
            3 => {
                let length = self.count(1)?;
                RawText::Text(String::from_utf8_lossy(self.take(length)?))
            }
            4 => {
                let length = self.count(1)?;
                let mut units = Vec::with_capacity(length);
                for _ in 0..length {
                    units.push((self.varint()? & 0xffff) as u16);
                }
                RawText::Text(Cow::Owned(String::from_utf16_lossy(&units)))
            }
            5 => {
                let length = self.count(1)?;
                RawText::Text(
                    self.take(length)?
                        .iter()
                        .map(|&byte| char::from(byte))
                        .collect(),
                )
            }
            _ => return Err(self.malformed("an unknown string encoding before")),
        })
    }

    pub(crate) fn skip_text(&mut self) -> Result<(), Error> {
        match self.byte()? {
            0 | 1 => {}
            2 => {
                self.varint()?;
            }
            3 | 5 => {
                let length = self.count(1)?;
                self.take(length)?;
            }
            4 => {
                for _ in 0..self.count(1)? {
                    self.varint()?;
                }
            }
            _ => return Err(self.malformed("an unknown string encoding before")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::wire::put_varint;

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor::new(bytes, 0, bytes.len())
    }

    #[test]
    fn numbers_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            (1 << 56) - 1,
            1 << 56,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let mut cursor = cursor(&bytes);
            assert_eq!(cursor.varint(), Ok(value));
            assert_eq!(cursor.remaining(), 0);
        }
        // JDK headers of events are padded to a fixed width.
        assert_eq!(
            cursor(&[0xa9, 0xdf, 0x86, 0x00]).varint(),
            Ok(0x29 | 0x5f << 7 | 6 << 14)
        );
    }

    #[test]
    fn every_string_encoding_is_read_and_skipped() {
        let cases: [(&[u8], RawText<'_>); 6] = [
            (&[0], RawText::Null),
            (&[1], RawText::Text("".into())),
            (&[2, 5], RawText::Pooled(5)),
            (&[3, 3, b'a', 0xc3, 0xa9], RawText::Text("aé".into())),
            (&[4, 2, b'a', 0xe9, 1], RawText::Text("aé".into())),
            (&[5, 2, b'a', 0xe9], RawText::Text("aé".into())),
        ];
        for (bytes, expected) in cases {
            let mut reading = cursor(bytes);
            assert_eq!(reading.text(), Ok(expected));
            assert_eq!(reading.remaining(), 0);
            let mut skipping = cursor(bytes);
            assert_eq!(skipping.skip_text(), Ok(()));
            assert_eq!(skipping.remaining(), 0);
        }
        assert!(cursor(&[6]).text().is_err());
        assert!(cursor(&[6]).skip_text().is_err());
    }

    #[test]
    fn the_end_is_respected() {
        assert_eq!(
            cursor(&[0x80]).varint(),
            Err(Error::Truncated { offset: 1 })
        );
        assert!(cursor(&[3, 2, b'a']).text().is_err());
        assert_eq!(
            Cursor::new(&[1, 2, 3], 1, 2).take(2),
            Err(Error::Truncated { offset: 2 })
        );
        assert_eq!(Cursor::new(&[1, 2, 3], 9, 99).remaining(), 0);
        assert!(cursor(&[255; 9]).count(1).is_err());
    }
}
