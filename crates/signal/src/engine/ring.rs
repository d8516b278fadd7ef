//! Reads the kernel's call chain of the newest sample out of a perf ring, inside the handler.
//!
//! The ring is written by the kernel only while this thread runs in it, so nothing is added while
//! the handler reads. Bounded: a ring that is behind by many records is skipped to its end.

use core::sync::atomic::{AtomicU64, Ordering};
use perf_event_open_sys::bindings::{
    PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_RECORD_SAMPLE, perf_event_mmap_page,
};

const RECORDS_MAX: u32 = 64;

/// A mapped ring: the control page and a page of records.
#[derive(Clone, Copy)]
pub struct Ring {
    control: *mut perf_event_mmap_page,
    data: *const u64,
    page_bytes: usize,
}

impl Ring {
    /// The ring mapped at `addr`.
    ///
    /// # Safety
    /// `addr` must be a live perf mapping of two pages of `page_bytes`, a power of two, read by
    /// this thread only.
    #[inline]
    pub unsafe fn at(addr: usize, page_bytes: usize) -> Self {
        let data = addr.wrapping_add(page_bytes) as *const u64;
        Self {
            control: addr as *mut perf_event_mmap_page,
            data,
            page_bytes,
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
        let offset = (position as usize) & self.page_bytes.wrapping_sub(8);
        // SAFETY: the masked offset is a multiple of 8 below the page's size, hence in the data.
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

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;
    use std::vec;

    #[test]
    fn chain_is_read_across_the_end_of_each_page_size() {
        for page_bytes in [4 << 10, 16 << 10, 64 << 10] {
            let mut memory = vec![0u64; 2 * page_bytes / 8];
            // A sample of 6 words: header, ip, two entries, the kernel's mark and a frame. It
            // begins with the last two words of the page of records.
            let sample = [
                (6 * 8) << 48 | u64::from(PERF_RECORD_SAMPLE),
                1,
                2,
                PERF_CONTEXT_KERNEL,
                0xabc,
                0,
            ];
            let begin = page_bytes as u64 - 16;
            for (index, word) in sample.iter().enumerate() {
                let at = (begin as usize + 8 * index) % page_bytes;
                memory[(page_bytes + at) / 8] = *word;
            }
            memory[offset_of!(perf_event_mmap_page, data_tail) / 8] = begin;
            memory[offset_of!(perf_event_mmap_page, data_head) / 8] = begin + 48;
            // SAFETY: as large as a ring, aligned, and not used otherwise meanwhile.
            let ring = unsafe { Ring::at(memory.as_mut_ptr() as usize, page_bytes) };
            let mut frames = [0; 4];
            assert_eq!(ring.newest_kernel_chain(&mut frames), Some(1));
            assert_eq!(frames, [0xabc, 0, 0, 0], "{page_bytes}");
            assert_eq!(ring.newest_kernel_chain(&mut frames), None, "empty");
        }
    }
}
