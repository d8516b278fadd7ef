//! From a perf event's file descriptor to its thread record: two levels, filled as needed.

use crate::sys::{self, Errno};
use core::mem::size_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const CHUNK_BITS: u32 = 12;
const CHUNK_LEN: usize = 1 << CHUNK_BITS;
const CHUNKS_MAX: usize = 1024;

type Chunk = [AtomicU32; CHUNK_LEN];

/// Left behind when a descriptor has been closed: its signals may still be on their way. As the
/// index of a record it is out of range.
const GONE: u32 = u32::MAX;

/// Entries are a record's index plus one, 0 if the descriptor was never ours.
#[derive(Debug)]
pub(crate) struct FdTable {
    chunks: [AtomicPtr<Chunk>; CHUNKS_MAX],
}

impl FdTable {
    pub const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS_MAX],
        }
    }

    #[inline]
    fn entry(&self, fd: i32) -> Option<&AtomicU32> {
        let fd = usize::try_from(fd).ok()?;
        let chunk = self.chunks.get(fd >> CHUNK_BITS)?.load(Ordering::Acquire);
        // SAFETY: either null or a zeroed mapping of a chunk's size that is never unmapped; only
        // atomics live in it.
        let chunk = unsafe { chunk.as_ref() }?;
        chunk.get(fd & (CHUNK_LEN.wrapping_sub(1)))
    }

    /// The index of the record that owns `fd`. May be an index without a record if `fd` once had
    /// one.
    #[inline]
    pub fn get(&self, fd: i32) -> Option<u32> {
        self.entry(fd)?.load(Ordering::Acquire).checked_sub(1)
    }

    pub fn clear(&self, fd: i32) {
        if let Some(entry) = self.entry(fd) {
            entry.store(GONE, Ordering::Release);
        }
    }

    /// Notes that `fd` belongs to the record at `index`. Ordinary threads only.
    pub fn set(&self, fd: i32, index: u32) -> Result<(), Errno> {
        if self.entry(fd).is_none() {
            self.add_chunk(fd)?;
        }
        let entry = self.entry(fd).ok_or(Errno(libc::EMFILE))?;
        entry.store(index.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    fn add_chunk(&self, fd: i32) -> Result<(), Errno> {
        let number = usize::try_from(fd).map_err(|_| Errno(libc::EBADF))? >> CHUNK_BITS;
        let place = self.chunks.get(number).ok_or(Errno(libc::EMFILE))?;
        let new = sys::map_zeroed(size_of::<Chunk>())?;
        let null = core::ptr::null_mut();
        if place
            .compare_exchange(null, new.cast(), Ordering::AcqRel, Ordering::Acquire)
            .is_err()
        {
            // SAFETY: another thread was first; no thread has seen this mapping.
            unsafe { sys::unmap(new, size_of::<Chunk>()) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_descriptors_near_and_far() {
        let table = FdTable::new();
        for (index, fd) in [0, 1, 4095, 4096, 1_000_000].into_iter().enumerate() {
            assert_eq!(table.get(fd), None);
            table.set(fd, index as u32).unwrap();
            assert_eq!(table.get(fd), Some(index as u32));
        }
        table.clear(4096);
        assert_eq!(
            table.get(4096),
            Some(GONE - 1),
            "signals of it may still come"
        );
        assert_eq!(table.get(4095), Some(2));
    }

    #[test]
    fn descriptor_out_of_range_is_refused() {
        let table = FdTable::new();
        assert_eq!(table.get(-1), None);
        assert!(table.set(-1, 3).is_err());
        assert!(table.set(i32::MAX, 3).is_err());
    }
}
