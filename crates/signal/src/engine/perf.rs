//! The perf engine: a cpu-clock event per thread that sends a signal for each overflow.
//!
//! An overflow, or a few, disable the event until the handler refreshes it: a thread that blocks
//! the signal has few pending, not hundreds. If the kernel cannot queue the signal, a real-time
//! signal becomes SIGIO, whose default ends the process (`handler::dwell_queue_full_handler`), and
//! any other one arrives without its sender.

use crate::perf_client;
use crate::plan::GAP_MIN_NS;
use crate::slots::KERNEL_FRAMES_MAX;
use crate::sys::{self, Errno};
use perf_event_open_sys::bindings::{
    self as bindings, PERF_COUNT_SW_CPU_CLOCK, PERF_SAMPLE_CALLCHAIN, PERF_SAMPLE_IP,
    PERF_TYPE_SOFTWARE, perf_event_attr,
};

/// Pages of a ring: the control page and one page of data, room for several samples.
pub const RING_PAGES: usize = 2;

/// The shortest gap of events that leave out the kernel. Their timer fires there, too, and is then
/// set again without having counted: a thread must leave the kernel in less time.
const USER_GAP_MIN_NS: u64 = 100_000;

/// The events that `perf_event_open` allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfLevel {
    /// Whether samples may be in the kernel and have kernel call chains.
    pub kernel: bool,
}

/// Whether perf events may be used, tested by opening one.
///
/// # Errors
/// The kernel's error for the least privileged event: user mode of the calling thread.
pub fn perf_permitted() -> Result<PerfLevel, Errno> {
    let me = sys::gettid();
    let try_open = |kernel| match open_event(me, kernel) {
        Ok(fd) => {
            sys::close(fd);
            Ok(PerfLevel { kernel })
        }
        // The kernel checks permission first. There may be free descriptors later.
        Err(Errno(libc::EMFILE)) => Ok(PerfLevel { kernel }),
        Err(error) => Err(error),
    };
    try_open(true).or_else(|_| try_open(false))
}

/// Whether an event that disables itself can hang the machine: another profiler saw that in
/// Linux 6.16 and 6.17. `release` is the kernel's, as in `uname -r`.
#[must_use]
pub fn perf_hangs(release: &str) -> bool {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    let number = parts.next().and_then(|part| part.parse::<u32>().ok());
    let minor = parts.next().and_then(|part| part.parse::<u32>().ok());
    matches!((number, minor), (Some(6), Some(16 | 17)))
}

fn open_event(tid: i32, kernel: bool) -> Result<i32, Errno> {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = GAP_MIN_NS;
    attr.__bindgen_anon_2.wakeup_events = 1;
    attr.set_disabled(1);
    attr.set_exclude_hv(1);
    attr.sample_type = u64::from(PERF_SAMPLE_IP);
    if kernel {
        attr.sample_type |= u64::from(PERF_SAMPLE_CALLCHAIN);
        attr.set_exclude_callchain_user(1);
        attr.sample_max_stack = KERNEL_FRAMES_MAX as u16;
    } else {
        attr.set_exclude_kernel(1);
    }
    perf_client::perf_event_open(&mut attr, tid)
}

#[repr(C)]
struct Owner {
    kind: i32,
    id: i32,
}

/// F_SETSIG and F_SETOWN_EX, which the libc crate does not define for all targets.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const F_OWNER_TID: i32 = 0;

/// Opens a disabled event for thread `tid` that will send it `signal`.
pub fn open(tid: i32, signal: i32, kernel: bool) -> Result<i32, Errno> {
    let fd = open_event(tid, kernel)?;
    let owner = Owner {
        kind: F_OWNER_TID,
        id: tid,
    };
    let flags = (libc::O_ASYNC | libc::O_NONBLOCK) as usize;
    let result = sys::fcntl(fd, F_SETSIG, signal as usize)
        .and_then(|_| sys::fcntl(fd, F_SETOWN_EX, &raw const owner as usize))
        .and_then(|_| sys::fcntl(fd, libc::F_SETFL, flags));
    if let Err(error) = result {
        sys::close(fd);
        return Err(error);
    }
    Ok(fd)
}

/// Lets the event send another signal from now on.
pub fn set_signal(fd: i32, signal: i32) -> Result<(), Errno> {
    sys::fcntl(fd, F_SETSIG, signal as usize).map(|_| ())
}

/// Lets the event overflow after `gap_ns` more of the thread's time on a processor, and again
/// after as much, as long as it is refreshed. Returns its present period.
#[inline]
pub fn set_period(fd: i32, gap_ns: u64, kernel: bool) -> Result<u64, Errno> {
    let least_ns = if kernel { GAP_MIN_NS } else { USER_GAP_MIN_NS };
    let period_ns = gap_ns.max(least_ns);
    sys::ioctl_u64(fd, u64::from(bindings::PERIOD), period_ns)?;
    Ok(period_ns)
}

/// Lets the event send `signals` more, and enables it if it had none left.
#[inline]
pub fn refresh(fd: i32, signals: u32) -> Result<(), Errno> {
    sys::ioctl_value(fd, u64::from(bindings::REFRESH), signals as usize)?;
    Ok(())
}

/// Disables the event.
pub fn disarm(fd: i32) {
    // Fails only for a descriptor that other code has closed; then the event is gone, too.
    let _ = sys::ioctl_value(fd, u64::from(bindings::DISABLE), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_perf_events_hang_are_known() {
        for release in ["6.16.0-rc3", "6.17.9-300.fc43.x86_64", "6.16", "6.17+"] {
            assert!(perf_hangs(release), "{release}");
        }
        for release in [
            "6.1.0-44-amd64",
            "6.15.11",
            "6.18.44",
            "5.17.1",
            "6.160.1",
            "16.17",
            "",
        ] {
            assert!(!perf_hangs(release), "{release}");
        }
    }
}
