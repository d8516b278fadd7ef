//! `Method` and `ConstMethod`: bytecode range, plausibility, line numbers
//! (src/hotspot/share/oops/method.hpp, constMethod.hpp, code/compressedStream.hpp).

use super::layout::{Layout, present};
use super::scope::Stream;
use crate::memory::{Fault, Memory};

/// The bytecodes of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The `ConstMethod*`.
    pub const_method: u64,
    /// First bytecode.
    pub begin: u64,
    /// Number of bytes.
    pub size: u32,
}

impl Code {
    /// The bytecode index of `bcp`, if it points into this method.
    #[must_use]
    pub fn bci(&self, bcp: u64) -> Option<i32> {
        let offset = bcp.checked_sub(self.begin)?;
        (offset < u64::from(self.size)).then_some(offset as i32)
    }
}

/// Reads the location of the bytecodes of `method`.
///
/// # Errors
/// [`Fault`] if the method cannot be read.
pub fn code<M: Memory>(mem: &M, layout: &Layout, method: u64) -> Result<Code, Fault> {
    let const_method = mem.word(method.wrapping_add(layout.method_const))?;
    Ok(Code {
        const_method,
        begin: const_method.wrapping_add(layout.sizeof_const_method),
        size: u32::from(mem.u16(const_method.wrapping_add(layout.const_code_size))?),
    })
}

/// Whether `method` looks like a `Method*`: aligned, and its constant pool leads to a class with a
/// name. A value from a half-built frame is refused, and a freed method nearly always.
pub fn is_plausible<M: Memory>(mem: &M, layout: &Layout, method: u64) -> bool {
    if method & 7 != 0 || method < 0x1000 {
        return false;
    }
    let check = || -> Result<bool, Fault> {
        let const_method = mem.word(method.wrapping_add(layout.method_const))?;
        let pool = mem.word(const_method.wrapping_add(layout.const_constants))?;
        let holder = mem.word(pool.wrapping_add(layout.pool_holder))?;
        let name = mem.word(holder.wrapping_add(layout.klass_name))?;
        let pointers = [const_method, pool, holder];
        let length = mem.u32(pool.wrapping_add(layout.pool_length))?;
        let index = mem.u16(const_method.wrapping_add(layout.const_name_index))?;
        Ok(pointers.iter().all(|p| p & 7 == 0 && *p >= 0x1000)
            && name >= 0x1000
            && (!present(layout.pool_length) || u32::from(index) < length))
    };
    check().unwrap_or(false)
}

/// Maximum number of line table entries read: more than any method of 64 KiB has.
const LINES_MAX: u32 = 1 << 16;

