//! The agent's allocator: the process's `malloc`, except that a lack of memory ends the recording
//! and not the process.
//!
//! Rust aborts when an allocation fails, and an allocator must not unwind. So an allocation that
//! fails is served from a reserve, and the drainer ends the recording in order as soon as it sees
//! that ([`is_out`]). If the reserve is too small, a thread of ours waits for memory. No other
//! thread waits for such a thread ([`is_waiting`]), and the process may end before.

use super::reserve::Reserve;
use dwell_signal::Engine;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

/// While they run: the drainer, the wall-clock sampler, and up to two watchers for the runtime.
static OWN_THREADS: [AtomicI32; 4] = [const { AtomicI32::new(0) }; 4];
static RESERVE: Reserve = Reserve::new();
/// An allocation has failed.
static IS_OUT: AtomicBool = AtomicBool::new(false);
/// Threads of ours that wait for memory.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// Time between two tries to get some.
const PAUSE: Duration = Duration::from_millis(10);

/// See above.
pub struct Enough;

#[global_allocator]
static ALLOCATOR: Enough = Enough;

/// The calling thread may wait for memory, unlike other threads, until the value is dropped.
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

/// Sets memory aside for later shortages, unless that was done before.
pub fn set_aside() {
    RESERVE.fill();
}

/// A recording begins: earlier failures are forgotten.
pub fn prepare() {
    set_aside();
    IS_OUT.store(false, Ordering::SeqCst);
}

/// Whether an allocation has failed since [`prepare`]: the recording is to end.
#[must_use]
pub fn is_out() -> bool {
    IS_OUT.load(Ordering::SeqCst)
}

/// Whether a thread of ours waits for memory, possibly for ever.
#[must_use]
pub fn is_waiting() -> bool {
    WAITING.load(Ordering::SeqCst) != 0
}

/// Makes room for a thread's next allocations by one system call: the C library lets a thread's
/// heap grow by a page at a time.
pub fn reserve() {
    /// The number of free bytes that it keeps at the end of a heap (`M_TOP_PAD`, mallopt(3)), and
    /// fewer than it would give a mapping of their own (`M_MMAP_THRESHOLD`).
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

fn is_own() -> bool {
    let own = dwell_signal::sys::gettid();
    (OWN_THREADS.iter()).any(|tid| tid.load(Ordering::Relaxed) == own)
}

/// Memory after `malloc` has failed. On threads that are not ours it is null if the reserve is
/// empty, too.
#[cold]
fn without_malloc(layout: Layout, malloc: impl Fn() -> *mut u8) -> *mut u8 {
    const TEXT: &[u8] = b"dwell: out of memory; the recording ends here\n";
    let is_first = !IS_OUT.swap(true, Ordering::SeqCst);
    if is_first && Engine::get().is_some_and(Engine::is_running) {
        // SAFETY: writes bytes of a constant to standard error, which allocates nothing.
        unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
    }
    let reserved = RESERVE.take(layout.size(), layout.align());
    if !reserved.is_null() || !is_own() {
        return reserved;
    }
    // The drainer may be this thread, so sampling is ended here.
    if let Some(engine) = Engine::get() {
        engine.stop();
    }
    WAITING.fetch_add(1, Ordering::SeqCst);
    loop {
        std::thread::sleep(PAUSE);
        let mut pointer = malloc();
        if pointer.is_null() {
            pointer = RESERVE.take(layout.size(), layout.align());
        }
        if !pointer.is_null() {
            WAITING.fetch_sub(1, Ordering::SeqCst);
            return pointer;
        }
    }
}

/// Memory from `malloc`, or else from our reserve.
fn some(layout: Layout, malloc: impl Fn() -> *mut u8) -> *mut u8 {
    #[cfg(test)]
    super::watch::note();
    let pointer = malloc();
    match pointer.is_null() {
        true => without_malloc(layout, malloc),
        false => pointer,
    }
}

// SAFETY: calls go to the system's allocator with the caller's arguments, which the callers of
// these methods have promised to be what that allocator asks for too (both are `GlobalAlloc`), and
// its answers come back unchanged. If it fails, the reserve gives a block of the size and alignment
// of the layout, which is recognised by its address and never passed to the system's allocator.
unsafe impl GlobalAlloc for Enough {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract, see above.
        some(layout, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the same contract, see above.
        let pointer = some(layout, || unsafe { System.alloc_zeroed(layout) });
        if RESERVE.has(pointer) {
            // SAFETY: a block of at least this size, which is the caller's now.
            unsafe { pointer.write_bytes(0, layout.size()) };
        }
        pointer
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        #[cfg(test)]
        super::watch::note();
        if !RESERVE.has(pointer) {
            // SAFETY: the same contract, see above; a block that stays as it was if this fails.
            let moved = unsafe { System.realloc(pointer, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller promises a size that makes a layout, and no other size than 0.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the new size is not 0; both blocks have the bytes that are copied, and are two,
        // as one is still in use; the old one is given up by this call.
        unsafe {
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(pointer, layout.size().min(size));
                self.dealloc(pointer, layout);
            }
            moved
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        #[cfg(test)]
        super::watch::note();
        if RESERVE.has(pointer) {
            // SAFETY: it came from there with this layout, and the caller gives it up.
            unsafe { RESERVE.give(pointer, layout.size(), layout.align()) };
            return;
        }
        // SAFETY: the same contract, see above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
