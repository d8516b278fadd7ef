//! `Method` and `ConstMethod`: bytecode range, plausibility, line numbers
//! (src/hotspot/share/oops/method.hpp, constMethod.hpp, code/compressedStream.hpp).

use super::layout::{Layout, present};
use super::scope::Stream;
use crate::memory::{Fault, Memory};

/// Where a method's bytecodes are.
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

/// Reads where the bytecodes of `method` are.
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
/// name. A value from a half-built frame is refused, a freed method nearly always.
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

/// Line table entries read at most: more than any method of 64 KiB has.
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
    // The compressed table follows the bytecodes directly.
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
