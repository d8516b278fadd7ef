//! How often a thread has been given a processor, read without a system call.
//!
//! The kernel writes the control page of a mapped perf event each time the event's thread gets a
//! processor (`perf_event_update_userpage` of kernel/events/core.c, called when an event is
//! scheduled in). Its `lock`, a sequence lock, grows by two. So a thread that did not run at its
//! last check, and whose page is unchanged, has not run since. This module maps such a page for
//! threads that have no ring; a ring's control page serves equally well. Nothing here runs in a
//! handler.

use crate::arch::fetch_ahead;
use crate::engine::Engine;
use crate::engine::perf::RING_PAGES;
use crate::record::{Guard, KERNEL, PERF, ThreadRecord};
use crate::sys::{self, Errno};
use core::mem::offset_of;
use core::sync::atomic::{Ordering, fence};
use dwell_walker::Memory;
use perf_event_open_sys::bindings::perf_event_mmap_page;

/// The state of a thread's account of its turns. Two values of the same thread can only be
/// compared for equality: equal means that it has not been given a processor in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    page: usize,
    lock: u32,
}

impl Turns {
    /// The turns that this page shows.
    #[must_use]
    pub fn on(page: usize, lock: u32) -> Turns {
        Turns { page, lock }
    }

    /// In one word: the page number, whose upper bits do not matter, and the turns.
    pub(crate) fn word(&self) -> u64 {
        (self.page as u64) << 20 | u64::from(self.lock)
    }

    /// Prefetches the data that [`Engine::turns`] will read soon of `record`, which was read
    /// before.
    pub fn fetch(&self, record: &ThreadRecord) {
        fetch_ahead(core::ptr::from_ref(record).addr());
        fetch_ahead(
            self.page
                .wrapping_add(offset_of!(perf_event_mmap_page, lock)),
        );
    }
}

impl Engine {
    /// The thread's turns so far. `None` if it has no enabled perf event, or the page is not
    /// mapped, or the thread answers no signals. In the last case its event is off, and its turns
    /// are not counted. [`Engine::tend`] finds that out within one second of the thread's CPU
    /// time.
    #[must_use]
    pub fn turns(&self, record: &ThreadRecord) -> Option<Turns> {
        let page = record.page.load(Ordering::Acquire);
        let is_on = matches!(record.engine.load(Ordering::Relaxed), PERF | KERNEL)
            && record.armed.load(Ordering::Relaxed)
            && record.silent_tends.load(Ordering::Relaxed) == 0;
        if page == 0 || !is_on {
            return None;
        }
        // The page may just be unmapped and replaced by another mapping. Then the read gives
        // another number than before, or a fault.
        let lock = page.wrapping_add(offset_of!(perf_event_mmap_page, lock)) as u64;
        // Callers compare the turns before and after they read the thread's memory: those reads
        // stay between the two, also for the processor.
        fence(Ordering::Acquire);
        let lock = self.live.u32(lock).ok()?;
        fence(Ordering::Acquire);
        Some(Turns::on(page, lock))
    }

    /// Prefetches the page that [`Engine::turns`] will read soon.
    pub fn fetch_turns(&self, record: &ThreadRecord) {
        let page = record.page.load(Ordering::Relaxed);
        if page != 0 {
            fetch_ahead(page.wrapping_add(offset_of!(perf_event_mmap_page, lock)));
        }
    }

    /// Whether a page could be mapped for the thread, and is not yet.
    #[must_use]
    pub fn wants_page(&self, record: &ThreadRecord) -> bool {
        record.page.load(Ordering::Relaxed) == 0 && record.perf_fd.load(Ordering::Relaxed) >= 0
    }

    /// Number of pages that [`Engine::attach_page`] has mapped and that are still mapped.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Maps the control page of the thread's perf event. Costs a page of locked memory, a mapping
    /// and some 5 us. Does nothing for threads without a perf event, or while another thread works
    /// on the record: then it may be tried again.
    ///
    /// # Errors
    /// The kernel's error: `EPERM` if the limit of locked memory is reached, `ENOMEM` if there are
    /// too many mappings.
    pub fn attach_page(&self, record: &'static ThreadRecord) -> Result<(), Errno> {
        let Some(guard) = record.try_lock() else {
            return Ok(());
        };
        let fd = record.perf_fd.load(Ordering::Relaxed);
        let mut result = Ok(());
        if fd >= 0 && record.page.load(Ordering::Relaxed) == 0 {
            match sys::map_fd(fd, self.page_bytes) {
                Ok(page) => {
                    record.page.store(page as usize, Ordering::Release);
                    self.pages.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => result = Err(error),
            }
        }
        self.unlock(guard);
        result
    }

    /// Maps the thread's perf ring, so that samples taken in the kernel carry its call chain. Costs
    /// two pages of locked memory and some 5 us; does nothing for threads without a perf event.
    /// A thread with a page gets another event for its ring.
    ///
    /// # Errors
    /// The kernel's error, `EPERM` if the limit of locked memory is reached: the thread's samples
    /// then have no kernel frames.
    pub fn attach_ring(&'static self, record: &'static ThreadRecord) -> Result<(), Errno> {
        let mut guard = record.lock().ok_or(Errno(libc::EBUSY))?;
        let is_page = record.page.load(Ordering::Relaxed) != 0 && !record.has_ring();
        let renewed = match is_page {
            true => self.renew_event(&mut guard),
            false => Ok(()),
        };
        let result = renewed.and_then(|()| self.map_ring(&guard));
        self.unlock(guard);
        result
    }

    fn ring_bytes(&self) -> usize {
        self.page_bytes.wrapping_mul(RING_PAGES)
    }

    /// Maps the ring of an event that has no mapping yet.
    pub(super) fn map_ring(&self, guard: &Guard<'_>) -> Result<(), Errno> {
        let record = guard.record();
        let fd = record.perf_fd.load(Ordering::Relaxed);
        if fd < 0 || record.page.load(Ordering::Relaxed) != 0 {
            return Ok(());
        }
        let addr = sys::map_fd(fd, self.ring_bytes())? as usize;
        record.ring.store(addr, Ordering::Relaxed);
        record.page.store(addr, Ordering::Release);
        Ok(())
    }
}

/// Unmaps the page, if it is not that of a ring. Its event must not be mapped again.
pub(super) fn detach_page(engine: &Engine, guard: &Guard<'_>) {
    let record = guard.record();
    let page = record.page.swap(0, Ordering::Relaxed);
    if page != 0 && page != record.ring.load(Ordering::Relaxed) {
        // SAFETY: mapped by `attach_page` with this length, and taken out of the record, whose lock
        // we hold. A reader that still has its address uses loads that may fault.
        unsafe { sys::unmap(page as *mut u8, engine.page_bytes) };
        engine.pages.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Unmaps the mappings of the thread's event.
pub(crate) fn detach(engine: &Engine, guard: &Guard<'_>) {
    detach_page(engine, guard);
    let ring = guard.record().ring.swap(0, Ordering::Relaxed);
    if ring != 0 {
        // SAFETY: mapped by `attach_ring` with this length; only the handler reads its records,
        // with the record's lock, which we hold; its control page is read by loads that may fault.
        unsafe { sys::unmap(ring as *mut u8, engine.ring_bytes()) };
    }
}
