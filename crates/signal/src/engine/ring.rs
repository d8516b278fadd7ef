//! Reads the kernel's call chain of the newest sample out of a perf ring, inside the handler.
//!
//! The ring is written by the kernel only while this thread runs in it, so nothing is added while
//! the handler reads. Bounded: a ring that is behind by many records is skipped to its end.

use crate::engine::perf::RING_PAGE;
use core::sync::atomic::{AtomicU64, Ordering};
use perf_event_open_sys::bindings::{
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_RECORD_SAMPLE, perf_event_mmap_page,
};

const RECORDS_MAX: u32 = 64;

/// A mapped ring: the control page and `RING_PAGE` bytes of records.
#[derive(Clone, Copy)]
pub struct Ring {
    control: *mut perf_event_mmap_page,
    data: *const u64,
}

impl Ring {
    /// The ring mapped at `addr`.
    ///
    /// # Safety
    /// `addr` must be a live perf mapping of `RING_BYTES` bytes, read by this thread only.
    #[inline]
    pub unsafe fn at(addr: usize) -> Self {
        let data = addr.wrapping_add(RING_PAGE) as *const u64;
        Self {
            control: addr as *mut perf_event_mmap_page,
            data,
        }
    }

    #[inline]
    fn head(self) -> u64 {
        // SAFETY: the control page is mapped (promise of `at`); the kernel writes the word, so it
        // is read as an atomic, and acquire makes the records before it visible.
        let head = unsafe { AtomicU64::from_ptr(&raw mut (*self.control).data_head) };
        head.load(Ordering::Acquire)
    }

    #[inline]
    fn tail(self) -> &'static AtomicU64 {
        // SAFETY: as for `head`; the word lives as long as the mapping, which outlives the handler
        // because unmapping needs the record's lock.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control).data_tail) }
    }

    /// The 64-bit word at a position that only ever grows; records are whole words.
    #[inline]
    fn word(self, position: u64) -> u64 {
        let offset = (position as usize) & RING_PAGE.wrapping_sub(8);
        // SAFETY: the masked offset is a multiple of 8 below RING_PAGE, hence inside the data.
        unsafe { self.data.add(offset / 8).read_volatile() }
    }

    /// Copies the kernel frames of the newest sample, innermost first, and empties the ring.
    /// Returns the number of frames; `None` if the ring's records could not be parsed.
    #[inline]
    pub fn newest_kernel_chain(self, frames: &mut [u64]) -> Option<usize> {
        let head = self.head();
        let mut at = self.tail().load(Ordering::Relaxed);
        let mut newest = None;
        for _ in 0..RECORDS_MAX {
            if at >= head {
                break;
            }
            let header = self.word(at);
            let size = header >> 48;
            if size < 8 || size & 7 != 0 {
                break;
            }
            if header as u32 == PERF_RECORD_SAMPLE {
                newest = Some((at, size));
            }
            at = at.wrapping_add(size);
        }
        let in_step = at == head;
        let count = newest.map(|(at, size)| self.kernel_frames(at, size, frames));
        self.tail().store(head, Ordering::Release);
        if in_step { count } else { None }
    }

    /// Layout of a sample: header, ip, number of chain entries, entries.
    #[inline]
    fn kernel_frames(self, at: u64, size: u64, frames: &mut [u64]) -> usize {
        let entries_max = (size / 8).saturating_sub(3);
        let entries = self.word(at.wrapping_add(16)).min(entries_max);
        let mut in_kernel = false;
        let mut count: usize = 0;
        for entry in 0..entries {
            let value = self.word(at.wrapping_add(24).wrapping_add(entry.wrapping_mul(8)));
            if value >= PERF_CONTEXT_MAX {
                in_kernel = value == PERF_CONTEXT_KERNEL;
            } else if in_kernel && let Some(place) = frames.get_mut(count) {
                *place = value;
                count = count.wrapping_add(1);
            }
        }
        count
    }
}
