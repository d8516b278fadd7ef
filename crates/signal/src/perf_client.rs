//! Perf events that another process opens for this one: a command with more rights, where the
//! kernel refuses them here. It listens on a Unix socket, and answers a request with a descriptor.
//! Must not be called in a handler.
//!
//! Each request has its own connection, so a late answer is never taken for another one. A thread
//! that starts waits only a few ms, and then gets a timer.

use crate::arch;
use crate::sys::{self, Errno, check};
use core::mem::{size_of, size_of_val};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use perf_event_open_sys::bindings::{self, perf_event_attr};

/// Length of a socket's address (unix(7)), with the family at its begin and a zero at its end.
const ADDRESS_BYTES: usize = 110;
const FAMILY_BYTES: usize = 2;
/// How long a thread of the program may wait for an answer.
const WAIT_NS: i64 = 5_000_000;
/// The same for the first event, which decides about the engine, and for the kernel's symbols:
/// threads of ours wait for these.
const LONG_WAIT_NS: i64 = 900_000_000;
/// After so many requests without an answer, no more are made: the command hangs.
const UNANSWERED_MAX: u32 = 64;

struct State {
    /// The socket. It is written by a command's thread only. A thread that starts at the same time
    /// may use a part of each path, which is no socket's.
    address: [AtomicU8; ADDRESS_BYTES],
    /// Requests without an answer that are still allowed.
    allowed: AtomicU32,
    is_used: AtomicBool,
}

static STATE: State = State {
    address: [const { AtomicU8::new(0) }; ADDRESS_BYTES],
    allowed: AtomicU32::new(0),
    is_used: AtomicBool::new(false),
};

/// A request: the thread's id in this process's namespace, and its event. Without an id: the
/// kernel's list of its symbols, `/proc/kallsyms`.
#[repr(C)]
struct Request {
    tid: u64,
    attr: perf_event_attr,
}

/// Where requests go from now on: the path of a socket; empty: nowhere.
pub fn set_path(path: &str) {
    let (family, places) = STATE.address.split_at(FAMILY_BYTES);
    if let [low, _] = family {
        low.store(libc::AF_UNIX as u8, Ordering::Relaxed);
    }
    for (place, byte) in places.iter().zip(path.bytes()) {
        place.store(byte, Ordering::Relaxed);
    }
    let end = places.get(path.len());
    if let Some(end) = end {
        end.store(0, Ordering::Relaxed);
    }
    let is_wanted = !path.is_empty() && end.is_some();
    let allowed = if is_wanted { UNANSWERED_MAX } else { 0 };
    STATE.allowed.store(allowed, Ordering::Relaxed);
}

/// Whether a request was answered with an event.
#[must_use]
pub fn is_used() -> bool {
    STATE.is_used.load(Ordering::Relaxed)
}

/// Opens a perf event for thread `tid` on any processor. If the kernel refuses it, the other
/// process is asked. Its number is one that the program can spare ([`sys::move_up`]).
///
/// # Errors
/// The kernel's error in this process: not permitted, no such thread, too many open files.
pub fn perf_event_open(attr: &mut perf_event_attr, tid: i32) -> Result<i32, Errno> {
    let fd = match sys::perf_event_open(attr, tid) {
        Err(error @ Errno(libc::EPERM | libc::EACCES | libc::ENOSYS)) => {
            open(attr, tid).map_err(|_| error)?
        }
        answer => answer?,
    };
    sys::move_up(fd).inspect_err(|_| sys::close(fd))
}

/// An event of the other process for thread `tid` of this one.
///
/// # Errors
/// The other process's error, or that of reaching it.
pub fn open(attr: &perf_event_attr, tid: i32) -> Result<i32, Errno> {
    let fd = ask(tid, attr)?;
    let mut id = 0u64;
    // Only a perf event has a number.
    match sys::ioctl_value(fd, u64::from(bindings::ID), &raw mut id as usize) {
        Ok(_) => {
            STATE.is_used.store(true, Ordering::Relaxed);
            Ok(fd)
        }
        Err(error) => {
            sys::close(fd);
            Err(error)
        }
    }
}

