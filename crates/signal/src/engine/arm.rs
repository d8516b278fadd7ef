//! Arming, disarming and ending the wake-ups of one thread, for any source of signals.
//!
//! All functions work on a locked record. `rearm` runs in the handler, the others on ordinary
//! threads.

use crate::config::EngineKind;
use crate::counters::Cause;
use crate::engine::Engine;
use crate::engine::deferred::Choice;
use crate::engine::perf;
use crate::engine::period::{self, Standing};
use crate::engine::turns;
use crate::engine::unsignalled;
use crate::plan::{Due, Plan};
use crate::record::{Guard, Inner, KERNEL, NO_ENGINE, PERF, TIMER, ThreadRecord};
use crate::slots::Reason;
use crate::sys::{self, Errno};
use core::sync::atomic::Ordering;

/// The sender of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The thread's perf event or timer.
    Clock,
    /// The thread's perf event, which has sent as many signals as it may and is disabled.
    SilencedEvent,
    /// The agent itself, on the thread.
    Agent,
}

/// A thread's state when its signals were stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// The thread's CPU time, in ns, that its samples and its debt cover. None if it was not
    /// sampled, or its clock could not be read any more.
    pub sampled_to_ns: Option<u64>,
    /// The weight that its next sample would have had, in ns.
    pub owed_ns: u64,
}

impl Engine {
    /// In the handler: schedules the thread's next signal at `due`, given `now_ns` of used CPU
    /// time. A free-running perf event overflows without being set again while it is in step.
    #[inline]
    pub(crate) fn go_on(&self, guard: &mut Guard<'_>, now_ns: u64, due: &Due, sender: Sender) {
        let record = guard.record();
        let inner = guard.inner();
        if record.engine.load(Ordering::Relaxed) != PERF || !inner.plan.has_blocks() {
            self.rearm(guard, now_ns, due.wake_up_ns);
            return;
        }
        let may_have_merged = self.merges()
            && match sender {
                Sender::Agent => due.points > 0,
                Sender::Clock | Sender::SilencedEvent => {
                    period::may_have_merged(inner.period_ns, inner.signals_ns, now_ns)
                }
            };
        if sender == Sender::Agent && !may_have_merged {
            return; // the event still leads to the next point
        }
        let silenced = sender == Sender::SilencedEvent || may_have_merged;
        inner.credit = if silenced {
            0
        } else {
            inner.credit.saturating_sub(1)
        };
        let standing = Standing {
            period_ns: inner.period_ns,
            width_ns: inner.plan.width_ns(),
            gap_ns: due.wake_up_ns.saturating_sub(now_ns),
            steady: due.steady,
            on_time: due.on_time,
            silenced,
        };
        let fd = record.perf_fd.load(Ordering::Relaxed);
        if let Err(_error) = self.advance(inner, fd, &standing) {
            self.counters.add(Cause::RearmFailed, 1);
        }
    }

    /// Sets the period and lets the event send more signals, if necessary.
    #[inline]
    fn advance(&self, inner: &mut Inner, fd: i32, standing: &Standing) -> Result<(), Errno> {
        if let Some(period_ns) = period::to_set(standing) {
            inner.period_ns = perf::set_period(fd, period_ns, self.sees_kernel())?;
        }
        let in_step = inner.period_ns == standing.width_ns;
        let grant = period::to_grant(inner.credit, inner.plan.left_in_block(), in_step);
        if grant > 0 {
            perf::refresh(fd, grant)?;
            inner.credit = inner.credit.saturating_add(grant);
        }
        Ok(())
    }

    pub(crate) fn sees_kernel(&self) -> bool {
        self.kind == EngineKind::Perf { kernel: true }
    }

