//! The SIGSEGV and SIGBUS handlers: our loads return an error, and all other faults are passed on.
//!
//! Installed before any existing handler (HotSpot's implicit null checks and safepoint polls live
//! on SIGSEGV), and invisible to it. The previous handler is called with the mask, stack and
//! arguments that the kernel would have given it. Must not do anything for a fault that is not
//! ours.

use crate::arch;
use crate::sys::{self, Errno, KernelAction};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// How often we can step in front of a handler that replaced ours.
const LEVELS: usize = 3;
/// How long a thread waits for another one that is installing the handlers.
const YIELDS_MAX: u32 = 1 << 20;
const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
type InfoHandler = unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
type PlainHandler = unsafe extern "C" fn(i32);

/// An action that was installed before one of ours.
#[derive(Debug)]
pub(crate) struct Previous {
    handler: AtomicUsize,
    flags: AtomicU64,
}

impl Previous {
    pub(crate) const fn new() -> Self {
        Self {
            handler: AtomicUsize::new(libc::SIG_DFL),
            flags: AtomicU64::new(0),
        }
    }

    pub(crate) fn store(&self, action: &KernelAction) {
        self.flags.store(action.flags, Ordering::Relaxed);
        self.handler.store(action.handler, Ordering::Release);
    }

    /// Calls the handler, if it is one; returns `SIG_DFL` or `SIG_IGN` otherwise.
    #[inline]
    pub(crate) fn call(
        &self,
        signal: i32,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) -> Option<usize> {
        let handler = self.handler.load(Ordering::Acquire);
        let flags = self.flags.load(Ordering::Relaxed);
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            return Some(handler);
        }
        if flags & u64::from(libc::SA_RESETHAND as u32) != 0 {
            self.handler.store(libc::SIG_DFL, Ordering::Release);
        }
        if flags & libc::SA_SIGINFO as u64 != 0 {
            // SAFETY: whoever installed this address with SA_SIGINFO promised the kernel that it is
            // a function of three arguments; they are the kernel's own.
            let function: InfoHandler = unsafe { core::mem::transmute(handler) };
            // SAFETY: called as the kernel would: same arguments, same mask, same stack.
            unsafe { function(signal, info, context) };
        } else {
            // SAFETY: installed without SA_SIGINFO, hence a function of the signal number.
            let function: PlainHandler = unsafe { core::mem::transmute(handler) };
            // SAFETY: called as the kernel would.
            unsafe { function(signal) };
        }
        None
    }
}

static CHAIN: [[Previous; SIGNALS.len()]; LEVELS] =
    [const { [const { Previous::new() }; SIGNALS.len()] }; LEVELS];
static HANDLERS: [Handler; LEVELS] = [
    dwell_fault_handler,
    dwell_fault_again_handler,
    dwell_fault_third_handler,
];
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Whether a handler in front of ours was found.
static BEHIND: AtomicBool = AtomicBool::new(false);

/// The fault handler.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_fault_handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    on_fault(0, signal, info, context);
}

/// The fault handler in front of a handler that stepped in front of [`dwell_fault_handler`]. Each
/// needs an address and a previous handler of its own. Otherwise the chain would be a circle.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_fault_again_handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    on_fault(1, signal, info, context);
}

/// As [`dwell_fault_again_handler`], the last time.
#[unsafe(no_mangle)]
pub extern "C" fn dwell_fault_third_handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    on_fault(2, signal, info, context);
}

#[inline(always)]
fn on_fault(level: usize, signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t to SA_SIGINFO handlers.
    let code = unsafe { (*info.cast::<sys::SignalInfo>()).code };
    // SAFETY: ... and a ucontext_t that is ours to change until the handler returns.
    let frame = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    // Codes above 0 are the kernel's: a kill() by a program at that very pc is not a fault.
    if code > 0
        && let Some(landing) = arch::landing_for(arch::interrupted_pc(frame))
    {
        arch::set_interrupted_pc(frame, landing);
        return;
    }
    let column = usize::from(signal == libc::SIGBUS);
    let Some(previous) = CHAIN.get(level).and_then(|row| row.get(column)) else {
        return;
    };
    match previous.call(signal, info, context) {
        None => {}
        Some(libc::SIG_IGN) if code <= 0 => {}
        Some(_) => die_by_default(signal, code),
    }
}

/// Does what the kernel does without a handler. A fault happens again when we return. A signal
/// that was sent has to be sent again (it stays pending until we return).
#[cold]
fn die_by_default(signal: i32, code: i32) {
    let default = KernelAction {
        handler: libc::SIG_DFL,
        ..KernelAction::default()
    };
    // Cannot fail for these two signals; if it did, the fault would come back here.
    let _ = sys::sigaction(signal, Some(&default));
    if code <= 0 {
        sys::raise(signal);
    }
}

