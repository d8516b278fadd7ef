//! Samples a thread that waits from memory and from the kernel. Reads the kernel's data on threads.

use crate::context::context_of;
use crate::looks::off::{Off, Waiting};
use crate::runtime::{Looks, Runtime};
use crate::sys::fds;
use crate::sys::process;
use crate::sys::task::{KeptFiles, TaskFiles};
use dwell_context::Context;
use dwell_signal::sys::cpu_ns_of;
use dwell_signal::{Engine, Live, ThreadRecord, Turns};
use dwell_walker::{Frame, Memory, Walk};
use dwell_wall::budget::Price;
use dwell_wall::cause::{Call, Fd, Monitor, Os};
use dwell_wall::proc::{self, Schedule, Target, Whereabouts};
use dwell_wallclock::Fingerprint;
use std::cell::{Cell, RefCell};

/// Assumed cost of reading one of the kernel's files of a thread before the first measurement, in
/// ns. The cost of one in so many reads is measured.
const ASK_NS: f64 = 8000.0;
const MEASURED: u32 = 8;

/// Approximate maximum of threads' `stat` files read in a tick. Each takes 7 us.
const STATS: u32 = 16;
/// The same for their `sched` files. Each takes 10 us.
const SCHEDS: u32 = 8;

/// A shorter wait for a processor is none: each thread that wakes up is queued for a moment.
const SHORTEST_NS: u64 = 10_000;

/// Maximum pages that count threads' turns. Each is a mapping, and a process may have 65,530 of
/// them (`vm.max_map_count`).
const PAGES_MAX: u32 = 16_384;
/// The same for users other than root. Pages count as locked memory, of which such users have
/// little (`kernel.perf_event_mlock_kb`); rings of kernel frames need it as well.
const PAGES_MAX_OF_USERS: u32 = 64;
/// Assumed cost of mapping a page before the first measurement, in ns.
const PAGE_NS: f64 = 6000.0;
/// How much a thread has run. If two reads are equal, it has run all the time in between or not at
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Its turns on processors, which are cheap to read.
    Turns(Turns),
    /// The CPU time it has used, in ns.
    Clock(u64),
}

/// The kernel's data about a thread, from a read that a sample follows.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// How much it had run, ...
    pub mark: Mark,
    /// ... and where it was after that.
    pub at: Whereabouts,
}

/// The reason for a sample.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// Where the thread waits. It was just found so.
    Wait(Option<Found>),
    /// Where it waited that was woken from this wait and has no processor yet. Its stack begins
    /// with its innermost method: the kernel does not show a ready thread's registers.
    Woken(Fingerprint),
}

/// Result of one sample.
#[derive(Debug)]
pub enum Look<C> {
    /// The thread has ended.
    Gone,
    /// It runs, or waits for a processor. The fingerprint is that of a wait, if it has such a one
    /// all the time.
    Ready(Option<Fingerprint>),
    /// It waits.
    Off(Still<C>),
    /// It waited, but ran during the sample.
    Unclear,
}

/// The sample of a thread that did not run during it.
#[derive(Debug)]
pub struct Still<C> {
    /// Its wait.
    pub off: Off,
    /// The part of that which may pass from one thread to another.
    pub claim: Option<C>,
    /// The fingerprint of its place.
    pub fingerprint: Fingerprint,
    /// How much it had run.
    pub mark: Mark,
}

/// Reader of the kernel's data on threads.
pub struct Kernel {
    engine: &'static Engine,
    live: Live,
    files: TaskFiles,
    kept: [RefCell<KeptFiles>; 3],
    /// Whether the budget allows to ask of lively threads whether they are ready.
    asks: bool,
    pub(super) asked: Asked,
    pages: Pages,
    /// Reads of threads' `stat` and `sched` files.
    stats: Few,
    scheds: Few,
    /// For how long this thread had waited for processors at the end of the last tick.
    waited_ns: u64,
    /// If this tick is late: this thread had to wait for a processor.
    due: Option<Due>,
}