    /// Schedules the thread's next signal at `at_ns` of its CPU time, given `now_ns` of used time.
    #[inline]
    pub(crate) fn rearm(&self, guard: &mut Guard<'_>, now_ns: u64, at_ns: u64) {
        let record = guard.record();
        let result = match record.engine.load(Ordering::Relaxed) {
            PERF => {
                let fd = record.perf_fd.load(Ordering::Relaxed);
                let gap_ns = at_ns.saturating_sub(now_ns);
                let set = perf::set_period(fd, gap_ns, self.sees_kernel());
                if let Ok(period_ns) = set {
                    guard.inner().period_ns = period_ns;
                }
                let refreshed = set.and_then(|_| perf::refresh(fd, 1));
                if refreshed.is_ok() {
                    let inner = guard.inner();
                    inner.credit = inner.credit.saturating_add(1);
                }
                refreshed
            }
            TIMER => sys::timer_set(record.timer_id.load(Ordering::Relaxed), at_ns.max(1)),
            _ => Ok(()),
        };
        if result.is_err() {
            self.counters.add(Cause::RearmFailed, 1);
        }
    }

    /// Unlocks a record on an ordinary thread and makes up for a signal that was missed while the
    /// record was locked.
    ///
    /// The lock has to be taken again for that, and the new signal must not arrive before it is
    /// released, or it would be missed again. A gap that grows with each attempt prevents that.
    pub(crate) fn unlock(&self, guard: Guard<'_>) {
        const GAPS_NS: [u64; 4] = [100_000, 400_000, 1_600_000, 6_400_000];
        let record = guard.record();
        drop(guard);
        for gap_ns in GAPS_NS {
            if !record.missed.swap(false, Ordering::SeqCst) {
                return;
            }
            // A request is answered once.
            let asked = record.missed_reason.swap(0, Ordering::Relaxed);
            if asked != 0 && self.is_running() {
                let _ = self.send(record, Reason::from_bits(asked));
            }
            let Some(mut guard) = record.try_lock() else {
                return;
            };
            if record.armed.load(Ordering::Relaxed) {
                self.rearm_after(&mut guard, gap_ns);
            }
        }
    }

    /// Schedules the next signal after `gap_ns` more of the thread's CPU time.
    pub(crate) fn rearm_after(&self, guard: &mut Guard<'_>, gap_ns: u64) {
        match sys::cpu_ns_of(guard.record().tid()) {
            Ok(now_ns) => self.rearm(guard, now_ns, now_ns.saturating_add(gap_ns)),
            Err(_) => self.counters.add(Cause::RearmFailed, 1),
        }
    }

    /// Begins the thread's plan and arms its first signal, unless that was done before. `first`: no
    /// sample of this recording stands for time of this thread.
    pub(crate) fn arm(&self, record: &'static ThreadRecord, first: bool) -> Result<(), Errno> {
        let mut guard = record.lock().ok_or(Errno(libc::EBUSY))?;
        let first = first && !record.armed.load(Ordering::Relaxed);
        let result = self.arm_locked(&mut guard);
        if first && result.is_ok() {
            // No handler has moved it yet: that takes the lock.
            let origin_ns = record.counted_ns.load(Ordering::Relaxed);
            record.left_out_ns.store(origin_ns, Ordering::Relaxed);
        }
        self.unlock(guard);
        // A thread that has just exited loses nothing.
        if result.is_err() && sys::cpu_ns_of(record.tid()).is_ok() {
            self.counters.add(Cause::ArmFailed, 1);
        }
        result
    }

    fn arm_locked(&self, guard: &mut Guard<'_>) -> Result<(), Errno> {
        self.arm_from(guard, None)
    }

    /// Like `arm`, for a thread whose samples and carried weight cover its CPU time up to this
    /// value.
    pub(super) fn arm_from(
        &self,
        guard: &mut Guard<'_>,
        told_to_ns: Option<u64>,
    ) -> Result<(), Errno> {
        let record = guard.record();
        let running = self.running.load(Ordering::SeqCst);
        if !running || !record.is_live() || record.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let has_none = record.engine.load(Ordering::Relaxed) == NO_ENGINE;
        let choice = match has_none && told_to_ns.is_none() {
            true => self.choose(guard),
            false => Choice::Usual,
        };
        if matches!(choice, Choice::Deferred | Choice::PassedOver) {
            return Ok(());
        }
        let now_ns = sys::cpu_ns_of(record.tid())?;
        if has_none {
            self.open_engine(record, now_ns)?;
        }
        let newborn = record.newborn.swap(false, Ordering::Relaxed);
        let origin_ns = match told_to_ns {
            Some(told_to_ns) => told_to_ns,
            None if newborn => 0,
            None => now_ns,
        };
        self.begin_plan(guard, (origin_ns, 0), now_ns);
        if choice == Choice::Source {
            self.leave_out_cost(guard, now_ns);
        }
        Ok(())
    }

