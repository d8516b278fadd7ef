//! The engine: one per process, made once, never freed. Its handlers stay installed for ever.
//! Otherwise a signal that is still on its way could meet the default action.
//!
//! Order of calls for an agent: [`init`](crate::init), [`Engine::register`] for each thread,
//! `start`; then periodically `drain`, `reap`, `tend`; `sample_here` and `end` when a thread ends;
//! `stop`. Knows no handler: these are installed where the engine is made.

mod arm;
pub(crate) mod deferred;
mod exchange;
mod moved;
mod perf;
mod period;
pub(crate) mod ring;
mod rings;
mod turns;
mod unreachable;
mod unsignalled;
mod walk_on_request;

pub(crate) use arm::Sender;
pub use arm::Stop;
pub use perf::{PerfLevel, perf_hangs, perf_permitted};
pub use turns::Turns;
pub use unreachable::Unreachable;

use crate::arch;
use crate::config::{self, Config, EngineKind, Words};
use crate::counters::{Cause, CounterSnapshot, Counters};
use crate::fault::Previous;
use crate::hook::{Extra, WalkHook};
use crate::load::Live;
use crate::pause::Pause;
use crate::record::{ENDED, FdTable, LIVE, NO_TURNS, Registration, Slab, ThreadRecord};
use crate::room;
use crate::slots::{Reason, Slot, SlotPool};
use crate::sys::{self, Errno};
use crate::vantage::Vantage;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use deferred::Lifetimes;
use rings::Rings;

/// The sampling engine.
#[derive(Debug)]
pub struct Engine {
    signal: AtomicI32,
    /// The former signal, or 0.
    moved_from: AtomicI32,
    /// Whether the present signal has another handler.
    is_replaced: AtomicBool,
    pub(crate) keeps_signal: bool,
    pub(crate) on_alternate_stack: bool,
    pub(crate) blocked: u64,
    pub(crate) kind: EngineKind,
    pub(crate) live: Live,
    /// The process's first thread. Not read in handlers: that is a system call.
    pub(crate) main_tid: i32,
    /// Bytes of a page of this machine.
    pub(crate) page_bytes: usize,
    /// Whether handlers can identify threads without asking the kernel.
    pub(crate) reads_tls_base: bool,
    /// Room that a handler needs on an alternate stack, in bytes.
    pub(crate) room_bytes: u64,
    pub(crate) previous: Previous,
    pub(crate) pool: SlotPool,
    pub(crate) slab: Slab,
    pub(crate) fds: FdTable,
    pub(crate) counters: Counters,
    pub(crate) words: Words,
    pub(crate) extra: AtomicPtr<()>,
    pub(crate) context: AtomicPtr<()>,
    pub(crate) walk: AtomicPtr<()>,
    pub(crate) claim: AtomicPtr<()>,
    pub(crate) vantage: AtomicU32,
    rings: Rings,
    /// Control pages that are mapped without a ring.
    pages: AtomicU32,
    pub(crate) behind: AtomicBool,
    /// Room for frames that a walk may use in a slot.
    pub(crate) frames_max: AtomicU32,
    pub(crate) pause: Pause,
    pub(crate) running: AtomicBool,
    pub(crate) interval_ns: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    lifetimes: Lifetimes,
    /// Threads whose sources of signals are deferred.
    deferred: AtomicU32,
    /// Recordings begun so far: each samples other points.
    pub(crate) starts: AtomicU64,
    /// Drains begun so far.
    epoch: AtomicU64,
    ended: AtomicU64,
}

/// The handlers' pointer to the engine; null until [`init`](crate::init) has succeeded.
pub(crate) static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(core::ptr::null_mut());