/// Limits the questions of a tick by the number in the one before.
#[derive(Debug)]
struct Few {
    count: Cell<u32>,
    /// One in so many may be asked.
    each: u32,
}

impl Few {
    fn all() -> Few {
        Few {
            count: Cell::new(0),
            each: 1,
        }
    }

    fn begin_tick(&mut self, most: u32) {
        self.each = 1 + self.count.take() / most;
    }

    fn may_ask(&self) -> bool {
        let count = self.count.get() + 1;
        self.count.set(count);
        count.is_multiple_of(self.each)
    }
}

/// When a late tick was due, on the clock of the processor that this thread waited for.
#[derive(Clone, Copy, Debug)]
struct Due {
    processor: i32,
    at_ns: u64,
}

/// Reads of the kernel's files.
pub(super) struct Asked {
    pub(super) count: Cell<u32>,
    /// CPU time of those that were measured since the price was set, and their number.
    cpu_ns: Cell<u64>,
    measured: Cell<usize>,
    price: Price,
}

/// The mapped pages that count threads' turns on processors.
#[derive(Default)]
struct Pages {
    /// Maximum mapped pages, unless the kernel refuses earlier.
    most: u32,
    are_refused: Cell<bool>,
    /// Reads answered by a page since [`Kernel::take_answered`].
    answered: Cell<u32>,
    /// Further pages that may be mapped now.
    allowed: Cell<u32>,
    /// Cost of mapping a page.
    price: Cell<Option<Price>>,
}

impl Pages {
    fn price(&self) -> Price {
        self.price.get().unwrap_or(Price::of(PAGE_NS))
    }

    /// Records the cost of one mapping.
    fn spent(&self, cpu_ns: u64) {
        let mut price = self.price();
        price.spent(1, cpu_ns);
        self.price.set(Some(price));
    }
}

impl Kernel {
    /// Opens the kernel's files. `maps_turns`: whether to map threads' pages.
    #[must_use]
    pub fn open(engine: &'static Engine, maps_turns: bool) -> Kernel {
        let live = engine.live();
        Kernel {
            engine,
            live,
            files: TaskFiles::open(),
            kept: ["syscall", "schedstat", "sched"].map(|name| RefCell::new(KeptFiles::new(name))),
            asks: false,
            asked: Asked {
                count: Cell::new(0),
                cpu_ns: Cell::new(0),
                measured: Cell::new(0),
                price: Price::of(ASK_NS),
            },
            pages: Pages {
                most: match process::is_root() {
                    true => PAGES_MAX,
                    false => PAGES_MAX_OF_USERS,
                },
                are_refused: Cell::new(!maps_turns),
                ..Pages::default()
            },
            stats: Few::all(),
            scheds: Few::all(),
            waited_ns: 0,
            due: None,
        }
    }

    /// How much a thread has run. The source is its page, which is mapped first if `may_map` and
    /// the number allowed permit. Without a page it is the thread's clock, if `by_clock`; else
    /// `None`.
    pub fn turns_or_clock(
        &self,
        record: &'static ThreadRecord,
        may_map: bool,
        by_clock: bool,
    ) -> Option<Mark> {
        if may_map {
            self.map_page(record);
        }
        if let Some(turns) = self.engine.turns(record) {
            self.pages
                .answered
                .set(self.pages.answered.get().wrapping_add(1));
            return Some(Mark::Turns(turns));
        }
        match by_clock {
            true => cpu_ns_of(record.tid()).ok().map(Mark::Clock),
            false => None,
        }
    }

    fn map_page(&self, record: &'static ThreadRecord) {
        let pages = &self.pages;
        let allowed = pages.allowed.get();
        if allowed == 0 || !self.maps_pages() || !self.engine.wants_page(record) {
            return;
        }
        pages.allowed.set(allowed - 1);
        let before = process::own_cpu();
        pages
            .are_refused
            .set(self.engine.attach_page(record).is_err());
        pages.spent((process::own_cpu() - before).as_nanos() as u64);
    }

