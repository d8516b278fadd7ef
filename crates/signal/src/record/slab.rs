//! The slab of thread records: chunks of 1024, made as needed, never freed. A record is not
//! touched before a thread gets it: most processes have few, and untouched pages cost nothing.

use crate::freelist::TaggedHead;
use crate::record::{ENDED, FREE, Registration, ThreadRecord};
use crate::sys::{self, Errno};
use core::mem::size_of;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const CHUNK_BITS: u32 = 10;
const CHUNK_LEN: u32 = 1 << CHUNK_BITS;
const CHUNKS_MAX: usize = 1024;
const LEN_MAX: u32 = CHUNK_LEN * CHUNKS_MAX as u32;

/// All records of the process.
#[derive(Debug)]
pub(crate) struct Slab {
    chunks: [AtomicPtr<ThreadRecord>; CHUNKS_MAX],
    free: TaggedHead,
    /// Number of records ever handed out; all later ones are zeroes, or not mapped.
    begun: AtomicU32,
}

impl Slab {
    pub const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(core::ptr::null_mut()) }; CHUNKS_MAX],
            free: TaggedHead::new(),
            begun: AtomicU32::new(0),
        }
    }

    /// The record at `index`, in any state.
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
        // is below CHUNK_LEN. A zeroed record is a valid one (free, generation 0): atomics, and a
        // plan of zeroes that is not read before it is set.
        Some(unsafe { &*chunk.add(offset) })
    }

    /// All records that a thread has or had, in any state.
    pub fn iter(&'static self) -> impl Iterator<Item = &'static ThreadRecord> {
        self.iter_from(0)
    }

    /// The same from this place on.
    pub fn iter_from(&'static self, from: u32) -> impl Iterator<Item = &'static ThreadRecord> {
        (from..self.begun.load(Ordering::Acquire)).filter_map(|index| self.get(index))
    }

    /// Makes a record for a thread. Ordinary threads only.
    pub fn begin(
        &'static self,
        registration: &Registration,
    ) -> Result<&'static ThreadRecord, Errno> {
        let record = match self.free.pop(|index| self.link(index)) {
            Some(index) => self.get(index).ok_or(Errno(libc::EFAULT))?,
            None => self.first_use()?,
        };
        record.begin(registration);
        Ok(record)
    }

    /// A record that no thread had before.
    fn first_use(&'static self) -> Result<&'static ThreadRecord, Errno> {
        let next = |begun: u32| begun.checked_add(1).filter(|begun| *begun <= LEN_MAX);
        let (set, get) = (Ordering::AcqRel, Ordering::Acquire);
        let index = self.begun.fetch_update(set, get, next);
        let index = index.map_err(|_| Errno(libc::EAGAIN))?;
        self.make_chunk(index >> CHUNK_BITS)?;
        let record = self.get(index).ok_or(Errno(libc::EFAULT))?;
        // No other thread has this index. A reader of the record sees until then that it is free.
        record.index.store(index, Ordering::Relaxed);
        Ok(record)
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

    /// Makes the chunk with this number, if it does not exist.
    fn make_chunk(&'static self, number: u32) -> Result<(), Errno> {
        let place = self.chunks.get(number as usize);
        let place = place.ok_or(Errno(libc::EAGAIN))?;
        if !place.load(Ordering::Acquire).is_null() {
            return Ok(());
        }
        let len = (CHUNK_LEN as usize).wrapping_mul(size_of::<ThreadRecord>());
        let new = sys::map_zeroed(len)?;
        let null = core::ptr::null_mut();
        let taken = place.compare_exchange(null, new.cast(), Ordering::AcqRel, Ordering::Acquire);
        if taken.is_err() {
            // SAFETY: the place has another one, so no thread has seen this mapping.
            unsafe { sys::unmap(new, len) };
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "slab_tests.rs"]
mod tests;
