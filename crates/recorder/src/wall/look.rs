//! One look at one thread: what it does, found out from memory and from the kernel. It is not
//! signalled, stopped or woken, and never notices.
//!
//! A thread whose CPU clock stands where it stood has not run in between: what was seen of it still
//! holds, and is not looked for again. What is read of a thread that waits counts only if its clock
//! has not moved while it was read.

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

/// The kernel's account of a thread's turns is asked for so often where it has little to tell.
const SCHEDULE_NS: u64 = 250_000_000;

/// Pages that tell threads' turns, at most: each is a mapping, of which a process may have 65,530
/// (`vm.max_map_count`), ...
const PAGES_MAX: u32 = 16_384;
/// ... and counts as locked memory, of which those who are not root have little
/// (`kernel.perf_event_mlock_kb`); rings of kernel frames need it as well.
const PAGES_MAX_OF_USERS: u32 = 64;
/// What mapping one is taken to cost before one was mapped.
const PAGE_NS: f64 = 6000.0;
/// How many of the last answers are remembered.
const ANSWERS_MAX: i32 = 1000;

/// How much a thread has run: if that is the same at two moments, it has not run in between, or all
/// the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Its turns on processors, which cost next to nothing to read.
    Turns(Turns),
    /// The time that it has used, in ns.
    Clock(u64),
}

/// What is remembered of a thread from look to look.
#[derive(Clone, Copy, Debug)]
pub struct Before<C> {
    /// What it had run when it was looked at.
    mark: Option<Mark>,
    /// Whether it waited, and was walked.
    was_off: bool,
    /// What it wanted, and who had that.
    claim: Option<C>,
    /// Whether it waited when it was seen last and has run since, which is not asked about yet.
    was_woken: bool,
    /// What the kernel said of its turns, and what it had run, when that was asked last.
    schedule: Option<Schedule>,
    asked_at: Option<Mark>,
    asked_at_ns: u64,
}

impl<C> Default for Before<C> {
    fn default() -> Before<C> {
        Before {
            mark: None,
            was_off: false,
            claim: None,
            was_woken: false,
            schedule: None,
            asked_at: None,
            asked_at_ns: 0,
        }
    }
}

impl<C> Before<C> {
    /// Of a thread that began while we were there: it has not waited yet.
    #[must_use]
    pub fn of_new_thread() -> Before<C> {
        Before {
            schedule: Some(Schedule::default()),
            ..Before::default()
        }
    }

    /// What it had run when it was looked at last.
    #[must_use]
    pub fn mark(&self) -> Option<Mark> {
        self.mark
    }

    /// Whether it has run since the look that found `last`; not of who was never looked at.
    #[must_use]
    pub fn has_run_since(&self, last: Option<Mark>) -> bool {
        last.is_some() && last != self.mark
    }

    /// Whether it waited when it was looked at last, and where is known.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.was_off
    }

    /// Forgets where it was, not what it has used.
    pub fn forget_place(&mut self) {
        self.was_off = false;
        self.claim = None;
    }

    /// Its turns when it was looked at last, if it has not left that place since as long as these
    /// stay the same: nobody has what it waits for.
    #[must_use]
    pub fn turns_alone(&self) -> Option<Turns> {
        match self.mark {
            Some(Mark::Turns(turns)) if self.was_off && self.claim.is_none() => Some(turns),
            _ => None,
        }
    }

    /// What it wants that another one may have.
    #[must_use]
    pub fn claim(&self) -> Option<&C> {
        self.claim.as_ref()
    }
}

/// What a look shows.
#[derive(Debug)]
pub enum Look {
    /// The thread is no more.
    Gone,
    /// It has not run since the last look, and still waits where it did.
    Same,
    /// It has not run since the last look, but is ready to: it waits for a processor.
    Woken,
    /// It runs, or waits for a processor.
    Ready,
    /// It waits.
    Off(Off),
    /// It was on no processor, and ready for one a moment later.
    Passing,
    /// It waited, but would not stand still.
    Unclear,
}

impl Look {
    /// Whether the thread runs or is ready to.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(
            self,
            Look::Woken | Look::Ready | Look::Passing | Look::Unclear
        )
    }
}

