//! Moves all threads to another signal, because a library has taken the present one. Nothing here
//! runs in a handler.
//!
//! Our handler is not put in front of the library's: that handler could be unloaded, and a signal
//! that merges with ours would not reach it. The library keeps its signal.

use crate::counters::Cause;
use crate::engine::{Engine, perf};
use crate::record::{Guard, PERF, TIMER};
use crate::sys::Errno;
use core::sync::atomic::Ordering;

impl Engine {
    /// The signal that a library took, if one did and the engine uses another one.
    #[must_use]
    pub fn moved_from(&self) -> Option<i32> {
        Some(self.moved_from.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
    }

    /// Whether a library has taken the signal in use. Samples by signals are then missing.
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::Relaxed)
    }

    pub(crate) fn set_replaced(&self, is_replaced: bool) {
        self.is_replaced.store(is_replaced, Ordering::Relaxed);
    }

    /// Samples by this signal from now on. Its handler is installed. The last signals may have been
    /// lost, so each thread gets one soon.
    pub(crate) fn move_to(&'static self, signal: i32) {
        const SOON_NS: u64 = 100_000;
        let before = self.signal.swap(signal, Ordering::SeqCst);
        self.moved_from.store(before, Ordering::Relaxed);
        // A thread that begins now reads the new signal, or is locked until it has its source.
        for record in self.live_records() {
            let Some(mut guard) = record.lock() else {
                self.counters.add(Cause::Contention, 1);
                continue;
            };
            if self.change_signal(&guard, signal).is_err() {
                self.counters.add(Cause::RearmFailed, 1);
            }
            if record.armed.load(Ordering::Relaxed) {
                self.rearm_after(&mut guard, SOON_NS);
            }
            self.unlock(guard);
        }
    }

    fn change_signal(&self, guard: &Guard<'_>, signal: i32) -> Result<(), Errno> {
        let record = guard.record();
        match record.engine.load(Ordering::Relaxed) {
            PERF => perf::set_signal(record.perf_fd.load(Ordering::Relaxed), signal),
            TIMER => {
                let timer = self.new_timer(record)?;
                Self::delete_timer(record);
                record.timer_id.store(timer, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