    /// Sets the number of pages that may be mapped from now on. Each costs about 5 us, or ten times
    /// that with thousands of threads.
    pub fn allow_pages(&self, count: u32) {
        self.pages.allowed.set(count);
    }

    /// Number of pages that can be mapped with `may_ns` of CPU time.
    #[must_use]
    pub fn pages_for(&self, may_ns: f64) -> u32 {
        u32::try_from(self.pages.price().count(may_ns)).unwrap_or(u32::MAX)
    }

    /// Whether further pages can be mapped.
    #[must_use]
    pub fn maps_pages(&self) -> bool {
        !self.pages.are_refused.get() && self.engine.pages() < self.pages.most
    }

    /// Number of reads answered by a page since the last call.
    pub fn take_answered(&self) -> u32 {
        self.pages.answered.take()
    }

    /// How much a thread has run; `None` if it has ended.
    fn mark(&self, record: &ThreadRecord) -> Option<Mark> {
        match self.engine.turns(record) {
            Some(turns) => Some(Mark::Turns(turns)),
            None => cpu_ns_of(record.tid()).ok().map(Mark::Clock),
        }
    }

    /// Whether a thread has run since `before`; true also if that is unknown.
    fn has_run_since(&self, record: &ThreadRecord, before: Mark) -> bool {
        match before {
            Mark::Turns(before) => self.engine.turns(record) != Some(before),
            Mark::Clock(before_ns) => cpu_ns_of(record.tid()) != Ok(before_ns),
        }
    }

    /// Reads ask whether their threads are ready, if checks of `lively` threads take no more than
    /// `may_ns`.
    pub fn set_asks(&mut self, lively: usize, may_ns: f64) {
        let asked = &mut self.asked;
        (asked.price).spent(asked.measured.take(), asked.cpu_ns.take());
        self.asks = self.asks_for(may_ns) >= lively;
    }

    /// Number of the kernel's files that can be read with `may_ns` of CPU time.
    #[must_use]
    pub fn asks_for(&self, may_ns: f64) -> usize {
        self.asked.price.count(may_ns)
    }

