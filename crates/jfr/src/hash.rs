//! Hashes for tables of what files say: quick, and others each time.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Random seeds of hashes, so that an attacker cannot choose values with equal hashes. Builds the
/// hashers of a `HashMap`.
#[derive(Clone, Copy, Debug)]
pub struct Seeds(pub(crate) [u64; 2]);

impl Default for Seeds {
    fn default() -> Self {
        let random = RandomState::new();
        Self([random.hash_one(0u8), random.hash_one(1u8)])
    }
}

impl BuildHasher for Seeds {
    type Hasher = Mixing;

    fn build_hasher(&self) -> Mixing {
        let Self(seeds) = *self;
        Mixing { hash: 0, seeds }
    }
}

/// Hashes by multiplying.
#[derive(Clone, Debug)]
pub struct Mixing {
    hash: u64,
    seeds: [u64; 2],
}

impl Mixing {
    fn add(&mut self, number: u64) {
        self.hash = mixed(self.hash, self.seeds, number, 0);
    }
}

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        self.hash
    }

    fn write(&mut self, bytes: &[u8]) {
        self.hash = mixed_bytes(self.hash, self.seeds, bytes);
    }

    fn write_u8(&mut self, number: u8) {
        self.add(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_u128(&mut self, number: u128) {
        self.hash = mixed(self.hash, self.seeds, number as u64, (number >> 64) as u64);
    }

    fn write_u16(&mut self, number: u16) {
        self.add(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.add(number as u64);
    }
}

/// Adds two numbers to a hash.
pub(crate) fn mixed(hash: u64, [seed, other]: [u64; 2], a: u64, b: u64) -> u64 {
    let product = u128::from(hash ^ a ^ seed) * u128::from(b ^ other);
    (product as u64) ^ ((product >> 64) as u64)
}

/// A hash of bytes.
pub(crate) fn mixed_bytes(hash: u64, seeds: [u64; 2], bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<16>();
    let hash = pairs.iter().fold(hash, |hash, pair| {
        let pair = u128::from_le_bytes(*pair);
        mixed(hash, seeds, pair as u64, (pair >> 64) as u64)
    });
    let mut last = [0; 16];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let last = u128::from_le_bytes(last);
    let hash = mixed(hash, seeds, last as u64, (last >> 64) as u64);
    // The same bytes with zeros behind them are others.
    mixed(hash, seeds, bytes.len() as u64, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_differ_have_other_hashes() {
        let seeds = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
        let texts = [
            "",
            "\0",
            "a",
            "a\0",
            "0123456789abcdef",
            "0123456789abcdef\0",
            "fedcba",
        ];
        let hashes: std::collections::BTreeSet<u64> = texts
            .iter()
            .map(|text| mixed_bytes(0, seeds, text.as_bytes()))
            .collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
