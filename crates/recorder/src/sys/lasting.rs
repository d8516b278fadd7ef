//! Zeroed memory that stays for the life of the process: any holder of an address may use it at
//! any time, however late. Only pages that are written to take room.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Zeroed pages, never given back.
#[derive(Clone, Copy, Debug)]
pub struct Lasting {
    base: usize,
    bytes: usize,
}

impl Lasting {
    /// Reserves this many bytes.
    #[must_use]
    pub fn reserve(bytes: usize) -> Option<Lasting> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice changes nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the mapping is ours. A huge page for one record would be a waste; if the kernel
        // knows no such advice, nothing is lost.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        let base = base as usize;
        Some(Lasting { base, bytes })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> usize {
        self.base
    }

    /// Its size.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// As words.
    #[must_use]
    pub fn words(&self) -> &'static [AtomicU64] {
        let len = self.bytes / size_of::<AtomicU64>();
        // SAFETY: pages of zeroes that are never unmapped, aligned, and every pattern of bits is a
        // number. Other writers (managed code, through a buffer) write memory that Rust knows to
        // be shared, because these are atomics.
        unsafe { std::slice::from_raw_parts(self.base as *const AtomicU64, len) }
    }

    /// As half words.
    #[must_use]
    pub fn half_words(&self) -> &'static [AtomicU32] {
        let len = self.bytes / size_of::<AtomicU32>();
        // SAFETY: as in `words`.
        unsafe { std::slice::from_raw_parts(self.base as *const AtomicU32, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn is_zeroed_and_can_be_written() {
        let memory = Lasting::reserve(1 << 20).unwrap();
        assert_eq!(memory.words().len(), (1 << 20) / 8);
        assert!(
            memory
                .words()
                .iter()
                .all(|w| w.load(Ordering::Relaxed) == 0)
        );
        memory.words()[5].store(1 << 32, Ordering::Relaxed);
        assert_eq!(memory.half_words()[11].load(Ordering::Relaxed), 1);
    }
}
