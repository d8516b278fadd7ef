//! The census: whether a thread has run since its last read, and if so its fingerprint.

use super::look::{self, Found, Mark, Want};
use super::{Known, Sampler, Work, aim};
use crate::looks::shelf::Shelf;
use crate::runtime::{Looks, Runtime};
use dwell_context::Context;
use dwell_signal::ThreadRecord;
use dwell_wall::proc::{Schedule, Whereabouts};
use dwell_wallclock::Fingerprint;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Data of the thread that is read so many reads later are prefetched. Half as far ahead, the data
/// that its record points to are prefetched.
const AHEAD: usize = 12;
/// Age in ticks at which a thread gets a page that counts its turns.
const PAGE_TICKS: u32 = 25;
/// Part of the interval that mapping pages may take, if the purse has this fill and if it has less.
/// Reads without pages are what empties it, so some pages are always mapped.
const PAGES_PART: f64 = 0.05;
const PAGES_FILL: f64 = 0.3;
const PAGES_PART_LEAST: f64 = 0.01;
/// Time between two reads of the kernel's account of a thread that moves, in ns. Threads that stay
/// in one place have [`SCHEDULE_CALM_NS`].
const SCHEDULE_NS: u64 = 250_000_000;
/// Part of the budget that the accounts of threads that move may take.
const SCHEDULE_PART: f64 = 0.1;
/// The same for a thread that always waits in one place.
const SCHEDULE_CALM_NS: u64 = 10_000_000_000;

/// Reads of a thread that was ready, and of all such threads, that show what it waited for.
const READY_READS: f32 = 64.0;
const READY_READS_OF_ALL: f32 = 4096.0;
/// A thread is delayed if it waited for a processor for this part of the time between two accounts.
/// Reads that find it waiting ask whether it is ready. Short waits would get that time otherwise.
/// Only if it ran for this part, late ticks ask when it last ran.
const DELAYED_PART: u64 = 256;

/// Data that a read of a thread needs, in one cache line.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub(super) struct Seen {
    record: Option<&'static ThreadRecord>,
    /// Its structure in the runtime.
    pub managed: u64,
    /// How much it had run at its last read.
    mark: Option<Mark>,
    /// The tick in which it was taken in.
    since: u32,
    /// Whether it was off a processor since the mark was read.
    is_settled: bool,
    /// Whether only the kernel knows whether it waits.
    may_run: bool,
    /// Time of the last read of the kernel's account, in ns.
    pub accounted_ns: u64,
    /// Whether two accounts were read.
    is_accounted: bool,
    /// Whether it is delayed, or there was no account yet.
    is_delayed: bool,
}

impl Seen {
    pub fn of(record: &'static ThreadRecord, managed: u64, now: u32) -> Seen {
        Seen {
            record: Some(record),
            managed,
            since: now,
            is_delayed: true,
            ..Seen::default()
        }
    }

    /// Takes the mark of this read. Returns whether the thread may have run since the last one, and
    /// whether the marks are equal. `is_off`: whether the thread is off its processor now.
    ///
    /// Equal turns mean that the thread was off a processor all the time, or on one from before the
    /// first to some moment after which it waits. So they prove nothing before it was once seen off
    /// its processor. An equal clock is proof alone.
    fn compare(&mut self, mark: Option<Mark>, is_off: impl FnOnce() -> bool) -> (bool, bool) {
        let is_equal = mark.is_some() && mark == self.mark;
        let has_run = !(is_equal && self.is_settled);
        self.is_settled = match mark {
            Some(Mark::Clock(_)) => true,
            Some(Mark::Turns(_)) => is_equal && (self.is_settled || is_off()),
            None => false,
        };
        self.mark = mark;
        (has_run, is_equal)
    }
}

/// Further steps after a read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    /// The sample that must be made now.
    pub(super) wants: Option<Want>,
    /// It has run, or may have, since the read before.
    is_changed: bool,
}

