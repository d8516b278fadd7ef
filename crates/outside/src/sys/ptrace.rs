//! Stops one thread while its registers are read (ptrace(2), `PTRACE_SEIZE` and
//! `PTRACE_INTERRUPT`). The other threads continue, and so does the thread itself, even if dwell is
//! killed.
//!
//! Each stop has a thread of ours. When that thread ends, the kernel releases everything that it
//! traces, even a thread that could not be stopped and so cannot be detached. A stop may be one in
//! which the kernel delivers a signal. The detaching call then names the signal to deliver. The
//! stop is only observed and not consumed (`WNOWAIT`), so that the kernel delivers the signal
//! itself if we are killed.

use crate::arch;
use dwell_walker::Regs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Maximum time for a thread to stop: it may be in the kernel where it cannot stop.
const STOP_WAIT: Duration = Duration::from_millis(200);
/// The same for a ready thread, which stops as soon as it has a processor.
const READY_WAIT: Duration = Duration::from_secs(5);
/// Maximum time that a thread is stopped.
const STAND_MAX: Duration = Duration::from_millis(100);

/// A stopped thread; detached when dropped.
struct Standing {
    tid: i32,
    /// The signal that is being delivered to it, or 0.
    signal: i32,
}

impl Drop for Standing {
    fn drop(&mut self) {
        // If its group of threads is stopped (SIGSTOP), the kernel stops this one again. SAFETY: no
        // pointer is passed that the kernel would write through. If the thread has exited this
        // fails.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.tid, 0usize, self.signal as usize) };
    }
}

/// Whether a thread runs or waits for a processor, or has just stopped.
fn is_ready(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with(['R', 't']))
}

/// Stops thread `tid`, passes its registers to `read`, and resumes it: after [`STAND_MAX`] even if
/// `read` has not returned.
///
/// # Errors
/// The kernel's: not permitted, traced by another process, exited; `TimedOut` if the thread cannot
/// be stopped, or was resumed before `read` returned. In all cases the thread continues.
pub fn with_stopped<T>(tid: i32, read: impl FnOnce(Regs) -> T) -> io::Result<T> {
    std::thread::scope(|scope| {
        let (give, registers) = sync_channel(1);
        let (done, is_done) = sync_channel::<()>(1);
        let tracer = std::thread::Builder::new().name("dwell-stop".into());
        let tracer = tracer.spawn_scoped(scope, move || trace(tid, &give, &is_done))?;
        let result = registers.recv().map(read);
        // The tracer ends when this is closed, and returns whether the thread was stopped until
        // then.
        drop(done);
        let stood = tracer.join().unwrap_or(Err(io::ErrorKind::Other.into()));
        match result {
            Ok(result) => stood.map(|()| result),
            Err(_) => Err(stood.err().unwrap_or(io::ErrorKind::Other.into())),
        }
    })
}

/// Stops the thread, sends its registers, and resumes it when `is_done` is closed.
fn trace(tid: i32, give: &SyncSender<Regs>, is_done: &Receiver<()>) -> io::Result<()> {
    // SAFETY: no pointers; a thread that must not be traced is an error.
    if unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0usize, 0usize) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as above.
    if unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0usize, 0usize) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let standing = await_stop(tid)?;
    give.send(registers(tid)?)
        .map_err(|_| io::ErrorKind::BrokenPipe)?;
    let stood = is_done.recv_timeout(STAND_MAX);
    drop(standing);
    match stood {
        Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
        Ok(()) | Err(RecvTimeoutError::Disconnected) => Ok(()),
    }
}

/// Waits until the thread is stopped, for any reason: it will continue with these registers in any
/// case.
fn await_stop(tid: i32) -> io::Result<Standing> {
    let began = Instant::now();
    loop {
        // SAFETY: all-zero is a valid value of this structure.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let flags = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::WNOHANG | libc::__WALL;
        // SAFETY: `info` is a valid place for the result.
        let answer =
            unsafe { libc::waitid(libc::P_PID, tid.cast_unsigned(), &raw mut info, flags) };
        if answer != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: waitid has filled what these read, or left it zero.
        let (who, status) = unsafe { (info.si_pid(), info.si_status()) };
        if who != 0 && info.si_code != libc::CLD_TRAPPED {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        if who != 0 {
            // The bits above the signal are the kind of the stop, if it is not a delivery.
            let is_delivery = status >> 8 == 0;
            let signal = if is_delivery { status & 0x7f } else { 0 };
            return Ok(Standing { tid, signal });
        }
        let waited = began.elapsed();
        let is_ready = || waited <= READY_WAIT && is_ready(tid);
        if waited > STOP_WAIT && !is_ready() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn registers(tid: i32) -> io::Result<Regs> {
    /// The general registers (`NT_PRSTATUS` in linux/elf.h).
    const GENERAL: usize = 1;
    // SAFETY: all-zero is a valid value of this structure of integers.
    let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    let mut room = libc::iovec {
        iov_base: (&raw mut regs).cast(),
        iov_len: size_of_val(&regs),
    };
    // SAFETY: the thread is stopped and ours; the kernel fills `regs`, which is of its type.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, tid, GENERAL, &raw mut room) };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(arch::of_stopped(&regs))
}

#[cfg(test)]
#[path = "ptrace_tests.rs"]
mod tests;
