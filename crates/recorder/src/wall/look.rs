//! One look at a thread that waits, from memory and from the kernel; and what the kernel says of
//! threads.

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
use std::cell::{Cell, RefCell};

/// Processors are scarce when this thread itself had to wait for one for so long in the ticks
/// between two questions: 200 us each, twice what waking up takes where there are some to spare.
const CROWDED_NS: u64 = 5_000_000;

/// What reading one of the kernel's files of a thread costs, in ns.
pub const ASK_NS: f64 = 8000.0;

/// Pages that tell threads' turns, at most: each is a mapping, of which a process may have 65,530
/// (`vm.max_map_count`), ...
const PAGES_MAX: u32 = 16_384;
/// ... and counts as locked memory, of which those who are not root have little
/// (`kernel.perf_event_mlock_kb`); rings of kernel frames need it as well.
const PAGES_MAX_OF_USERS: u32 = 64;
/// What mapping one is taken to cost before one was mapped.
const PAGE_NS: f64 = 6000.0;
/// How much a thread has run: if that is the same at two moments, it has not run in between, or all
/// the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Its turns on processors, which cost next to nothing to read.
    Turns(Turns),
    /// The time that it has used, in ns.
    Clock(u64),
}

/// What one sample shows.
#[derive(Debug)]
pub enum Look<C> {
    /// The thread is no more.
    Gone,
    /// It runs, or waits for a processor.
    Ready,
    /// It waits for this, which may pass from one thread to another; it had run this much.
    Off(Off, Option<C>, Mark),
    /// It waited, but did not stand still.
    Unclear,
}

/// What the kernel says of threads.
pub struct Kernel {
    engine: &'static Engine,
    live: Live,
    files: TaskFiles,
    kept: [RefCell<KeptFiles>; 2],
    /// Whether the threads that are read now will be read again soon.
    keeps: Cell<bool>,
    /// Whether processors are scarce: then a thread that was woken may still wait for one; and
    /// whether the kernel is asked for that at each read.
    is_crowded: bool,
    asks: bool,
    own_waited_ns: u64,
    pages: Pages,
}

/// The mapped pages that count threads' turns on processors.
#[derive(Default)]
struct Pages {
    /// So many can be mapped, unless more are refused.
    most: u32,
    are_refused: Cell<bool>,
    /// Answers since [`Kernel::take_told`].
    told: Cell<u32>,
    /// So many more may be mapped now.
    allowed: Cell<u32>,
    /// Cost of mapping one.
    price: Cell<Option<Price>>,
}

impl Pages {
    fn price(&self) -> Price {
        self.price.get().unwrap_or(Price::of(PAGE_NS))
    }

    /// One was mapped.
    fn spent(&self, cpu_ns: u64) {
        let mut price = self.price();
        price.spent(1, cpu_ns);
        self.price.set(Some(price));
    }
}

impl Kernel {
    /// Opens the kernel's files; `maps_turns`: whether threads' pages are mapped.
    #[must_use]
    pub fn open(engine: &'static Engine, maps_turns: bool) -> Kernel {
        let live = engine.live();
        Kernel {
            engine,
            live,
            files: TaskFiles::open(),
            kept: ["syscall", "schedstat"].map(|name| RefCell::new(KeptFiles::new(name))),
            keeps: Cell::new(false),
            is_crowded: false,
            asks: false,
            own_waited_ns: 0,
            pages: Pages {
                most: match process::is_root() {
                    true => PAGES_MAX,
                    false => PAGES_MAX_OF_USERS,
                },
                are_refused: Cell::new(!maps_turns),
                ..Pages::default()
            },
        }
    }

    /// How much a thread has run: by its page, which is mapped first if it `may_map` and that is
    /// allowed; by its clock if there is no page and `by_clock`. `None`: not known.
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
            self.pages.told.set(self.pages.told.get().wrapping_add(1));
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

    /// So many pages may be mapped from now on: each costs some 5 us, or ten times that with
    /// thousands of threads.
    pub fn allow_pages(&self, count: u32) {
        self.pages.allowed.set(count);
    }

    /// How many can be had for so much CPU time.
    #[must_use]
    pub fn pages_for(&self, may_ns: f64) -> u32 {
        u32::try_from(self.pages.price().count(may_ns)).unwrap_or(u32::MAX)
    }

    /// Whether there may be more pages at all.
    #[must_use]
    pub fn maps_pages(&self) -> bool {
        !self.pages.are_refused.get() && self.engine.pages() < self.pages.most
    }

    /// How often a page has answered since the last call.
    pub fn take_told(&self) -> u32 {
        self.pages.told.take()
    }

    /// How much a thread has run; `None` if it is no more.
    fn mark(&self, record: &ThreadRecord) -> Option<Mark> {
        match self.engine.turns(record) {
            Some(turns) => Some(Mark::Turns(turns)),
            None => cpu_ns_of(record.tid()).ok().map(Mark::Clock),
        }
    }

    /// Whether a thread has run since `before`; also if that cannot be known.
    fn has_run_since(&self, record: &ThreadRecord, before: Mark) -> bool {
        match before {
            Mark::Turns(before) => self.engine.turns(record) != Some(before),
            Mark::Clock(before_ns) => cpu_ns_of(record.tid()) != Ok(before_ns),
        }
    }

