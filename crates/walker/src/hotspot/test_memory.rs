//! Memory for unit tests: bytes at chosen addresses.

extern crate std;

use crate::memory::{Fault, Memory};
use std::vec::Vec;

/// A few readable ranges; each is padded to whole words, as mapped pages are.
#[derive(Default)]
pub struct Bytes {
    ranges: Vec<(u64, Vec<u8>)>,
}

impl Bytes {
    /// A memory with one range.
    pub fn at(addr: u64, bytes: &[u8]) -> Bytes {
        let mut memory = Bytes::default();
        memory.add(addr, bytes);
        memory
    }

    /// Adds a range; `addr` must be a multiple of 8.
    pub fn add(&mut self, addr: u64, bytes: &[u8]) {
        assert_eq!(addr % 8, 0);
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        self.ranges.push((addr, bytes));
    }

    /// Adds words, as a range.
    pub fn add_words(&mut self, addr: u64, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.add(addr, &bytes);
    }

    /// A memory with some ranges of words.
    pub fn of_words(ranges: &[(u64, &[u64])]) -> Bytes {
        let mut memory = Bytes::default();
        for (addr, words) in ranges {
            memory.add_words(*addr, words);
        }
        memory
    }

    /// Changes the first word of a range.
    pub fn change(&mut self, addr: u64, word: u64) {
        let range = self.ranges.iter_mut().find(|(start, _)| *start == addr);
        let (_, bytes) = range.expect("a range");
        bytes[..8].copy_from_slice(&word.to_le_bytes());
    }
}

impl Memory for Bytes {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut buf = [0; 8];
        self.read(addr, &mut buf)?;
        Ok(u64::from_le_bytes(buf))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        for (start, bytes) in &self.ranges {
            if let Some(offset) = addr.checked_sub(*start) {
                let offset = offset as usize;
                if let Some(part) = bytes.get(offset..offset.saturating_add(buf.len())) {
                    buf.copy_from_slice(part);
                    return Ok(());
                }
            }
        }
        Err(Fault { addr })
    }
}