impl<R: Runtime> Sampler<'_, R> {
    /// Reads these threads and samples those that need it. Returns the cost of sampling in ns.
    pub(super) fn census(&mut self, ids: &[u32], shelf: &Shelf) -> u64 {
        self.allow_pages();
        let mut sampled_ns = 0;
        for (at, id) in ids.iter().enumerate() {
            self.fetch_ahead(ids, at);
            let read = self.read(*id);
            if let Some(want) = read.wants {
                sampled_ns += self.sample(*id, want, shelf);
            }
            if read.is_changed {
                self.account(*id, false, shelf);
            }
        }
        self.counts.by_page += self.kernel.take_answered();
        self.report_ended(shelf);
        sampled_ns
    }

    /// Samples threads that stay in places never sampled before. Returns the cost in ns.
    pub(super) fn sample_backlog(&mut self, shelf: &Shelf) -> u64 {
        let (mut cost_ns, mut is_first) = (0, true);
        while let Some(id) = self.clock.next_of_backlog(is_first) {
            is_first = false;
            cost_ns += self.sample(id, Want::Wait(None), shelf);
        }
        self.report_ended(shelf);
        cost_ns + self.cpu_since()
    }

    /// Allows some mappings of pages. A page costs about 5 us once and makes later reads cheaper.
    fn allow_pages(&mut self) {
        let interval_ns = self.setup.options.wall_interval.as_nanos() as f64;
        let part = match self.clock.purse().fill() > PAGES_FILL {
            true => PAGES_PART,
            false => PAGES_PART_LEAST,
        };
        let pages = self.kernel.pages_for(part * interval_ns);
        self.kernel.allow_pages(pages);
    }

    /// Reads a thread.
    pub(super) fn read(&mut self, id: u32) -> Read {
        let Some(seen) = self.seen.get_mut(id as usize) else {
            return Read::default();
        };
        let Some(record) = seen.record else {
            return Read::default();
        };
        self.counts.reads += 1;
        let may_map = self.number.saturating_sub(seen.since) >= PAGE_TICKS;
        let is_calm = self.clock.is_calm(id);
        let by_clock = seen.may_run || !R::Looks::HAS_FINGERPRINTS;
        // Read before the fingerprint: if the thread runs in between, the next read detects it.
        let mark = self.kernel.turns_or_clock(record, may_map, by_clock);
        let is_off = || !look::runs(record.tid());
        let (has_run, is_equal) = seen.compare(mark, is_off);
        let tid = record.tid();
        let may_be_ready = seen.is_delayed && !is_calm;
        if !has_run && let Some(read) = self.stays(id, record, may_be_ready) {
            return read;
        }
        let mut at = None;
        let by = (&self.looks, &self.kernel);
        let mut print = look::fingerprint(by, record, &mut at);
        let is_off = print.fingerprint.runs() && !look::runs(tid);
        if is_off && print.native.is_none() {
            // Code that runs may wait in the kernel, such as for a page of a mapped file.
            at = self.kernel.whereabouts(tid);
            print = look::fingerprint(by, record, &mut at);
        }
        let (mut fingerprint, context, mut wait) = (print.fingerprint, print.context, None);
        let is_known = fingerprint.runs() || fingerprint.may_run();
        if may_be_ready && !is_known {
            at = self.kernel.ask(tid);
            wait = (at == Some(Whereabouts::Ready)).then_some(fingerprint);
        }
        fingerprint = wait.map_or(fingerprint, |_| Fingerprint::woken());
        if !fingerprint.runs() && has_run && self.ran_when_due(id, tid) {
            fingerprint = Fingerprint::running();
        }
        if let Some(seen) = self.seen.get_mut(id as usize) {
            seen.may_run = fingerprint.may_run();
        }
        let is_changed = !is_equal;
        if self.setup.options.only_context && context.is_none() {
            return Read {
                is_changed,
                ..Read::default()
            };
        }
        let work = (key_of(context.as_ref()), || work_of(context));
        let (looks, known) = (&self.looks, self.known.get(id as usize));
        let holds = |class| holds(looks, record, known, class);
        let wants_sample = self.clock.read(id, fingerprint, work, has_run, holds);
        self.counts.by_fingerprint += usize::from(!wants_sample);
        let found = || mark.zip(at).map(|(mark, at)| Found { mark, at });
        let wants = match wait {
            Some(wait) => self.clock.woken_from(id, wait).then_some(Want::Woken(wait)),
            None if fingerprint.runs() => {
                let ready = is_off.then(|| self.kernel.is_ready_here(tid)).flatten();
                ready.and_then(|ready| self.preempted(id, print.native, ready))
            }
            None => wants_sample.then(|| Want::Wait(found())),
        };
        Read { wants, is_changed }
    }

    /// See [`Kernel::ran_when_due`]. If so, the next read must read its wait.
    ///
    /// [`Kernel::ran_when_due`]: look::Kernel::ran_when_due
    fn ran_when_due(&mut self, id: u32, tid: i32) -> bool {
        let turn_ns = (self.known.get(id as usize)).map_or(0, |known| known.turn_ns);
        let has_run = self.kernel.ran_when_due(tid, turn_ns);
        if has_run && let Some(seen) = self.seen.get_mut(id as usize) {
            (seen.mark, seen.is_settled) = (None, false);
        }
        has_run
    }

    /// Reads a thread that has not run since its last read. `None`: it must be read again.
    fn stays(
        &mut self,
        id: u32,
        record: &'static ThreadRecord,
        may_be_ready: bool,
    ) -> Option<Read> {
        let mut read = Read::default();
        if may_be_ready && self.kernel.ask(record.tid()) == Some(Whereabouts::Ready) {
            if self.clock.stays_ready(id) {
                let mut at = Some(Whereabouts::Ready);
                let print = look::fingerprint((&self.looks, &self.kernel), record, &mut at);
                // This thread has not taken its processor from it.
                read.wants = self.preempted(id, print.native, (false, 1));
            }
            return Some(read);
        }
        let (looks, known) = (&self.looks, self.known.get(id as usize));
        let holds = |class| holds(looks, record, known, class);
        if self.clock.can_stay(id, holds) {
            self.counts.stayed += 1;
            self.clock.stays(id);
            return Some(read);
        }
        self.clock.unlabel(id);
        None
    }

    /// Records where a thread is ready that the last read found running. `native`: its place in
    /// native code or in the JVM. `ready`: see [`Kernel::is_ready_here`]. Returns the sample that
    /// must be made now.
    ///
    /// [`Kernel::is_ready_here`]: look::Kernel::is_ready_here
    fn preempted(
        &mut self,
        id: u32,
        native: Option<Fingerprint>,
        ready: (bool, u32),
    ) -> Option<Want> {
        let wants_sample = self.clock.preempted(id, native, ready);
        native.filter(|_| wants_sample).map(Want::Woken)
    }

    /// Records that a sample found the thread off a processor, with this mark.
    pub(super) fn set_settled(&mut self, id: u32, mark: Mark) {
        if let Some(seen) = self.seen.get_mut(id as usize) {
            seen.is_settled = true;
            seen.mark = Some(mark);
        }
    }

    /// Reads the kernel's account of a thread, if that is due or this is the last tick: how long it
    /// ran, waited for a processor, and waited otherwise.
    pub(super) fn account(&mut self, id: u32, is_last: bool, shelf: &Shelf) {
        let moving_ns = self.schedule_ns();
        let (seen, known) = (
            self.seen.get_mut(id as usize),
            self.known.get_mut(id as usize),
        );
        let (Some(seen), Some(known)) = (seen, known) else {
            return;
        };
        let Some(record) = seen.record else {
            return;
        };
        let now_ns = self.clock.now_ns();
        let passed_ns = now_ns.saturating_sub(seen.accounted_ns);
        // The rate of switches is known after two accounts.
        let is_still = self.clock.is_calm(id) && !self.clock.runs(id);
        let period_ns = match is_still && seen.is_accounted {
            true => SCHEDULE_CALM_NS,
            false => moving_ns,
        };
        let is_due = passed_ns >= period_ns || is_last;
        // A thread that ends before its first account: see `remove`.
        let age = self.number.saturating_sub(seen.since) + 1;
        let is_new = known.schedule == Some(Schedule::default());
        if !(is_due || is_new && age.is_power_of_two()) {
            return;
        }
        let Some(now) = self.kernel.schedule(record.tid()) else {
            return;
        };
        known.ready_part = now.ready_part();
        if !is_due {
            return;
        }
        seen.is_accounted = known.schedule.is_some();
        seen.accounted_ns = now_ns;
        let then = known.schedule.replace(now).unwrap_or(now);
        let turns = now.turns.saturating_sub(then.turns);
        known.switches = (turns as f64 * 1e9 / passed_ns.max(1) as f64) as f32;
        let ran_ns = now.ran_since(&then);
        known.turn_ns = match ran_ns > passed_ns / DELAYED_PART {
            true => ran_ns / turns.max(1),
            false => 0,
        };
        let waited_ns = now.waited_since(&then);
        let is_asked = seen.is_delayed && self.kernel.asks();
        seen.is_delayed = !seen.is_accounted || waited_ns > passed_ns / DELAYED_PART;
        let found = self.clock.take_found(id);
        if is_asked {
            let (woken, preempted) = (found.woken_reads, found.preempted_reads);
            known.ready_reads.add(woken, preempted, READY_READS);
            self.ready_reads.add(woken, preempted, READY_READS_OF_ALL);
        }
        let part = is_asked.then(|| known.ready_reads.woken_part(&self.ready_reads));
        let woken_ns = match part.flatten() {
            Some(part) => (waited_ns as f64 * f64::from(part)) as u64,
            None => (known.woken).of(waited_ns, ran_ns, found.running_ns),
        };
        // Without a context, time is not read, so it cannot be compared.
        if !self.setup.options.only_context {
            self.clock.account(id, now.off_since(&then, passed_ns));
        }
        let thread = known.thread;
        let period = || now_ns - passed_ns..now_ns;
        let mut notes = shelf.lock();
        notes.add_ready(thread, period(), woken_ns, found.left());
        notes.add_ready(thread, period(), waited_ns - woken_ns, found.preempted());
    }

    /// Time between two accounts of a thread that moves.
    fn schedule_ns(&self) -> u64 {
        let [lively, _] = self.clock.kinds();
        let may_ns = SCHEDULE_PART * aim(self.setup) * SCHEDULE_NS as f64;
        let accounts = self.kernel.asks_for(may_ns).max(1);
        SCHEDULE_NS * lively.div_ceil(accounts).max(1) as u64
    }

    /// Prefetches the data of the next threads: they lie far apart and are in no cache.
    fn fetch_ahead(&self, ids: &[u32], at: usize) {
        if at == 0 {
            ids.iter().take(AHEAD).for_each(|id| self.fetch_own(*id));
            let soon = ids.iter().take(AHEAD / 2);
            soon.for_each(|id| self.fetch_others(*id));
        }
        if let Some(next) = ids.get(at + AHEAD) {
            self.fetch_own(*next);
        }
        if let Some(soon) = ids.get(at + AHEAD / 2) {
            self.fetch_others(*soon);
        }
    }

    fn fetch_own(&self, id: u32) {
        for address in self.clock.addresses(id) {
            dwell_signal::fetch_ahead(address);
        }
        if let Some(seen) = self.seen.get(id as usize) {
            dwell_signal::fetch_ahead(std::ptr::from_ref(seen).addr());
        }
        if let Some(record) = self.setup.engine.record(id) {
            dwell_signal::fetch_ahead(std::ptr::from_ref(record).addr());
        }
    }

    /// Prefetches the data of the kernel and of the runtime that the record points to, and the
    /// thread's places.
    fn fetch_others(&self, id: u32) {
        for address in self.clock.addresses_of_place(id) {
            dwell_signal::fetch_ahead(address);
        }
        let seen = self.seen.get(id as usize);
        if let Some(record) = seen.and_then(|seen| seen.record) {
            self.setup.engine.fetch_turns(record);
            self.looks.fetch_fingerprint(record);
        }
    }
}

