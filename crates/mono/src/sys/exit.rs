//! The end of the process where Mono does not tell of it: after an exception that nobody catches,
//! or when native code calls `exit`.

use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Who asked; a child that was forked has no drainer, and is not meant.
static PID: AtomicU32 = AtomicU32::new(0);
/// What ends the recording.
static FINISH: OnceLock<fn()> = OnceLock::new();

extern "C" fn at_exit() {
    let work = || {
        if PID.load(Ordering::Relaxed) == std::process::id()
            && let Some(finish) = FINISH.get()
        {
            finish();
        }
    };
    // Unwinding into the C library would end the process another way.
    let _ = catch_unwind(work);
}

/// Lets the process's end call `finish`, which ends the recording; the first one stays. Refused for
/// lack of memory only: then what is not flushed by the end is lost.
pub fn finish_at_exit(finish: fn()) {
    let _ = FINISH.set(finish);
    PID.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: a function of a library that Mono never unloads.
    let _ = unsafe { libc::atexit(at_exit) };
}
