//! Walks a stack: on the sampled thread, in our handler, inside Mono's.
//!
//! The tables of native code lead up to the first address that belongs to a method or a trampoline.
//! From there on only Mono can walk: its walk gets the registers reached so far. It is safe only if
//! Mono knows that the thread is in a handler. Mono's own handler of samples ensures this: it keeps
//! the thread's hazard pointers, marks the context as asynchronous, and calls back. So we call that
//! handler as a function, with a context that we have made. On a thread that Mono does not know, or
//! is just registering, it returns long before the walk.
//!
//! The walk also needs that methods compiled ahead of time are known before it meets them (see
//! `docs/mono.md`). A callback for compiled methods makes Mono do this.
//!
//! No allocation, no locks, no panics: `xtask handler-graph` follows [`dwell_mono_walk_hook`] and
//! Mono's calls back, but not into Mono.

use crate::code::{self, Found};
use crate::known_libraries::{Place, VIEW, View};
use crate::names::Kind;
use crate::sys::functions::{Domain, Method, Profiler};
use crate::sys::handlers;
use dwell_signal::{Live, WalkTarget};
use dwell_walker::native::{NativeRegs, NativeStep};
use dwell_walker::{Failure, Frame, FrameKind, Frames, Outcome, Walk};
use dwell_walker::{Host, Machine as _};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Marks the number of a method in [`Frame::id`]; without this bit, the id is the start of the
/// code.
pub const NUMBERED: u64 = 1 << 63;

/// Maximum number of consecutive native frames.
const NATIVE_MAX: usize = 512;

/// Mono's walk.
static STACK_WALK: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

type StackWalk = unsafe extern "C" fn(
    unsafe extern "C" fn(Method, Domain, *const c_void, c_int, *mut c_void) -> c_int,
    *mut c_void,
    *mut c_void,
);
type MonoHandler = unsafe extern "C" fn(c_int, *mut c_void, *mut c_void);

/// Lets hooks use Mono's walk.
pub fn set_stack_walk(walk: StackWalk) {
    STACK_WALK.store(walk as *mut c_void, Ordering::Release);
}

/// A `ucontext_t` in the C library's layout for x86-64, with room for the floating-point state,
/// which Mono may copy.
#[repr(C, align(16))]
struct Context {
    flags: u64,
    /// The kernel leaves it null; the address of this structure marks it as ours.
    link: *mut c_void,
    stack: [u64; 3],
    gregs: [u64; 23],
    float: *mut c_void,
    reserved: [u64; 8],
    mask: [u64; 16],
    float_room: [u64; 64],
    shadow: [u64; 4],
    walking: *mut c_void,
}

// Their places in `gregs` (the C library's sys/ucontext.h).
const REG_RBP: usize = 10;
const REG_RSP: usize = 15;
const REG_RIP: usize = 16;

/// A walk in progress.
struct Walking<'a, 'f> {
    frames: &'a mut dwell_signal::SlotFrames<'f>,
    len: usize,
    gaps: u32,
    is_truncated: bool,
    /// Whether Mono has called back.
    was_called: bool,
    /// Number of managed frames so far.
    managed: usize,
    /// Start of the managed part, and whether that is the interrupted instruction.
    pc: u64,
    is_exact: bool,
    last: Kind,
}

impl Walking<'_, '_> {
    /// Keeps one entry free for a failure.
    #[inline]
    fn push(&mut self, frame: Frame) -> bool {
        let fits = self.len.wrapping_add(1) < self.frames.room();
        if fits && self.frames.set(self.len, frame) {
            self.len = self.len.wrapping_add(1);
            return true;
        }
        self.is_truncated = true;
        false
    }

    #[inline]
    fn gap(&mut self) -> bool {
        self.gaps = self.gaps.wrapping_add(1);
        self.push(Frame::failed(Failure::NativeGap))
    }