impl Engine {
    /// Not running, without threads and hooks.
    pub(crate) fn new(config: &Config<'_>, signal: i32, live: Live, pool: SlotPool) -> Engine {
        Engine {
            signal: AtomicI32::new(signal),
            moved_from: AtomicI32::new(0),
            is_replaced: AtomicBool::new(false),
            keeps_signal: config.keeps_signal,
            on_alternate_stack: config.on_alternate_stack,
            blocked: config.blocked,
            kind: config.engine,
            live,
            main_tid: sys::getpid(),
            page_bytes: sys::page_bytes(),
            reads_tls_base: arch::may_read_tls_base(),
            room_bytes: room::needed(),
            previous: Previous::new(),
            pool,
            slab: Slab::new(),
            fds: FdTable::new(),
            counters: Counters::new(),
            words: Words::new(),
            extra: AtomicPtr::new(core::ptr::null_mut()),
            context: AtomicPtr::new(core::ptr::null_mut()),
            walk: AtomicPtr::new(core::ptr::null_mut()),
            claim: AtomicPtr::new(core::ptr::null_mut()),
            vantage: AtomicU32::new(0),
            rings: Rings::new(),
            pages: AtomicU32::new(0),
            behind: AtomicBool::new(false),
            frames_max: AtomicU32::new(1),
            pause: Pause::new(),
            running: AtomicBool::new(false),
            interval_ns: AtomicU64::new(1),
            in_flight: AtomicU64::new(0),
            lifetimes: Lifetimes::new(),
            deferred: AtomicU32::new(0),
            starts: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// The engine, once made.
    #[inline]
    #[must_use]
    pub fn get() -> Option<&'static Engine> {
        // SAFETY: either null or an engine in memory that is never freed, fully written before the
        // pointer was stored with release.
        unsafe { ENGINE.load(Ordering::Acquire).as_ref() }
    }

    /// The signal in use.
    #[inline]
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.signal.load(Ordering::SeqCst)
    }

    /// Whether a signal that is sent while another one is pending is lost ([`config::merges`]).
    #[inline]
    pub(crate) fn merges(&self) -> bool {
        config::merges(self.signal())
    }

    /// Whether a thread is signalled only where the kernel has room to queue a signal. A timer has
    /// it set aside, and of the kernel's own signals only real-time ones need it.
    #[must_use]
    pub fn needs_queue(&self) -> bool {
        self.kind != EngineKind::Timer && !self.merges()
    }

    /// How threads are signalled.
    #[must_use]
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// The process's memory.
    #[must_use]
    pub fn live(&self) -> Live {
        self.live
    }

    /// The words of the runtime's memory that the handler reads.
    #[must_use]
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// Sets the handler's function for a thread whose stack is requested because others wait for
    /// its object ([`Reason::Owner`]). It finds the request, if the thread still owns the object
    /// ([`Capture::set_request`](crate::Capture::set_request)). The rules for [`Extra`] apply.
    pub fn set_claim(&self, claim: Extra) {
        self.claim.store(claim as *mut (), Ordering::Release);
    }

    /// Sets the handler's further function for each snapshot; see [`Extra`].
    pub fn set_extra(&self, extra: Extra) {
        self.extra.store(extra as *mut (), Ordering::Release);
    }

    /// Sets the function that finds a thread's context, called after [`Extra`]; it must not copy
    /// chunks.
    pub fn set_context(&self, hook: Extra) {
        self.context.store(hook as *mut (), Ordering::Release);
    }

    /// Sets the function that walks stacks before a slot is published; see [`WalkHook`].
    pub fn set_walk(&self, walk: WalkHook) {
        self.walk.store(walk as *mut (), Ordering::Release);
    }

    /// Where stacks are walked, and how many frames deep. Between two recordings only.
    pub fn set_vantage(&self, vantage: Vantage, depth: u32) {
        self.frames_max
            .store(depth.saturating_add(1), Ordering::Relaxed);
        self.vantage.store(vantage as u32, Ordering::Relaxed);
    }

    /// From where stacks are walked.
    #[inline]
    #[must_use]
    pub fn vantage(&self) -> Vantage {
        Vantage::from_bits(self.vantage.load(Ordering::Relaxed))
    }

    /// Sets whether copies are walked so late that their code may have been freed. If so, samples
    /// with [`Vantage::Snapshot`] are walked in the handler until this is called again.
    pub fn set_behind(&self, behind: bool) {
        self.behind.store(behind, Ordering::Relaxed);
    }

    /// Begins sampling every `interval_ns` of CPU time, on all present and future threads. Returns
    /// how many threads could not be armed; they are counted by cause.
    pub fn start(&'static self, interval_ns: u64) -> usize {
        self.interval_ns
            .store(interval_ns.max(1), Ordering::Relaxed);
        self.starts.fetch_add(1, Ordering::Relaxed);
        self.lifetimes.forget();
        self.running.store(true, Ordering::SeqCst);
        self.live_records()
            .filter(|record| {
                // It was for the time since the thread's begin, which may be in no window now.
                record.had_choice.store(false, Ordering::Relaxed);
                self.arm(record, true).is_err()
            })
            .count()
    }

