//! Perf events that are opened for another process: the agent's requests and their answers.

use dwell_outside::perf_server::PerfServer;
use dwell_signal::{Errno, perf_client, sys};
use perf_event_open_sys::bindings::{PERF_COUNT_SW_CPU_CLOCK, PERF_TYPE_SOFTWARE, perf_event_attr};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};
use std::fs::File;
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// There is one client in a process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// The socket, for this test program in the role of another process.
const SOCKET: &str = "DWELL_TEST_PERF_SOCKET";

/// A folder for one test, removed afterwards.
struct Place {
    path: PathBuf,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    fn new(name: &str) -> Place {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::temp_dir().join(format!("dwell-perf-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Place {
            path,
            _alone: alone,
        }
    }

    fn socket(&self) -> String {
        self.path.join("perf").to_str().unwrap().to_owned()
    }

    fn listen(&self) -> OwnedFd {
        let address = SocketAddrUnix::new(Path::new(&self.socket())).unwrap();
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
        rustix::net::bind(&socket, &address).unwrap();
        rustix::net::listen(&socket, 100).unwrap();
        socket
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        perf_client::set_path("");
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// An event of user time, which most kernels permit.
fn clock() -> perf_event_attr {
    let mut attr = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_CPU_CLOCK),
        ..Default::default()
    };
    attr.__bindgen_anon_1.sample_period = 1_000_000;
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr
}

/// Whether this process may use perf events.
fn is_permitted() -> bool {
    let opened = perf_client::perf_event_open(&mut clock(), sys::gettid()).map(sys::close);
    if let Err(error) = opened {
        println!("skipped: perf events are not permitted here: {error}");
    }
    opened.is_ok()
}

/// An event of the calling thread.
fn own_event() -> Result<i32, Errno> {
    perf_client::open(&clock(), sys::gettid())
}

#[test]
fn agent_gets_events_of_its_own_threads_only() {
    let place = Place::new("own");
    if !is_permitted() {
        return;
    }
    let pid = std::process::id();
    let server = PerfServer::start(pid, pid, place.listen()).unwrap();
    perf_client::set_path(&place.socket());
    let event = own_event().unwrap();
    assert!(perf_client::is_used());
    // It counts: this loop ends.
    while sys::read_u64(event).unwrap() == 0 {}
    sys::close(event);
    let first = perf_client::open(&clock(), sys::getpid());
    sys::close(first.unwrap());
    let ended = std::thread::spawn(sys::gettid).join().unwrap();
    assert_eq!(perf_client::open(&clock(), ended), Err(Errno(libc::ESRCH)));

    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    for tid in [1, child.id() as i32, -1, i32::MAX] {
        let answer = perf_client::open(&clock(), tid);
        assert_eq!(answer, Err(Errno(libc::ESRCH)), "{tid}");
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let mut other = clock();
    other.set_inherit(1);
    let answer = perf_client::open(&other, sys::gettid());
    assert_eq!(answer, Err(Errno(libc::EINVAL)));

    let symbols = perf_client::symbols().unwrap();
    // SAFETY: a descriptor that was opened for the test alone.
    let mut list = unsafe { File::from_raw_fd(symbols) };
    let mut first = [0; 17];
    list.read_exact(&mut first).unwrap();
    assert_eq!(first[16], b' ', "{first:?}");

    drop(server);
    assert_eq!(own_event(), Err(Errno(libc::ENOTCONN)));
}

/// The other process's half of the test below; without a socket it does nothing.
#[test]
fn no_events_as_seen_by_another_process() {
    let Ok(path) = std::env::var(SOCKET) else {
        println!("skipped: a part of another test, which names a socket");
        return;
    };
    perf_client::set_path(&path);
    for tid in [sys::gettid(), std::os::unix::process::parent_id() as i32] {
        let answer = perf_client::open(&clock(), tid);
        // The connection was closed, before or after the request.
        let closed = matches!(answer, Err(Errno(0 | libc::ECONNRESET)));
        assert!(closed, "{answer:?}");
    }
    assert_eq!(perf_client::symbols(), None);
}

#[test]
fn other_processes_get_no_events() {
    let place = Place::new("others");
    let pid = std::process::id();
    let _server = PerfServer::start(pid, pid, place.listen()).unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "no_events_as_seen_by_another_process"])
        .env(SOCKET, place.socket())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && text.contains("1 passed"),
        "{text}"
    );
}

/// A command that is stopped does not keep the program's threads waiting for ever.
#[test]
fn command_that_does_not_answer_is_left_alone() {
    let place = Place::new("silent");
    if !is_permitted() {
        return;
    }
    let pid = std::process::id();
    let server = PerfServer::start(pid, pid, place.listen()).unwrap();
    perf_client::set_path(&place.socket());
    own_event().map(sys::close).unwrap();
    drop(server);
    std::fs::remove_file(place.socket()).unwrap();
    let waiting = place.listen();
    let mut expected = [Err(Errno(libc::EAGAIN)); 70];
    expected[64..].fill(Err(Errno(libc::ENOENT)));
    assert_eq!([(); 70].map(|()| own_event()), expected);
    // Another recording asks again.
    perf_client::set_path(&place.socket());
    assert_eq!(own_event(), Err(Errno(libc::EAGAIN)));
    drop(waiting);
    assert_eq!(own_event(), Err(Errno(libc::ENOTCONN)));
    perf_client::set_path("/nowhere");
    assert_eq!(own_event(), Err(Errno(libc::ENOTCONN)));
    for path in ["", &"/x".repeat(100)] {
        perf_client::set_path(path);
        assert_eq!(own_event(), Err(Errno(libc::ENOENT)), "{path}");
    }
}

/// The agent's calls may have other meanings for a descriptor of another kind.
#[test]
fn descriptor_that_is_no_event_is_refused() {
    let place = Place::new("kind");
    let socket = place.listen();
    perf_client::set_path(&place.socket());
    let server = std::thread::spawn(move || {
        let connection = rustix::net::accept(&socket).unwrap();
        let mut request = [0; 1024];
        rustix::net::recv(&connection, &mut request[..], RecvFlags::empty()).unwrap();
        let file = File::open("/dev/null").unwrap();
        let fds = [file.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&fds));
        let parts = [IoSlice::new(&[0; 4])];
        rustix::net::sendmsg(&connection, &parts, &mut control, SendFlags::empty()).unwrap();
    });
    assert_eq!(own_event(), Err(Errno(libc::ENOTTY)));
    server.join().unwrap();
}
