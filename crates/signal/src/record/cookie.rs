//! The content of a timer's signal: the record it is meant for, which use of it, and the reason.
//!
//! A number, not a pointer: any value that arrives can be checked without touching memory.

use crate::slots::Reason;

const MAGIC: u64 = 0xd3e1;
const INDEX_BITS: u32 = 20;
const GENERATION_BITS: u32 = 24;
const REASON_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;
const MAGIC_SHIFT: u32 = 48;

const fn mask(bits: u32) -> u64 {
    1u64.wrapping_shl(bits).wrapping_sub(1)
}

/// The 64 bits of `si_value`: magic 16, reason 4, generation 24, index 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    pub index: u32,
    generation: u32,
    pub reason: u32,
}

impl Cookie {
    pub fn new(index: u32, generation: u32) -> Self {
        Self {
            index,
            generation: generation & mask(GENERATION_BITS) as u32,
            reason: 0,
        }
    }

    pub fn with_reason(self, reason: Reason) -> Self {
        Self {
            reason: reason as u32,
            ..self
        }
    }

    /// Whether the cookie means this use of its record.
    #[inline]
    pub fn is_generation(self, generation: u32) -> bool {
        u64::from(generation) & mask(GENERATION_BITS) == u64::from(self.generation)
    }

    #[inline]
    pub fn to_bits(self) -> u64 {
        (MAGIC << MAGIC_SHIFT)
            | u64::from(self.reason & 0xf).wrapping_shl(REASON_SHIFT)
            | u64::from(self.generation) << INDEX_BITS
            | (u64::from(self.index) & mask(INDEX_BITS))
    }

    /// Reads a cookie; `None` if the bits are not one of ours.
    #[inline]
    pub fn from_bits(bits: u64) -> Option<Self> {
        if bits >> MAGIC_SHIFT != MAGIC {
            return None;
        }
        Some(Self {
            index: (bits & mask(INDEX_BITS)) as u32,
            generation: ((bits >> INDEX_BITS) & mask(GENERATION_BITS)) as u32,
            reason: (bits >> REASON_SHIFT & 0xf) as u32,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_way_through_the_kernel() {
        for index in [0, 1, 1023, 1024, (1 << 20) - 1] {
            for generation in [0, 1, (1 << 24) - 1] {
                let cookie = Cookie::new(index, generation).with_reason(Reason::ThreadEnd);
                let back = Cookie::from_bits(cookie.to_bits());
                assert_eq!(back, Some(cookie));
                assert_eq!(Reason::from_bits(cookie.reason), Reason::ThreadEnd);
            }
        }
    }

    #[test]
    fn generations_wrap_and_strangers_are_refused() {
        let cookie = Cookie::new(7, u32::MAX);
        assert!(cookie.is_generation(u32::MAX));
        assert!(!cookie.is_generation(u32::MAX - 1));
        assert_eq!(Cookie::from_bits(0), None);
        assert_eq!(Cookie::from_bits(0x7f00_1234_5678_9abc), None);
        assert_eq!(Cookie::from_bits(cookie.to_bits() ^ 1 << 50), None);
    }
}
