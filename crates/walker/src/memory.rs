//! The only access to the target's memory. Must not assume that any address is mapped.

/// A read that failed: unmapped, out of the recorded range, or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address that could not be read.
    pub addr: u64,
}

/// Memory of the target. Implementations must be total: any address gives a value or a [`Fault`].
pub trait Memory {
    /// Reads the 8 bytes at `addr`, which need not be aligned.
    ///
    /// # Errors
    /// [`Fault`] if any of the bytes cannot be read.
    fn word(&self, addr: u64) -> Result<u64, Fault>;

    /// Fills `buf` from `addr`.
    ///
    /// # Errors
    /// [`Fault`] if any of the bytes cannot be read; `buf` is then unspecified.
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault>;

    /// One byte. Reads the aligned word around it, so it never touches a second page.
    ///
    /// # Errors
    /// [`Fault`] as for [`Memory::word`].
    #[inline]
    fn u8(&self, addr: u64) -> Result<u8, Fault> {
        let word = self.word(addr & !7)?;
        Ok((word >> ((addr & 7) * 8)) as u8)
    }

    /// Two bytes, little endian.
    ///
    /// # Errors
    /// [`Fault`] as for [`Memory::word`].
    #[inline]
    fn u16(&self, addr: u64) -> Result<u16, Fault> {
        if addr & 7 <= 6 {
            let word = self.word(addr & !7)?;
            return Ok((word >> ((addr & 7) * 8)) as u16);
        }
        let mut buf = [0u8; 2];
        self.read(addr, &mut buf)?;
        Ok(u16::from_le_bytes(buf))
    }

    /// Four bytes, little endian.
    ///
    /// # Errors
    /// [`Fault`] as for [`Memory::word`].
    #[inline]
    fn u32(&self, addr: u64) -> Result<u32, Fault> {
        if addr & 7 <= 4 {
            let word = self.word(addr & !7)?;
            return Ok((word >> ((addr & 7) * 8)) as u32);
        }
        let mut buf = [0u8; 4];
        self.read(addr, &mut buf)?;
        Ok(u32::from_le_bytes(buf))
    }

    /// Four bytes as a signed integer.
    ///
    /// # Errors
    /// [`Fault`] as for [`Memory::word`].
    #[inline]
    fn i32(&self, addr: u64) -> Result<i32, Fault> {
        self.u32(addr).map(|v| v as i32)
    }
}

impl<M: Memory + ?Sized> Memory for &M {
    #[inline]
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        (**self).word(addr)
    }
    #[inline]
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        (**self).read(addr, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hotspot::test_memory::Bytes;

    /// A word and three bytes, read through any memory.
    fn through<M: Memory>(mem: M, addr: u64) -> (Result<u64, Fault>, Result<[u8; 3], Fault>) {
        let mut buf = [0; 3];
        let read = mem.read(addr, &mut buf);
        (mem.word(addr), read.map(|()| buf))
    }

    /// Numbers of all widths at all offsets in a word.
    #[test]
    fn numbers_are_read_at_any_offset() {
        let mut bytes = [0u8; 24];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = 0xf0 - i as u8;
        }
        let mem = Bytes::at(0x1000, &bytes);
        let expected = |at: usize, len: usize| {
            let part = bytes[at..at + len].iter().rev();
            part.fold(0u64, |all, byte| all << 8 | u64::from(*byte))
        };
        for at in 0..=16 {
            let addr = 0x1000 + at as u64;
            assert_eq!(mem.u8(addr).map(u64::from), Ok(expected(at, 1)), "{at}");
            assert_eq!(mem.u16(addr).map(u64::from), Ok(expected(at, 2)), "{at}");
            assert_eq!(mem.u32(addr).map(u64::from), Ok(expected(at, 4)), "{at}");
            assert_eq!(mem.i32(addr), Ok(expected(at, 4) as i32), "{at}");
            let (word, part) = through(&mem, addr);
            assert_eq!(word, Ok(expected(at, 8)), "{at}");
            assert_eq!(part, Ok([bytes[at], bytes[at + 1], bytes[at + 2]]));
        }
        assert_eq!(mem.u8(0x1017).map(u64::from), Ok(expected(23, 1)));
        assert_eq!(mem.u16(0x1016).map(u64::from), Ok(expected(22, 2)));
        assert_eq!(mem.u32(0x1014).map(u64::from), Ok(expected(20, 4)));
        assert!(mem.u16(0x1017).is_err() && mem.u32(0x1015).is_err());
        assert!(mem.u8(0x1018).is_err() && mem.u8(0xfff).is_err());
    }

    /// A value within a word needs only that word: the neighbouring words may be unreadable.
    #[test]
    fn value_within_a_word_needs_only_that_word() {
        struct Single;
        impl Memory for Single {
            fn word(&self, addr: u64) -> Result<u64, Fault> {
                (addr == 8)
                    .then_some(0x0807_0605_0403_0201)
                    .ok_or(Fault { addr })
            }

            fn read(&self, addr: u64, _: &mut [u8]) -> Result<(), Fault> {
                Err(Fault { addr })
            }
        }
        assert_eq!(Single.u16(14), Ok(0x0807));
        assert_eq!(Single.u16(8), Ok(0x0201));
        assert_eq!(Single.u32(12), Ok(0x0807_0605));
        assert_eq!(Single.u32(9), Ok(0x0504_0302));
        assert!(Single.u16(15).is_err() && Single.u32(13).is_err());
    }
}
