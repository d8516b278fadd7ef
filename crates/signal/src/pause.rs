//! The sampled thread waits in its handler while another thread walks it.
//!
//! A handler offers its slot, wakes the walking thread if that sleeps, and waits for the slot to be
//! done. It never waits for long: if the walking thread is late, has ended or was never there, the
//! handler leaves the slot behind and takes a snapshot instead. The walking thread takes all
//! offered slots at once and works through them in the order in which they were offered, so that
//! one wake-up serves many threads when processors are scarce.
//!
//! While a thread waits it may hold any lock of the process, `malloc`'s for one. So what the
//! walking thread does is bound by the rules for handlers, and `xtask handler-graph` checks it.
//!
//! A slot's `handoff` says who has it: `OFFERED` -> `TAKEN` -> `DONE`, or `LEFT` from either of the
//! first two when the handler gave up: then it is the walking thread's.

use crate::engine::Engine;
use crate::slots::{OwnedSlot, WalkTarget};
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

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

/// What handlers and the walking thread tell each other.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Counts offers; the walking thread sleeps on it.
    offers: AtomicU32,
    asleep: AtomicBool,
    /// Whether there is a walking thread.
    pub(crate) served: AtomicBool,
    /// Which thread it is: it cannot walk itself.
    pub(crate) server: AtomicI32,
    ended: AtomicBool,
}

impl Pause {
    pub(crate) const fn new() -> Self {
        Self {
            offers: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            served: AtomicBool::new(false),
            server: AtomicI32::new(0),
            ended: AtomicBool::new(false),
        }
    }
}

/// What came of an offer.
pub(crate) enum Offer {
    /// The slot has been walked.
    Walked(OwnedSlot),
    /// It has not, and belongs to the walking thread now, which frees it.
    Left,
}

/// Offers `slot` to the walking thread and waits. Also says for how long, in ns.
#[inline]
pub(crate) fn offer(engine: &Engine, mut slot: OwnedSlot) -> (Offer, u64) {
    let begin_ns = sys::monotonic_ns();
    let pause = &engine.pause;
    slot.header().handoff.store(OFFERED, Ordering::Relaxed);
    let handoff = slot.handoff();
    if !engine.pool.offer(&slot) {
        return (Offer::Walked(slot), 0); // as it is: without a walk, which fails by name
    }
    pause.offers.fetch_add(1, Ordering::SeqCst);
    if pause.asleep.swap(false, Ordering::SeqCst) {
        sys::futex_wake(&pause.offers);
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

/// True once the slot is done; false if it was left.
#[inline]
fn wait(handoff: &AtomicU32, begin_ns: u64) -> bool {
    // Signals may end a sleep early, so turns are not bounded by their number.
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

/// Says when its scope ends that nobody walks any more.
struct Serving<'a>(&'a Pause);

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.served.store(false, Ordering::SeqCst);
        self.0.server.store(0, Ordering::SeqCst);
    }
}

impl Engine {
    /// Whether a walking thread is at work, so that threads may wait for it.
    #[inline]
    #[must_use]
    pub fn is_served(&self) -> bool {
        self.pause.served.load(Ordering::SeqCst)
    }

    /// The walking thread, or 0.
    #[must_use]
    pub fn server(&self) -> i32 {
        self.pause.server.load(Ordering::Relaxed)
    }

    /// Walks the threads that wait in their handlers, until [`Engine::end_serving`]. To be called
    /// by one thread at a time, from a function that `handler-graph` knows as a root.
    #[inline]
    pub fn serve(&self, mut walk: impl FnMut(&mut WalkTarget<'_>)) {
        let pause = &self.pause;
        pause.server.store(sys::gettid(), Ordering::SeqCst);
        pause.served.store(true, Ordering::SeqCst);
        let _serving = Serving(pause);
        while !pause.ended.load(Ordering::SeqCst) {
            let offers = pause.offers.load(Ordering::SeqCst);
            if self.serve_offered(&mut walk) > 0 {
                continue;
            }
            pause.asleep.store(true, Ordering::SeqCst);
            // An offer after the look above has changed the word, so this does not sleep then.
            sys::futex_wait(&pause.offers, offers, SLEEP_MAX_NS);
            pause.asleep.store(false, Ordering::SeqCst);
        }
    }

    /// Lets [`Engine::serve`] be called, or end.
    pub fn end_serving(&self, ended: bool) {
        self.pause.ended.store(ended, Ordering::SeqCst);
        if ended {
            self.pause.served.store(false, Ordering::SeqCst);
            sys::futex_wake(&self.pause.offers);
        }
    }

    #[inline]
    fn serve_offered(&self, walk: &mut impl FnMut(&mut WalkTarget<'_>)) -> usize {
        let frames_max = self.frames_max.load(Ordering::Relaxed) as usize;
        self.pool.take_offered(|mut slot| {
            let handoff = slot.handoff();
            let taken =
                handoff.compare_exchange(OFFERED, TAKEN, Ordering::AcqRel, Ordering::Acquire);
            if taken.is_err() {
                self.pool.release(slot);
                return;
            }
            walk(&mut WalkTarget::new(&mut slot, self.live, frames_max));
            let done = handoff.compare_exchange(TAKEN, DONE, Ordering::AcqRel, Ordering::Acquire);
            if done.is_err() {
                self.pool.release(slot);
                return;
            }
            // From here on the slot is its thread's again; the word itself stays mapped.
            sys::futex_wake(handoff);
        })
    }
}
