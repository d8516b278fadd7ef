//! The end of the process where Mono does not tell of it: after an exception that nobody catches,
//! or when native code calls `exit`.

use crate::mono;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

/// Who asked; a child that was forked has no drainer, and is not meant.
static PID: AtomicU32 = AtomicU32::new(0);

extern "C" fn at_exit() {
    let work = AssertUnwindSafe(|| {
        if PID.load(Ordering::Relaxed) == std::process::id()
            && let Some(agent) = mono::agent()
        {
            agent.finish();
        }
    });
    // Unwinding into the C library would end the process another way.
    let _ = catch_unwind(work);
}

/// Lets the process's end end the recording. Refused for lack of memory only: then what is not
/// flushed by the end is lost.
pub fn finish_at_exit() {
    PID.store(std::process::id(), Ordering::Relaxed);
    // SAFETY: a function of a library that Mono never unloads.
    let _ = unsafe { libc::atexit(at_exit) };
}