    /// Adds a managed frame; false if there is no room.
    #[inline]
    fn managed(&mut self, start: u64, offset: i32) -> bool {
        let is_first = self.managed == 0;
        self.managed = self.managed.wrapping_add(1);
        let at = start.wrapping_add(offset as u64);
        if is_first && at != self.pc && at.wrapping_add(1) != self.pc {
            // A trampoline, whose caller is known.
            let id = self.lookup();
            let kind = FrameKind::Stub;
            if !self.push(Frame { kind, bci: 0, id }) {
                return false;
            }
        }
        let found = code::find(start);
        if self.last == Kind::FromNative && !self.gap() {
            return false;
        }
        let kind = found.map_or(Kind::Plain, |found| found.kind);
        self.last = kind;
        let id = match found {
            Some(Found { number, .. }) => NUMBERED | u64::from(number),
            None => start,
        };
        // A return address belongs to the call before it.
        let is_exact = is_first && self.is_exact;
        let bci = offset.wrapping_sub(i32::from(!is_exact)).max(0);
        let kind = found.map_or(FrameKind::C2, Found::frame_kind);
        self.push(Frame { kind, bci, id })
    }

    #[inline]
    fn lookup(&self) -> u64 {
        self.pc.wrapping_sub(u64::from(!self.is_exact))
    }

    #[inline]
    fn done(&mut self, outcome: Outcome) -> Walk {
        let outcome = match outcome {
            _ if self.is_truncated => Outcome::Failed(Failure::Truncated),
            outcome => outcome,
        };
        if let Outcome::Failed(failure) = outcome
            && self.frames.set(self.len, Frame::failed(failure))
        {
            self.len = self.len.wrapping_add(1);
        }
        Walk {
            len: self.len,
            outcome,
            gaps: self.gaps,
            flaw: None,
        }
    }
}

/// The reason why the native part of a walk ended.
enum Stop {
    /// At the thread's root.
    Root,
    /// At code that only Mono can walk, or that is unknown.
    Managed,
    /// There is no rule, or the stack cannot be read.
    Lost,
}

/// Walks the thread that runs this handler.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_mono_walk_hook(target: &mut WalkTarget<'_>) {
    #[cfg(feature = "experiments")]
    let _inside = crate::sys::experiments::enter();
    let live = target.live();
    let header = target.header();
    let regs = NativeRegs {
        pc: header.regs.pc(),
        sp: header.regs.sp(),
        fp: header.regs.fp(),
    };
    let is_managed = header.managed_thread != 0;
    target.keep(|frames| {
        let mut walking = Walking {
            frames,
            len: 0,
            gaps: 0,
            is_truncated: false,
            was_called: false,
            managed: 0,
            pc: regs.pc,
            is_exact: true,
            last: Kind::Plain,
        };
        walk(&live, regs, is_managed, &mut walking)
    });
}

#[inline]
fn walk(live: &Live, regs: NativeRegs, is_managed: bool, walking: &mut Walking<'_, '_>) -> Walk {
    let mut at = regs;
    let native = VIEW.read(|view| native_part(live, view, &mut at, walking));
    if let Some(Stop::Root) = native {
        return walking.done(Outcome::Complete);
    }
    let failure = match native {
        Some(Stop::Managed) => Failure::UnknownPc,
        _ => Failure::NoNativeRule,
    };
    if !is_managed || walking.is_truncated {
        return walking.done(Outcome::Failed(failure));
    }
    let is_there = matches!(native, Some(Stop::Managed));
    if is_there {
        call_mono(at, walking);
    }
    if walking.managed == 0 && !walking.is_truncated {
        // These registers lead to no managed frame, but Mono has its own record of where managed
        // code was last left. The frames between are missing, unless the thread is in managed code
        // itself.
        let native = walking.len;
        if native > 0 || !is_there {
            if native == 0 && VIEW.read(|_| ()).is_none() {
                note_leaf(regs, walking);
            }
            if walking.len > 0 && !walking.gap() {
                return walking.done(Outcome::Complete);
            }
            walking.pc = regs.pc;
            walking.is_exact = true;
            call_mono(regs, walking);
        }
    }
    let outcome = match walking.managed {
        0 => Outcome::Failed(failure),
        _ => Outcome::Complete,
    };
    walking.done(outcome)
}

/// The interrupted instruction, if there are no tables yet.
#[inline]
fn note_leaf(regs: NativeRegs, walking: &mut Walking<'_, '_>) {
    walking.push(Frame {
        kind: FrameKind::Native,
        bci: 0,
        id: regs.pc,
    });
}

