//! Support for a test and a bench: they show that a sampling signal in a managed allocator does no
//! harm, and that it would without its protection. Never part of a shipped module.
//!
//! `DWELL_MONO_HOLD_US=N` holds each thread in the handler for N microseconds, so that the
//! collector often meets threads there. `DWELL_MONO_NO_REGION=1` removes the marks of the managed
//! allocators that keep the collector from stopping threads in them. `DWELL_MONO_COUNT_STOPS=1` is
//! called before the handler by which Mono stops threads and holds them there as well. At the end
//! it prints how often one handler met the other.

use crate::sys::handlers::{self, Handlers};
use dwell_signal::sys::{self, monotonic_ns, sigaction, signal_bit};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

/// Threads (the kernel's ids) that are in our handler; 0 for none. More threads at the same time
/// are not counted.
static INSIDE: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];
/// Number of stops requested while the thread was in our handler.
static STOPS_INSIDE: AtomicU64 = AtomicU64::new(0);
/// Number of samples due while the thread was in Mono's handler of stops.
static DUE_IN_STOPS: AtomicU64 = AtomicU64::new(0);
/// Mono's handler of stops; 0 if it is not watched.
static STOP_HANDLER: AtomicUsize = AtomicUsize::new(0);
static OUR_SIGNAL: AtomicI32 = AtomicI32::new(0);

static HOLD_NS: AtomicU64 = AtomicU64::new(0);

fn number(name: &str) -> u64 {
    let text = std::env::var(name).ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Reads the requests. Not in a handler.
pub fn prepare() {
    HOLD_NS.store(number("DWELL_MONO_HOLD_US") * 1000, Ordering::Relaxed);
}

/// Marks the time in our handler, until it is dropped.
pub struct Inside(Option<&'static AtomicI32>);

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            place.store(0, Ordering::Relaxed);
        }
    }
}

/// Notes that the thread is in our handler, and holds it there.
#[inline]
pub fn enter() -> Inside {
    let tid = sys::gettid();
    let free = INSIDE.iter().find(|place| {
        let (set, unset) = (Ordering::Relaxed, Ordering::Relaxed);
        place.compare_exchange(0, tid, set, unset).is_ok()
    });
    hold();
    Inside(free)
}

/// Holds the thread that runs this handler.
#[inline]
fn hold() {
    let until = monotonic_ns().wrapping_add(HOLD_NS.load(Ordering::Relaxed));
    while monotonic_ns() < until {
        std::hint::spin_loop();
    }
}

/// Installs a handler before Mono's handler of stops, if requested. That handler belongs to the
/// first real-time signal that had one before Mono requested a handler of samples.
pub fn watch_stops(before: &Handlers, our_signal: i32) {
    if number("DWELL_MONO_COUNT_STOPS") != 1 {
        return;
    }
    let Some(signal) = handlers::first(before) else {
        eprintln!("dwell: Mono stops threads without a signal");
        return;
    };
    if let Ok(action) = sigaction(signal, None) {
        OUR_SIGNAL.store(our_signal, Ordering::Relaxed);
        STOP_HANDLER.store(action.handler, Ordering::Release);
        let handler = on_stop as *const () as usize;
        let _ = sigaction(signal, Some(&sys::KernelAction { handler, ..action }));
    }
}

/// Prints the counters.
pub fn print_stop_counts() {
    if STOP_HANDLER.load(Ordering::Relaxed) != 0 {
        println!("stops-inside {}", STOPS_INSIDE.load(Ordering::Relaxed));
        println!("due-in-stops {}", DUE_IN_STOPS.load(Ordering::Relaxed));
    }
}

/// Whether our signal is pending until this thread's handler has returned.
fn is_due() -> bool {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the kernel's call writes to a set of ours, and may be made in a handler.
    if unsafe { libc::sigpending(set.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: zeroed before, and written since; its first 8 bytes are the kernel's set.
    let bits = unsafe { set.as_ptr().cast::<u64>().read() };
    bits & signal_bit(OUR_SIGNAL.load(Ordering::Relaxed)) != 0
}

unsafe extern "C" fn on_stop(signal: c_int, info: *mut c_void, context: *mut c_void) {
    let tid = sys::gettid();
    if INSIDE
        .iter()
        .any(|place| place.load(Ordering::Relaxed) == tid)
    {
        STOPS_INSIDE.fetch_add(1, Ordering::Relaxed);
    }
    hold();
    let handler = STOP_HANDLER.load(Ordering::Acquire);
    // SAFETY: noted is the address of a handler that Mono had installed with SA_SIGINFO.
    let handler: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void) =
        unsafe { std::mem::transmute(handler) };
    // SAFETY: with what the kernel has given us, under the same mask.
    unsafe { handler(signal, info, context) };
    if is_due() {
        DUE_IN_STOPS.fetch_add(1, Ordering::Relaxed);
    }
}

/// `mov ecx, 1` and `mov [rax], ecx`: the instructions by which Mono 6.8's allocators mark that
/// they are running, at the first place in each. (Found in their code; no header documents it.)
const STORE: [u8; 7] = [0xb9, 1, 0, 0, 0, 0x89, 0x08];

/// Removes the mark from one of Mono's allocators: its store of 1 becomes one of 0.
pub fn spoil(full_name: &str, start: u64, len: usize) {
    static ASKED: OnceLock<bool> = OnceLock::new();
    let is_asked = *ASKED.get_or_init(|| number("DWELL_MONO_NO_REGION") == 1);
    if !is_asked || !full_name.starts_with("(wrapper alloc) ") || len < STORE.len() {
        return;
    }
    // SAFETY: the code that Mono has just reported, which is `len` bytes long and readable.
    let code = unsafe { std::slice::from_raw_parts(start as *const u8, len) };
    let found = code.windows(STORE.len()).position(|bytes| bytes == STORE);
    let Some(at) = found else {
        eprintln!("dwell: no critical region in {full_name}");
        return;
    };
    // SAFETY: within the code, which Mono keeps writable, and which no thread runs yet.
    unsafe { ((start as usize + at + 1) as *mut u8).write_volatile(0) };
    eprintln!("dwell: took the critical region out of {full_name}");
}