    fn read<'b>(&self, tid: i32, name: &str, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let asked = &self.asked;
        asked.count.set(asked.count.get().wrapping_add(1));
        if !asked.count.get().is_multiple_of(MEASURED) {
            return self.read_file(tid, name, buf);
        }
        let before = process::own_cpu();
        let text = self.read_file(tid, name, buf);
        let took_ns = (process::own_cpu() - before).as_nanos() as u64;
        asked.cpu_ns.set(asked.cpu_ns.get() + took_ns);
        asked.measured.set(asked.measured.get() + 1);
        text
    }

    fn read_file<'b>(&self, tid: i32, name: &str, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let mut kept = self.kept.iter().map(RefCell::borrow_mut);
        match kept.find(|kept| kept.name() == name) {
            Some(mut kept) => kept.read(&self.files, tid, buf),
            None => self.files.read(tid, name, buf),
        }
    }

    /// Where a thread is that the runtime considers waiting: it may be ready to run. Read only if
    /// the budget allows that.
    pub fn ask(&self, tid: i32) -> Option<Whereabouts> {
        self.asks.then(|| self.whereabouts(tid)).flatten()
    }

    /// Whether reads ask if their threads are ready.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether this thread may have just taken its processor from another one that is ready, and
    /// the number of reads that this one stands for. `None`: that thread is not ready. If many
    /// threads are ready, only some are checked.
    pub fn is_ready_here(&self, tid: i32) -> Option<(bool, u32)> {
        let (is_ready, processor) = self.stats.may_ask().then(|| self.last_on(tid))??;
        let is_here = self.due.is_none() && processor == process::own_processor();
        is_ready.then_some((is_here, self.stats.each))
    }

    /// Whether a thread is ready, and its last processor.
    fn last_on(&self, tid: i32) -> Option<(bool, i32)> {
        let mut buf = [0u8; 512];
        proc::last_on(self.read(tid, "stat", &mut buf)?)
    }

    /// When a thread last ran, on the clock of its processor, in ns.
    fn last_ran(&self, tid: i32) -> Option<u64> {
        let mut buf = [0u8; 256];
        proc::last_ran(self.read(tid, "sched", &mut buf)?)
    }

    /// Begins a tick.
    pub fn begin_tick(&mut self) {
        let waited_ns = self.own_waited_ns();
        self.begin_late_tick(waited_ns.saturating_sub(self.waited_ns));
    }

    /// Begins a tick for which this thread has waited so long for a processor.
    pub fn begin_late_tick(&mut self, waited_ns: u64) {
        self.stats.begin_tick(STATS);
        self.scheds.begin_tick(SCHEDS);
        let is_late = waited_ns > SHORTEST_NS;
        // This thread began to run just now.
        let now_ns = is_late.then(|| self.last_ran(process::own_tid())).flatten();
        self.due = is_late.then(|| Due {
            processor: process::own_processor(),
            at_ns: now_ns.map_or(u64::MAX, |now_ns| now_ns.saturating_sub(waited_ns)),
        });
    }

    /// Ends a tick: how long this thread waits from now on is the delay of the next one.
    pub fn end_tick(&mut self) {
        self.waited_ns = self.own_waited_ns();
    }

    fn own_waited_ns(&self) -> u64 {
        let account = self.schedule(process::own_tid());
        account.map_or(0, |account| account.waited_ns)
    }

    /// Whether a thread that waits now was running when this tick was due. If this thread has
    /// waited for its processor, that was often until such a wait began: it would find too many
    /// short waits. `turn_ns`: for how long that thread runs on average.
    pub fn ran_when_due(&self, tid: i32, turn_ns: u64) -> bool {
        let is_short = turn_ns < SHORTEST_NS;
        let due = self.due.filter(|due| due.at_ns != u64::MAX && !is_short);
        let Some(due) = due.filter(|_| self.scheds.may_ask()) else {
            return false;
        };
        let ran_on_ns = self.last_ran(tid).and_then(|ns| ns.checked_sub(due.at_ns));
        let is_here = |(_, processor)| processor == due.processor;
        ran_on_ns.is_some_and(|ran_on_ns| ran_on_ns < turn_ns)
            && self.last_on(tid).is_some_and(is_here)
    }

    /// Whether a thread runs or waits, and for what; `None` if the kernel does not say. This is the
    /// most expensive part of a read (3 us).
    pub fn whereabouts(&self, tid: i32) -> Option<Whereabouts> {
        let mut buf = [0u8; 256];
        proc::whereabouts(self.read(tid, "syscall", &mut buf)?)
    }

    /// The system call a thread waits in, as words for the place and the descriptor. Different
    /// waits have different words. `None`: it runs, or is ready to.
    fn call_words(&self, at: Option<Whereabouts>) -> Option<[u64; 3]> {
        match at {
            Some(Whereabouts::Off { call, sp, pc }) => {
                let on = match call {
                    Some(Target::Descriptor(fd)) => Some(fd),
                    Some(Target::Poll { fds, count: 1 }) => self.live.i32(fds).ok(),
                    _ => None,
                };
                let on = on.map_or(u64::MAX, |fd| u64::from(fd.cast_unsigned()));
                Some([sp, pc, on])
            }
            Some(Whereabouts::Ready) => None,
            // The kernel does not say.
            None => Some([0; 3]),
        }
    }

    /// The kernel's account of a thread.
    pub fn schedule(&self, tid: i32) -> Option<Schedule> {
        let mut buf = [0u8; 128];
        proc::schedule(self.read(tid, "schedstat", &mut buf)?)
    }

    /// The kind of a call, and its descriptor.
    fn os(&self, call: Option<Target>) -> (Os, Option<i32>) {
        let Some(target) = call else {
            return (Os::NoCall, None);
        };
        let fd = match target {
            Target::Descriptor(fd) => Some(fd),
            // struct pollfd begins with the descriptor (poll(2)).
            Target::Poll { fds, count: 1 } => self.live.i32(fds).ok(),
            _ => None,
        };
        let call = match (target, fd.map(fds::is_socket)) {
            (_, Some(Some(true))) => Call::On(Fd::Socket),
            (_, Some(Some(false))) | (Target::Path, _) => Call::On(Fd::File),
            (Target::Futex, _) => Call::Futex,
            (Target::Clock, _) => Call::Sleep,
            (Target::Poll { .. } | Target::Many, _) => Call::Many,
            (Target::Child, _) => Call::Child,
            (Target::Descriptor(_) | Target::Other, _) => Call::Other,
        };
        (Os::Call(call), fd)
    }
}

