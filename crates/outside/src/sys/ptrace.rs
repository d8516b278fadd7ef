//! Stops one thread for as long as its registers are read (ptrace(2), `PTRACE_SEIZE` and
//! `PTRACE_INTERRUPT`). The other threads go on, and the thread itself, whatever becomes of us: the
//! kernel lets go of it when we end.

use std::io;
use std::time::{Duration, Instant};

/// Registers of a stopped thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// rip.
    pub rip: u64,
    /// rsp.
    pub rsp: u64,
    /// rbp.
    pub rbp: u64,
    /// rax.
    pub rax: u64,
    /// rbx.
    pub rbx: u64,
    /// rcx.
    pub rcx: u64,
    /// rdx.
    pub rdx: u64,
    /// r13.
    pub r13: u64,
}

/// How long a thread may take to stop: it may be in the kernel where it cannot.
const STOP_WAIT: Duration = Duration::from_millis(200);
/// The same while it is ready: it stops as soon as it has a processor.
const READY_WAIT: Duration = Duration::from_secs(5);

/// A thread that is being traced; let go of when dropped.
struct Traced(i32);

impl Drop for Traced {
    fn drop(&mut self) {
        // SAFETY: no pointer is passed that the kernel would write through. If the thread is not
        // stopped or is gone this fails, and it is let go of when we end.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, 0usize, 0usize) };
    }
}

/// Whether a thread runs or waits for a processor, or has just stopped.
fn is_ready(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['R', 't']))
}

/// Stops thread `tid`, shows its registers to `read`, and lets it go on.
///
/// # Errors
/// The kernel's: not permitted, traced by somebody else, gone, or not to be stopped.
pub fn with_stopped<T>(tid: i32, read: impl FnOnce(Registers) -> T) -> io::Result<T> {
    // SAFETY: no pointers; a thread that must not be traced is an error.
    if unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0usize, 0usize) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let traced = Traced(tid);
    // SAFETY: as above.
    if unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0usize, 0usize) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let began = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the result.
        let answer = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if answer == tid && libc::WIFSTOPPED(status) {
            break;
        }
        if answer < 0 {
            return Err(io::Error::last_os_error());
        }
        let waited = began.elapsed();
        let is_ready = || waited <= READY_WAIT && is_ready(tid);
        if answer == tid || waited > STOP_WAIT && !is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    // SAFETY: all-zero is a valid value of this structure of integers.
    let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the thread is stopped and ours; the kernel fills `regs`, which is of its type.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0usize, &raw mut regs) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    let result = read(Registers {
        rip: regs.rip,
        rsp: regs.rsp,
        rbp: regs.rbp,
        rax: regs.rax,
        rbx: regs.rbx,
        rcx: regs.rcx,
        rdx: regs.rdx,
        r13: regs.r13,
    });
    drop(traced);
    Ok(result)
}
