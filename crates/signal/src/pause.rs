//! The sampled thread waits in its handler while another thread walks it.
//!
//! A handler offers its slot, wakes the walking thread if that sleeps, and waits for the slot to
//! be done. It never waits for long. If the walking thread is late, has ended or never existed,
//! the handler leaves the slot behind and takes a snapshot instead. The walking thread takes all
//! offered slots at once and works through them in the order of offering. So one wake-up serves
//! many threads when processors are scarce.
//!
//! While a thread waits it may hold any lock of the process, `malloc`'s for one. So the walking
//! thread follows the rules for handlers, and `xtask handler-graph` checks it.
//!
//! A slot's `handoff` shows its holder: `OFFERED` -> `TAKEN` -> `DONE`, or `LEFT` from either of
//! the first two when the handler gave up. A slot that is `LEFT` belongs to the walking thread.
//!
//! This module is only the hand-over. It knows slots and their pool, but not sampling or how
//! stacks are walked.

use crate::slots::{OwnedSlot, SlotPool};
use crate::sync::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use crate::sys;

const OFFERED: u32 = 1;
const TAKEN: u32 = 2;
const DONE: u32 = 3;
const LEFT: u32 = 4;

/// A handler waits this long for the walk to begin ...
const BEGIN_MAX_NS: u64 = 50_000_000;
/// ... and, if it has begun, this long for its end.
const END_MAX_NS: u64 = 500_000_000;
/// The walking thread sleeps at most this long, so that it notices the end of the recording.
const SLEEP_MAX_NS: u64 = 50_000_000;

/// State shared by handlers and the walking thread.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Counts offers; the walking thread sleeps on it.
    offers: AtomicU32,
    asleep: AtomicBool,
    /// Whether there is a walking thread.
    served: AtomicBool,
    /// Which thread it is: it cannot walk itself.
    server: AtomicI32,
    ended: AtomicBool,
}

impl Pause {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            offers: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            served: AtomicBool::new(false),
            server: AtomicI32::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// Whether a walking thread is at work.
    #[inline]
    pub(crate) fn is_served(&self) -> bool {
        self.served.load(Ordering::SeqCst)
    }

    /// The walking thread, or 0.
    #[inline]
    pub(crate) fn server(&self) -> i32 {
        self.server.load(Ordering::Relaxed)
    }

    /// Offers `slot` to the walking thread and waits. Also returns the time waited, in ns.
    #[inline]
    pub(crate) fn offer(&self, pool: &SlotPool, mut slot: OwnedSlot) -> (Offer, u64) {
        let begin_ns = sys::monotonic_ns();
        slot.header().handoff.store(OFFERED, Ordering::Relaxed);
        let handoff = slot.handoff();
        if !pool.offer(&slot) {
            return (Offer::Walked(slot), 0); // published without a walk: a named failure
        }
        self.offers.fetch_add(1, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            sys::futex_wake(&self.offers);
        }
        let outcome = wait(handoff, begin_ns);
        let waited_ns = sys::monotonic_ns().wrapping_sub(begin_ns);
        let offer = if outcome {
            Offer::Walked(slot)
        } else {
            Offer::Left
        };
        (offer, waited_ns)
    }

    /// Has `walk` walk the threads whose slots are offered in `pool`, until [`Pause::end`].
    #[inline]
    pub(crate) fn serve(&self, pool: &SlotPool, mut walk: impl FnMut(&mut OwnedSlot)) {
        self.server.store(sys::gettid(), Ordering::SeqCst);
        self.served.store(true, Ordering::SeqCst);
        let _serving = Serving(self);
        while !self.ended.load(Ordering::SeqCst) {
            let offers = self.offers.load(Ordering::SeqCst);
            if serve_offered(pool, &mut walk) > 0 {
                continue;
            }
            self.asleep.store(true, Ordering::SeqCst);
            // An offer after the check above has changed the word, so this does not sleep then.
            sys::futex_wait(&self.offers, offers, SLEEP_MAX_NS);
            self.asleep.store(false, Ordering::SeqCst);
        }
    }

    /// Lets [`Pause::serve`] be called, or end.
    #[inline]
    pub(crate) fn end(&self, ended: bool) {
        self.ended.store(ended, Ordering::SeqCst);
        if ended {
            self.served.store(false, Ordering::SeqCst);
            sys::futex_wake(&self.offers);
        }
    }
}

/// The outcome of an offer.
pub(crate) enum Offer {
    /// The slot has been walked.
    Walked(OwnedSlot),
    /// It has not, and the slot belongs to the walking thread now, which frees it.
    Left,
}

/// True once the slot is done; false if it was left.
#[inline]
fn wait(handoff: &AtomicU32, begin_ns: u64) -> bool {
    // Signals may end a sleep early, so the number of turns is not limited.
    loop {
        let state = handoff.load(Ordering::Acquire);
        if state == DONE {
            return true;
        }
        let max_ns = if state == OFFERED {
            BEGIN_MAX_NS
        } else {
            END_MAX_NS
        };
        let waited_ns = sys::monotonic_ns().wrapping_sub(begin_ns);
        if waited_ns < max_ns {
            sys::futex_wait(handoff, state, max_ns.wrapping_sub(waited_ns));
            continue;
        }
        let left = handoff.compare_exchange(state, LEFT, Ordering::AcqRel, Ordering::Acquire);
        if left.is_ok() {
            return false;
        }
    }
}

/// Marks at the end of its scope that there is no walking thread any more.
struct Serving<'a>(&'a Pause);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.served.store(false, Ordering::SeqCst);
        self.0.server.store(0, Ordering::SeqCst);
    }
}

#[inline]
fn serve_offered(pool: &SlotPool, walk: &mut impl FnMut(&mut OwnedSlot)) -> usize {
    pool.take_offered(|mut slot| {
        let handoff = slot.handoff();
        let taken = handoff.compare_exchange(OFFERED, TAKEN, Ordering::AcqRel, Ordering::Acquire);
        if taken.is_err() {
            pool.release(slot);
            return;
        }
        walk(&mut slot);
        let done = handoff.compare_exchange(TAKEN, DONE, Ordering::AcqRel, Ordering::Acquire);
        if done.is_err() {
            pool.release(slot);
            return;
        }
        // From here on the slot is its thread's again; the word itself stays mapped.
        sys::futex_wake(handoff);
    })
}