/// Walks native frames up to code that is not native, and leaves the registers reached in `at`.
#[inline]
fn native_part(
    live: &Live,
    view: &View,
    at: &mut NativeRegs,
    walking: &mut Walking<'_, '_>,
) -> Stop {
    for _ in 0..NATIVE_MAX {
        walking.pc = at.pc;
        let id = walking.lookup();
        let (kind, rule) = match view.at(id) {
            Place::Native(rule) => (FrameKind::Native, rule),
            Place::Mono(rule) => (FrameKind::Vm, rule),
            Place::Managed => return Stop::Managed,
        };
        if !walking.push(Frame { kind, bci: 0, id }) {
            return Stop::Lost;
        }
        let before = *at;
        match Host.unwind(live, rule, before, None) {
            Ok(NativeStep::Caller(caller)) if caller.sp > before.sp => {
                *at = caller;
                walking.is_exact = false;
            }
            Ok(NativeStep::Interrupted(interrupted)) => {
                *at = interrupted;
                walking.is_exact = true;
            }
            Ok(NativeStep::End) => return Stop::Root,
            Ok(NativeStep::Caller(_) | NativeStep::NoRule) | Err(_) => return Stop::Lost,
        }
    }
    Stop::Lost
}

/// Makes Mono walk from `at` on, in its own handler.
#[inline(never)]
fn call_mono(at: NativeRegs, walking: &mut Walking<'_, '_>) {
    let Some((signal, handler)) = handlers::noted() else {
        return;
    };
    // SAFETY: noted is the address of a handler that Mono has installed with SA_SIGINFO for this
    // signal (`entry` checks that), and that stays loaded.
    let handler: MonoHandler = unsafe { std::mem::transmute(handler) };
    let mut context = Context {
        flags: 0,
        link: std::ptr::null_mut(),
        stack: [0; 3],
        gregs: [0; 23],
        float: std::ptr::null_mut(),
        reserved: [0; 8],
        mask: [0; 16],
        float_room: [0; 64],
        shadow: [0; 4],
        walking: std::ptr::from_mut(walking).cast(),
    };
    context.gregs[REG_RIP] = at.pc;
    context.gregs[REG_RSP] = at.sp;
    context.gregs[REG_RBP] = at.fp;
    let own = &raw mut context;
    // SAFETY: a local of ours; only its address is taken.
    unsafe {
        (*own).link = own.cast();
        (*own).float = (&raw mut (*own).float_room).cast();
    }
    let mut info = [0u64; 16];
    // SAFETY: called as the kernel would, on a thread that the signal could interrupt here, with a
    // siginfo and a context of their full sizes that live during the call. Mono reads registers in
    // the context and passes it on to its callbacks.
    unsafe { handler(signal, info.as_mut_ptr().cast(), own.cast()) };
}

/// Called by Mono in its handler, for our signal and, if Mono itself samples, for its own.
///
/// # Safety
/// Called by Mono only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dwell_mono_sample_hook(
    _: Profiler,
    _ip: *const u8,
    context: *const c_void,
) {
    let own = context.cast::<Context>().cast_mut();
    // SAFETY: a context of the kernel's, whose link is empty, or ours.
    let link = unsafe { (*own).link };
    let walk = STACK_WALK.load(Ordering::Acquire);
    if link != own.cast() || walk.is_null() {
        return;
    }
    // SAFETY: only `set_stack_walk` stores here, and it takes a `StackWalk`.
    let walk: StackWalk = unsafe { std::mem::transmute(walk) };
    // SAFETY: it is ours, so `call_mono` waits for this and lends the walk.
    let walking = unsafe { (*own).walking };
    // SAFETY: as above.
    let under_way = unsafe { &mut *walking.cast::<Walking<'_, '_>>() };
    under_way.was_called = true;
    // SAFETY: Mono's own handler surrounds us, as its walk needs it; the context is ours.
    unsafe { walk(dwell_mono_frame_hook, own.cast(), walking) };
}

/// Called by Mono for each managed frame; not 0 ends the walk.
///
/// # Safety
/// Called by Mono only, with the argument of its walk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dwell_mono_frame_hook(
    _: Method,
    _: Domain,
    start: *const c_void,
    offset: c_int,
    walking: *mut c_void,
) -> c_int {
    // SAFETY: what `dwell_mono_sample_hook` passed, which lives until the walk is over.
    let walking = unsafe { &mut *walking.cast::<Walking<'_, '_>>() };
    c_int::from(!walking.managed(start as u64, offset))
}
