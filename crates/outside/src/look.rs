//! One look at one thread: reads its state and its stack once. The thread does not notice.
//!
//! A thread that waits is read in place. If the scheduler's counters show that it ran during the
//! read, the result is discarded. Of a running thread, only the part from its last Java frame on
//! does not change.

use crate::memory::{Common, PAGE, Pages};
use crate::names::shown_class;
use crate::task::{Clock, Sockets, Tasks};
use crate::vm::Vm;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::monitors::{self, Contended, Owner};
use dwell_walker::hotspot::objects::{self, Blocker};
use dwell_walker::hotspot::threads as vm_threads;
use dwell_walker::native::NativeRegs;
use dwell_walker::{
    Anchor, Failure, Frame, Frames, Host, Memory, Outcome, Regs, ThreadContext, Walk, Walker,
};
use dwell_wall::cause::{Call, Monitor, Os};
use dwell_wall::proc::{Schedule, Whereabouts};
use std::rc::Rc;

/// Maximum number of frames of a thread.
pub const FRAMES_MAX: usize = 4096;
/// Bytes of a stack that are copied at once; deeper parts are read when they are needed.
const STACK_BYTES_MAX: u64 = 256 << 10;
/// The compiler may keep data below the stack pointer (System V AMD64 ABI).
const RED_ZONE: u64 = 128;
/// Maximum number of reads of a thread that keeps running.
pub(crate) const TRIES: usize = 4;

/// Object of the wait of a thread that was stopped while it ran.
pub const STOPPED: &str = "stopped";

/// A thread to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whom {
    /// Its kernel id, in our namespace.
    pub tid: i32,
    /// Its `JavaThread*`; 0 for a thread of the VM or of a library.
    pub java_thread: u64,
}

/// The JVM's state of a thread (`JavaThreadState`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VmState {
    /// It runs Java code.
    Java,
    /// In the VM.
    Vm,
    /// In native code.
    Native,
    /// Blocked in the VM.
    Blocked,
    /// Starting, or between two states.
    Other,
}

impl VmState {
    /// The state as text.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            VmState::Java => "in Java",
            VmState::Vm => "in the VM",
            VmState::Native => "in native code",
            VmState::Blocked => "blocked in the VM",
            VmState::Other => "between states",
        }
    }
}

/// An object that a thread waits for and another one may own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The object's address at that moment.
    pub object: u64,
    /// Its class, with dots.
    pub class: Option<String>,
    /// The owner, if another thread owns it.
    pub owner: Option<Owner>,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub struct Trail {
    /// Frames, innermost first.
    pub frames: Vec<Frame>,
    /// Index of the first frame of each stack frame, and the registers there.
    pub(crate) places: Vec<(usize, NativeRegs)>,
}

impl Frames for Trail {
    fn room(&self) -> usize {
        FRAMES_MAX
    }

    fn set(&mut self, index: usize, frame: Frame) -> bool {
        // If a step is withdrawn, later frames overwrite it.
        self.frames.truncate(index);
        let is_next = self.frames.len() == index && index < FRAMES_MAX;
        if is_next {
            self.frames.push(frame);
        }
        is_next
    }

    fn begins(&mut self, index: usize, at: NativeRegs) {
        self.places.push((index, at));
    }
}

/// The result of a read.
#[derive(Debug)]
pub struct Seen {
    /// Whether it was on a processor, or ready for one.
    pub is_ready: bool,
    /// The JVM's state of it; only for Java threads.
    pub vm_state: Option<VmState>,
    /// The system call in which it waits.
    pub os: Os,
    /// The object of that call.
    pub on: Option<String>,
    /// The JVM's report about monitors.
    pub monitor: Monitor,
    /// The Java object that it waits for.
    pub wanted: Option<Wanted>,
    /// Whether it is parked on a lock that another thread owns.
    pub is_owned_lock: bool,
    /// The object of the virtual thread that is mounted; 0 for none.
    pub mounted: u64,
    /// Frames, innermost first, and their places.
    pub trail: Trail,
    /// Why frames are missing, if so.
    pub failure: Option<Failure>,
    /// It ran during all attempts, so its data may be from different moments.
    pub is_blurred: bool,
    /// The scheduler's counters at the end of the read.
    pub ran: Option<Schedule>,
    /// Reads these counters again.
    pub clock: Option<Clock>,
}

