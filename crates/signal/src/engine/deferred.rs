//! Threads that live briefly get no source of signals before they have outlived most others.
//!
//! To open and close a perf event costs some 20 us, and each switch to its thread some more. A
//! program that starts a thread for each task of 100 us would pay half of its time for that. But a
//! thread's first point is drawn when it begins. If the point lies beyond the CPU time that threads
//! have reached lately, the thread most likely ends before it, and then has no sample, with or
//! without a source. So its source is *deferred*: the drainer opens it if the thread lives on. The
//! points are the same in both cases, so a thread is still seen with the probability that its CPU
//! time deserves, and its end accounts for its CPU time as before. Only a point that a thread
//! passes before the drainer has opened its source is taken late.
//!
//! A thread whose point is near pays for its source, and others do not. Its life is longer for
//! that, and the point more likely within it: such programs had a third too much weight. So the CPU
//! time that opening took is in no window, and is reported as time without samples. The event's
//! later cost is unknown. But all ended threads together are known to have as much weight as CPU
//! time. While they have more, threads are *passed over*: they get no source and no sample even if
//! their point is near. That does not depend on what they do. Nothing here runs in a handler.

use crate::counters::Cause;
use crate::engine::Engine;
use crate::record::{Guard, NOT_DEFERRED, ThreadRecord};
use crate::sys;
use core::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

/// It has begun since the last drain.
const FRESH: u32 = 1;
/// It was there at a drain before.
const SEEN: u32 = 2;

/// Below this number of threads that end in a second, each gets its source at once: that costs
/// little then, and no thread is sampled late.
const ENDED_MIN: u32 = 64;
/// One in so many parts of the difference to a shorter life is forgotten with each thread that
/// ends.
const FADING: u64 = 64;
/// Threads are passed over while weights are ahead of CPU times by more than this many intervals.
const AHEAD_MAX: u64 = 2;

/// The treatment of a thread that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A source, as any other thread: no sources are deferred.
    Usual,
    /// A source, since its point is near.
    Source,
    /// A source if it lives on, since its point is far.
    Deferred,
    /// A source if it lives on, although its point is near.
    PassedOver,
}

/// The CPU time that threads have used which ended lately.
#[derive(Debug)]
pub(crate) struct Lifetimes {
    /// Twice the longest time, which fades. `u64::MAX`: too few threads end.
    reach_ns: AtomicU64,
    /// Threads that have ended since the last check.
    ended: AtomicU32,
    /// By how much the weights of ended threads are ahead of their CPU times.
    ahead_ns: AtomicI64,
}

impl Lifetimes {
    pub const fn new() -> Lifetimes {
        Lifetimes {
            reach_ns: AtomicU64::new(u64::MAX),
            ended: AtomicU32::new(0),
            ahead_ns: AtomicI64::new(0),
        }
    }

    /// The CPU time that a thread reaches only rarely; `None` if a point can lie at `interval_ns`
    /// or less, and all threads may reach it.
    pub fn reach_ns(&self, interval_ns: u64) -> Option<u64> {
        let reach_ns = self.reach_ns.load(Ordering::Relaxed);
        (reach_ns < interval_ns).then_some(reach_ns)
    }

    /// A thread has ended after `cpu_ns`. One that lived long counts at once, and is forgotten
    /// slowly: its like may be rare, but they are not to be sampled late.
    pub fn ended(&self, cpu_ns: u64, interval_ns: u64) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let twice_ns = cpu_ns.saturating_mul(2).min(interval_ns);
        // If two threads end at once, one of the values is lost: there are more to come.
        let reach_ns = self.reach_ns.load(Ordering::Relaxed).min(interval_ns);
        let longer_ns = reach_ns.saturating_sub(twice_ns);
        let faded_ns = reach_ns.saturating_sub(longer_ns / FADING);
        let reach_ns = faded_ns.max(twice_ns);
        self.reach_ns.store(reach_ns, Ordering::Relaxed);
    }

    /// The treatment of a thread whose first point is at `point_ns`.
    pub fn choose(&self, point_ns: u64, interval_ns: u64) -> Choice {
        let Some(reach_ns) = self.reach_ns(interval_ns) else {
            return Choice::Usual;
        };
        let ahead_ns = self.ahead_ns.load(Ordering::Relaxed);
        let limit_ns = interval_ns.saturating_mul(AHEAD_MAX).cast_signed();
        match point_ns <= reach_ns {
            false => Choice::Deferred,
            true if ahead_ns > limit_ns => Choice::PassedOver,
            true => Choice::Source,
        }
    }

    /// A thread for which there was a choice has ended with samples of this weight.
    pub fn settle(&self, weight_ns: u64, cpu_ns: u64) {
        let more_ns = weight_ns.cast_signed().saturating_sub(cpu_ns.cast_signed());
        self.ahead_ns.fetch_add(more_ns, Ordering::Relaxed);
    }

    /// Once a second: forgets all if few threads have ended since the last call.
    pub fn check(&self) {
        if self.ended.swap(0, Ordering::Relaxed) < ENDED_MIN {
            self.forget();
        }
    }

    pub fn forget(&self) {
        self.reach_ns.store(u64::MAX, Ordering::Relaxed);
        self.ahead_ns.store(0, Ordering::Relaxed);
    }
}

