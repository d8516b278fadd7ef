//! One look at one thread: what it does, found out from memory and from the kernel. It is not
//! signalled, stopped or woken, and never notices.
//!
//! A thread whose CPU clock stands where it stood has not run in between: what was seen of it still
//! holds, and is not looked for again. What is read of a thread that waits counts only if its clock
//! has not moved while it was read.

use crate::context::context_of;
use crate::jvm::Vm;
use crate::sys::fds;
use crate::sys::task::TaskFiles;
use crate::vantage;
use dwell_context::Context;
use dwell_signal::sys::cpu_ns_of;
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::cache::PcCache;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::monitors::{self, Contended, Owner};
use dwell_walker::hotspot::objects::{self, Blocker};
use dwell_walker::{Fault, Frame, Memory, Walk};
use dwell_wall::cause::{Call, Fd, Monitor, Os};
use dwell_wall::proc::{self, Target, Whereabouts};

/// Bytes of a class's name that are shown.
const CLASS_NAME_MAX: usize = 256;

/// What is remembered of a thread from look to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before {
    cpu_ns: u64,
    /// Whether it waited, and was walked.
    was_off: bool,
    /// What it wanted, and who had that.
    wanted: Option<(Wanted, Owner)>,
    /// What it had waited for processors in all, and used of them, when that was asked last.
    waited_ns: Option<u64>,
    asked_at_cpu_ns: Option<u64>,
}

impl Before {
    /// Of a thread that began while we were there: it has not waited yet.
    pub fn of_new_thread() -> Before {
        Before {
            waited_ns: Some(0),
            ..Before::default()
        }
    }

    /// Forgets where it was, not what it has used.
    pub fn forget_place(&mut self) {
        self.was_off = false;
        self.wanted = None;
    }
}

/// What a thread waits for that another one may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// An `ObjectMonitor*`.
    Monitor(u64),
    /// A lock of `java.util.concurrent`; which one, its thread says.
    Lock,
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
    /// It would not stand still.
    Unclear,
}

/// A thread that waits.
#[derive(Debug)]
pub struct Off {
    /// In which system call.
    pub os: Os,
    /// What the JVM says of monitors.
    pub monitor: Monitor,
    /// Whether it is parked on a lock that another thread has.
    pub is_owned_lock: bool,
    /// What it wants.
    pub(super) wanted: Option<Wanted>,
    /// Who has that.
    pub owner: Owner,
    /// `Thread.threadId()` of the virtual thread that is mounted, if one is.
    pub mounted: Option<u64>,
    /// The request that it works for.
    pub context: Option<Context>,
    /// What it waits for, in words: a class, a peer, a file.
    pub detail: Option<Box<str>>,
    /// The walk; the frames are in the caller's buffer. None: there is nothing to walk by yet.
    pub walk: Option<Walk>,
}

/// What looking needs.
pub struct Looker<'a> {
    /// The process's memory.
    pub live: Live,
    /// The JVM.
    pub vm: &'a Vm,
    /// What the kernel says.
    pub files: &'a TaskFiles,
    /// What return addresses stand for.
    pub cache: Option<PcCache<'a>>,
    /// Whether processors are scarce: then a thread that was woken may still wait for one.
    pub is_crowded: bool,
}

