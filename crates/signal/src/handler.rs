//! The sampling signal's handler, step by step. Everything it reaches must be safe in a signal.
//!
//! Find the thread's record. Read the thread's CPU clock. Ask the plan how many points are due. If
//! any are, take a slot, copy, publish. Arm the next signal. A signal that is not for us goes to
//! the handler that was installed before.

use crate::arch;
use crate::capture;
use crate::counters::Cause;
use crate::engine::{Engine, Sender};
use crate::plan::{Due, EARLY_PART};
use crate::record::{Cookie, Guard, LIVE, ThreadRecord};
use crate::slots::{Allocation, Reason, Wait};
use crate::sys::{self, SignalInfo};
use core::sync::atomic::Ordering;

/// `si_code` of a signal that a file descriptor's readiness caused: `POLL_IN` to `POLL_HUP`.
const POLL_CODES: core::ops::RangeInclusive<i32> = 1..=6;
/// The code of a perf event that has sent as many signals as it may, and is disabled.
const POLL_HUP: i32 = 6;
/// `si_code` of a POSIX timer's signal.
const SI_TIMER: i32 = -2;

/// The handler of the sampling signal.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_sample_handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let Some(engine) = Engine::get() else { return };
    let begin_ns = sys::monotonic_ns();
    engine.in_flight.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the kernel passes SA_SIGINFO handlers a valid siginfo_t, whose layout is SignalInfo.
    let sent = unsafe { *info.cast::<SignalInfo>() };
    let mut waited_ns = 0;
    match find(engine, &sent) {
        Found::Record(record, reason) => {
            // SAFETY: ... and a valid ucontext_t, which no other code changes during the call.
            let frame = unsafe { &*context.cast::<libc::ucontext_t>() };
            let signal = Signal {
                reason,
                sender: match sent.code {
                    libc::SI_QUEUE => Sender::Agent,
                    POLL_HUP => Sender::SilencedEvent,
                    _ => Sender::Clock,
                },
                begin_ns,
            };
            waited_ns = on_signal(engine, record, &signal, frame);
        }
        Found::Stale => engine.counters.add(Cause::Stale, 1),
        Found::Unknown => engine.counters.add(Cause::QueueFull, 1),
        Found::Foreign => {
            engine.counters.add(Cause::Foreign, 1);
            // The default action would end the process. The sender cannot have meant that: the
            // signal has a handler.
            let _ = engine.previous.call(signal, info, context);
        }
    }
    let took_ns = sys::monotonic_ns().saturating_sub(begin_ns);
    engine.counters.handler_took(took_ns, waited_ns);
    engine.in_flight.fetch_sub(1, Ordering::SeqCst);
}

/// The handler of SIGIO, installed if there was none: the queue of signals is full. The thread
/// gets no signals until `Engine::tend` arms it again.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_queue_full_handler(
    _signal: i32,
    _info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    if let Some(engine) = Engine::get() {
        engine.counters.add(Cause::QueueFull, 1);
    }
}