    /// Begins a plan for the source of the thread's signals and schedules the first signal. The
    /// thread's samples cover its time to `origin_ns`. `salt` is a different number for each plan
    /// of a recording.
    pub(super) fn begin_plan(
        &self,
        guard: &mut Guard<'_>,
        (origin_ns, salt): (u64, u64),
        now_ns: u64,
    ) {
        let plan = self.set_plan(guard, (origin_ns, salt));
        self.rearm(guard, now_ns, plan.wake_up_ns(now_ns));
    }

    /// The same without a signal.
    pub(super) fn set_plan(&self, guard: &mut Guard<'_>, (origin_ns, salt): (u64, u64)) -> Plan {
        let record = guard.record();
        let seed = self.seed(record) ^ salt;
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        let plan = match record.engine.load(Ordering::Relaxed) {
            PERF => Plan::in_blocks(seed, interval_ns, origin_ns),
            KERNEL => unsignalled::plan(origin_ns),
            // A CPU timer is set to an absolute time each time, at no cost: it fires with a tick.
            _ => Plan::new(seed, interval_ns, origin_ns),
        };
        guard.inner().plan = plan;
        guard.inner().period_ns = 0;
        guard.inner().credit = 0;
        guard.inner().spared_until_ns = 0;
        guard.inner().signals_ns = (0, 0);
        record.counted_ns.store(origin_ns, Ordering::Relaxed);
        record
            .next_due_ns
            .store(plan.next_point_ns(), Ordering::Relaxed);
        record.armed.store(true, Ordering::Relaxed);
        plan
    }

    /// The seed of the thread's first plan.
    fn seed(&self, record: &ThreadRecord) -> u64 {
        record.seed.load(Ordering::Relaxed) ^ self.starts.load(Ordering::Relaxed)
    }

    /// The CPU time of the first point of a thread that begins, for any source of signals.
    pub(super) fn first_point_ns(&self, record: &ThreadRecord) -> u64 {
        let interval_ns = self.interval_ns.load(Ordering::Relaxed);
        Plan::new(self.seed(record), interval_ns, 0).next_point_ns()
    }

    pub(super) fn open_engine(&self, record: &ThreadRecord, now_ns: u64) -> Result<(), Errno> {
        if self.gives_rings_at_once(record) && self.rings.take(record.index()) {
            match unsignalled::open(self, record, now_ns) {
                Ok(()) => {
                    unsignalled::show(record);
                    return Ok(());
                }
                Err(error) => {
                    self.rings.give_back(record.index());
                    self.rings.refused(error);
                }
            }
        }
        if let EngineKind::Perf { kernel } = self.kind {
            let mut opened = self.open_perf(record, kernel);
            if kernel && matches!(opened, Err(Errno(libc::EACCES | libc::EPERM))) {
                opened = self.open_perf(record, false);
            }
            match opened {
                Ok(()) => return Ok(()),
                Err(Errno(libc::ESRCH)) => return Err(Errno(libc::ESRCH)),
                Err(_) => self.counters.add(Cause::PerfFallback, 1),
            }
        }
        let timer = self.new_timer(record)?;
        record.timer_id.store(timer, Ordering::Relaxed);
        record.engine.store(TIMER, Ordering::Release);
        Ok(())
    }

    pub(super) fn new_timer(&self, record: &ThreadRecord) -> Result<i32, Errno> {
        sys::timer_create(record.tid(), self.signal(), record.cookie().to_bits())
    }