impl Looker<'_> {
    /// Looks at a thread.
    pub fn look(&self, record: &ThreadRecord, before: &mut Before, frames: &mut [Frame]) -> Look {
        let tid = record.tid();
        let Ok(cpu_ns) = cpu_ns_of(tid) else {
            return Look::Gone;
        };
        let has_run = std::mem::replace(&mut before.cpu_ns, cpu_ns) != cpu_ns;
        if !has_run && before.was_off && self.has_same_owner(record, before) {
            if self.is_crowded && self.whereabouts(tid) == Some(Whereabouts::Ready) {
                return Look::Woken;
            }
            return Look::Same;
        }
        before.was_off = false;
        let (os, on, registers) = match self.whereabouts(tid) {
            Some(Whereabouts::Ready) => return Look::Ready,
            Some(Whereabouts::Off { call, sp, pc }) => {
                let (os, on) = self.os(call);
                (os, on, Some((sp, pc)))
            }
            None => (Os::Waiting, None, None),
        };
        let off = self.off(record, (os, on), registers, frames);
        if cpu_ns_of(tid) != Ok(cpu_ns) {
            return Look::Unclear;
        }
        // Nothing to walk by yet: the next look shall try again.
        before.was_off = off.walk.is_some();
        before.wanted = off.wanted.map(|wanted| (wanted, off.owner));
        Look::Off(off)
    }

    /// A monitor or a lock may pass from one thread to another while a third one goes on waiting.
    fn has_same_owner(&self, record: &ThreadRecord, before: &Before) -> bool {
        match before.wanted {
            Some((Wanted::Monitor(monitor), owner)) => {
                monitors::owner(&self.live, &self.vm.layout, monitor) == Ok(owner)
            }
            Some((Wanted::Lock, owner)) => {
                let blocker = self.blocker(record.java_thread());
                blocker.is_ok_and(|blocker| blocker.is_some_and(|it| self.owner_of(&it) == owner))
            }
            None => true,
        }
    }

    /// Walks the thread that has what another waits for, if it waits as well.
    pub fn walk_owner(&self, record: &ThreadRecord, frames: &mut [Frame]) -> Option<Walk> {
        let tid = record.tid();
        let cpu_ns = cpu_ns_of(tid).ok()?;
        let Some(Whereabouts::Off { sp, pc, .. }) = self.whereabouts(tid) else {
            return None;
        };
        let registers = Some((sp, pc));
        let walk = vantage::walk_waiting(&self.live, record, registers, self.cache, frames)?;
        (cpu_ns_of(tid) == Ok(cpu_ns)).then_some(walk)
    }

    fn whereabouts(&self, tid: i32) -> Option<Whereabouts> {
        let mut buf = [0u8; 256];
        proc::whereabouts(self.files.read(tid, "syscall", &mut buf)?)
    }

    /// How long the thread waited for a processor since this was asked last, if it has run since.
    /// The kernel adds a wait when it is over, so what a thread still waits is told later.
    pub fn waited_ns(&self, tid: i32, before: &mut Before) -> u64 {
        if before.asked_at_cpu_ns == Some(before.cpu_ns) {
            return 0;
        }
        let mut buf = [0u8; 128];
        let text = self.files.read(tid, "schedstat", &mut buf);
        let Some(now) = text.and_then(proc::schedule) else {
            return 0;
        };
        before.asked_at_cpu_ns = Some(before.cpu_ns);
        let then = before.waited_ns.replace(now.waited_ns);
        now.waited_ns.saturating_sub(then.unwrap_or(now.waited_ns))
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

    fn off(
        &self,
        record: &ThreadRecord,
        (os, fd): (Os, Option<i32>),
        registers: Option<(u64, u64)>,
        frames: &mut [Frame],
    ) -> Off {
        let thread = record.java_thread();
        let layout = &self.vm.layout;
        let walk = vantage::walk_waiting(&self.live, record, registers, self.cache, frames);
        let mut off = Off {
            os,
            monitor: Monitor::None,
            is_owned_lock: false,
            wanted: None,
            owner: Owner::Nobody,
            mounted: None,
            context: None,
            detail: None,
            walk,
        };
        off.mounted = self.mounted(thread).unwrap_or(None);
        off.context = context_of(off.mounted.unwrap_or(record.java_id()));
        let contended = match thread {
            0 => None,
            _ => monitors::contended(&self.live, layout, thread).unwrap_or(None),
        };
        match (contended, os) {
            (Some(Contended::Entering(monitor)), _) => {
                off.monitor = Monitor::Entering;
                off.wanted = Some(Wanted::Monitor(monitor));
                let owner = monitors::owner(&self.live, layout, monitor);
                off.owner = owner.unwrap_or(Owner::Nobody);
                off.detail = self.monitor_text(monitor);
            }
            (Some(Contended::Waiting(monitor)), _) => {
                off.monitor = Monitor::Waiting;
                off.detail = self.monitor_text(monitor);
            }
            (None, Os::Call(Call::On(kind))) => off.detail = fd.and_then(|fd| told(fd, kind)),
            (None, Os::Call(Call::Futex) | Os::Waiting) if thread != 0 => {
                self.parked(thread, &mut off)
            }
            (None, _) => {}
        }
        off
    }

    /// The virtual thread that runs, or waits, on this platform thread.
    pub fn mounted(&self, thread: u64) -> Result<Option<u64>, Fault> {
        let layout = &self.vm.layout;
        let field = |offset: u64| match present(offset) && thread != 0 {
            true => self.live.word(thread.wrapping_add(offset)),
            false => Ok(0),
        };
        if !present(layout.thread_vthread) || field(layout.extra.cont_entry)? == 0 {
            return Ok(None);
        }
        let id = match field(layout.thread_owner_id)? {
            0 => {
                let objects = &layout.extra.objects;
                let object = objects::of_logical_thread(&self.live, layout, objects, thread)?;
                objects::thread_id(&self.live, objects, object)?
            }
            id => id,
        };
        Ok((id != 0).then_some(id))
    }

    /// What a parked thread is parked on.
    fn parked(&self, thread: u64, off: &mut Off) {
        if let Ok(Some(blocker)) = self.blocker(thread) {
            self.parked_on(&blocker, thread, off);
        }
    }

    /// What is parked on `blocker`, by a platform thread or (0) another one.
    pub(super) fn parked_on(&self, blocker: &Blocker, thread: u64, off: &mut Off) {
        off.detail = self.class_text(blocker.class).map(String::into_boxed_str);
        off.owner = self.owner_of(blocker);
        off.is_owned_lock = off.owner != Owner::Nobody && off.owner != Owner::Thread(thread);
        if off.is_owned_lock {
            off.wanted = Some(Wanted::Lock);
        } else {
            off.owner = Owner::Nobody;
        }
    }

    fn blocker(&self, thread: u64) -> Result<Option<Blocker>, Fault> {
        let (layout, objects) = (&self.vm.layout, &self.vm.layout.extra.objects);
        let object = objects::of_logical_thread(&self.live, layout, objects, thread)?;
        objects::blocker(&self.live, layout, objects, object)
    }

    fn owner_of(&self, blocker: &Blocker) -> Owner {
        let objects = &self.vm.layout.extra.objects;
        if blocker.owner == 0 {
            return Owner::Nobody;
        }
        match objects::java_thread(&self.live, objects, blocker.owner) {
            Ok(0) => objects::thread_id(&self.live, objects, blocker.owner)
                .map_or(Owner::Nobody, Owner::Id),
            Ok(thread) => Owner::Thread(thread),
            Err(_) => Owner::Nobody,
        }
    }

    /// A monitor's class, and which one it is: where the JVM keeps it while threads contend.
    fn monitor_text(&self, monitor: u64) -> Option<Box<str>> {
        let (layout, objects) = (&self.vm.layout, &self.vm.layout.extra.objects);
        let object = monitors::object(&self.live, layout, monitor).ok()?;
        let class = objects::class_of(&self.live, layout, objects.class_word, object).ok()?;
        let text = self.class_text(class)?;
        Some(format!("{text}@{monitor:x}").into_boxed_str())
    }

    fn class_text(&self, class: u64) -> Option<String> {
        let mut buf = [0u8; CLASS_NAME_MAX];
        let name = objects::class_name(&self.live, &self.vm.layout, class, &mut buf).ok()?;
        // Garbage is not shown: a class name has no control characters and some letters.
        let text = std::str::from_utf8(name).ok()?;
        let is_name = !text.is_empty() && !text.chars().any(char::is_control);
        is_name.then(|| text.replace('/', "."))
    }
}

fn told(fd: i32, kind: Fd) -> Option<Box<str>> {
    let text = match kind {
        Fd::Socket => fds::peer(fd),
        Fd::File => fds::path(fd),
    };
    text.map(String::into_boxed_str)
}
