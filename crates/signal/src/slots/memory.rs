//! Snapshot memory: copied bytes hide the live ones.
//!
//! The part of a stack that was not copied is a fault, never the live bytes: the thread has
//! continued, and they belong to another moment.

use super::header::CHUNKS_MAX;
use dwell_walker::{Fault, Memory};

/// A copied range of addresses.
#[derive(Clone, Copy, Debug)]
pub struct Region<'a> {
    /// Address of the first byte copied.
    pub start: u64,
    /// The copy.
    pub bytes: &'a [u8],
    /// End of the range that the copy was to cover; bytes between the end of the copy and this
    /// address cannot be read. Values up to the end of the copy mean that it is complete.
    pub end: u64,
}

impl<'a> Region<'a> {
    /// A range copied whole.
    #[must_use]
    pub fn exact(start: u64, bytes: &'a [u8]) -> Self {
        Self {
            start,
            bytes,
            end: 0,
        }
    }

    /// The word at `addr`, if the whole word was copied.
    #[inline]
    fn word(&self, addr: u64) -> Option<u64> {
        let offset = usize::try_from(addr.wrapping_sub(self.start)).ok()?;
        let word = self.bytes.get(offset..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*word))
    }

    /// The region's answer for the bytes from `addr` on, if it covers them.
    fn govern(&self, addr: u64) -> Option<Governed<'a>> {
        let offset = addr.checked_sub(self.start)?;
        let copied = self.bytes.len() as u64;
        if offset < copied {
            return Some(Governed::Copied(
                self.bytes.get(offset as usize..).unwrap_or(&[]),
            ));
        }
        (addr < self.end).then_some(Governed::Missing)
    }

    /// The end of the addresses that the region covers.
    fn governed_end(&self) -> u64 {
        let copied = self.start.saturating_add(self.bytes.len() as u64);
        copied.max(self.end)
    }

    /// Bytes between `addr` and the region's start, if it lies above `addr`.
    fn distance_above(&self, addr: u64) -> u64 {
        let governs_any = !self.bytes.is_empty() || self.end > self.start;
        if governs_any && self.start > addr {
            self.start.wrapping_sub(addr)
        } else {
            u64::MAX
        }
    }
}

enum Governed<'a> {
    Copied(&'a [u8]),
    Missing,
}

/// Maximum number of regions: the stack, another stack that was not copied, and the chunks.
pub const REGIONS_MAX: usize = 2 + CHUNKS_MAX;

/// Memory in which copied regions hide the same addresses of `live`.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotMemory<'a, M> {
    regions: [Region<'a>; REGIONS_MAX],
    /// No region covers addresses below the first and from the second on: most reads of a walk
    /// outside the stack are of metadata far from it.
    span: (u64, u64),
    live: M,
}

impl<'a, M: Memory> SnapshotMemory<'a, M> {
    /// Lays `regions` over `live`, at most [`REGIONS_MAX`]. Where they overlap, the first
    /// one holds.
    pub fn new(regions: impl IntoIterator<Item = Region<'a>>, live: M) -> Self {
        let mut kept = [Region::exact(0, &[]); REGIONS_MAX];
        let mut span = (u64::MAX, 0);
        for (place, region) in kept.iter_mut().zip(regions) {
            let end = region.governed_end();
            if end > region.start {
                span = (region.start.min(span.0), end.max(span.1));
            }
            *place = region;
        }
        Self {
            regions: kept,
            span,
            live,
        }
    }

    /// Whether no region covers the `len` bytes from `addr` on.
    #[inline]
    fn is_outside(&self, addr: u64, len: u64) -> bool {
        addr >= self.span.1 || addr.saturating_add(len) <= self.span.0
    }

    /// The memory behind the copies.
    pub fn live(&self) -> &M {
        &self.live
    }

    #[cold]
    fn read_piecewise(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        let mut at = addr;
        let mut rest = buf;
        // Each turn ends at a region's border (or with the buffer).
        while !rest.is_empty() {
            let governed = self.regions.iter().find_map(|region| region.govern(at));
            let len = match governed {
                Some(Governed::Missing) => return Err(Fault { addr: at }),
                Some(Governed::Copied(bytes)) => {
                    let len = bytes.len().min(rest.len());
                    copy_prefix(rest, bytes, len);
                    len
                }
                None => {
                    let border = self.regions.iter().map(|r| r.distance_above(at)).min();
                    let gap = usize::try_from(border.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
                    let len = gap.min(rest.len());
                    let (head, _) = rest.split_at_mut_checked(len).ok_or(Fault { addr: at })?;
                    self.live.read(at, head)?;
                    len
                }
            };
            (_, rest) = rest.split_at_mut_checked(len).ok_or(Fault { addr: at })?;
            at = at.wrapping_add(len as u64);
        }
        Ok(())
    }
}

fn copy_prefix(to: &mut [u8], from: &[u8], len: usize) {
    if let (Some(to), Some(from)) = (to.get_mut(..len), from.get(..len)) {
        to.copy_from_slice(from);
    }
}

impl<M: Memory> Memory for SnapshotMemory<'_, M> {
    #[inline]
    fn word(&self, addr: u64) -> Result<u64, Fault> {
        // Nearly all reads of a walk are whole words of the stack, which is the first region.
        if let [stack, ..] = &self.regions
            && let Some(word) = stack.word(addr)
        {
            return Ok(word);
        }
        if self.is_outside(addr, 8) {
            return self.live.word(addr);
        }
        self.word_elsewhere(addr)
    }

    #[inline]
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
        if self.is_outside(addr, buf.len() as u64) {
            return self.live.read(addr, buf);
        }
        self.read_piecewise(addr, buf)
    }
}

impl<M: Memory> SnapshotMemory<'_, M> {
    #[inline(never)]
    fn word_elsewhere(&self, addr: u64) -> Result<u64, Fault> {
        let mut words = self.regions.iter().filter_map(|region| region.word(addr));
        if let Some(word) = words.next() {
            return Ok(word);
        }
        let clear = self
            .regions
            .iter()
            .all(|region| region.govern(addr).is_none() && region.distance_above(addr) >= 8);
        if clear {
            return self.live.word(addr);
        }
        let mut word = [0u8; 8];
        self.read_piecewise(addr, &mut word)?;
        Ok(u64::from_le_bytes(word))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