/// The source line of `bci`: the entry with the greatest bci not above it, or -1.
///
/// # Errors
/// [`Fault`] if the table cannot be read.
pub fn line<M: Memory>(mem: &M, layout: &Layout, method: u64, bci: i32) -> Result<i32, Fault> {
    let code = code(mem, layout, method)?;
    let flags = mem.u16(code.const_method.wrapping_add(layout.const_flags))?;
    if flags & 1 == 0 || bci < 0 {
        return Ok(-1);
    }
    // The compressed table is right after the bytecodes.
    let mut stream = Stream::new(mem, code.begin.wrapping_add(u64::from(code.size)), 0)
        .with_base(layout.extra.unsigned5_base);
    let (mut at_bci, mut at_line) = (0i32, 0i32);
    let (mut best_bci, mut best_line) = (-1i32, -1i32);
    for _ in 0..LINES_MAX {
        let byte = stream.byte()?;
        if byte == 0 {
            break;
        }
        if byte == 0xff {
            at_bci = at_bci.wrapping_add(stream.signed()?);
            at_line = at_line.wrapping_add(stream.signed()?);
        } else {
            at_bci = at_bci.wrapping_add(i32::from(byte >> 3));
            at_line = at_line.wrapping_add(i32::from(byte & 7));
        }
        if at_bci <= bci && at_bci >= best_bci {
            (best_bci, best_line) = (at_bci, at_line);
        }
    }
    Ok(best_line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    const METHOD: u64 = 0x1000;
    const CONST: u64 = 0x2000;

    /// `ConstMethod`s have 24 bytes: the pool, the size of the code, flags, and an index.
    fn layout() -> Layout {
        let mut layout = Layout::EMPTY;
        (layout.method_const, layout.sizeof_const_method) = (8, 24);
        (layout.const_constants, layout.const_code_size) = (0, 8);
        (layout.const_flags, layout.const_name_index) = (10, 12);
        (layout.pool_holder, layout.pool_length, layout.klass_name) = (0, 8, 8);
        layout.extra.unsigned5_base = 0;
        layout
    }

    #[test]
    fn bytecodes_have_indices_up_to_the_last_one() {
        let mem = Bytes::of_words(&[(METHOD, &[0, CONST]), (CONST, &[0, 0x1_0005])]);
        let code = code(&mem, &layout(), METHOD).unwrap();
        let expected = Code {
            const_method: CONST,
            begin: CONST + 24,
            size: 5,
        };
        assert_eq!(code, expected);
        assert_eq!(code.bci(CONST + 24), Some(0));
        assert_eq!(code.bci(CONST + 28), Some(4));
        assert_eq!(code.bci(CONST + 29), None);
        assert_eq!(code.bci(CONST + 23), None);
    }

    /// Whether a method is plausible, with its constants and its class at the given addresses.
    fn plausible(method: u64, code: u64, pool: u64, class: u64, name: u64, index: u64) -> bool {
        let mem = Bytes::of_words(&[
            (method & !7, &[0, code, code, code]),
            (code & !7, &[pool, index << 32, pool]),
            (pool & !7, &[class, 4, class]),
            (class & !7, &[0, name, name]),
        ]);
        is_plausible(&mem, &layout(), method)
    }

    #[test]
    fn a_method_leads_to_a_class_with_a_name() {
        assert!(plausible(0x1000, 0x2000, 0x3000, 0x4000, 0x1000, 3));
        assert!(!plausible(0x1008 - 4, 0x2000, 0x3000, 0x4000, 0x1000, 3));
        assert!(!plausible(0xff8, 0x2000, 0x3000, 0x4000, 0x1000, 3));
        assert!(!plausible(0x1000, 0x2000, 0x3000, 0x4000, 0xfff, 3));
        assert!(
            !plausible(0x1000, 0x2000, 0x3000, 0x4000, 0x1000, 4),
            "no such constant"
        );
        // The others are accepted at the lowest valid address, and not below it.
        assert!(plausible(0x2000, 0x1000, 0x3000, 0x4000, 0x1000, 3));
        assert!(!plausible(0x2000, 0xf00, 0x3000, 0x4000, 0x1000, 3));
        assert!(!plausible(0x1000, 0x2000, 0xf00, 0x4000, 0x1000, 3));
        assert!(!plausible(0x1000, 0x2000, 0x3000, 0xf00, 0x1000, 3));
        assert!(
            !is_plausible(&Bytes::default(), &layout(), METHOD),
            "no memory"
        );
    }

    /// Lines of `table`, which is right after five bytecodes.
    fn lines(table: &[u8], flags: u8) -> impl Fn(i32) -> i32 {
        let mut bytes = [0u8; 64];
        bytes[8] = 5;
        bytes[10] = flags;
        bytes[29..29 + table.len()].copy_from_slice(table);
        let mut mem = Bytes::at(CONST, &bytes);
        mem.add_words(METHOD, &[0, CONST]);
        move |bci| line(&mem, &layout(), METHOD, bci).unwrap()
    }

    #[test]
    fn lines_are_those_of_the_entry_before() {
        // bci +0, line +7; bci +2, line +1; then by two numbers: bci +10, line -3 (zig-zag: 5).
        let table = [0x07, 2 << 3 | 1, 0xff, 20, 5, 0];
        let line = lines(&table, 1);
        assert_eq!(
            [line(0), line(1), line(2), line(11), line(12)],
            [7, 7, 8, 8, 5]
        );
        assert_eq!(line(i32::MAX), 5);
        assert_eq!(line(-1), -1);
        assert_eq!(lines(&table, 2)(0), -1, "no table");
        assert_eq!(lines(&table, 3)(0), 7);
        // The first entry is above the requested index.
        assert_eq!(lines(&[2 << 3 | 1, 0], 1)(1), -1);
        // Entries may go back: the last one for a bytecode counts.
        let table = [0x07, 4 << 3 | 1, 0xff, 3, 6, 0x01, 0];
        let line = lines(&table, 1);
        assert_eq!([line(1), line(2), line(4)], [7, 12, 8]);
    }
}