    /// Checks how long this thread itself had to wait for a processor. Then each read of so many
    /// threads a tick asks whether the thread is ready, if that takes at most `may_ns`.
    pub fn check_crowd(&mut self, lively: usize, may_ns: f64) {
        let mut buf = [0u8; 128];
        let text = self.files.read(process::own_tid(), "schedstat", &mut buf);
        if let Some(schedule) = text.and_then(proc::schedule) {
            let waited_ns = schedule.waited_ns.saturating_sub(self.own_waited_ns);
            self.own_waited_ns = schedule.waited_ns;
            self.is_crowded = waited_ns >= CROWDED_NS;
            self.asks = self.is_crowded && lively as f64 * ASK_NS <= may_ns;
        }
    }

    /// Says whether the threads that are read from now on will be read again soon: their files stay
    /// open then.
    pub fn keep_files(&self, keeps: bool) {
        self.keeps.set(keeps);
    }

    fn read<'b>(&self, tid: i32, name: &str, buf: &'b mut [u8]) -> Option<&'b [u8]> {
        let mut kept = self.kept.iter().map(RefCell::borrow_mut);
        match kept.find(|kept| self.keeps.get() && kept.name() == name) {
            Some(mut kept) => kept.read(&self.files, tid, buf),
            None => self.files.read(tid, name, buf),
        }
    }

    /// Whether reads ask for threads that are ready. If not, the kernel's account has to say how
    /// long they were.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether a thread that the runtime takes for waiting is ready to run; asked where processors
    /// are scarce.
    pub fn is_ready(&self, tid: i32) -> bool {
        self.asks && self.whereabouts(tid) == Some(Whereabouts::Ready)
    }

    fn whereabouts(&self, tid: i32) -> Option<Whereabouts> {
        let mut buf = [0u8; 256];
        proc::whereabouts(self.read(tid, "syscall", &mut buf)?)
    }

    /// In which system call a thread waits, where, and on which descriptor, as words that differ
    /// where one of these does; `None`: it runs, or is ready to.
    #[must_use]
    pub fn call_of(&self, tid: i32) -> Option<[u64; 3]> {
        match self.whereabouts(tid) {
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

    /// What kind of call it is, and on which descriptor.
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

/// Samples a thread: it is not signalled, stopped or woken. What is read counts only if it has not
/// run meanwhile.
pub fn look<R: Runtime, L: Looks<R>>(
    looks: &L,
    kernel: &Kernel,
    record: &ThreadRecord,
    frames: &mut [Frame],
) -> Look<L::Claim> {
    let tid = record.tid();
    let Some(mark) = kernel.mark(record) else {
        return Look::Gone;
    };
    if runs(tid) {
        return Look::Ready;
    }
    let (os, fd, registers) = match kernel.whereabouts(tid) {
        // It waits for a processor, or has been woken while the kernel's file was read. Where
        // processors are scarce it is the former.
        Some(Whereabouts::Ready) if kernel.is_crowded => return Look::Ready,
        Some(Whereabouts::Ready) => return Look::Unclear,
        Some(Whereabouts::Off { call, sp, pc }) => {
            let (os, fd) = kernel.os(call);
            (os, fd, Some((sp, pc)))
        }
        None => (Os::Waiting, None, None),
    };
    let (mut off, claim) = looks.look(record, Waiting { os, registers }, frames);
    complete(looks, record, fd, &mut off);
    // It was off its processor after the mark was read, and has been since.
    match kernel.has_run_since(record, mark) {
        true => Look::Unclear,
        false => Look::Off(off, claim, mark),
    }
}

/// Whether a thread is on a processor: then its clock moves between two questions, some 0.3 us
/// apart.
fn runs(tid: i32) -> bool {
    let first = cpu_ns_of(tid);
    first.is_ok() && cpu_ns_of(tid) != first
}

/// Adds who it is, what it works for, and on what it waits.
fn complete<R: Runtime, L: Looks<R>>(
    looks: &L,
    record: &ThreadRecord,
    fd: Option<i32>,
    off: &mut Off,
) {
    off.mounted = looks.mounted(record.managed_thread());
    off.context = works_for(looks, record, off.mounted);
    if let (Monitor::None, Os::Call(Call::On(kind))) = (off.monitor, off.os) {
        off.detail = fd.and_then(|fd| told(fd, kind));
    }
}

/// What a platform thread, or the logical one that is `mounted` on it, works for.
pub fn works_for<R: Runtime, L: Looks<R>>(
    looks: &L,
    record: &ThreadRecord,
    mounted: Option<u64>,
) -> Option<Context> {
    let context = context_of(mounted.unwrap_or(record.managed_id()));
    context.or_else(|| looks.published(record.managed_thread()))
}

/// Walks the thread that has what another waits for, if it waits as well.
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

fn told(fd: i32, kind: Fd) -> Option<Box<str>> {
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
    fn price_of_a_page_follows_what_pages_cost() {
        let pages = Pages::default();
        assert!((pages.price().count(60.0 * PAGE_NS)).abs_diff(60) <= 1);
        for _ in 0..100 {
            pages.spent(10 * PAGE_NS as u64);
        }
        assert!((pages.price().count(60.0 * PAGE_NS)).abs_diff(6) <= 1);
    }

    #[test]
    fn running_thread_is_found_to_run() {
        // This thread's clock moves between two questions.
        assert!(runs(process::own_tid()));
    }
}
