//! Reads the smallest pieces of the format, bounds-checked. No knowledge of types.

use super::error::Error;
use std::borrow::Cow;

/// The bits that the last byte of a number does not have, of eight bytes.
const LAST: u64 = 0x8080_8080_8080_8080;

/// The number of up to eight bytes that hold seven bits each: pairs of bytes, of these, and of
/// those are put together.
const fn joined(bytes: u64) -> u64 {
    let bits = bytes & !LAST;
    let bits = bits & 0x007f_007f_007f_007f | bits >> 1 & 0x3f80_3f80_3f80_3f80;
    let bits = bits & 0x0000_3fff_0000_3fff | bits >> 2 & 0x0fff_c000_0fff_c000;
    bits & 0x0000_0000_0fff_ffff | bits >> 4 & 0x00ff_ffff_f000_0000
}

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

    /// Reads four numbers at once that take at most eight bytes together. `None`, without moving,
    /// if they are longer or fewer than eight bytes are left.
    pub(crate) fn four_varints(&mut self) -> Option<[u64; 4]> {
        let ahead = self.bytes.get(self.at..)?;
        let word = u64::from_le_bytes(*ahead.first_chunk()?);
        let mut ends = !word & LAST;
        let mut numbers = [0; 4];
        let mut from = 0;
        for number in &mut numbers {
            if ends == 0 {
                return None;
            }
            // The next byte that ends a number, and the bits up to there.
            let end = ends.trailing_zeros() + 1;
            let bits = (word >> from) & (u64::MAX >> (64 - (end - from)));
            *number = joined(bits);
            ends &= ends - 1;
            from = end;
        }
        self.at += from as usize / 8;
        Some(numbers)
    }

    /// Passes numbers, eight bytes at once where there are so many.
    pub(crate) fn skip_varints(&mut self, mut count: usize) -> Result<(), Error> {
        while count >= 8 {
            let ahead = self.bytes.get(self.at..).unwrap_or_default();
            let Some(word) = ahead.first_chunk::<8>() else {
                break;
            };
            // A byte without the highest bit is the last one of a number.
            let ends = !u64::from_le_bytes(*word) & LAST;
            if ends == 0 {
                // Eight that go on: the ninth is the last one whatever it is.
                self.take(9)?;
                count -= 1;
            } else {
                self.at += 8 - ends.leading_zeros() as usize / 8;
                count -= ends.count_ones() as usize;
            }
        }
        (0..count).try_for_each(|_| self.varint().map(|_| ()))
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
    use crate::wire::put_varint;

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
    fn numbers_are_passed_as_they_are_read() {
        let mut bytes = Vec::new();
        let mut value = 1_u64;
        for number in 0..500 {
            value = value
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(number);
            put_varint(&mut bytes, value >> (value % 64));
        }
        for count in [0, 1, 7, 8, 9, 64, 499, 500] {
            let (mut reading, mut passing) = (cursor(&bytes), cursor(&bytes));
            (0..count).for_each(|_| assert!(reading.varint().is_ok()));
            assert_eq!(passing.skip_varints(count), Ok(()));
            assert_eq!(passing.offset(), reading.offset(), "{count}");
        }
        assert!(cursor(&bytes).skip_varints(501).is_err());
        assert!(cursor(&[0x80; 8]).skip_varints(8).is_err());
    }

    #[test]
    fn four_numbers_at_once_are_those_read_one_by_one() {
        let mut value = 7_u64;
        let (mut at_once, mut not) = (0, 0);
        for round in 0..2_000_u32 {
            let mut bytes = Vec::new();
            for number in 0..4 {
                value = (value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(number);
                // Values of all lengths, mostly short ones.
                let bits = value % (1 + u64::from(round) % 40);
                put_varint(&mut bytes, value >> (63 - bits));
            }
            let length = bytes.len();
            bytes.extend([0x81; 8]);
            let mut reading = cursor(&bytes);
            let one_by_one: Vec<_> = (0..4).filter_map(|_| reading.varint().ok()).collect();
            let mut four = cursor(&bytes);
            match four.four_varints() {
                Some(numbers) => {
                    assert_eq!((numbers.to_vec(), four.offset()), (one_by_one, length));
                    at_once += 1;
                }
                None => {
                    assert!(length > 8 && four.offset() == 0, "{bytes:?}");
                    not += 1;
                }
            }
        }
        assert!(at_once > 300 && not > 300, "{at_once} {not}");
        assert_eq!(cursor(&[1, 2, 3, 4, 5, 6, 7]).four_varints(), None);
        assert!(cursor(&[1, 2, 3, 4, 5, 6, 7, 8]).four_varints().is_some());
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