impl Engine {
    /// A thread has ended after `cpu_ns` of CPU time.
    pub fn note_lifetime(&self, cpu_ns: u64) {
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        self.lifetimes.ended(cpu_ns, interval_ns);
    }

    /// The calling thread, whose record this is, ends. Its last sample has been taken.
    pub fn note_end(&self, record: &ThreadRecord, cpu_ns: u64) {
        self.note_lifetime(cpu_ns);
        if record.had_choice.load(Ordering::Relaxed) {
            let weight_ns = record.weight_ns();
            let weight_ns = weight_ns.saturating_add(record.carried_ns.load(Ordering::Relaxed));
            let covered_ns = cpu_ns.saturating_sub(record.left_out_ns());
            self.lifetimes.settle(weight_ns, covered_ns);
        }
    }

    /// Checks once a second whether so many threads end that sources are to be deferred.
    pub fn check_lifetimes(&self) {
        self.lifetimes.check();
    }

    /// Whether the sources of some threads are deferred: [`Engine::open_deferred`] is to be called
    /// every 20 ms.
    #[must_use]
    pub fn defers(&self) -> bool {
        self.reach_ns().is_some() || self.deferred.load(Ordering::Relaxed) > 0
    }

    fn reach_ns(&self) -> Option<u64> {
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        self.lifetimes.reach_ns(interval_ns)
    }

    /// Defers the source of a thread that is just beginning, the calling one, if it has a choice.
    pub(super) fn choose(&self, guard: &mut Guard<'_>) -> Choice {
        let record = guard.record();
        // A thread that was found later has shown that it lives on.
        let begins = record.newborn.load(Ordering::Relaxed)
            && self.reach_ns().is_some()
            && record.tid() == sys::gettid();
        if !begins {
            return Choice::Usual;
        }
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        let point_ns = self.first_point_ns(record);
        let choice = self.lifetimes.choose(point_ns, interval_ns);
        let had_choice = choice != Choice::Usual;
        record.had_choice.store(had_choice, Ordering::Relaxed);
        if matches!(choice, Choice::Deferred | Choice::PassedOver) {
            record.newborn.store(false, Ordering::Relaxed);
            record.deferred.store(FRESH, Ordering::Relaxed);
            self.deferred.fetch_add(1, Ordering::Relaxed);
            self.set_plan(guard, (0, 0));
        }
        if choice == Choice::PassedOver {
            // It has no point until its source is opened.
            guard.inner().plan.leave_out(u64::MAX / 2);
            record.next_due_ns.store(u64::MAX, Ordering::Relaxed);
        }
        choice
    }

    /// The calling thread had used `before_ns` before its source was opened and its first signal
    /// was set. An event counts from then on, so it overflows as much later as the axis moves.
    pub(super) fn leave_out_cost(&self, guard: &mut Guard<'_>, before_ns: u64) {
        let record = guard.record();
        let cost_ns = sys::own_cpu_ns().saturating_sub(before_ns);
        let plan = &mut guard.inner().plan;
        plan.leave_out(cost_ns);
        let point_ns = plan.next_point_ns();
        record.next_due_ns.store(point_ns, Ordering::Relaxed);
        record.counted_ns.store(cost_ns, Ordering::Relaxed);
        record.left_out_ns.store(cost_ns, Ordering::Relaxed);
    }

    /// Ends a deferral.
    pub(super) fn undefer(&self, guard: &Guard<'_>) {
        let deferred = &guard.record().deferred;
        if deferred.swap(NOT_DEFERRED, Ordering::Relaxed) != NOT_DEFERRED {
            self.deferred.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Opens the deferred sources of threads that have lived for more than one call, or have used
    /// more CPU time than others do.
    pub fn open_deferred(&'static self) {
        if self.deferred.load(Ordering::Relaxed) == 0 {
            return;
        }
        for record in self.live_records().filter(|record| record.is_deferred()) {
            // A record that is locked is left to the next call.
            if let Some(mut guard) = record.try_lock() {
                self.consider_opening(&mut guard);
                self.unlock(guard);
            }
        }
    }

    fn consider_opening(&self, guard: &mut Guard<'_>) {
        let record = guard.record();
        let deferred = record.deferred.load(Ordering::Relaxed);
        // It may have ended in between.
        if deferred == NOT_DEFERRED || !self.is_running() || !record.is_live() {
            return;
        }
        let Ok(now_ns) = sys::cpu_ns_of(record.tid()) else {
            return;
        };
        let is_beyond = self.reach_ns().is_none_or(|reach_ns| now_ns >= reach_ns);
        if deferred == FRESH && !is_beyond {
            record.deferred.store(SEEN, Ordering::Relaxed);
            return;
        }
        self.undefer(guard);
        // That of a thread that was passed over is far in the future.
        let taken_ns = guard.inner().plan.taken_to_ns().min(now_ns);
        match self.open_engine(record, now_ns) {
            // The same first point, unless it was taken.
            Ok(()) => self.begin_plan(guard, (taken_ns, taken_ns), now_ns),
            Err(_) => {
                // `tend` tries again.
                record.armed.store(false, Ordering::Relaxed);
                record.newborn.store(taken_ns == 0, Ordering::Relaxed);
                self.counters.add(Cause::ArmFailed, 1);
            }
        }
    }
}

#[cfg(test)]
#[path = "deferred_tests.rs"]
mod tests;