/// Whether loads are protected.
#[inline]
pub fn is_installed() -> bool {
    INSTALLED.load(Ordering::Acquire)
}

/// Whether another handler is in front of ours, so that a load that fails may end the process.
#[inline]
pub(crate) fn is_behind() -> bool {
    BEHIND.load(Ordering::Relaxed)
}

/// Installs the handlers in front of the present ones, once.
///
/// # Errors
/// The kernel's error, which for these signals means a sandbox that forbids `rt_sigaction`.
pub fn install_fault_handler() -> Result<(), Errno> {
    static INSTALLING: AtomicBool = AtomicBool::new(false);
    for _ in 0..YIELDS_MAX {
        if is_installed() {
            break;
        }
        if INSTALLING.swap(true, Ordering::AcqRel) {
            sys::sched_yield(); // another thread is installing them
            continue;
        }
        let result = install_first();
        INSTALLED.store(result.is_ok(), Ordering::Release);
        INSTALLING.store(false, Ordering::Release);
        result?;
    }
    allow_faults_here();
    if is_installed() {
        Ok(())
    } else {
        Err(Errno(libc::EAGAIN))
    }
}

/// Lets faults of the calling thread reach the handlers. A thread that blocks SIGSEGV or SIGBUS
/// must call it before any load that may fault: the kernel ends a process that faults with the
/// signal blocked. (The sampling handler does it for itself.)
pub fn allow_faults_here() {
    sys::unblock(sys::FAULT_SIGNALS);
}

fn install_first() -> Result<(), Errno> {
    for (column, signal) in SIGNALS.iter().enumerate() {
        // After an attempt that failed half-way one of them may be ours already.
        if level_of(&sys::sigaction(*signal, None)?).is_none() {
            install(0, column, *signal)?;
        }
    }
    Ok(())
}

fn install(level: usize, column: usize, signal: i32) -> Result<(), Errno> {
    let previous = CHAIN
        .get(level)
        .and_then(|row| row.get(column))
        .ok_or(Errno(libc::EMFILE))?;
    let handler = *HANDLERS.get(level).ok_or(Errno(libc::EMFILE))?;
    // The previous action must be known before ours can run.
    let before = sys::sigaction(signal, None)?;
    previous.store(&before);
    let replaced = sys::sigaction(signal, Some(&front_of(&before, handler)))?;
    if replaced != before {
        previous.store(&replaced);
    }
    Ok(())
}

/// Our action, set so that the previous handler runs as if the kernel had called it.
fn front_of(previous: &KernelAction, handler: Handler) -> KernelAction {
    let inherited = (libc::SA_ONSTACK | libc::SA_NODEFER | libc::SA_RESTART) as u64;
    KernelAction {
        handler: handler as *const () as usize,
        flags: (previous.flags & inherited) | libc::SA_SIGINFO as u64,
        mask: previous.mask,
        restorer: 0,
    }
    .returning_as(previous, arch::restorer())
}

/// Whether both signals still come to us first.
pub fn is_first_in_chain() -> bool {
    SIGNALS
        .iter()
        .all(|signal| sys::sigaction(*signal, None).is_ok_and(|action| level_of(&action).is_some()))
}

fn level_of(action: &KernelAction) -> Option<usize> {
    HANDLERS
        .iter()
        .position(|handler| *handler as *const () as usize == action.handler)
}

/// Steps in front of handlers that have replaced ours; true if ours is first (again). If not, the
/// kernel does the loads.
///
/// Each time needs a handler of its own, so this works twice per signal. Ordinary threads only, one
/// at a time. Takes two system calls if nothing has changed: call it before each piece of work that
/// may meet bad addresses.
pub fn reinstall_if_replaced() -> bool {
    if !is_installed() {
        return false;
    }
    if is_first_in_chain() {
        BEHIND.store(false, Ordering::Relaxed);
        return true;
    }
    BEHIND.store(true, Ordering::Relaxed);
    let is_first = step_in_front() && is_first_in_chain();
    BEHIND.store(!is_first, Ordering::Relaxed);
    is_first
}

fn step_in_front() -> bool {
    static LEVEL: [AtomicUsize; SIGNALS.len()] = [const { AtomicUsize::new(1) }; SIGNALS.len()];
    let all = SIGNALS.iter().zip(&LEVEL).enumerate();
    let mut replaced = all.filter(|(_, (signal, _))| {
        sys::sigaction(**signal, None).is_ok_and(|action| level_of(&action).is_none())
    });
    replaced.all(|(column, (signal, level))| {
        let next = level.load(Ordering::Relaxed);
        let is_done = install(next, column, *signal).is_ok();
        level.store(next.wrapping_add(usize::from(is_done)), Ordering::Relaxed);
        is_done
    })
}
