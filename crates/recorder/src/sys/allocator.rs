//! The agent's allocator: the process's `malloc`, but that a lack of memory ends the recording and
//! not the process.
//!
//! Rust aborts when an allocation fails, and an allocator must not unwind. So a thread of ours that
//! gets no memory ends the sampling, says so, and sleeps for good: the runtime then deals with its
//! lack of memory as it would without us. On its own threads the agent allocates next to nothing.

use dwell_signal::Engine;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicI32, Ordering};

/// The drainer, the wall sampler, and up to two that watch for the runtime, while they run.
static OWN_THREADS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];

/// See above.
pub struct Enough;

#[global_allocator]
static ALLOCATOR: Enough = Enough;

/// The calling thread may be put to sleep when there is no memory; ends with the value.
pub struct OwnThread(());

impl OwnThread {
    /// For the calling thread.
    #[must_use]
    pub fn begin() -> OwnThread {
        replace(0, dwell_signal::sys::gettid());
        OwnThread(())
    }
}

impl Drop for OwnThread {
    fn drop(&mut self) {
        replace(dwell_signal::sys::gettid(), 0);
    }
}

/// Makes room for what a thread of ours will allocate next, by one system call: the C library lets
/// a thread's heap grow by a page at a time.
pub fn reserve() {
    /// As much as it keeps of what is free at the end of a heap (`M_TOP_PAD`, mallopt(3)), and
    /// less than what it would map by itself (`M_MMAP_THRESHOLD`).
    const BYTES: usize = 120 << 10;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(BYTES)));
}

/// Replaces the first thread `before` (0: a free place); there are as many places as threads.
fn replace(before: i32, after: i32) {
    let _ = OWN_THREADS.iter().find(|place| {
        let order = Ordering::Relaxed;
        place.compare_exchange(before, after, order, order).is_ok()
    });
}

/// Returns only on threads that are not ours.
#[cold]
fn exhausted() {
    let own = dwell_signal::sys::gettid();
    if !OWN_THREADS
        .iter()
        .any(|tid| tid.load(Ordering::Relaxed) == own)
    {
        return;
    }
    if let Some(engine) = Engine::get() {
        engine.stop();
    }
    const TEXT: &[u8] = b"dwell: out of memory; the recording ends here\n";
    // SAFETY: writes bytes of a constant to standard error; neither call allocates.
    unsafe {
        libc::write(2, TEXT.as_ptr().cast(), TEXT.len());
    }
    loop {
        // SAFETY: takes nothing; returns only after a signal's handler.
        unsafe { libc::pause() };
    }
}

fn checked(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        exhausted();
    }
    pointer
}

// SAFETY: every call goes to the system's allocator with the caller's arguments, which the callers
// of these methods have promised to be what that allocator asks for too (both are `GlobalAlloc`),
// and its answer comes back unchanged, or never.
unsafe impl GlobalAlloc for Enough {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract, see above.
        checked(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract, see above.
        checked(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the same contract, see above.
        checked(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the same contract, see above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