enum Found {
    Record(&'static ThreadRecord, Reason),
    Stale,
    /// The queue of signals is full: this one has no sender.
    Unknown,
    Foreign,
}

#[inline]
fn find(engine: &'static Engine, sent: &SignalInfo) -> Found {
    let (index, cookie) = match sent.code {
        SI_TIMER | libc::SI_QUEUE => match Cookie::from_bits(sent.second) {
            Some(cookie) => (cookie.index, Some(cookie)),
            None => return Found::Foreign,
        },
        code if POLL_CODES.contains(&code) => match engine.fds.get(sent.second as i32) {
            Some(index) => (index, None),
            None => return Found::Foreign,
        },
        libc::SI_USER if engine.merges() && sent.first == 0 => return Found::Unknown,
        _ => return Found::Foreign,
    };
    let Some(record) = engine.slab.get(index) else {
        return Found::Stale;
    };
    let meant = cookie.is_none_or(|cookie| cookie.is_generation(record.generation()));
    let live = record.state.load(Ordering::Acquire) == LIVE;
    if !meant || !live || !is_here(engine, record) {
        return Found::Stale;
    }
    Found::Record(
        record,
        Reason::from_bits(cookie.map_or(0, |cookie| cookie.reason)),
    )
}

/// Whether the record is that of the running thread. Live threads have different bases of their
/// thread-local storage, so the kernel has to be asked only once. (It is a register here: the
/// thread may block the signals of faults.)
#[inline]
fn is_here(engine: &Engine, record: &ThreadRecord) -> bool {
    let base = if engine.reads_tls_base {
        // SAFETY: just checked.
        unsafe { arch::tls_base() }
    } else {
        0
    };
    if base != 0 && record.tls_base.load(Ordering::Relaxed) == base {
        return true;
    }
    let is_here = record.tid() == sys::gettid();
    if is_here {
        record.tls_base.store(base, Ordering::Relaxed);
    }
    is_here
}

/// A signal that is ours.
struct Signal {
    reason: Reason,
    sender: Sender,
    begin_ns: u64,
}

/// Returns how long the thread waited to be walked, in ns.
#[inline]
fn on_signal(
    engine: &'static Engine,
    record: &'static ThreadRecord,
    signal: &Signal,
    frame: &libc::ucontext_t,
) -> u64 {
    let &Signal {
        reason,
        sender,
        begin_ns,
    } = signal;
    record.signals.fetch_add(1, Ordering::Relaxed);
    let Some(mut guard) = lock_or_miss(record, reason) else {
        engine.counters.add(Cause::Nested, 1);
        return 0;
    };
    let Some(reason) = asked_now(engine, record, reason, sender) else {
        engine.counters.add(Cause::Early, 1);
        return 0;
    };
    let running = engine.running.load(Ordering::SeqCst) && !engine.words.is_ending(&engine.live);
    if !running || !record.is_live() || !record.armed.load(Ordering::Relaxed) {
        engine.counters.add(Cause::Stopped, 1);
        return 0;
    }
    let cpu_ns = sys::own_cpu_ns();
    let signals_ns = &mut guard.inner().signals_ns;
    *signals_ns = (cpu_ns, signals_ns.0);
    if is_spared(&mut guard, cpu_ns, sender) {
        engine.counters.add(Cause::Early, 1);
        let due = Due {
            wake_up_ns: guard.inner().spared_until_ns,
            ..Due::default()
        };
        engine.go_on(&mut guard, cpu_ns, &due, sender);
        return 0;
    }
    let inner = guard.inner();
    let in_step = sender != Sender::Agent && inner.period_ns == inner.plan.width_ns();
    let plan = &mut inner.plan;
    let mut due = plan.due(cpu_ns, in_step);
    record
        .next_due_ns
        .store(plan.next_point_ns(), Ordering::Relaxed);
    record.counted_ns.store(cpu_ns, Ordering::Relaxed);
    let owes = reason != Reason::CpuTime && record.carried.load(Ordering::Relaxed) > 0;
    let asked = matches!(reason, Reason::Stop | Reason::Owner);
    let mut waited_ns = 0;
    if due.points > 0 || owes || asked {
        let moment = capture::Moment {
            begin_ns,
            cpu_ns,
            points: due.points,
            weight_ns: due.weight_ns,
            reason,
            allocation: Allocation::default(),
            wait: Wait::default(),
        };
        waited_ns = sample(engine, &mut guard, &moment, frame);
    } else {
        engine.counters.add(Cause::Early, 1);
    }
    let took_ns = sys::monotonic_ns()
        .saturating_sub(begin_ns)
        .saturating_sub(waited_ns);
    let now_ns = spare(&mut guard, took_ns, cpu_ns, &mut due);
    engine.go_on(&mut guard, now_ns, &due, sender);
    waited_ns
}

/// Whether the thread still makes progress of its own. A free-running perf event also overflows
/// during a long handler. Its signal has waited for the handler's end, and must cost nothing.
#[inline]
fn is_spared(guard: &mut Guard<'_>, cpu_ns: u64, sender: Sender) -> bool {
    /// The difference between the timer and the thread's clock is smaller.
    const SLACK_NS: u64 = 5_000;
    let inner = guard.inner();
    sender != Sender::Agent
        && inner.plan.has_blocks()
        && cpu_ns.saturating_add(SLACK_NS) < inner.spared_until_ns
}

/// The thread's CPU time now, or nearly so. After a long handler, the thread gets as much time for
/// itself before the next one. Otherwise a thread with a deep stack and a short interval would
/// only handle signals. Its points are not lost, but taken together.
#[inline]
fn spare(guard: &mut Guard<'_>, took_ns: u64, cpu_ns: u64, due: &mut Due) -> u64 {
    /// Shorter handlers take only a small part of the shortest interval.
    const LONG_NS: u64 = 10_000;
    /// If the next point is this many times as far away, the thread has that time. The CPU time of
    /// the handler need not be read then: it does not exceed the elapsed time.
    const FAR: u64 = EARLY_PART;
    if took_ns < LONG_NS {
        return cpu_ns;
    }
    let gap_ns = due.wake_up_ns.saturating_sub(cpu_ns);
    if took_ns <= gap_ns / FAR {
        return cpu_ns.saturating_add(took_ns);
    }
    let now_ns = sys::own_cpu_ns();
    let used_ns = now_ns.saturating_sub(cpu_ns);
    let least_ns = now_ns.saturating_add(used_ns);
    guard.inner().spared_until_ns = least_ns;
    if due.wake_up_ns < least_ns {
        due.wake_up_ns = least_ns;
        due.steady = false;
    }
    now_ns
}

/// The reason of this signal, where another one may have merged with it; `None` if that other one
/// has been the answer to it already.
#[inline]
fn asked_now(
    engine: &Engine,
    record: &ThreadRecord,
    reason: Reason,
    sender: Sender,
) -> Option<Reason> {
    if !engine.merges() {
        return Some(reason);
    }
    match record.asked.swap(0, Ordering::SeqCst) {
        0 => (sender != Sender::Agent).then_some(reason),
        asked => Some(Reason::from_bits(asked)),
    }
}

/// Locks the record. If it is locked already, leaves a note that a signal was missed, and its
/// request.
#[inline]
fn lock_or_miss(record: &ThreadRecord, reason: Reason) -> Option<Guard<'_>> {
    if let Some(guard) = record.try_lock() {
        return Some(guard);
    }
    if matches!(reason, Reason::Stop | Reason::Owner) {
        record.missed_reason.store(reason as u32, Ordering::Relaxed);
        record.asked.store(0, Ordering::SeqCst);
    }
    record.missed.store(true, Ordering::SeqCst);
    record.try_lock()
}

