//! Finds Mono's own handler of samples: the one of the signal that had no handler before Mono
//! requested it.
//!
//! Mono takes an unused real-time signal, and does not export its number. It is the only real-time
//! signal that gets a handler between the load of the module and the time when Mono is ready.

use dwell_signal::sys::{KernelAction, sigaction, signal_bit};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

const FIRST: i32 = 34;
const LAST: i32 = 64;
const COUNT: usize = (LAST - FIRST + 1) as usize;

/// Handlers of real-time signals, by signal from the first on; 0 for none.
pub type Handlers = [usize; COUNT];

/// The present handlers.
#[must_use]
pub fn now() -> Handlers {
    let mut all = [0; COUNT];
    for (signal, handler) in (FIRST..).zip(&mut all) {
        *handler = sigaction(signal, None).map_or(0, |action| action.handler);
    }
    all
}

/// The first signal that has a handler among these.
#[cfg(feature = "experiments")]
#[must_use]
pub fn first(handlers: &Handlers) -> Option<i32> {
    let mut all = (FIRST..).zip(handlers);
    all.find(|(_, handler)| **handler > 1)
        .map(|(signal, _)| signal)
}

static SIGNAL: AtomicI32 = AtomicI32::new(0);
static HANDLER: AtomicUsize = AtomicUsize::new(0);

/// Notes Mono's handler, if exactly one signal has got a handler since `before`.
///
/// # Errors
/// The number of signals that have got one, if it is not 1.
pub fn note(before: &Handlers) -> Result<(), usize> {
    let now = now();
    let mut new = (FIRST..)
        .zip(before.iter().zip(&now))
        .filter(|(_, (before, now))| before != now && **now > 1);
    match (new.next(), new.next()) {
        (Some((signal, (_, handler))), None) => {
            SIGNAL.store(signal, Ordering::Relaxed);
            HANDLER.store(*handler, Ordering::Release);
            Ok(())
        }
        (None, _) => Err(0),
        (Some(_), Some(_)) => Err(2 + new.count()),
    }
}

/// Blocks the signal `ours` while Mono's handler runs. Otherwise our handler could call that
/// handler inside itself, which would end the process.
pub fn block_in_mono_handler(ours: i32) {
    let Some((signal, handler)) = noted() else {
        return;
    };
    if let Ok(action) = sigaction(signal, None)
        && action.handler == handler
    {
        let mask = action.mask | signal_bit(ours);
        // Refused only for signals that do not exist.
        let _ = sigaction(signal, Some(&KernelAction { mask, ..action }));
    }
}

/// Mono's signal and handler, after they were noted. Safe in a handler.
#[inline]
#[must_use]
pub fn noted() -> Option<(i32, usize)> {
    let handler = HANDLER.load(Ordering::Acquire);
    (handler != 0).then(|| (SIGNAL.load(Ordering::Relaxed), handler))
}
