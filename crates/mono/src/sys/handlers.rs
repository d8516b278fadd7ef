//! Finds Mono's own handler of samples: the one whose signal had none before Mono asked for it.
//!
//! Mono takes an unused real-time signal and tells nobody which. Between the moment when it loads
//! the module and the one when it is ready, it is the only one of these that gets a handler.

use dwell_signal::sys::{KernelAction, sigaction, signal_bit};
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

const FIRST: i32 = 34;
const LAST: i32 = 64;
const COUNT: usize = (LAST - FIRST + 1) as usize;

/// Handlers of real-time signals, by signal from the first on; 0 for none.
pub type Handlers = [usize; COUNT];

/// Which there are now.
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

/// Notes Mono's handler, if one signal has got one since `before`.
///
/// # Errors
/// How many have, if it is not one.
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

/// Lets `ours` wait until Mono's handler has returned: called by our handler inside of itself it
/// would end the process.
pub fn block_meanwhile(ours: i32) {
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

/// Mono's signal and handler, once noted. Safe in a handler.
#[inline]
#[must_use]
pub fn noted() -> Option<(i32, usize)> {
    let handler = HANDLER.load(Ordering::Acquire);
    (handler != 0).then(|| (SIGNAL.load(Ordering::Relaxed), handler))
}
