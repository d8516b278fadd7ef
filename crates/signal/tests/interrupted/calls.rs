//! System calls that block for a moment, each ready to be made many times. Each has a flag for
//! whether the kernel restarts it after a handler with `SA_RESTART`; see signal(7).

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Helper threads end a wait about this often.
const PACE: Duration = Duration::from_micros(300);
/// Waits with a timeout last about so long.
const WAIT_NS: i64 = 300_000;
const WAIT_US: i64 = WAIT_NS / 1000;

type Result<T> = core::result::Result<T, i32>;

/// One kind of call.
pub struct Call {
    pub name: &'static str,
    /// Whether the kernel or the C library restarts it after a handler of ours.
    pub restarts: bool,
    /// Gets ready; the result makes one call.
    pub prepare: fn() -> Box<dyn FnMut() -> Result<()>>,
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A result of -1 is an error, unless `errno` is one that ends a wait as planned.
fn outcome(result: i64, planned: &[i32]) -> Result<()> {
    match errno() {
        _ if result >= 0 => Ok(()),
        error if planned.contains(&error) => Ok(()),
        error => Err(error),
    }
}

fn wait() -> libc::timespec {
    libc::timespec {
        tv_sec: 0,
        tv_nsec: WAIT_NS,
    }
}

/// The moment a wait shall end.
fn until() -> libc::timespec {
    let mut now = wait();
    // SAFETY: writes one timespec to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
    let ns = now.tv_nsec + WAIT_NS;
    libc::timespec {
        tv_sec: now.tv_sec + ns / 1_000_000_000,
        tv_nsec: ns % 1_000_000_000,
    }
}

/// Marks when it is dropped that helpers are to end.
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Repeats an action on a thread at its pace until the value is dropped.
fn meanwhile(mut action: impl FnMut() + Send + 'static) -> Over {
    let over = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&over);
    thread::spawn(move || {
        while !theirs.load(Ordering::Acquire) {
            action();
            thread::sleep(PACE);
        }
    });
    Over(over)
}

/// Waits for bytes by `poll` and takes them.
fn poll_for(fd: RawFd, timeout_ms: i32) -> Result<()> {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, a local.
    let found = unsafe { libc::poll(&mut entry, 1, timeout_ms) };
    if found > 0 {
        receive(fd);
    }
    outcome(found.into(), &[])
}

fn poll() -> Box<dyn FnMut() -> Result<()>> {
    let (here, there) = UnixStream::pair().unwrap();
    Box::new(move || {
        let _there = &there;
        poll_for(here.as_raw_fd(), 1) // the shortest wait there is
    })
}

fn poll_made_ready() -> Box<dyn FnMut() -> Result<()>> {
    let (here, mut there) = UnixStream::pair().unwrap();
    let over = meanwhile(move || _ = there.write(&[1]));
    Box::new(move || {
        let _over = &over;
        poll_for(here.as_raw_fd(), 1000)
    })
}

fn epoll_wait() -> Box<dyn FnMut() -> Result<()>> {
    // SAFETY: a new descriptor without another owner.
    let epoll = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
    Box::new(move || {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event, a local.
        outcome(
            unsafe { libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, 1) }.into(),
            &[],
        )
    })
}

fn select() -> Box<dyn FnMut() -> Result<()>> {
    Box::new(|| {
        let mut time = libc::timeval {
            tv_sec: 0,
            tv_usec: WAIT_US,
        };
        // SAFETY: no sets, a time that is a local.
        outcome(
            unsafe { libc::select(0, null_mut(), null_mut(), null_mut(), &mut time) }.into(),
            &[],
        )
    })
}

fn nanosleep() -> Box<dyn FnMut() -> Result<()>> {
    // SAFETY: reads one timespec, a local.
    Box::new(|| outcome(unsafe { libc::nanosleep(&wait(), null_mut()) }.into(), &[]))
}

