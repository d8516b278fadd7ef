//! Moves a thread from a perf event to a timer, and back, while it is sampled.
//!
//! The kernel takes a thread's events off the processor and puts them back at each switch between
//! threads, and sets the machine's timer for them: some microseconds in a virtual machine. A timer
//! on the thread's CPU clock costs nothing there, as it is checked only in the kernel's tick
//! (`run_posix_cpu_timers` of kernel/time/posix-cpu-timers.c). But such samples have no kernel
//! frames. Callers decide which threads get a timer. Nothing here runs in a handler.

use crate::config::EngineKind;
use crate::counters::Cause;
use crate::engine::Engine;
use crate::engine::turns;
use crate::record::{Guard, PERF, TIMER, ThreadRecord};
use crate::sys::{self, Errno};
use core::sync::atomic::Ordering;

impl Engine {
    /// Whether a timer signals this thread in place of its perf event. (Not: because it could get
    /// no event.)
    #[must_use]
    pub fn has_timer(&self, record: &ThreadRecord) -> bool {
        record.exchange.is_by_timer.load(Ordering::Relaxed)
    }

    /// Gives the thread a timer instead of its perf event or its ring's event. Its windows
    /// continue: the next sample's time begins where that of the last one ends. Returns whether
    /// the thread has a timer now. It gets none if it had no perf event, is not sampled, or its
    /// record is locked.
    ///
    /// # Errors
    /// The kernel's error, if it refuses a timer: the thread keeps its event, but loses its ring.
    pub fn take_event(&'static self, record: &'static ThreadRecord) -> Result<bool, Errno> {
        let needs_event = record.exchange.needs_event.load(Ordering::Relaxed);
        if needs_event || record.unreachable().is_some() {
            return Ok(false);
        }
        let had_ring = self.leave_ring(record);
        let result = self.exchange(record, PERF, |engine, guard| {
            let timer = engine.new_timer(record)?;
            let exchange = &record.exchange;
            exchange
                .had_ring
                .store(record.has_ring(), Ordering::Relaxed);
            exchange.rests.store(0, Ordering::Relaxed);
            turns::detach(engine, guard);
            engine.close_perf(record);
            record.timer_id.store(timer, Ordering::Relaxed);
            exchange.is_by_timer.store(true, Ordering::Relaxed);
            record.engine.store(TIMER, Ordering::Release);
            Ok(())
        });
        if had_ring && result.is_err() {
            // Otherwise it would get the ring again, and lose it again.
            self.must_signal(record);
        }
        result
    }

    /// Gives the thread a timer for its perf event, like [`Engine::take_event`]. It keeps the
    /// timer even if it is seldom switched: all threads together are switched too often for
    /// events.
    ///
    /// # Errors
    /// As [`Engine::take_event`].
    pub fn hold_timer(&'static self, record: &'static ThreadRecord) -> Result<bool, Errno> {
        let is_taken = self.take_event(record)?;
        record.exchange.is_held.store(is_taken, Ordering::Relaxed);
        Ok(is_taken)
    }

    /// Gives its event back to a thread that had to keep its timer.
    ///
    /// # Errors
    /// As [`Engine::give_event`].
    pub fn release_timer(&'static self, record: &'static ThreadRecord) -> Result<bool, Errno> {
        record.exchange.is_held.store(false, Ordering::Relaxed);
        self.give_event(record)
    }

    /// Whether the thread keeps its timer although it is seldom switched.
    #[must_use]
    pub fn is_held(&self, record: &ThreadRecord) -> bool {
        record.exchange.is_held.load(Ordering::Relaxed)
    }

    /// Gives the thread its perf event back in place of its timer, with a ring if it had one: the
    /// reverse of [`Engine::take_event`].
    ///
    /// # Errors
    /// The kernel's error, if it refuses an event: the thread keeps its timer.
    pub fn give_event(&'static self, record: &'static ThreadRecord) -> Result<bool, Errno> {
        let EngineKind::Perf { kernel } = self.kind else {
            return Ok(false);
        };
        if !self.has_timer(record) {
            return Ok(false);
        }
        self.exchange(record, TIMER, |engine, guard| {
            engine.open_perf(record, kernel)?;
            Self::delete_timer(record);
            record.exchange.is_by_timer.store(false, Ordering::Relaxed);
            if record.exchange.had_ring.swap(false, Ordering::Relaxed) {
                // Refused: its samples have no kernel frames.
                let _ = engine.map_ring(guard);
            }
            Ok(())
        })
    }