/// What the kernel says of threads.
pub struct Kernel {
    engine: &'static Engine,
    live: Live,
    files: TaskFiles,
    kept: [RefCell<KeptFiles>; 2],
    /// Whether those who are asked now will be asked again soon.
    keeps: Cell<bool>,
    /// Whether processors are scarce: then a thread that was woken may still wait for one.
    is_crowded: bool,
    own_waited_ns: u64,
    pages: Pages,
}

/// How threads' turns are read.
#[derive(Default)]
struct Pages {
    /// So many can be mapped, unless more are refused.
    most: u32,
    are_refused: Cell<bool>,
    /// Of the last ones, by how many more a page answered than not.
    answered: Cell<i32>,
    /// How often a page has answered, in all.
    told: Cell<u32>,
    /// So many more may be mapped now.
    allowed: Cell<u32>,
    /// What mapping one costs, and what those have cost that were mapped since that was asked last.
    price: Cell<Option<Price>>,
    spent_ns: Cell<u64>,
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
        self.spent_ns.set(self.spent_ns.get() + cpu_ns);
    }

    /// A page, or not, has told whether a thread has run.
    fn told(&self, by_page: bool) {
        let answered = self.answered.get() + if by_page { 1 } else { -1 };
        self.answered.set(answered.clamp(-ANSWERS_MAX, ANSWERS_MAX));
        self.told
            .set(self.told.get().wrapping_add(u32::from(by_page)));
    }
}

impl Kernel {
    /// Opens what has to be asked; `maps_turns`: whether threads' pages are mapped.
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

    /// A thread's turns on processors; maps the page that tells them if that has not been done.
    fn turns(&self, record: &ThreadRecord) -> Option<Turns> {
        let pages = &self.pages;
        let allowed = pages.allowed.get();
        if allowed > 0 && self.maps_pages() && self.engine.wants_page(record) {
            pages.allowed.set(allowed - 1);
            let before = process::own_cpu();
            // What the record shows may be another thread's by now: its page is as good.
            let whose = self.engine.record(record.index());
            let refused = whose.is_some_and(|record| self.engine.attach_page(record).is_err());
            pages.are_refused.set(refused);
            pages.spent((process::own_cpu() - before).as_nanos() as u64);
        }
        self.engine.turns(record)
    }

    /// So many pages may be mapped from now on: each costs some 5 us, or ten times that beside
    /// thousands of threads, which one who is asked now and then is not worth.
    pub fn allow_pages(&self, count: u32) {
        self.pages.allowed.set(count);
    }

    /// How many can be had for so much.
    #[must_use]
    pub fn pages_for(&self, may_ns: f64) -> u32 {
        u32::try_from(self.pages.price().count(may_ns)).unwrap_or(u32::MAX)
    }

    /// What mapping pages has cost since this was asked last.
    pub fn take_pages_cpu_ns(&self) -> u64 {
        self.pages.spent_ns.take()
    }

    /// Whether there may be more pages at all.
    #[must_use]
    pub fn maps_pages(&self) -> bool {
        !self.pages.are_refused.get() && self.engine.pages() < self.pages.most
    }

    /// How many are left of those that may be mapped.
    #[must_use]
    pub fn pages_allowed(&self) -> u32 {
        self.pages.allowed.get()
    }

    /// Of a thread that has not run since `before`: its turns are asked for from now on, if they
    /// can be.
    pub fn ask_by_page<C>(&self, record: &ThreadRecord, before: &mut Before<C>) {
        let Some(Mark::Clock(clock_ns)) = before.mark else {
            return;
        };
        if self.pages.allowed.get() == 0 || !self.engine.wants_page(record) {
            return;
        }
        let turns = self.turns(record).map(Mark::Turns);
        // If it has not run until now, it had not when its turns were read.
        if turns.is_some() && cpu_ns_of(record.tid()) == Ok(clock_ns) {
            if before.asked_at == before.mark {
                before.asked_at = turns;
            }
            before.mark = turns;
        }
    }

    /// Pages have told of so many threads whether they have run.
    pub fn add_told(&self, count: usize) {
        let told = self.pages.told.get();
        self.pages.told.set(told.wrapping_add(count as u32));
    }

    /// How often a page has told whether a thread has run, since this was asked last.
    pub fn take_told(&self) -> u32 {
        self.pages.told.take()
    }

    /// Whether most threads' turns can be read.
    #[must_use]
    pub fn tells_turns(&self) -> bool {
        self.pages.answered.get() > 0
    }