    pub(super) fn delete_timer(record: &ThreadRecord) {
        let timer = record.timer_id.swap(-1, Ordering::Relaxed);
        if timer >= 0 {
            sys::timer_delete(timer);
        }
    }

    pub(super) fn open_perf(&self, record: &ThreadRecord, kernel: bool) -> Result<(), Errno> {
        let fd = perf::open(record.tid(), self.signal(), kernel)?;
        if let Err(error) = self.fds.set(fd, record.index()) {
            sys::close(fd);
            return Err(error);
        }
        record.perf_fd.store(fd, Ordering::Relaxed);
        record.engine.store(PERF, Ordering::Release);
        Ok(())
    }

    /// Stops the thread's signals; their source stays.
    pub(crate) fn disarm(&self, record: &'static ThreadRecord) -> Result<Stop, Errno> {
        let mut guard = record.lock().ok_or(Errno(libc::EBUSY))?;
        let is_armed = record.armed.swap(false, Ordering::Relaxed);
        self.undefer(&guard);
        record.exchange.reset();
        let mut stop = Stop::default();
        if is_armed {
            stop = Self::stop_here(&mut guard);
        }
        match record.engine.load(Ordering::Relaxed) {
            PERF => perf::disarm(record.perf_fd.load(Ordering::Relaxed)),
            // It may have an event again in the next recording.
            TIMER if self.kind != EngineKind::Timer => {
                record.engine.store(NO_ENGINE, Ordering::Relaxed);
                Self::delete_timer(record);
            }
            // Fails only if the timer is deleted, and then it is disarmed.
            TIMER => drop(sys::timer_set(record.timer_id.load(Ordering::Relaxed), 0)),
            KERNEL => {
                let told_to_ns = unsignalled::close(self, &guard);
                let owed_ns = record.carried_ns.load(Ordering::Relaxed);
                // For a thread that has exited, it is reported as time without samples.
                if stop.sampled_to_ns.is_some() {
                    stop.sampled_to_ns = told_to_ns.or(stop.sampled_to_ns);
                    stop.owed_ns = stop.owed_ns.saturating_add(owed_ns);
                }
            }
            _ => {}
        }
        // The same holds for weight that is carried by a thread that could not be armed again.
        if record.is_live() {
            record.carried.store(0, Ordering::Relaxed);
            record.carried_ns.store(0, Ordering::Relaxed);
        }
        self.unlock(guard);
        Ok(stop)
    }

    fn stop_here(guard: &mut Guard<'_>) -> Stop {
        let record = guard.record();
        let Ok(now_ns) = sys::cpu_ns_of(record.tid()) else {
            return Stop::default();
        };
        let weight_ns = guard.inner().plan.owed_ns(now_ns);
        record.carried.store(0, Ordering::Relaxed);
        Stop {
            sampled_to_ns: Some(now_ns),
            owed_ns: weight_ns.saturating_add(record.carried_ns.swap(0, Ordering::Relaxed)),
        }
    }

    /// Releases the thread's source of signals. Signals on their way are ignored as stale.
    pub(crate) fn destroy_locked(&self, guard: &Guard<'_>) {
        let record = guard.record();
        record.armed.store(false, Ordering::Relaxed);
        self.undefer(guard);
        unsignalled::close(self, guard);
        record.engine.store(NO_ENGINE, Ordering::Relaxed);
        turns::detach(self, guard);
        self.close_perf(record);
        Self::delete_timer(record);
    }

    /// Closes the event that signals, whose mappings are gone.
    pub(super) fn close_perf(&self, record: &ThreadRecord) {
        let fd = record.perf_fd.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            self.close_event(fd);
        }
    }

    /// Closes an event that no record has any more.
    pub(super) fn close_event(&self, fd: i32) {
        self.fds.clear(fd); // before the number can have another owner
        sys::close(fd);
    }
}

#[cfg(test)]
#[path = "arm_tests.rs"]
mod tests;
