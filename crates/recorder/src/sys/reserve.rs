//! Memory for the case that `malloc` fails: mapped before a recording begins, so that our threads
//! can end it in order. Blocks are powers of two; a freed one is used again for its size.
//!
//! Serves an allocator: it must not allocate.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Address space of a reserve. Only the used part takes memory.
const BYTES: usize = 8 << 20;
/// The smallest block: room for the link of a free one.
const BLOCK_MIN: usize = 32;
const PAGE: usize = 4096;
/// Sizes of blocks, from the smallest to the whole reserve.
const SIZES: usize = (BYTES / BLOCK_MIN).ilog2() as usize + 1;

/// Memory set aside.
pub struct Reserve {
    /// Its address; 0: not mapped yet.
    base: AtomicUsize,
    is_locked: AtomicBool,
    blocks: UnsafeCell<Blocks>,
}

struct Blocks {
    /// Bytes given out so far, including those that are free again.
    used: usize,
    /// The address of the first free block of each size, which holds that of the next; 0: no free
    /// block.
    free: [usize; SIZES],
}

// SAFETY: `blocks` is reached under the lock only, and the rest is atomic.
unsafe impl Sync for Reserve {}

/// The size of the block for this many bytes, and its place among the sizes.
fn block(bytes: usize, align: usize) -> Option<(usize, usize)> {
    let size = bytes
        .max(align)
        .max(BLOCK_MIN)
        .checked_next_power_of_two()?;
    let fits = size <= BYTES && align <= PAGE;
    fits.then(|| (size, (size / BLOCK_MIN).ilog2() as usize))
}

impl Reserve {
    /// One without memory.
    pub const fn new() -> Reserve {
        Reserve {
            base: AtomicUsize::new(0),
            is_locked: AtomicBool::new(false),
            blocks: UnsafeCell::new(Blocks {
                used: 0,
                free: [0; SIZES],
            }),
        }
    }

    /// Maps its memory, unless it has some.
    pub fn fill(&self) {
        if self.base.load(Ordering::Acquire) != 0 {
            return;
        }
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping of our own, at no place of anybody else's.
        let mapped = unsafe { libc::mmap(ptr::null_mut(), BYTES, protection, flags, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return;
        }
        // A huge page would be used for the first few bytes. If this call fails it is.
        // SAFETY: the mapping from above, with its length.
        unsafe { libc::madvise(mapped, BYTES, libc::MADV_NOHUGEPAGE) };
        let order = Ordering::AcqRel;
        let set = self
            .base
            .compare_exchange(0, mapped as usize, order, Ordering::Acquire);
        if set.is_err() {
            // SAFETY: another thread was faster; no thread knows this mapping.
            unsafe { libc::munmap(mapped, BYTES) };
        }
    }

    /// Whether a pointer is to memory of it.
    #[inline]
    pub fn has(&self, pointer: *mut u8) -> bool {
        let base = self.base.load(Ordering::Relaxed);
        base != 0 && (pointer as usize).wrapping_sub(base) < BYTES
    }

    /// Memory of this size; null if the reserve is used up.
    pub fn take(&self, bytes: usize, align: usize) -> *mut u8 {
        let base = self.base.load(Ordering::Acquire);
        let Some((size, index)) = block(bytes, align).filter(|_| base != 0) else {
            return ptr::null_mut();
        };
        self.locked(|blocks| {
            let Some(first) = blocks.free.get_mut(index) else {
                return ptr::null_mut();
            };
            if *first != 0 {
                let block = *first as *mut u8;
                // SAFETY: a free block of ours, whose first word `give` has written.
                *first = unsafe { block.cast::<usize>().read() };
                return block;
            }
            let at = blocks.used.next_multiple_of(size.min(PAGE));
            if size > BYTES.saturating_sub(at) {
                return ptr::null_mut();
            }
            blocks.used = at + size;
            // SAFETY: within the mapping.
            unsafe { (base as *mut u8).add(at) }
        })
    }

    /// Takes back a block that `take` returned for these numbers.
    ///
    /// # Safety
    /// The block must not be in use any more.
    pub unsafe fn give(&self, pointer: *mut u8, bytes: usize, align: usize) {
        self.locked(|blocks| {
            let index = block(bytes, align).map_or(SIZES, |(_, index)| index);
            if let Some(first) = blocks.free.get_mut(index) {
                // SAFETY: a block of ours that is free now, of at least a word, and aligned to it.
                unsafe { pointer.cast::<usize>().write(*first) };
                *first = pointer as usize;
            }
        });
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Blocks) -> T) -> T {
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        // Held for a few instructions, which neither wait nor fail.
        while (self.is_locked)
            .compare_exchange_weak(false, true, acquire, relaxed)
            .is_err()
        {
            std::thread::yield_now();
        }
        // SAFETY: the lock is ours, so no other thread has a reference.
        let result = work(unsafe { &mut *self.blocks.get() });
        self.is_locked.store(false, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserve_reuses_freed_blocks() {
        let reserve = Reserve::new();
        assert!(reserve.take(1, 1).is_null());
        reserve.fill();
        let sizes = [1, 31, 32, 33, 4096, 5000, 1 << 20];
        let taken = sizes.map(|bytes| {
            let block = reserve.take(bytes, 16);
            assert!(reserve.has(block) && (block as usize).is_multiple_of(16));
            // SAFETY: so many bytes are ours.
            unsafe { block.write_bytes(0xff, bytes) };
            (block, bytes)
        });
        let mut ends: Vec<_> = taken
            .map(|(at, len)| (at as usize, at as usize + len))
            .into();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
        for (block, bytes) in taken {
            // SAFETY: not used any more.
            unsafe { reserve.give(block, bytes, 16) };
        }
        let again = sizes.map(|bytes| (reserve.take(bytes, 16), bytes));
        for (block, _) in again {
            assert!(taken.iter().any(|(before, _)| *before == block));
        }
        assert!(!reserve.has(ptr::null_mut()));
        assert!(!reserve.has((&raw const reserve).cast_mut().cast()));
    }

    #[test]
    fn reserve_refuses_large_blocks_and_ends() {
        let reserve = Reserve::new();
        reserve.fill();
        assert!(reserve.take(BYTES + 1, 1).is_null());
        assert!(reserve.take(usize::MAX, 1).is_null());
        assert!(reserve.take(1, 2 * PAGE).is_null());
        let blocks: Vec<_> = (0..BYTES / PAGE)
            .map(|_| reserve.take(PAGE, PAGE))
            .collect();
        assert!(
            blocks
                .iter()
                .all(|block| block.addr().is_multiple_of(PAGE) && !block.is_null())
        );
        assert!(reserve.take(1, 1).is_null());
        // SAFETY: not used any more.
        unsafe { reserve.give(blocks[7], PAGE, PAGE) };
        assert_eq!(reserve.take(PAGE, 1), blocks[7]);
        assert!(reserve.take(PAGE, 1).is_null());
    }
}