    /// How much a thread has run; `None` if it is no more.
    fn mark(&self, record: &ThreadRecord) -> Option<Mark> {
        match self.turns(record) {
            Some(turns) => Some(Mark::Turns(turns)),
            None => cpu_ns_of(record.tid()).ok().map(Mark::Clock),
        }
    }

    /// Of a thread that is not looked at, and not where it was seen last: what it has run; `None`
    /// if it is no more.
    pub fn note_moved<C>(&self, record: &ThreadRecord, before: &mut Before<C>) -> Option<()> {
        before.mark = Some(self.mark(record)?);
        before.was_woken |= before.was_off;
        before.forget_place();
        Some(())
    }

    /// Whether a thread has run since `before`; also if that cannot be known.
    fn has_run_since(&self, record: &ThreadRecord, before: Mark) -> bool {
        match before {
            Mark::Turns(before) => self.engine.turns(record) != Some(before),
            Mark::Clock(before_ns) => cpu_ns_of(record.tid()) != Ok(before_ns),
        }
    }

    /// Whether a thread that waited when it was looked at last has run since.
    #[must_use]
    pub fn has_run<C>(&self, record: &ThreadRecord, before: &Before<C>) -> bool {
        let by_page = matches!(before.mark, Some(Mark::Turns(_)));
        self.pages.told(by_page);
        before
            .mark
            .is_none_or(|mark| self.has_run_since(record, mark))
    }

    /// Whether a thread that waited is ready again, and waits for a processor: asked where these
    /// are scarce, and of threads that are asked often.
    #[must_use]
    pub fn is_woken(&self, tid: i32) -> bool {
        // Who rests is hardly ever woken just now, and would be asked in vain.
        self.is_crowded && self.keeps.get() && self.whereabouts(tid) == Some(Whereabouts::Ready)
    }

    /// Looks at what this thread itself had to wait for a processor.
    pub fn mind_the_crowd(&mut self) {
        let mut buf = [0u8; 128];
        let text = self.files.read(process::own_tid(), "schedstat", &mut buf);
        if let Some(schedule) = text.and_then(proc::schedule) {
            let waited_ns = schedule.waited_ns.saturating_sub(self.own_waited_ns);
            self.own_waited_ns = schedule.waited_ns;
            self.is_crowded = waited_ns >= CROWDED_NS;
        }
    }

    /// Says whether those who are asked from now on will be asked again soon: their files stay open
    /// then.
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

    fn whereabouts(&self, tid: i32) -> Option<Whereabouts> {
        let mut buf = [0u8; 256];
        proc::whereabouts(self.read(tid, "syscall", &mut buf)?)
    }

    /// In which system call a thread waits, where, and on which descriptor, as words that differ
    /// where one of these does.
    #[must_use]
    pub fn call_of(&self, tid: i32) -> [u64; 3] {
        match self.whereabouts(tid) {
            Some(Whereabouts::Off { call, sp, pc }) => {
                let on = match call {
                    Some(Target::Descriptor(fd)) => Some(fd),
                    Some(Target::Poll { fds, count: 1 }) => self.live.i32(fds).ok(),
                    _ => None,
                };
                [
                    sp,
                    pc,
                    on.map_or(u64::MAX, |fd| u64::from(fd.cast_unsigned())),
                ]
            }
            Some(Whereabouts::Ready) => [1, 0, 0],
            None => [0; 3],
        }
    }

    /// The kernel's account of a thread.
    pub fn schedule(&self, tid: i32) -> Option<Schedule> {
        let mut buf = [0u8; 128];
        proc::schedule(self.read(tid, "schedstat", &mut buf)?)
    }

