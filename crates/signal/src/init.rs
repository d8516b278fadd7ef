//! Makes the engine, and installs its handlers: the only module that knows both.

use crate::arch;
use crate::config::{self, Config, EngineKind, pick_signal};
use crate::engine::{ENGINE, Engine};
use crate::handler;
use crate::load::Live;
use crate::slots::SlotPool;
use crate::sys::{self, Errno, KernelAction};
use core::mem::size_of;
use core::sync::atomic::{AtomicBool, Ordering};

/// Why the engine could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitError {
    /// An engine exists already, or is being made.
    Already,
    /// The size classes are too many, too large or not in order.
    Classes,
    /// The handlers for SIGSEGV and SIGBUS could not be installed.
    FaultHandler(Errno),
    /// No signal is free.
    NoSignal(Errno),
    /// The requested signal cannot be used.
    Signal(i32, Errno),
    /// No memory for the slots.
    Memory(usize, Errno),
}

impl core::fmt::Display for InitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Already => write!(f, "the sampling engine is already in use in this process"),
            Self::Classes => write!(f, "at most 5 slot classes are supported, smallest first"),
            Self::FaultHandler(e) => write!(f, "cannot handle SIGSEGV and SIGBUS: {e}"),
            Self::NoSignal(e) => write!(f, "all signals that can be used have handlers: {e}"),
            Self::Signal(signal, e) => write!(f, "cannot use signal {signal}: {e}"),
            Self::Memory(bytes, e) => write!(f, "no {bytes} bytes of memory for snapshots: {e}"),
        }
    }
}

impl core::error::Error for InitError {}

/// Makes the engine. Sampling begins with [`Engine::start`].
///
/// # Errors
/// See [`InitError`]. Only the fault handlers are left behind, which are harmless.
pub fn init(config: &Config<'_>) -> Result<&'static Engine, InitError> {
    static MAKING: AtomicBool = AtomicBool::new(false);
    if MAKING.swap(true, Ordering::AcqRel) {
        return Err(InitError::Already);
    }
    let made = make(config);
    if made.is_err() {
        MAKING.store(false, Ordering::Release);
    }
    made
}

fn make(config: &Config<'_>) -> Result<&'static Engine, InitError> {
    let ordered = config
        .classes
        .is_sorted_by_key(|class| class.capacity_bytes);
    let bytes = SlotPool::region_bytes(config.classes)
        .filter(|_| ordered && !config.classes.is_empty())
        .ok_or(InitError::Classes)?;
    let live = Live::install().map_err(InitError::FaultHandler)?;
    let signal = match config.signal {
        Some(signal) => signal,
        None => pick_signal(config.engine).map_err(InitError::NoSignal)?,
    };
    let before = sys::sigaction(signal, None).map_err(|e| InitError::Signal(signal, e))?;
    let region = sys::map_zeroed(bytes).map_err(|e| InitError::Memory(bytes, e))?;
    // SAFETY: fresh zeroed pages of the size asked for, which nothing else uses or unmaps.
    let pool = unsafe { SlotPool::new(region, config.classes) }.ok_or(InitError::Classes)?;
    let room = size_of::<Engine>();
    let place = sys::map_zeroed(room)
        .map_err(|e| InitError::Memory(room, e))?
        .cast::<Engine>();
    let engine = Engine::new(config, signal, live, pool);
    engine.previous.store(&before);
    // SAFETY: a fresh page-aligned mapping of sufficient size, never unmapped.
    let engine: &'static Engine = unsafe {
        place.write(engine);
        &*place
    };
    ENGINE.store(place, Ordering::Release);
    install_handlers(engine, signal, &before)?;
    Ok(engine)
}

fn our_handler() -> usize {
    handler::dwell_sample_handler as *const () as usize
}

/// Uses another signal if a library has replaced our handler of the present one, or ignores it: no
/// sample would be taken any more. Returns whether it does now. Ordinary threads only, one at a
/// time. Takes one system call if nothing has changed.
///
/// # Errors
/// Why there is no other signal; [`Engine::is_replaced`] then.
pub fn move_if_replaced(engine: &'static Engine) -> Result<bool, InitError> {
    let present = engine.signal();
    let is_ours = |action: KernelAction| action.handler == our_handler();
    if sys::sigaction(present, None).is_ok_and(is_ours) {
        engine.set_replaced(false);
        return Ok(false);
    }
    engine.set_replaced(true);
    if engine.keeps_signal {
        return Err(InitError::Signal(present, Errno(libc::EBUSY)));
    }
    let signal = config::pick_real_time().map_err(InitError::NoSignal)?;
    let before = sys::sigaction(signal, None).map_err(|e| InitError::Signal(signal, e))?;
    install_handlers(engine, signal, &before)?;
    engine.move_to(signal);
    engine.set_replaced(false);
    Ok(true)
}

fn install_handlers(engine: &Engine, signal: i32, before: &KernelAction) -> Result<(), InitError> {
    let mut flags = (libc::SA_SIGINFO | libc::SA_RESTART) as u64;
    if engine.on_alternate_stack {
        flags |= libc::SA_ONSTACK as u64;
    }
    // The signal itself is blocked while its handler runs. Of the others the requested ones are
    // blocked, but never those of faults.
    let action = KernelAction {
        handler: our_handler(),
        flags,
        mask: engine.blocked & !sys::FAULT_SIGNALS,
        restorer: 0,
    }
    .returning_as(before, arch::restorer());
    sys::sigaction(signal, Some(&action)).map_err(|e| InitError::Signal(signal, e))?;
    if matches!(engine.kind, EngineKind::Perf { .. }) && !config::merges(signal) {
        guard_against_sigio(&action)?;
    }
    Ok(())
}

/// If the kernel cannot queue a real-time signal for a perf event it sends SIGIO, which kills a
/// process by default. A process that handles or ignores SIGIO is not changed.
fn guard_against_sigio(like: &KernelAction) -> Result<(), InitError> {
    let error = |e| InitError::Signal(libc::SIGIO, e);
    let before = sys::sigaction(libc::SIGIO, None).map_err(error)?;
    if before.handler == libc::SIG_DFL {
        let handler = handler::dwell_queue_full_handler as *const () as usize;
        sys::sigaction(libc::SIGIO, Some(&KernelAction { handler, ..*like })).map_err(error)?;
    }
    Ok(())
}
