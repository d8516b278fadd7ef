//! The handler does not allocate, keeps `errno`, and can interrupt malloc anywhere.
//!
//! The engine's handler is replaced by a test handler. It notes on which thread it runs, calls the
//! engine's handler and checks the state it left behind. The allocator of this program refuses
//! such threads.

mod common;

use common::{Drainer, run_threads, weight_of};
use dwell_signal::handler::dwell_sample_handler;
use dwell_signal::slots::Reason;
use dwell_signal::{Capture, Cause, Config, sys};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    // No destructor, and in an executable: an ordinary access to the thread's static block.
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
}

static REFUSED: AtomicU64 = AtomicU64::new(0);
static INTERRUPTED_MALLOC: AtomicU64 = AtomicU64::new(0);
static CLOBBERED: AtomicU64 = AtomicU64::new(0);
static HOOKED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IN_MALLOC: Cell<bool> = const { Cell::new(false) };
}

struct Watching;

fn watch<R>(allocate: impl FnOnce() -> R) -> R {
    if IN_HANDLER.get() {
        REFUSED.fetch_add(1, Ordering::Relaxed);
    }
    IN_MALLOC.set(true);
    let result = allocate();
    IN_MALLOC.set(false);
    result
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise, handed on.
        watch(|| unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, handed on.
        watch(|| unsafe { System.dealloc(pointer, layout) });
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

extern "C" fn watched(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if IN_MALLOC.get() {
        INTERRUPTED_MALLOC.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: errno's address is valid for the thread's life.
    let errno = unsafe { &mut *libc::__errno_location() };
    let before = std::mem::replace(errno, 4242);
    IN_HANDLER.set(true);
    dwell_sample_handler(signal, info, context);
    IN_HANDLER.set(false);
    if *errno != 4242 {
        CLOBBERED.fetch_add(1, Ordering::Relaxed);
    }
    *errno = before;
}

extern "C" fn hook(capture: &mut Capture<'_>) {
    HOOKED.fetch_add(1, Ordering::Relaxed);
    capture.set_logical_id(77);
    let address = capture.header().stack_lo;
    assert_eq!(capture.copy_chunk(address, 32), 32);
    capture.copy_logical_name(16, 5); // unreadable: an empty name
}

/// Allocates and frees all the time, in sizes that keep malloc's bins, chunks and mmap busy.
fn churn(number: u64) {
    let until_ns = sys::own_cpu_ns() + 150_000_000;
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut state = number;
    while sys::own_cpu_ns() < until_ns {
        for _ in 0..200 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let size = 1usize << (state >> 60);
            kept.push(vec![1; size * 3]);
            if kept.len() > 300 {
                let at = (state >> 33) as usize % kept.len();
                drop(kept.swap_remove(at));
            }
        }
    }
}

#[test]
fn never_does_a_handler_allocate_wherever_it_lands() {
    const INTERVAL_NS: u64 = 100_000;
    let engine = dwell_signal::init(&Config::default()).unwrap();
    engine.set_extra(hook);
    let ours = sys::sigaction(engine.signal(), None).unwrap();
    let handler = watched as *const () as usize;
    sys::sigaction(
        engine.signal(),
        Some(&sys::KernelAction { handler, ..ours }),
    )
    .unwrap();
    assert_eq!(engine.start(INTERVAL_NS), 0);
    let drainer = Drainer::begin(engine);
    let accounts = run_threads(engine, 0..4, churn);
    let samples = drainer.finish();
    assert!(engine.stop());
    for account in &accounts {
        account.assert_weight(weight_of(&samples, account), INTERVAL_NS);
    }
    assert_eq!(
        REFUSED.load(Ordering::Relaxed),
        0,
        "the handler called the allocator"
    );
    assert_eq!(
        CLOBBERED.load(Ordering::Relaxed),
        0,
        "the handler changed errno"
    );
    // More than half of the time goes into malloc and free; one sample in a hundred is certain.
    let interrupted = INTERRUPTED_MALLOC.load(Ordering::Relaxed);
    assert!(
        interrupted * 100 >= samples.len() as u64,
        "{interrupted} of {}",
        samples.len()
    );
    assert!(HOOKED.load(Ordering::Relaxed) >= samples.len() as u64);
    assert_eq!(engine.counters().get(Cause::Sample), samples.len() as u64);
    assert!(
        samples
            .iter()
            .any(|sample| sample.reason == Reason::CpuTime)
    );
}
