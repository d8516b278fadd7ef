//! Java strings, copied into a caller's buffer.

use super::continuation::reference;
use super::layout::{ABSENT, Layout, present};
use super::objects::ClassWord;
use crate::memory::{Fault, Memory};

/// Offsets in strings; [`ABSENT`] if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringFields {
    /// `String.value`.
    pub value: u64,
    /// `String.coder`; up to 8 it does not exist, and all strings are UTF-16.
    pub coder: u64,
    /// Length of an array.
    pub length: u64,
    /// First element of an array of bytes or characters.
    pub elements: u64,
}

impl StringFields {
    /// No offset is known.
    pub const EMPTY: StringFields = StringFields {
        value: ABSENT,
        coder: ABSENT,
        length: ABSENT,
        elements: ABSENT,
    };
}

/// Offsets of an array's length and of its first byte (src/hotspot/share/oops/arrayOop.hpp).
/// Without compressed class pointers the elements began at 24 up to 22, and begin at 20 since.
#[must_use]
pub const fn array(class_word: ClassWord, is_padded: bool) -> (u64, u64) {
    match class_word {
        ClassWord::Narrow => (12, 16),
        ClassWord::Compact => (8, 12),
        ClassWord::Wide if is_padded => (16, 24),
        ClassWord::Wide => (16, 20),
    }
}

/// Visits the characters of a string; false if it has more than `max`, or is not a string.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn for_each_unit<M: Memory>(
    mem: &M,
    layout: &Layout,
    fields: &StringFields,
    string: u64,
    max: u32,
    mut visit: impl FnMut(u16),
) -> Result<bool, Fault> {
    if string == 0 || !present(fields.value) || !present(fields.length) {
        return Ok(false);
    }
    let value = reference(mem, layout, string.wrapping_add(fields.value))?;
    if value == 0 {
        return Ok(false);
    }
    let is_wide = match present(fields.coder) {
        true => mem.u8(string.wrapping_add(fields.coder))? != 0,
        false => true,
    };
    let length = mem.u32(value.wrapping_add(fields.length))?;
    // Without a coder the array holds characters, else bytes.
    let units = match (is_wide, present(fields.coder)) {
        (true, true) => length / 2,
        _ => length,
    };
    let first = value.wrapping_add(fields.elements);
    for i in 0..units.min(max) {
        visit(match is_wide {
            true => mem.u16(first.wrapping_add(2 * u64::from(i)))?,
            // Latin-1: each byte is the code point.
            false => u16::from(mem.u8(first.wrapping_add(u64::from(i)))?),
        });
    }
    Ok(units <= max)
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::string::String;
    use std::vec::Vec;

    fn read(coder: Option<u8>, bytes: &[u8], length: u32) -> (String, bool) {
        let mut layout = Layout::EMPTY;
        layout.extra.chunk.narrow_oops = false;
        let fields = StringFields {
            value: 8,
            coder: if coder.is_some() { 16 } else { ABSENT },
            length: 12,
            elements: 16,
        };
        let mut mem = Bytes::default();
        let words = [0, 0x2000, u64::from(coder.unwrap_or(0))];
        mem.add(0x1000, &words.map(u64::to_le_bytes).concat());
        let mut array = std::vec![0; 12];
        array.extend(length.to_le_bytes());
        array.extend(bytes);
        mem.add(0x2000, &array);
        let mut units = Vec::new();
        let whole = for_each_unit(&mem, &layout, &fields, 0x1000, 4, |unit| units.push(unit));
        (String::from_utf16_lossy(&units), whole.unwrap())
    }

    #[test]
    fn all_three_kinds_are_read() {
        assert_eq!(read(Some(0), b"ab\xe9", 3), ("ab\u{e9}".into(), true));
        assert_eq!(read(Some(1), b"a\0\xac\x20", 4), ("a\u{20ac}".into(), true));
        assert_eq!(read(None, b"a\0b\0", 2), ("ab".into(), true));
        assert_eq!(read(Some(0), b"abcde", 5), ("abcd".into(), false));
    }

    #[test]
    fn arrays_begin_where_headers_end() {
        let of = |how| (array(how, true), array(how, false));
        assert_eq!(of(ClassWord::Narrow), ((12, 16), (12, 16)));
        assert_eq!(of(ClassWord::Compact), ((8, 12), (8, 12)));
        assert_eq!(of(ClassWord::Wide), ((16, 24), (16, 20)));
    }
}