    /// Ends sampling and waits until no handler is active; false if one still was after seconds.
    pub fn stop(&'static self) -> bool {
        self.stop_showing(|_, _| {})
    }

    /// Like `stop`; shows each thread that has a debt of CPU time, in ns. Either its points have
    /// passed but the signal had not arrived (a timer's comes only with the kernel's next tick),
    /// or the points found no free slot before the thread ended.
    pub fn stop_showing(&'static self, mut show_debt: impl FnMut(&ThreadRecord, u64)) -> bool {
        let quiet = self.stop_threads(|record, stop| {
            if stop.owed_ns > 0 {
                show_debt(record, stop.owed_ns);
            }
        });
        self.await_handlers() && quiet
    }

    /// Stops the signals of all threads and shows where each was, including ended threads with a
    /// debt of CPU time. Handlers may still run for a while ([`Engine::await_handlers`]). Threads
    /// are stopped one after the other. On a busy machine many ms may lie between the first and
    /// the last. Returns false if the signals of a thread could not be stopped.
    pub fn stop_threads(&'static self, mut show: impl FnMut(&ThreadRecord, Stop)) -> bool {
        self.running.store(false, Ordering::SeqCst);
        let mut quiet = true;
        for record in self.live_records() {
            match self.disarm(record) {
                Ok(stop) => show(record, stop),
                Err(_) => quiet = false,
            }
        }
        let ended = |record: &&ThreadRecord| record.state.load(Ordering::Acquire) == ENDED;
        for record in self.slab.iter().filter(ended) {
            match record.take_carried_ns() {
                0 => {}
                owed_ns => show(
                    record,
                    Stop {
                        sampled_to_ns: None,
                        owed_ns,
                    },
                ),
            }
        }
        quiet
    }

    /// Waits until no handler is active; false if one still was after seconds.
    pub fn await_handlers(&'static self) -> bool {
        const YIELDS_MAX: u32 = 1 << 22;
        for _ in 0..YIELDS_MAX {
            if self.in_flight.load(Ordering::SeqCst) == 0 {
                return true;
            }
            sys::sched_yield();
        }
        false
    }