fn clock_nanosleep() -> Box<dyn FnMut() -> Result<()>> {
    Box::new(|| {
        let until = until();
        let (clock, flags) = (libc::CLOCK_REALTIME, libc::TIMER_ABSTIME);
        // SAFETY: reads one timespec, a local.
        match unsafe { libc::clock_nanosleep(clock, flags, &until, null_mut()) } {
            0 => Ok(()),
            error => Err(error),
        }
    })
}

fn futex(timeout: Option<libc::timespec>, word: &u32) -> Result<()> {
    let time = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word and a time that outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word),
            operation,
            0,
            time,
        )
    };
    outcome(result, &[libc::ETIMEDOUT])
}

fn futex_with_timeout() -> Box<dyn FnMut() -> Result<()>> {
    Box::new(|| futex(Some(wait()), &0))
}

fn futex_without_timeout() -> Box<dyn FnMut() -> Result<()>> {
    let word: &'static u32 = Box::leak(Box::new(0));
    let over = meanwhile(move || {
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the address is a key only.
        unsafe { libc::syscall(libc::SYS_futex, std::ptr::from_ref(word), operation, 1) };
    });
    Box::new(move || {
        let _over = &over;
        futex(None, word)
    })
}

fn condition() -> Box<dyn FnMut() -> Result<()>> {
    let pair = (std::sync::Mutex::new(()), std::sync::Condvar::new());
    Box::new(move || {
        let held = pair.0.lock().unwrap();
        let _ = pair
            .1
            .wait_timeout(held, Duration::from_nanos(WAIT_NS as u64))
            .unwrap();
        Ok(())
    })
}

fn semaphore() -> Box<dyn FnMut() -> Result<()>> {
    // SAFETY: sem_t is plain data, initialised by sem_init below before use, and never moves.
    let place: &'static mut libc::sem_t = Box::leak(Box::new(unsafe { std::mem::zeroed() }));
    // SAFETY: as above.
    assert_eq!(unsafe { libc::sem_init(place, 0, 0) }, 0);
    Box::new(move || {
        // SAFETY: an initialised semaphore and a time that is a local.
        let result = unsafe { libc::sem_timedwait(place, &until()) };
        outcome(result.into(), &[libc::ETIMEDOUT])
    })
}

fn sigtimedwait() -> Box<dyn FnMut() -> Result<()>> {
    // SAFETY: a signal set is plain data, initialised by sigemptyset.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a local; SIGUSR1 is blocked in this thread, and never sent.
    unsafe {
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGUSR1);
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, null_mut());
    }
    Box::new(move || {
        // SAFETY: reads a set and a time, both locals.
        let result = unsafe { libc::sigtimedwait(&set, null_mut(), &wait()) };
        outcome(result.into(), &[libc::EAGAIN])
    })
}

fn receive(fd: RawFd) -> i64 {
    let mut byte = 0u8;
    // SAFETY: room for one byte, a local.
    unsafe { libc::read(fd, (&raw mut byte).cast(), 1) as i64 }
}

fn read() -> Box<dyn FnMut() -> Result<()>> {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors; neither has another owner.
    let (here, there) = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (
            OwnedFd::from_raw_fd(ends[0]),
            std::fs::File::from_raw_fd(ends[1]),
        )
    };
    let mut there = there;
    let over = meanwhile(move || _ = there.write(&[1]));
    Box::new(move || {
        let _over = &over;
        outcome(receive(here.as_raw_fd()), &[])
    })
}

fn receive_with_timeout() -> Box<dyn FnMut() -> Result<()>> {
    let (here, there) = UnixStream::pair().unwrap();
    here.set_read_timeout(Some(Duration::from_micros(WAIT_US as u64)))
        .unwrap();
    Box::new(move || {
        let _there = &there;
        outcome(receive(here.as_raw_fd()), &[libc::EAGAIN])
    })
}

fn receive_in_time() -> Box<dyn FnMut() -> Result<()>> {
    let (here, mut there) = UnixStream::pair().unwrap();
    here.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let over = meanwhile(move || _ = there.write(&[1]));
    Box::new(move || {
        let _over = &over;
        outcome(receive(here.as_raw_fd()), &[])
    })
}