impl Seen {
    pub(crate) fn of_nothing(is_ready: bool) -> Seen {
        Seen {
            is_ready,
            vm_state: None,
            os: if is_ready { Os::Running } else { Os::Waiting },
            on: None,
            monitor: Monitor::None,
            wanted: None,
            is_owned_lock: false,
            mounted: 0,
            trail: Trail::default(),
            failure: None,
            is_blurred: false,
            ran: None,
            clock: None,
        }
    }
}

/// Reads threads.
pub struct Looker<'l, 't> {
    /// The JVM.
    pub vm: &'l Vm<'t>,
    /// The kernel's data.
    pub tasks: Tasks,
    /// Pages that reads may share, if they follow each other at once.
    pub common: Option<Rc<Common>>,
    /// Sockets that were found a moment ago.
    pub sockets: Rc<Sockets>,
}

impl<'t> Looker<'_, 't> {
    /// Reads a thread; `None` if it has exited. Also returns the copy of memory for naming the
    /// frames.
    #[must_use]
    pub fn look(&self, whom: Whom) -> Option<(Seen, Pages<'t>)> {
        for attempt in 1..=TRIES {
            // The counters are read twice, and most of that cost is opening the file.
            let clock = self.tasks.clock(whom.tid)?;
            let before = clock.schedule()?;
            // The shared copy of code may be out of date.
            let common = self.common.clone().filter(|_| attempt == 1);
            let is_sharing = common.is_some();
            let pages = Pages::with_common(self.vm.live, common);
            let seen = match self.tasks.whereabouts(whom.tid) {
                Some(Whereabouts::Ready) if self.is_entering(whom) => {
                    Some(self.off(whom, &pages, (Os::Waiting, None), None))
                }
                Some(Whereabouts::Ready) => self.ready(whom, &pages),
                Some(Whereabouts::Off { call, sp, pc }) => {
                    let what = match call {
                        // Not in a system call, and not because of memory.
                        None if self.is_stopped(whom) => (Os::Waiting, Some(STOPPED.to_owned())),
                        _ => {
                            let poll = |fds| self.vm.live.i32(fds).ok();
                            self.tasks.call(call, poll, &self.sockets)
                        }
                    };
                    Some(self.off(whom, &pages, what, Some((sp, pc))))
                }
                // The kernel shows only that it waits.
                None if self.tasks.state(whom.tid)? == 'R' && !self.is_entering(whom) => {
                    self.ready(whom, &pages)
                }
                None => Some(self.off(whom, &pages, (Os::Waiting, None), None)),
            };
            let after = clock.schedule()?;
            let is_last = attempt == TRIES;
            let seen = seen.map(|seen| Seen {
                ran: Some(after),
                clock: Some(clock),
                ..seen
            });
            match seen {
                // The shared copy may be the reason of the failure: read again without it.
                Some(seen) if is_sharing && seen.failure.is_some() => {}
                // The frames of a running thread have been checked already.
                Some(seen) if seen.is_ready => return Some((seen, pages)),
                Some(seen) if before == after => return Some((seen, pages)),
                Some(seen) if is_last => {
                    let blurred = Seen {
                        is_blurred: true,
                        ..seen
                    };
                    return Some((blurred, pages));
                }
                Some(_) | None => {}
            }
        }
        Some((Seen::of_nothing(true), Pages::new(self.vm.live)))
    }

    /// Whether a signal or a debugger has stopped it.
    fn is_stopped(&self, whom: Whom) -> bool {
        matches!(self.tasks.state(whom.tid), Some('T' | 't'))
    }

    /// Whether a thread waits for a monitor, in any scheduler state. Up to JDK 22 one of the
    /// waiting threads wakes now and then to try again (share/runtime/objectMonitor.cpp,
    /// `_Responsible`). The next owner is woken before it owns the monitor. Neither changes the
    /// thread's Java frames.
    fn is_entering(&self, whom: Whom) -> bool {
        let (live, layout) = (self.vm.live, &self.vm.layout);
        let thread = whom.java_thread;
        let state = || live.u32(thread.wrapping_add(layout.thread_state));
        thread != 0
            && matches!(
                monitors::contended(live, layout, thread),
                Ok(Some(Contended::Entering(_)))
            )
            && state().is_ok_and(|value| self.state_of(value) == VmState::Blocked)
    }

    /// A running thread: its frames from the last Java frame on, if it has left Java. `None` if it
    /// returned during the read.
    fn ready(&self, whom: Whom, pages: &Pages<'_>) -> Option<Seen> {
        let mut seen = Seen::of_nothing(true);
        if whom.java_thread == 0 {
            return Some(seen);
        }
        let (live, layout) = (self.vm.live, &self.vm.layout);
        let state = live.u32(whom.java_thread.wrapping_add(layout.thread_state));
        seen.vm_state = state.ok().map(|value| self.state_of(value));
        seen.mounted = self.mounted(live, whom.java_thread);
        let anchor = vm_threads::anchor(live, layout, whom.java_thread).ok()?;
        if anchor.sp != 0 {
            let walk = self.walk(whom, pages, None, &mut seen.trail);
            seen.failure = failure_of(&walk);
            let now = vm_threads::anchor(live, layout, whom.java_thread).ok()?;
            if now != anchor {
                return None;
            }
        }
        Some(seen)
    }

    fn off(
        &self,
        whom: Whom,
        pages: &Pages<'_>,
        (os, on): (Os, Option<String>),
        registers: Option<(u64, u64)>,
    ) -> Seen {
        let mut seen = Seen {
            os,
            on,
            ..Seen::of_nothing(false)
        };
        let walk = self.walk(whom, pages, registers, &mut seen.trail);
        seen.failure = failure_of(&walk);
        let thread = whom.java_thread;
        if thread == 0 {
            return seen;
        }
        // Adjacent data are read at once.
        let (now, layout) = (pages.unshared(), &self.vm.layout);
        let state = now.u32(thread.wrapping_add(layout.thread_state));
        seen.vm_state = state.ok().map(|value| self.state_of(value));
        seen.mounted = self.mounted(now, thread);
        let contended = monitors::contended(now, layout, thread).unwrap_or(None);
        match (contended, os) {
            (Some(Contended::Entering(monitor)), _) => {
                seen.monitor = Monitor::Entering;
                seen.wanted = self.monitor(now, monitor, true);
            }
            (Some(Contended::Waiting(monitor)), _) => {
                seen.monitor = Monitor::Waiting;
                seen.wanted = self.monitor(now, monitor, false);
            }
            (None, Os::Call(Call::Futex) | Os::Waiting) => self.parked(now, thread, &mut seen),
            (None, _) => {}
        }
        seen
    }

    pub(crate) fn state_of(&self, value: u32) -> VmState {
        let layout = &self.vm.layout;
        let is = |of: u64| present(of) && u64::from(value) == of;
        if is(layout.state_in_java) {
            VmState::Java
        } else if is(layout.state_in_native) {
            VmState::Native
        } else if is(layout.state_in_vm) {
            VmState::Vm
        } else if is(layout.state_blocked) {
            VmState::Blocked
        } else {
            VmState::Other
        }
    }

    pub(crate) fn mounted(&self, now: &impl Memory, thread: u64) -> u64 {
        let layout = &self.vm.layout;
        if !present(layout.thread_vthread) {
            return 0;
        }
        let objects = &layout.extra.objects;
        let own = objects::of_thread(now, layout, objects, thread).unwrap_or(0);
        let logical = objects::of_logical_thread(now, layout, objects, thread).unwrap_or(0);
        if logical == own { 0 } else { logical }
    }

    /// The monitor that a thread waits to enter, or else to be notified by.
    pub(crate) fn monitor(
        &self,
        now: &impl Memory,
        monitor: u64,
        is_entered: bool,
    ) -> Option<Wanted> {
        let layout = &self.vm.layout;
        let object = monitors::object(now, layout, monitor).ok()?;
        let owner = monitors::owner(now, layout, monitor).unwrap_or(Owner::Nobody);
        let is_owned = is_entered && owner != Owner::Nobody;
        Some(Wanted {
            object,
            class: self.class_of(now, object),
            owner: is_owned.then_some(owner),
        })
    }

    /// The object that a thread is parked on.
    fn parked(&self, now: &impl Memory, thread: u64, seen: &mut Seen) {
        let layout = &self.vm.layout;
        let objects = &layout.extra.objects;
        let object = objects::of_logical_thread(now, layout, objects, thread).unwrap_or(0);
        self.parked_object(now, object, thread, seen);
    }

    /// The same for the thread with this object; `thread` is 0 for a virtual thread.
    pub(crate) fn parked_object(
        &self,
        now: &impl Memory,
        object: u64,
        thread: u64,
        seen: &mut Seen,
    ) {
        let layout = &self.vm.layout;
        let objects = &layout.extra.objects;
        let Ok(Some(blocker)) = objects::blocker(now, layout, objects, object) else {
            return;
        };
        let at = object.wrapping_add(objects.park_blocker);
        let itself = dwell_walker::hotspot::continuation::reference(now, layout, at);
        let owner = self.owner_of(now, &blocker);
        // A lock that the thread itself owns is not the one that it waits for.
        let is_own = owner == Owner::Thread(thread) && thread != 0 || blocker.owner == object;
        let owner = Some(owner).filter(|owner| *owner != Owner::Nobody && !is_own);
        let class = self.class_name(now, blocker.class);
        // Readers hold the lock, or it is just being handed over.
        let is_shared = blocker.owner == 0 && class.as_deref().is_some_and(objects::is_lock);
        seen.is_owned_lock = owner.is_some() || is_shared;
        seen.wanted = Some(Wanted {
            object: itself.unwrap_or(0),
            class,
            owner,
        });
    }

    fn owner_of(&self, now: &impl Memory, blocker: &Blocker) -> Owner {
        let objects = &self.vm.layout.extra.objects;
        if blocker.owner == 0 {
            return Owner::Nobody;
        }
        match objects::java_thread(now, objects, blocker.owner) {
            Ok(0) => {
                objects::thread_id(now, objects, blocker.owner).map_or(Owner::Nobody, Owner::Id)
            }
            Ok(thread) => Owner::Thread(thread),
            Err(_) => Owner::Nobody,
        }
    }

    pub(crate) fn class_of(&self, now: &impl Memory, object: u64) -> Option<String> {
        let layout = &self.vm.layout;
        let word = layout.extra.objects.class_word;
        let class = objects::class_of(now, layout, word, object).ok()?;
        let name = self.class_name(now, class)?;
        // The lock of a class is that of its static methods: the name of the class is more useful.
        let of = match name.as_str() {
            "java.lang.Class" => objects::class_of_mirror(now, layout, object).ok(),
            _ => None,
        };
        let of = of.flatten().and_then(|class| self.class_name(now, class));
        Some(of.map_or(name, |of| format!("java.lang.Class for {of}")))
    }

    fn class_name(&self, now: &impl Memory, class: u64) -> Option<String> {
        let read = || self.read_class_name(now, class);
        match &self.common {
            Some(common) => common.class(class, read),
            None => read(),
        }
    }

    fn read_class_name(&self, now: &impl Memory, class: u64) -> Option<String> {
        let mut buf = [0u8; 512];
        let name = objects::class_name(now, &self.vm.layout, class, &mut buf).ok()?;
        // Invalid names are not shown: a class name has no control characters and some letters.
        let text = std::str::from_utf8(name).ok()?;
        let is_name = !text.is_empty() && !text.chars().any(char::is_control);
        is_name.then(|| shown_class(text))
    }

    /// Walks a thread from `registers` (sp and pc of its user code), or from its last Java frame.
    fn walk(
        &self,
        whom: Whom,
        pages: &Pages<'_>,
        registers: Option<(u64, u64)>,
        trail: &mut Trail,
    ) -> Walk {
        let layout = &self.vm.layout;
        let anchor = match whom.java_thread {
            0 => Anchor::default(),
            // Reads its words at once.
            thread => vm_threads::anchor(pages.unshared(), layout, thread).unwrap_or_default(),
        };
        let (sp, pc) = registers.unwrap_or((anchor.sp, anchor.pc));
        let regs = Regs {
            pc,
            sp,
            fp: if registers.is_some() { 0 } else { anchor.fp },
            ..Regs::default()
        };
        self.walk_from(whom, pages, regs, anchor, trail)
    }

    /// Walks a thread from its registers, after copying its stack.
    pub(crate) fn walk_from(
        &self,
        whom: Whom,
        pages: &Pages<'_>,
        regs: Regs,
        anchor: Anchor,
        trail: &mut Trail,
    ) -> Walk {
        let layout = &self.vm.layout;
        // The start of its stack does not change.
        let high = match whom.java_thread {
            0 => 0,
            thread => vm_threads::stack_high(pages.unshared(), layout, thread).unwrap_or(0),
        };
        self.copy_stack(pages, regs.sp, high);
        // Frames of virtual threads are in the heap, where they change.
        let entry = self.continuation(whom.java_thread);
        if high != 0 && entry == 0 {
            pages.shares_all_but(regs.sp.saturating_sub(RED_ZONE), high);
        }
        self.walk_on(pages, high, regs, (anchor, entry, 0), trail)
    }

    /// Walks a thread from its registers; its stack was copied before.
    pub(crate) fn walk_copied<M: Memory>(
        &self,
        whom: Whom,
        mem: &M,
        regs: Regs,
        anchor: Anchor,
        trail: &mut Trail,
    ) -> Walk {
        let entry = self.continuation(whom.java_thread);
        self.walk_within(whom, mem, regs, (anchor, entry, 0), trail)
    }

    /// The same with its last Java frame, its continuation, and the address of the frozen frames
    /// (0: by the continuation). These may differ from the present ones.
    pub(crate) fn walk_within<M: Memory>(
        &self,
        whom: Whom,
        mem: &M,
        regs: Regs,
        within: (Anchor, u64, u64),
        trail: &mut Trail,
    ) -> Walk {
        let (live, layout) = (self.vm.live, &self.vm.layout);
        let high = match whom.java_thread {
            0 => 0,
            thread => vm_threads::stack_high(live, layout, thread).unwrap_or(0),
        };
        self.walk_on(mem, high, regs, within, trail)
    }

    /// The same on a stack that begins at `high` (0: unknown).
    fn walk_on<M: Memory>(
        &self,
        mem: &M,
        high: u64,
        regs: Regs,
        (anchor, entry, chunk): (Anchor, u64, u64),
        trail: &mut Trail,
    ) -> Walk {
        let on_stack = entry >= regs.sp && (high == 0 || entry < high);
        let context = ThreadContext {
            anchor,
            stack_high: high,
            cut: false,
            cont_entry: if on_stack { entry } else { 0 },
            chunk,
            poll_pc: 0,
        };
        *trail = Trail::default();
        self.walker(mem).walk(regs, &context, trail)
    }

    /// The continuation that a thread runs; 0 for none.
    pub(crate) fn continuation(&self, thread: u64) -> u64 {
        match self.vm.layout.extra.cont_entry {
            offset if present(offset) && thread != 0 => {
                self.vm.live.word(thread.wrapping_add(offset)).unwrap_or(0)
            }
            _ => 0,
        }
    }

    pub(crate) fn walker<'w, M: Memory>(
        &'w self,
        mem: &'w M,
    ) -> Walker<'w, M, crate::modules::Modules<'t>> {
        Walker {
            machine: Host,
            mem,
            layout: &self.vm.layout,
            code: &self.vm.code,
            native: &self.vm.modules,
            cache: None,
        }
    }

    /// Copies the youngest part of a stack at once, so that it is from one moment, as far as
    /// possible.
    fn copy_stack(&self, pages: &Pages<'_>, sp: u64, high: u64) {
        // Whole pages, because missing parts of a page would need another read.
        let low = sp.saturating_sub(RED_ZONE) & !(PAGE - 1);
        let end = match high {
            0 => low.saturating_add(STACK_BYTES_MAX / 8),
            high => high.min(low.saturating_add(STACK_BYTES_MAX)),
        };
        let Some(len) = end
            .checked_sub(low)
            .and_then(|len| usize::try_from(len).ok())
        else {
            return;
        };
        let mut bytes = vec![0; len];
        if self.vm.live.read(low, &mut bytes).is_ok() {
            pages.keep(low, &bytes);
        }
    }
}

/// The reason why a walk is incomplete.
pub(crate) fn failure_of(walk: &Walk) -> Option<Failure> {
    match walk.outcome {
        Outcome::Complete => walk.flaw,
        Outcome::Failed(failure) => Some(failure),
    }
}