    /// Checks a thread with a timer once a second or less often; it has used `used_ns` since the
    /// last check. The thread gets its event back after it has hardly run for several checks in a
    /// row. A single check is not enough: a bursty thread would have the timer between its bursts.
    /// Returns whether the thread has its event now.
    pub(super) fn check_idle_timer(
        &'static self,
        record: &'static ThreadRecord,
        used_ns: u64,
    ) -> bool {
        const REST_NS: u64 = 1_000_000;
        const RESTS: u32 = 8;
        let rests = &record.exchange.rests;
        if !self.has_timer(record) || self.is_held(record) {
            return false;
        }
        if used_ns >= REST_NS {
            rests.store(0, Ordering::Relaxed);
            return false;
        }
        let before = rests.fetch_add(1, Ordering::Relaxed);
        before.saturating_add(1) >= RESTS && self.give_event(record) == Ok(true)
    }

    /// Handles a thread that has used far more CPU time than it should have without a signal. If
    /// the signal was to come from a timer, the thread never runs when the kernel ticks. It then
    /// gets its event back permanently. Returns whether it has the event now.
    pub(super) fn check_silent_timer(&'static self, record: &'static ThreadRecord) -> bool {
        if !self.has_timer(record) || self.give_event(record) != Ok(true) {
            return false;
        }
        record.exchange.needs_event.store(true, Ordering::Relaxed);
        true
    }

    /// Replaces the thread's event and its page by another event without a mapping. To map an event
    /// again, the kernel waits for all processors (`cond_synchronize_rcu` in `ring_buffer_attach`
    /// of kernel/events/core.c) and holds the lock of the process's mappings. On a busy machine
    /// that takes seconds, in which no thread of the process can get memory.
    ///
    /// # Errors
    /// The kernel's error, if it refuses an event: the thread keeps its event and its page.
    pub(super) fn renew_event(&'static self, guard: &mut Guard<'_>) -> Result<(), Errno> {
        let record = guard.record();
        let EngineKind::Perf { kernel } = self.kind else {
            return Ok(());
        };
        if !self.is_exchangeable(record, PERF) {
            return Ok(());
        }
        let old = record.perf_fd.load(Ordering::Relaxed);
        self.open_perf(record, kernel)?;
        turns::detach_page(self, guard);
        self.close_event(old);
        self.go_on_elsewhere(guard);
        Ok(())
    }

    /// Whether the thread's source of signals may be replaced, which must be `from`.
    fn is_exchangeable(&self, record: &ThreadRecord, from: u32) -> bool {
        self.running.load(Ordering::SeqCst)
            && record.is_live()
            && record.armed.load(Ordering::Relaxed)
            && record.engine.load(Ordering::Relaxed) == from
    }

    fn exchange(
        &'static self,
        record: &'static ThreadRecord,
        from: u32,
        change: impl FnOnce(&'static Engine, &Guard<'_>) -> Result<(), Errno>,
    ) -> Result<bool, Errno> {
        let Some(mut guard) = record.try_lock() else {
            return Ok(false);
        };
        let is_meant = self.is_exchangeable(record, from);
        let result = match is_meant {
            true => change(self, &guard).map(|()| self.go_on_elsewhere(&mut guard)),
            false => Ok(()),
        };
        self.unlock(guard);
        result.map(|()| is_meant)
    }

    /// Sets a plan for the thread's new source of signals, from where the last one has left off.
    fn go_on_elsewhere(&self, guard: &mut Guard<'_>) {
        let taken_ns = guard.inner().plan.taken_to_ns();
        match sys::cpu_ns_of(guard.record().tid()) {
            Ok(now_ns) => self.begin_plan(guard, (taken_ns, taken_ns), now_ns),
            // It has just ended. Retiring the thread finds its debt.
            Err(_) => self.counters.add(Cause::RearmFailed, 1),
        }
    }
}
