//! The end of the process in cases that Mono does not report: after an uncaught exception, or when
//! native code calls `exit`.

use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that made the request. A forked child has no drainer, so the end of a child does not
/// count.
static PID: AtomicU32 = AtomicU32::new(0);
/// Ends the recording.
static FINISH: OnceLock<fn()> = OnceLock::new();

extern "C" fn at_exit() {
    let work = || {
        if PID.load(Ordering::Relaxed) == std::process::id()
            && let Some(finish) = FINISH.get()
        {
            finish();
        }
    };
    // Unwinding into the C library would end the process in another way.
    let _ = catch_unwind(work);
}

/// Makes the process's end call `finish`, which ends the recording; only the first one is kept. It
/// is refused only for lack of memory; then data that are not flushed at the end are lost.
pub fn finish_at_exit(finish: fn()) {
    let _ = FINISH.set(finish);
    PID.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: a function of a library that Mono never unloads.
    let _ = unsafe { libc::atexit(at_exit) };
}