/// Takes a sample, or carries the weight over to the thread's next one. Returns how long the
/// thread waited for that, in ns.
#[inline]
fn sample(
    engine: &'static Engine,
    guard: &mut Guard<'_>,
    moment: &capture::Moment,
    frame: &libc::ucontext_t,
) -> u64 {
    let record = guard.record();
    let interval_ns = guard.inner().plan.interval_ns();
    let carried = record.carried.load(Ordering::Relaxed);
    let total = carried.wrapping_add(u64::from(moment.points));
    let carried_ns = record.carried_ns.load(Ordering::Relaxed);
    let total_ns = carried_ns.saturating_add(moment.weight_ns);
    let published = capture::publish(engine, record, interval_ns, moment, frame);
    if published.ok {
        record.carried.store(0, Ordering::Relaxed);
        record.carried_ns.store(0, Ordering::Relaxed);
        record.samples.fetch_add(1, Ordering::Relaxed);
        record.points.fetch_add(total, Ordering::Relaxed);
        record.weight_ns.fetch_add(total_ns, Ordering::Relaxed);
        engine.counters.add(Cause::Sample, 1);
        engine.counters.add(Cause::Points, total);
    } else {
        record.carried.store(total, Ordering::Relaxed);
        record.carried_ns.store(total_ns, Ordering::Relaxed);
        record.no_slot.fetch_add(1, Ordering::Relaxed);
        engine.counters.add(Cause::NoSlot, 1);
    }
    published.waited_ns
}