    /// Whether sampling is on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    /// Makes a record for a thread and, if sampling is on, arms it.
    ///
    /// # Errors
    /// No memory for a record. A thread that cannot be armed is counted and tried again by `tend`.
    pub fn register(
        &'static self,
        registration: &Registration,
    ) -> Result<&'static ThreadRecord, Errno> {
        let record = self.slab.begin(registration)?;
        if self.is_running() {
            // A failure is counted there, and the record stays usable for wall-clock samples.
            let _ = self.arm(record, true);
        }
        Ok(record)
    }

    /// Takes the calling thread's debt so far as a snapshot of itself, if a point is due. Returns
    /// the CPU time, in ns, that its samples now cover. `None` if it is not sampled, for example
    /// because it could not get a timer or an event.
    pub fn sample_here(&self, record: &ThreadRecord, reason: Reason) -> Option<u64> {
        let armed = record.armed.load(Ordering::Relaxed);
        if !armed || !self.is_running() || record.tid() != sys::gettid() {
            return None;
        }
        let now_ns = sys::own_cpu_ns();
        let due = now_ns >= record.next_due_ns.load(Ordering::Relaxed)
            || record.carried.load(Ordering::Relaxed) > 0;
        if !due {
            return Some(now_ns);
        }
        // The signal has been handled when this returns, unless the thread blocks it.
        let _ = self.send(record, reason);
        Some(record.counted_ns.load(Ordering::Relaxed))
    }

    /// Asks a running thread for its stack. A snapshot with `reason` follows, with the weight that
    /// the thread has in debt, possibly none. Returns whether the signal could be sent.
    pub fn ask(&self, record: &ThreadRecord, reason: Reason) -> bool {
        if !record.is_live() || !self.is_running() {
            return false;
        }
        self.send(record, reason).is_ok()
    }

    /// Sends a thread the signal with a reason. If it merges with one that is pending, that one
    /// finds the reason in the record.
    pub(crate) fn send(&self, record: &ThreadRecord, reason: Reason) -> Result<(), Errno> {
        if self.merges() {
            record.asked.store(reason as u32, Ordering::SeqCst);
        }
        let cookie = record.cookie().with_reason(reason);
        sys::queue_signal(record.tid(), self.signal(), cookie.to_bits())
    }

    /// The thread ends (or is not to be sampled any more): gives back its timer. The record itself
    /// stays until `reap`, with the weight of its samples that found no free slot:
    /// [`ThreadRecord::take_carried_ns`]. Call `sample_here` before, on the thread itself. False if
    /// the record had ended already or could not be locked.
    pub fn end(&self, record: &'static ThreadRecord) -> bool {
        let Some(guard) = record.lock() else {
            self.counters.add(Cause::Contention, 1);
            return false;
        };
        if !record.is_live() {
            return false;
        }
        self.destroy_locked(&guard);
        record
            .ended_epoch
            .store(self.epoch.load(Ordering::SeqCst), Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
        record.state.store(ENDED, Ordering::Release);
        drop(guard);
        true
    }

    /// Shows all published snapshots to `visit`, oldest first, and frees their slots. One thread at
    /// a time.
    pub fn drain(&self, visit: impl FnMut(&Slot<'_>)) -> usize {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        self.pool.drain(visit)
    }

    /// Like `drain`, until `visit` returns false; the next call continues from there. Returns
    /// whether all published slots were shown.
    pub fn drain_while(&'static self, mut visit: impl FnMut(&Slot<'_>) -> bool) -> bool {
        if self.pool.has_rest() {
            self.pool.drain_while(&mut visit);
            if self.pool.has_rest() {
                return false;
            }
        }
        self.pump();
        // Slots published since then are not in the remainder.
        self.epoch.fetch_add(1, Ordering::SeqCst);
        let gives_rings = self.rings.bytes() != 0;
        self.pool.drain_while(|slot| {
            let goes_on = visit(slot);
            if gives_rings {
                self.consider(slot);
            }
            goes_on
        });
        !self.pool.has_rest()
    }

    /// Gives the memory of all free slots back to the kernel: a burst may have used most of them.
    /// For the end of a recording: until it returns, no slot can be taken.
    pub fn give_back_memory(&self) {
        self.pool.give_back_memory(self.page_bytes);
    }

    /// Recycles the records of ended threads, showing each before. Only the draining thread may
    /// call it. Weight that a record still carries afterwards is counted as lost. A record is kept
    /// until a drain that began after its end is over, so a snapshot never names a recycled
    /// record. Returns how many were recycled.
    pub fn reap(&'static self, mut last_sight: impl FnMut(&ThreadRecord)) -> usize {
        // A drain that is not over may still show slots of any record.
        if self.ended.load(Ordering::Relaxed) == 0 || self.pool.has_rest() {
            return 0;
        }
        let epoch = self.epoch.load(Ordering::SeqCst);
        let mut count: usize = 0;
        for record in self.slab.iter() {
            let ended = record.state.load(Ordering::Acquire) == ENDED;
            if !ended || record.ended_epoch.load(Ordering::Relaxed) >= epoch {
                continue;
            }
            last_sight(record);
            let points = record.carried.swap(0, Ordering::Relaxed);
            self.counters.lost(points, record.take_carried_ns());
            if self.slab.recycle(record) {
                count = count.wrapping_add(1);
            }
        }
        self.ended.fetch_sub(count as u64, Ordering::Relaxed);
        count
    }

    /// All live records. A record may end while it is read.
    pub fn live_records(&'static self) -> impl Iterator<Item = &'static ThreadRecord> {
        self.slab
            .iter()
            .filter(|record| record.state.load(Ordering::Acquire) == LIVE)
    }

    /// The record at this place, regardless of its present thread.
    #[must_use]
    pub fn record(&'static self, index: u32) -> Option<&'static ThreadRecord> {
        self.slab.get(index)
    }

    /// The record a slot names; `None` if it has been recycled since.
    #[must_use]
    pub fn record_of(&'static self, slot: &Slot<'_>) -> Option<&'static ThreadRecord> {
        let header = slot.header();
        self.slab
            .get(header.record_index)
            .filter(|record| record.generation() == header.record_generation)
    }

    /// One counter now. Values that handlers write stay in their processors' caches as far as
    /// possible.
    #[must_use]
    pub fn count(&self, cause: Cause) -> u64 {
        self.counters.get(cause)
    }

    /// The counters now.
    #[must_use]
    pub fn counters(&self) -> CounterSnapshot {
        self.counters.snapshot()
    }

    /// Checks the threads, about once a second. Arms again those that have used far more CPU time
    /// than they should have without a signal (it was lost to a full queue, say). Tries again
    /// those that could not be armed, and ends the records of threads that exited without notice.
    pub fn tend(&'static self) {
        if self.is_running() {
            self.live_records().for_each(|record| self.tend_one(record));
        }
    }

    /// The same for `most` threads whose records are at `from` or after it, and for threads that
    /// have a timer for their event. Returns the place to continue from; 0 after the last record.
    pub fn tend_some(&'static self, from: u32, most: usize) -> u32 {
        if !self.is_running() {
            return 0;
        }
        let is_live = |record: &&ThreadRecord| record.state.load(Ordering::Acquire) == LIVE;
        let has_timer = |record: &&ThreadRecord| self.has_timer(record);
        for record in self.slab.iter().filter(is_live).filter(has_timer) {
            self.tend_one(record);
        }
        let some = self.slab.iter_from(from).filter(is_live).take(most);
        let (mut count, mut next) = (0usize, 0);
        for record in some {
            if !self.has_timer(record) {
                self.tend_one(record);
            }
            (count, next) = (count.wrapping_add(1), record.index().saturating_add(1));
        }
        if count < most { 0 } else { next }
    }

    fn tend_one(&'static self, record: &'static ThreadRecord) {
        const TRIES_MAX: u32 = 16;
        const SOON_NS: u64 = 100_000;
        // A thread that had not run between the two previous checks, and has had no turn on a
        // processor since, has not run, sent a signal or ended. Thousands of threads are idle, and
        // a system call for each costs time.
        let turns = self.turns(record).map_or(NO_TURNS, |turns| turns.word());
        if turns != NO_TURNS && record.tended_turns.load(Ordering::Relaxed) == turns {
            return;
        }
        let Ok(cpu_ns) = sys::cpu_ns_of(record.tid()) else {
            if self.end(record) {
                self.counters.add(Cause::Vanished, 1);
            }
            return;
        };
        // Its turns were read while it did not run, if it has not run since the last check. A
        // thread that is running just now can end without another turn.
        let before_ns = record.tended_ns.swap(cpu_ns, Ordering::Relaxed);
        let has_run = before_ns != cpu_ns;
        if self.check_idle_timer(record, cpu_ns.saturating_sub(before_ns)) {
            return;
        }
        let known = if has_run { NO_TURNS } else { turns };
        record.tended_turns.store(known, Ordering::Relaxed);
        let signals = record.signals.load(Ordering::Relaxed);
        if record.signals_tended.swap(signals, Ordering::Relaxed) != signals {
            record.silent_tends.store(0, Ordering::Relaxed);
            return;
        }
        // A timer may be late by some ticks. A thread that blocks the signal never answers, and is
        // not asked again and again.
        const LATE_NS: u64 = 50_000_000;
        let armed = record.armed.load(Ordering::Relaxed);
        let due_ns = record.next_due_ns.load(Ordering::Relaxed);
        if armed && cpu_ns < due_ns.saturating_add(LATE_NS) {
            return;
        }
        if record.silent_tends.fetch_add(1, Ordering::Relaxed) >= TRIES_MAX {
            return;
        }
        if !armed {
            let _ = self.arm(record, false); // counted there
        } else if self.check_silent_timer(record) {
            self.counters.add(Cause::Silent, 1);
        } else if let Some(mut guard) = record.try_lock() {
            // Sampling may have ended in between and disarmed the thread.
            if !record.armed.load(Ordering::Relaxed) {
                return;
            }
            self.counters.add(Cause::Silent, 1);
            self.rearm_after(&mut guard, SOON_NS);
            self.unlock(guard);
        }
    }
}
