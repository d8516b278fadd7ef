//! Code shared by the property tests and the fuzz targets of the walker: made-up memory, and debug
//! information as HotSpot's compilers write it. Written from HotSpot's definitions, not from the
//! reader under test.
// Each user needs another part of this module.
#![allow(dead_code)]

pub mod debug_info;
pub mod unsigned5;

use dwell_walker::{Fault, Memory};
use std::cell::Cell;

/// Readable ranges, and a counter of reads.
#[derive(Default)]
pub struct Bytes {
    ranges: Vec<(u64, Vec<u8>)>,
    reads: Cell<u64>,
}

impl Bytes {
    /// Adds a range at a multiple of 8; its end is padded to whole words, as in mapped pages.
    pub fn add(&mut self, addr: u64, mut bytes: Vec<u8>) {
        assert_eq!(addr % 8, 0);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        self.ranges.push((addr, bytes));
    }

    /// The bytes of the range that starts at `addr`, for damage.
    pub fn range_mut(&mut self, addr: u64) -> impl Iterator<Item = &mut u8> {
        let at = |range: &&mut (u64, Vec<u8>)| range.0 == addr;
        self.ranges
            .iter_mut()
            .find(at)
            .into_iter()
            .flat_map(|(_, bytes)| bytes)
    }

    /// The bytes of all ranges, for damage.
    pub fn each_mut(&mut self) -> impl Iterator<Item = &mut u8> {
        self.ranges.iter_mut().flat_map(|(_, bytes)| bytes)
    }

    /// Number of reads.
    pub fn reads(&self) -> u64 {
        self.reads.get()
    }
}

impl Memory for Bytes {
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        let mut buf = [0; 8];
        self.read(addr, &mut buf)?;
        Ok(u64::from_le_bytes(buf))
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        self.reads.set(self.reads.get() + 1);
        let part = self.ranges.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(addr.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(buf.len())?)
        });
        buf.copy_from_slice(part.ok_or(Fault { addr })?);
        Ok(())
    }
}