    /// How long the thread waited for a processor since this was asked last, if it has run since,
    /// and how much of that after it was woken where it was seen last. The kernel adds a wait when
    /// it is over, so what a thread still waits is told later.
    /// Where processors are not scarce there is little to tell, and it is not asked every time.
    pub fn waited_ns<C>(&self, tid: i32, before: &mut Before<C>, now_ns: u64) -> (u64, u64) {
        if before.asked_at.is_some() && before.asked_at == before.mark {
            return (0, 0);
        }
        let was_asked = now_ns.saturating_sub(before.asked_at_ns) < SCHEDULE_NS;
        if !self.is_crowded && was_asked {
            return (0, 0);
        }
        let passed_ns = now_ns.saturating_sub(before.asked_at_ns);
        before.asked_at_ns = now_ns;
        let Some(now) = self.schedule(tid) else {
            return (0, 0);
        };
        before.asked_at = before.mark;
        let was_woken = std::mem::take(&mut before.was_woken);
        let then = before.schedule.replace(now);
        now.waited_since(&then.unwrap_or(now), was_woken, passed_ns)
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

/// Looks at a thread.
pub fn look<R: Runtime, L: Looks<R>>(
    looks: &L,
    kernel: &Kernel,
    record: &ThreadRecord,
    before: &mut Before<L::Claim>,
    frames: &mut [Frame],
) -> Look {
    let tid = record.tid();
    let Some(mark) = kernel.mark(record) else {
        return Look::Gone;
    };
    let has_run = before.mark.replace(mark) != Some(mark);
    // A monitor or a lock may pass from one thread to another while a third one goes on waiting.
    let is_still = |claim| looks.is_still(record, claim);
    if !has_run && before.was_off && before.claim.as_ref().is_none_or(is_still) {
        return match kernel.is_woken(tid) {
            true => Look::Woken,
            false => Look::Same,
        };
    }
    before.was_woken |= before.was_off;
    before.was_off = false;
    if runs(tid) {
        return Look::Ready;
    }
    let (os, fd, registers) = match kernel.whereabouts(tid) {
        // It waits for a processor, or has been woken while the kernel's file was read. Where
        // processors are scarce it is the former.
        Some(Whereabouts::Ready) if kernel.is_crowded => return Look::Ready,
        Some(Whereabouts::Ready) => return Look::Passing,
        Some(Whereabouts::Off { call, sp, pc }) => {
            let (os, fd) = kernel.os(call);
            (os, fd, Some((sp, pc)))
        }
        None => (Os::Waiting, None, None),
    };
    let (mut off, claim) = looks.look(record, Waiting { os, registers }, frames);
    complete(looks, record, fd, &mut off);
    // It was off its processor after the mark was read, and has been since.
    if kernel.has_run_since(record, mark) {
        return Look::Unclear;
    }
    // Nothing to walk by yet: the next look shall try again.
    before.was_off = off.walk.is_some();
    before.claim = claim;
    Look::Off(off)
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
    fn who_was_never_looked_at_has_not_run_since() {
        let mut before = Before::<()>::default();
        assert!(!before.has_run_since(None));
        before.mark = Some(Mark::Clock(10));
        assert!(!before.has_run_since(None));
        assert!(!before.has_run_since(Some(Mark::Clock(10))));
        assert!(before.has_run_since(Some(Mark::Clock(9))));
    }

    #[test]
    fn a_place_that_is_forgotten_keeps_what_was_used() {
        let mut before = Before {
            mark: Some(Mark::Clock(10)),
            was_off: true,
            claim: Some("lock"),
            ..Before::default()
        };
        assert!(before.is_off() && before.claim() == Some(&"lock"));
        before.forget_place();
        assert!(!before.is_off() && before.claim().is_none());
        assert_eq!(before.mark(), Some(Mark::Clock(10)));
    }

    #[test]
    fn only_a_thread_that_began_beside_us_is_known_to_have_waited_for_nothing() {
        assert_eq!(Before::<()>::default().schedule, None);
        let new = Before::<()>::of_new_thread();
        assert_eq!(new.schedule, Some(Schedule::default()));
    }

    #[test]
    fn answers_of_pages_are_counted_and_old_ones_weigh_little() {
        let pages = Pages::default();
        for _ in 0..5000 {
            pages.told(true);
        }
        assert_eq!(
            (pages.told.get(), pages.answered.get()),
            (5000, ANSWERS_MAX)
        );
        for _ in 0..=ANSWERS_MAX {
            pages.told(false);
        }
        assert_eq!((pages.told.get(), pages.answered.get()), (5000, -1));
    }

    #[test]
    fn who_may_run_is_told_from_who_waits() {
        for look in [Look::Woken, Look::Ready, Look::Unclear] {
            assert!(look.is_ready(), "{look:?}");
        }
        for look in [
            Look::Gone,
            Look::Same,
            Look::Off(Off::at(Os::Waiting, None)),
        ] {
            assert!(!look.is_ready(), "{look:?}");
        }
    }
}