/// Samples a thread without signalling, stopping or waking it. The sample counts only if the thread
/// has not run during it, or since it was found.
pub fn look<R: Runtime, L: Looks<R>>(
    (looks, kernel): (&L, &Kernel),
    record: &ThreadRecord,
    want: Want,
    frames: &mut [Frame],
) -> Look<L::Claim> {
    let tid = record.tid();
    let (mark, mut at) = match (want, kernel.mark(record)) {
        (Want::Wait(Some(found)), _) => (found.mark, Some(found.at)),
        (Want::Wait(None), Some(mark)) => (mark, kernel.whereabouts(tid)),
        (Want::Woken(_), Some(mark)) => (mark, None),
        (_, None) => return Look::Gone,
    };
    let (os, fd, registers) = match (want, at) {
        (_, Some(Whereabouts::Off { call, sp, pc })) => {
            let (os, fd) = kernel.os(call);
            (os, fd, Some((sp, pc)))
        }
        // Equal marks are also those of a thread that has run all the time.
        (Want::Woken(_), _) if runs(tid) => return Look::Unclear,
        (Want::Woken(_), _) => (Os::Waiting, None, None),
        (_, Some(Whereabouts::Ready)) => return look_ready((looks, kernel), record),
        (_, None) if runs(tid) => return look_ready((looks, kernel), record),
        (_, None) => (Os::Waiting, None, None),
    };
    let (mut off, mut claim) = looks.look(record, Waiting { os, registers }, frames);
    complete(looks, record, fd, &mut off);
    let fingerprint = match want {
        Want::Wait(_) => fingerprint((looks, kernel), record, &mut at).fingerprint,
        Want::Woken(wait) => {
            // It has what it waited for, or need not wait for it any more.
            (off.detail, claim) = (None, None);
            wait.after_wake_up()
        }
    };
    // After the mark was read the thread was off its processor. An equal mark means it still is.
    match kernel.has_run_since(record, mark) {
        true => Look::Unclear,
        false => Look::Off(Still {
            off,
            claim,
            fingerprint,
            mark,
        }),
    }
}

/// A thread that does not wait, or that was woken during the read of the kernel's file. It then
/// waits for a processor.
fn look_ready<R: Runtime, L: Looks<R>>(
    (looks, kernel): (&L, &Kernel),
    record: &ThreadRecord,
) -> Look<L::Claim> {
    let tid = record.tid();
    let print = || fingerprint((looks, kernel), record, &mut None).fingerprint;
    let before = print();
    let waits_for_one = || kernel.whereabouts(tid) == Some(Whereabouts::Ready);
    match runs(tid) || waits_for_one() {
        true => Look::Ready(Some(print()).filter(|it| *it == before && !it.runs())),
        false => Look::Unclear,
    }
}

/// The fingerprint of a thread, and further data for a read.
pub struct Print {
    /// Its place, or [`Fingerprint::running`].
    pub fingerprint: Fingerprint,
    /// The context of its work, if it has one.
    pub context: Option<Context>,
    /// The thread runs or is ready in native code or in the JVM. This fingerprint is that of its
    /// methods.
    pub native: Option<Fingerprint>,
}