/// Whether the claim of the last sample of this class still has the same owner.
fn holds<R: Runtime, L: Looks<R>>(
    looks: &L,
    record: &ThreadRecord,
    known: Option<&Known<L::Claim>>,
    class: u8,
) -> bool {
    let claim = known.and_then(|known| known.claim.as_ref());
    claim.is_some_and(|(of, claim)| *of == class && looks.is_still(record, claim))
}

/// A hash of the context that a thread works for.
fn key_of(context: Option<&Context>) -> u64 {
    context.map_or(0, |context| {
        let mut hasher = FxHasher::default();
        context.hash(&mut hasher);
        hasher.finish()
    })
}

fn work_of(context: Option<Context>) -> Work {
    context.map(Arc::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_signal::Turns;

    /// Reads of a thread, each with its turns or clock and whether it was off a processor. Returns
    /// which of them it may have run before.
    fn compared<const N: usize>(reads: [(Option<Mark>, bool); N]) -> [bool; N] {
        let mut seen = Seen::default();
        reads.map(|(mark, is_off)| seen.compare(mark, || is_off).0)
    }

    #[test]
    fn wait_after_a_long_run_in_one_turn_is_seen() {
        let at = |turns, is_off| (Some(Mark::Turns(Turns::on(4096, turns))), is_off);
        // It runs for four reads in one turn, then waits for three, and gets another turn.
        let runs = at(1, false);
        let waits = at(1, true);
        let reads = [runs, runs, runs, runs, waits, waits, waits, at(2, true)];
        let ran = [true, true, true, true, true, false, false, true];
        assert_eq!(compared(reads), ran);
        // It waits when it is read first: another equal read is needed.
        let reads = [waits, waits, waits, at(2, true), at(2, true), at(2, true)];
        assert_eq!(compared(reads), [true, true, false, true, true, false]);
    }

    #[test]
    fn equal_clock_is_proof_alone() {
        let at = |ns| (Some(Mark::Clock(ns)), false);
        let reads = [at(5), at(5), at(7), at(7), (None, true), (None, true)];
        assert_eq!(compared(reads), [true, false, true, false, true, true]);
    }

    #[test]
    fn work_key_differs_by_span_and_endpoint() {
        let of = |span, endpoint| {
            key_of(Some(&Context {
                span,
                endpoint,
                ..Context::default()
            }))
        };
        assert_eq!(key_of(None), 0);
        assert_eq!(of(1, 2), of(1, 2));
        assert_ne!(of(1, 2), of(1, 3));
        assert_ne!(of(1, 2), of(3, 2));
    }
}
