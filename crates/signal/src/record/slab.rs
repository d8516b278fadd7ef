//! The slab of thread records: chunks of 1024, made as needed, never freed.

use crate::freelist::TaggedHead;
use crate::record::{ENDED, FREE, Registration, ThreadRecord};
use crate::sys::{self, Errno};
use core::mem::size_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const CHUNK_BITS: u32 = 10;
const CHUNK_LEN: u32 = 1 << CHUNK_BITS;
const CHUNKS_MAX: usize = 1024;

/// All records of the process.
#[derive(Debug)]
pub(crate) struct Slab {
    chunks: [AtomicPtr<ThreadRecord>; CHUNKS_MAX],
    free: TaggedHead,
}

impl Slab {
    pub const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS_MAX],
            free: TaggedHead::new(),
        }
    }

    /// The record at `index`, in whatever state it is.
    #[inline]
    pub fn get(&'static self, index: u32) -> Option<&'static ThreadRecord> {
        let chunk = self
            .chunks
            .get((index >> CHUNK_BITS) as usize)?
            .load(Ordering::Acquire);
        if chunk.is_null() {
            return None;
        }
        let offset = (index & CHUNK_LEN.wrapping_sub(1)) as usize;
        // SAFETY: a chunk is a mapping of CHUNK_LEN records that is never unmapped, and the offset
        // is below CHUNK_LEN. A zeroed record is a valid one (free, generation 0): atomics, and
        // a plan of zeroes that nobody reads before it is set.
        Some(unsafe { &*chunk.add(offset) })
    }

    /// All records there are, in whatever state.
    pub fn iter(&'static self) -> impl Iterator<Item = &'static ThreadRecord> {
        (0..CHUNKS_MAX as u32)
            .map_while(|chunk| {
                let first = chunk.wrapping_shl(CHUNK_BITS);
                self.get(first)
                    .map(|_| first..first.wrapping_add(CHUNK_LEN))
            })
            .flatten()
            .filter_map(|index| self.get(index))
    }

    /// Makes a record for a thread. Ordinary threads only.
    pub fn begin(
        &'static self,
        registration: &Registration,
    ) -> Result<&'static ThreadRecord, Errno> {
        const ATTEMPTS_MAX: usize = CHUNKS_MAX + 1;
        for _ in 0..ATTEMPTS_MAX {
            if let Some(index) = self.free.pop(|index| self.link(index)) {
                let record = self.get(index).ok_or(Errno(libc::EFAULT))?;
                record.begin(registration);
                return Ok(record);
            }
            self.add_chunk()?;
        }
        Err(Errno(libc::EAGAIN))
    }

    /// Makes an ended record available again, under a new generation.
    pub fn recycle(&'static self, record: &'static ThreadRecord) -> bool {
        let was = record
            .state
            .compare_exchange(ENDED, FREE, Ordering::AcqRel, Ordering::Acquire);
        if was.is_err() {
            return false;
        }
        record.generation.fetch_add(1, Ordering::AcqRel);
        self.free.push(record.index(), &record.next_free)
    }

    fn link(&'static self, index: u32) -> Option<&'static AtomicU32> {
        self.get(index).map(|record| &record.next_free)
    }

    fn add_chunk(&'static self) -> Result<(), Errno> {
        let len = (CHUNK_LEN as usize).wrapping_mul(size_of::<ThreadRecord>());
        let new = sys::map_zeroed(len)?;
        for (number, place) in self.chunks.iter().enumerate() {
            if !place.load(Ordering::Acquire).is_null() {
                continue;
            }
            let first = (number as u32).wrapping_shl(CHUNK_BITS);
            number_records(new.cast(), first);
            let null = core::ptr::null_mut();
            let taken =
                place.compare_exchange(null, new.cast(), Ordering::AcqRel, Ordering::Acquire);
            if taken.is_ok() {
                for index in (first..first.wrapping_add(CHUNK_LEN)).rev() {
                    if let Some(link) = self.link(index) {
                        self.free.push(index, link);
                    }
                }
                return Ok(());
            }
        }
        // SAFETY: no place took the mapping, so nobody has seen it.
        unsafe { sys::unmap(new, len) };
        Err(Errno(libc::ENOMEM))
    }
}

/// Tells the records of a chunk nobody else knows of where they are.
fn number_records(chunk: *mut ThreadRecord, first: u32) {
    for offset in 0..CHUNK_LEN {
        // SAFETY: the chunk is a mapping of CHUNK_LEN zeroed records.
        let record = unsafe { &*chunk.add(offset as usize) };
        record
            .index
            .store(first.wrapping_add(offset), Ordering::Relaxed);
        record.perf_fd.store(-1, Ordering::Relaxed);
        record.timer_id.store(-1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
