//! Debug information of compiled code: UNSIGNED5 streams and the scopes of inlined methods
//! (src/hotspot/share/utilities/unsigned5.hpp, code/debugInfo.hpp, code/scopeDesc.cpp).

use crate::memory::{Fault, Memory};

/// Reads UNSIGNED5 numbers from memory, a byte at a time through one cached word.
pub struct Stream<'a, M: Memory> {
    mem: &'a M,
    at: u64,
    base: u8,
    cached_addr: u64,
    cached: u64,
}

impl<'a, M: Memory> Stream<'a, M> {
    /// A stream that starts `offset` bytes after `start`.
    #[must_use]
    pub fn new(mem: &'a M, start: u64, offset: u64) -> Self {
        Stream {
            mem,
            at: start.wrapping_add(offset),
            base: 0,
            cached_addr: 1,
            cached: 0,
        }
    }

    /// Sets how many byte values are excluded: 0 up to JDK 19, 1 since 20.
    #[must_use]
    pub fn with_base(mut self, base: u8) -> Self {
        self.base = base;
        self
    }

    /// The next byte.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read.
    pub fn byte(&mut self) -> Result<u8, Fault> {
        let aligned = self.at & !7;
        if aligned != self.cached_addr {
            self.cached = self.mem.word(aligned)?;
            self.cached_addr = aligned;
        }
        let byte = (self.cached >> ((self.at & 7) * 8)) as u8;
        self.at = self.at.wrapping_add(1);
        Ok(byte)
    }

    /// The next unsigned number. Up to five digits; each but the last is in the upper 64 values.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read.
    pub fn unsigned(&mut self) -> Result<u32, Fault> {
        let low_digits = 192 - u32::from(self.base);
        let mut sum = 0u32;
        for i in 0..5u32 {
            let digit = u32::from(self.byte()?).wrapping_sub(u32::from(self.base));
            sum = sum.wrapping_add(digit.wrapping_shl(i * 6));
            if digit < low_digits {
                break;
            }
        }
        Ok(sum)
    }

    /// The next signed number (zig-zag).
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read.
    pub fn signed(&mut self) -> Result<i32, Fault> {
        let value = self.unsigned()?;
        Ok(((value >> 1) as i32) ^ -((value & 1) as i32))
    }
}

/// One scope: a method, possibly inlined, and its bytecode index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Offset of the scope of the caller it was inlined into; 0 if it is the outermost.
    pub sender: u32,
    /// The `Method*`.
    pub method: u64,
    /// Bytecode index, -1 if before the first.
    pub bci: i32,
}

impl Scope {
    /// The bytecode index for the line. Before the first bytecode it is that of the first one, as
    /// in HotSpot (src/hotspot/share/oops/method.cpp, `line_number_from_bci`).
    #[must_use]
    pub const fn bytecode(&self) -> i32 {
        if self.bci < 0 { 0 } else { self.bci }
    }
}

/// Reads the scope at `offset` of a scope stream; `metadata` is the nmethod's table of pointers.
///
/// # Errors
/// [`Fault`] if it cannot be read.
pub fn read<M: Memory>(
    mem: &M,
    base: u8,
    stream: u64,
    offset: u32,
    metadata: u64,
) -> Result<Scope, Fault> {
    let mut stream = Stream::new(mem, stream, u64::from(offset)).with_base(base);
    let sender = stream.unsigned()?;
    let index = stream.unsigned()?;
    let bci = (stream.unsigned()? as i32).wrapping_sub(1);
    let method = match index {
        0 => 0,
        n => mem.word(metadata.wrapping_add(u64::from(n - 1).wrapping_mul(8)))?,
    };
    Ok(Scope {
        sender,
        method,
        bci,
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::hotspot::test_memory::Bytes;
    use std::vec::Vec;

    /// The encoder, from the definition: digits base 64 above `low`, least significant first.
    fn encode(value: u32, base: u8) -> Vec<u8> {
        let low = 192 - u32::from(base);
        let (mut out, mut rest) = (Vec::new(), value);
        for _ in 0..4 {
            if rest < low {
                break;
            }
            let digit = low + (rest - low) % 64;
            out.push((digit + u32::from(base)) as u8);
            rest = (rest - digit) >> 6;
        }
        out.push((rest + u32::from(base)) as u8);
        out
    }

    #[test]
    fn numbers_round_trip_in_both_bases() {
        let mut values: Vec<u32> = (0..70_000).collect();
        values.extend([1 << 20, 1 << 26, i32::MAX as u32, u32::MAX >> 2]);
        for base in [0u8, 1] {
            for &value in &values {
                let mem = Bytes::at(0x1000, &encode(value, base));
                let got = Stream::new(&mem, 0x1000, 0).with_base(base).unsigned();
                assert_eq!(got, Ok(value), "base {base}");
            }
        }
    }

    #[test]
    fn signed_numbers_zigzag() {
        for (code, want) in [(0u32, 0), (1, -1), (2, 1), (3, -2), (400, 200), (401, -201)] {
            let mem = Bytes::at(0x1000, &encode(code, 1));
            assert_eq!(Stream::new(&mem, 0x1000, 0).with_base(1).signed(), Ok(want));
        }
    }

    #[test]
    fn a_method_that_has_done_nothing_yet_is_at_its_first_bytecode() {
        let at = |bci| Scope {
            sender: 0,
            method: 8,
            bci,
        };
        assert_eq!([-1, 0, 7].map(|bci| at(bci).bytecode()), [0, 0, 7]);
    }

    #[test]
    fn a_stream_that_ends_is_a_fault() {
        let mem = Bytes::at(0x1000, &[0xff; 3]);
        assert!(Stream::new(&mem, 0x1000, 8).unsigned().is_err());
    }
}