/// A listening socket with room for one waiting connection, at an address without a file.
fn listener(name: &str) -> (OwnedFd, libc::sockaddr_un, libc::socklen_t) {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    let mut address = libc::sockaddr_un {
        sun_family: libc::AF_UNIX as libc::sa_family_t,
        sun_path: [0; 108],
    };
    let name = format!("dwell-test-{name}-{}", std::process::id());
    for (place, byte) in address.sun_path[1..].iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    let len = (2 + 1 + name.len()) as libc::socklen_t;
    // SAFETY: a new descriptor; the address is a local with `len` bytes in use.
    let fd = unsafe {
        let fd = OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, kind, 0));
        assert_eq!(
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len),
            0
        );
        assert_eq!(libc::listen(fd.as_raw_fd(), 0), 0);
        fd
    };
    (fd, address, len)
}

fn connect_to(address: &libc::sockaddr_un, len: libc::socklen_t) -> Result<()> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: a new descriptor; an address with `len` bytes in use.
    unsafe {
        let fd = OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, kind, 0));
        outcome(
            libc::connect(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), len).into(),
            &[],
        )
    }
}

fn accept_from(fd: RawFd, planned: &[i32]) -> Result<()> {
    // SAFETY: the address is not asked for; a new descriptor is closed at once.
    unsafe {
        let made = libc::accept4(fd, null_mut(), null_mut(), libc::SOCK_CLOEXEC);
        let result = outcome(made.into(), planned);
        if made >= 0 {
            libc::close(made);
        }
        result
    }
}

fn connect() -> Box<dyn FnMut() -> Result<()>> {
    let (fd, address, len) = listener("connect");
    let nonblocking = libc::O_NONBLOCK;
    // SAFETY: plain numbers.
    unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, nonblocking) };
    let over = meanwhile(move || _ = accept_from(fd.as_raw_fd(), &[]));
    Box::new(move || {
        let _over = &over;
        connect_to(&address, len)
    })
}

fn accept() -> Box<dyn FnMut() -> Result<()>> {
    let (fd, address, len) = listener("accept");
    let over = meanwhile(move || _ = connect_to(&address, len));
    Box::new(move || {
        let _over = &over;
        accept_from(fd.as_raw_fd(), &[])
    })
}

fn accept_with_timeout() -> Box<dyn FnMut() -> Result<()>> {
    let (fd, _, _) = listener("accept-timeout");
    let time = libc::timeval {
        tv_sec: 0,
        tv_usec: WAIT_US,
    };
    let len = size_of::<libc::timeval>() as libc::socklen_t;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
    // SAFETY: reads one timeval, a local.
    let set =
        unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const time).cast(), len) };
    assert_eq!(set, 0);
    Box::new(move || accept_from(fd.as_raw_fd(), &[libc::EAGAIN]))
}

const fn call(
    name: &'static str,
    restarts: bool,
    prepare: fn() -> Box<dyn FnMut() -> Result<()>>,
) -> Call {
    Call {
        name,
        restarts,
        prepare,
    }
}

/// All of them.
pub const CALLS: [Call; 17] = [
    call("poll, time-out", false, poll),
    call("poll, made ready", false, poll_made_ready),
    call("epoll_wait, time-out", false, epoll_wait),
    call("select, time-out", false, select),
    call("nanosleep", false, nanosleep),
    call("clock_nanosleep until", false, clock_nanosleep),
    call("futex with a time-out", false, futex_with_timeout),
    call("sem_timedwait", false, semaphore),
    call("sigtimedwait", false, sigtimedwait),
    call("SO_RCVTIMEO, time-out", false, receive_with_timeout),
    call("SO_RCVTIMEO, data come", false, receive_in_time),
    call("accept, SO_RCVTIMEO", false, accept_with_timeout),
    call("futex", true, futex_without_timeout),
    call("pthread_cond_timedwait", true, condition),
    call("read from a pipe", true, read),
    call("connect", true, connect),
    call("accept", true, accept),
];
