//! Signals of this process, and checks of its terminal: the only place of the command with
//! `unsafe`.
//!
//! The handler counts, and at the second interrupt ends the process at once. It calls only `kill`
//! and `_exit`, which are safe in a handler.
#![allow(unsafe_code)]

use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);
static LAST_SIGNAL: AtomicI32 = AtomicI32::new(0);
static SENT_BY_PROCESS: AtomicBool = AtomicBool::new(false);
static CHILD: AtomicI32 = AtomicI32::new(0);

/// Exit code of a command that was interrupted, as shells have it.
pub const EXIT_INTERRUPTED: u8 = 130;

extern "C" fn on_interrupt(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    LAST_SIGNAL.store(signal, Ordering::Relaxed);
    // SAFETY: installed with SA_SIGINFO, so the kernel passes a valid siginfo for this call.
    let code = unsafe { (*info).si_code };
    SENT_BY_PROCESS.store(code <= 0, Ordering::Relaxed);
    // A closed terminal sends two signals, by the kernel and by the shell. They do not count as
    // impatience.
    if INTERRUPTS.fetch_add(1, Ordering::Relaxed) == 0 || signal == libc::SIGHUP {
        return;
    }
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: plain system call, allowed in handlers. The pid is our child's: it is taken back
        // before the child is waited for, so no other process can have got the number.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    // SAFETY: allowed in handlers; runs no destructors and no exit functions.
    unsafe { libc::_exit(i32::from(EXIT_INTERRUPTED)) }
}

/// Whether this signal was ignored when the process started. Shells ignore Ctrl-C for jobs in the
/// background, and nohup ignores a hang-up.
fn is_ignored(signal: libc::c_int) -> io::Result<bool> {
    // SAFETY: all-zero is a valid sigaction to be overwritten.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no new action is given; `action` is writable and lives through the call.
    match unsafe { libc::sigaction(signal, ptr::null(), &raw mut action) } {
        0 => Ok(action.sa_sigaction == libc::SIG_IGN),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Counts Ctrl-C, hang-ups and SIGTERM from now on; the second one ends this process. Signals that
/// were ignored when the process started stay ignored.
pub fn count_interrupts() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        if signal != libc::SIGTERM && is_ignored(signal)? {
            continue;
        }
        // SAFETY: all-zero is a valid sigaction (default handler, empty mask).
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_interrupt as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        // SAFETY: `action` is initialised and lives through the call; no old action is asked for.
        if unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_limit_of_a_file(_signal: libc::c_int) {}

/// The user that we act as.
pub fn user() -> u32 {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// From now on, a file that grows beyond a limit is an error and does not end this process.
/// Programs that it starts have the default action, because handlers are not inherited (execve(2)).
pub fn survive_limits_of_files() {
    // SAFETY: all-zero is a valid sigaction (default handler, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_limit_of_a_file as *const () as usize;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is initialised and lives through the call; the handler does nothing, which
    // is safe anywhere. It can only fail for a number that is no signal's.
    unsafe { libc::sigaction(libc::SIGXFSZ, &raw const action, ptr::null_mut()) };
}

/// Stops this process like Ctrl-Z; returns when it is continued.
pub fn suspend() {
    // SAFETY: plain library call; the signal's action is the default one, which runs no code of
    // ours.
    unsafe { libc::raise(libc::SIGTSTP) };
}

/// Whether the terminal of standard input is gone.
pub fn terminal_is_gone() -> bool {
    let mut input = libc::pollfd {
        fd: libc::STDIN_FILENO,
        events: 0,
        revents: 0,
    };
    // SAFETY: one valid structure, as the count says; it lives through the call, which does not
    // wait.
    let found = unsafe { libc::poll(&raw mut input, 1, 0) };
    found > 0 && input.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
}

/// Whether this process was asked to end.
pub fn interrupted() -> bool {
    INTERRUPTS.load(Ordering::Relaxed) > 0
}

/// The signal that asked this process to end, if a process sent it. A terminal sends its signals
/// also to the children, a process only to this one.
pub fn signal_to_forward() -> Option<i32> {
    (interrupted() && SENT_BY_PROCESS.load(Ordering::Relaxed))
        .then(|| LAST_SIGNAL.load(Ordering::Relaxed))
}

/// Sends a signal to a child that has not been waited for.
pub fn signal_child(child: &std::process::Child, signal: i32) {
    if let Ok(pid) = i32::try_from(child.id()) {
        // SAFETY: plain system call; the pid is that of our child, which is not reaped while
        // its handle is borrowed, so the number cannot have been given to another process.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Sets the child that must not outlive this process if it is ended at once; `None`: no child.
pub fn end_with_us(child: Option<&std::process::Child>) {
    let pid = child
        .and_then(|child| i32::try_from(child.id()).ok())
        .unwrap_or(0);
    CHILD.store(pid, Ordering::Relaxed);
}