/// The fingerprint and the context of a thread. Whether it has a context, and of which endpoint, is
/// part of the fingerprint: two endpoints may wait at one place for different reasons. `at`: where
/// the thread is; it is read here if it is missing and only the kernel knows that.
#[inline(never)]
pub fn fingerprint<R: Runtime, L: Looks<R>>(
    (looks, kernel): (&L, &Kernel),
    record: &ThreadRecord,
    at: &mut Option<Whereabouts>,
) -> Print {
    let known = looks.fingerprint(record);
    let (fingerprint, mounted) = match known {
        Some((fingerprint, mounted)) => (fingerprint, mounted),
        None => (Fingerprint::of([], false).that_may_run(true), None),
    };
    let context = works_for(looks, record, mounted);
    let endpoint = context.map_or(0, |context| 1 + u64::from(context.endpoint));
    // Code that runs waits in the kernel outside of calls, such as for a page.
    let is_held = matches!(at, Some(Whereabouts::Off { call: None, .. }));
    let fingerprint = match fingerprint.runs() && is_held {
        true => Fingerprint::of([], false).that_may_run(true),
        false => fingerprint,
    };
    let fingerprint = fingerprint.with(endpoint);
    let mut print = Print {
        fingerprint,
        context,
        native: None,
    };
    if fingerprint.may_run() {
        *at = at.or_else(|| kernel.whereabouts(record.tid()));
        print.fingerprint = match kernel.call_words(*at) {
            Some(words) => words.into_iter().fold(fingerprint, Fingerprint::with),
            None => Fingerprint::running(),
        };
        let is_native = print.fingerprint.runs() && known.is_some();
        print.native = is_native.then(|| fingerprint.that_may_run(false));
    }
    print
}

/// Whether a thread is on a processor: then its clock advances between two reads, about 0.3 us
/// apart.
#[inline(never)]
pub fn runs(tid: i32) -> bool {
    let first = cpu_ns_of(tid);
    first.is_ok() && cpu_ns_of(tid) != first
}

/// Adds the mounted logical thread, the context, and the socket or file of the wait.
fn complete<R: Runtime, L: Looks<R>>(
    looks: &L,
    record: &ThreadRecord,
    fd: Option<i32>,
    off: &mut Off,
) {
    off.mounted = looks.mounted(record.managed_thread());
    off.context = works_for(looks, record, off.mounted);
    if let (Monitor::None, Os::Call(Call::On(kind))) = (off.monitor, off.os) {
        off.detail = fd.and_then(|fd| detail_of(fd, kind));
    }
}

/// The context of a platform thread, or of the logical thread that is `mounted` on it.
pub fn works_for<R: Runtime, L: Looks<R>>(
    looks: &L,
    record: &ThreadRecord,
    mounted: Option<u64>,
) -> Option<Context> {
    let context = context_of(mounted.unwrap_or(record.managed_id()));
    context.or_else(|| looks.published(record.managed_thread()))
}

/// Walks the thread that owns what another thread waits for, if it waits as well.
pub fn walk_holder<R: Runtime, L: Looks<R>>(
    looks: &L,
    kernel: &Kernel,
    record: &ThreadRecord,
    frames: &mut [Frame],
) -> Option<Walk> {
    let tid = record.tid();
    let mark = kernel.mark(record)?;
    let Some(Whereabouts::Off { sp, pc, .. }) = kernel.whereabouts(tid) else {
        return None;
    };
    let walk = looks.walk(record, (sp, pc), frames)?;
    (!kernel.has_run_since(record, mark)).then_some(walk)
}

fn detail_of(fd: i32, kind: Fd) -> Option<Box<str>> {
    let text = match kind {
        Fd::Socket => fds::peer(fd),
        Fd::File => fds::path(fd),
    };
    text.map(String::into_boxed_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_price_follows_measured_cost() {
        let pages = Pages::default();
        assert!((pages.price().count(60.0 * PAGE_NS)).abs_diff(60) <= 1);
        for _ in 0..100 {
            pages.spent(10 * PAGE_NS as u64);
        }
        assert!((pages.price().count(60.0 * PAGE_NS)).abs_diff(6) <= 1);
    }

    #[test]
    fn running_thread_is_detected() {
        // This thread's clock advances between two reads.
        assert!(runs(process::own_tid()));
    }
}