/// The kernel's list of its symbols, opened by the other process.
#[must_use]
pub fn symbols() -> Option<i32> {
    ask(0, &perf_event_attr::default()).ok()
}

fn ask(tid: i32, attr: &perf_event_attr) -> Result<i32, Errno> {
    let allowed = STATE.allowed.load(Ordering::Relaxed);
    if allowed == 0 {
        return Err(Errno(libc::ENOENT));
    }
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let made = call(
        libc::SYS_socket,
        libc::AF_UNIX as usize,
        kind as usize,
        0,
        0,
        0,
    );
    let socket = check(made)?;
    let request = Request {
        tid: tid as u64,
        attr: *attr,
    };
    let answer = exchange(socket, &request);
    sys::close(socket as i32);
    if answer == Err(Errno(libc::EAGAIN)) {
        // If two are lost at once, one counts.
        STATE
            .allowed
            .store(allowed.wrapping_sub(1), Ordering::Relaxed);
    }
    answer
}

// Not inlined: that takes fewer bytes, and the kernel takes longer.
#[inline(never)]
fn call(number: i64, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize {
    // SAFETY: the callers pass numbers, and pointers to their own locals with these sizes.
    unsafe { arch::syscall(number, [a, b, c, d, e, 0]) }
}

/// `struct user_msghdr` of the kernel.
#[derive(Default)]
#[repr(C)]
struct Message {
    name: usize,
    name_bytes: u32,
    parts: usize,
    parts_len: usize,
    control: usize,
    control_bytes: usize,
    flags: u32,
}

/// `struct cmsghdr` with one descriptor. A socket without options gets no other kind.
#[derive(Default)]
#[repr(C)]
struct Control {
    len: usize,
    level: i32,
    kind: i32,
    fd: i32,
    padding: i32,
}

/// Sends a request, and waits for the answer: a descriptor, or an error. The socket does not block.
/// If one of the calls fails, the last one does as well, and that is the error.
fn exchange(socket: usize, request: &Request) -> Result<i32, Errno> {
    let at = STATE.address.as_ptr() as usize;
    call(libc::SYS_connect, socket, at, ADDRESS_BYTES, 0, 0);
    let at = request as *const Request as usize;
    let bytes = size_of::<Request>();
    let flags = libc::MSG_NOSIGNAL as usize;
    call(libc::SYS_sendto, socket, at, bytes, flags, 0);
    wait(socket, request.tid != 0 && is_used());
    let mut errno: i32 = 0;
    let part = [&raw mut errno as usize, size_of::<i32>()];
    let mut control = Control {
        fd: -1,
        ..Control::default()
    };
    let mut message = Message {
        parts: part.as_ptr() as usize,
        parts_len: 1,
        control: &raw mut control as usize,
        control_bytes: size_of::<Control>(),
        ..Message::default()
    };
    let at = &raw mut message as usize;
    let flags = libc::MSG_CMSG_CLOEXEC as usize;
    check(call(libc::SYS_recvmsg, socket, at, flags, 0, 0))?;
    // The kernel has closed further descriptors: there is room for one.
    match control.fd {
        fd @ 0.. => Ok(fd),
        _ => Err(Errno(errno)),
    }
}

/// Waits until the socket has the answer. Signals of this thread wait as well.
fn wait(socket: usize, is_of_thread: bool) {
    let limit = libc::timespec {
        tv_sec: 0,
        tv_nsec: if is_of_thread { WAIT_NS } else { LONG_WAIT_NS },
    };
    let blocked = u64::MAX;
    let mut polled = libc::pollfd {
        fd: socket as i32,
        events: libc::POLLIN,
        revents: 0,
    };
    let (at, limit_at) = (&raw mut polled as usize, &raw const limit as usize);
    let blocked_at = &raw const blocked as usize;
    let bytes = size_of_val(&blocked);
    call(libc::SYS_ppoll, at, 1, limit_at, blocked_at, bytes);
}
