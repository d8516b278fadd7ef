//! The only door to the target's memory. Must not assume that any address is mapped.

/// A read that could not be done: unmapped, out of the recorded range, or refused.
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
