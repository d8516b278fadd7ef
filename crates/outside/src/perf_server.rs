//! Opens perf events for the agent in another process, where a container or the kernel's settings
//! forbid them to it but not to us. Must not open an event for any other process, or one of a kind
//! that the agent does not use.
//!
//! A thread accepts connections on a Unix socket in the target's file system. Only the target may
//! connect. Each connection has one request (`dwell_signal::perf_client`): a thread's id in the
//! target's namespace, and the event's description; without an id, the kernel's symbols. The answer
//! is a descriptor, or an error.

use crate::sys::wanted::{self, ATTR_BYTES};
use crate::task::Tasks;
use dwell_attach::{Process, peer_pid};
use rustc_hash::FxHashMap;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags,
    sockopt::{self, Timeout},
};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of a thread's id in a request.
const ID_BYTES: usize = 8;
/// Maximum number of requests in one recording: no program starts so many threads that last.
const REQUESTS_MAX: u32 = 1_000_000;
/// How long a connection may take to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(50);
/// Capabilities that permit all perf events: CAP_PERFMON and CAP_SYS_ADMIN (capabilities(7)).
const CAPABILITIES: u64 = 1 << 38 | 1 << 21;

/// Whether process `pid` may be refused perf events of its kernel time, while we may open them.
#[must_use]
pub fn is_useful(pid: u32) -> bool {
    let Ok(tid) = i32::try_from(pid) else {
        return false;
    };
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let user = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/user")).ok();
    let has_other_user = user("self") != user(&pid.to_string());
    (has_other_user || is_restricted(&status)) && wanted::is_permitted(tid)
}

/// Whether a process has a seccomp filter or lacks capabilities, by its `status`.
fn is_restricted(status: &str) -> bool {
    let value = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.map_or("", str::trim)
    };
    let capabilities = u64::from_str_radix(value("CapEff:"), 16).unwrap_or(0);
    value("Seccomp:") == "2" || capabilities & CAPABILITIES == 0
}

/// Answers requests until it is dropped.
#[derive(Debug)]
pub struct PerfServer {
    socket: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl PerfServer {
    /// Answers requests of process `pid`, whose number in its own namespace is `ns_pid`, on a
    /// listening socket of messages.
    ///
    /// # Errors
    /// No such process, or no thread.
    pub fn start(pid: u32, ns_pid: u32, socket: OwnedFd) -> io::Result<PerfServer> {
        let process = Process::open(pid).map_err(|_| io::Error::from(ErrorKind::NotFound))?;
        let mut server = Server {
            process,
            tasks: Tasks::new(pid, ns_pid),
            known: FxHashMap::default(),
        };
        let socket = Arc::new(socket);
        let accepting = Arc::clone(&socket);
        let thread = std::thread::Builder::new().name("perf-server".into());
        let thread = thread.spawn(move || server.run(&accepting))?;
        Ok(PerfServer {
            socket,
            thread: Some(thread),
        })
    }
}

impl Drop for PerfServer {
    fn drop(&mut self) {
        // Ends the wait for connections (unix(7)).
        let _ = rustix::net::shutdown(&*self.socket, Shutdown::Both);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Server {
    process: Process,
    tasks: Tasks,
    /// Our ids of threads, by those in the process's namespace. They may have ended since.
    known: FxHashMap<i32, i32>,
}

impl Server {
    fn run(&mut self, socket: &OwnedFd) {
        for _ in 0..REQUESTS_MAX {
            match rustix::net::accept_with(socket, SocketFlags::CLOEXEC) {
                // A failure is the peer's: it has given up.
                Ok(connection) => drop(self.serve(connection.as_fd())),
                Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
                Err(_) => return,
            }
        }
    }

    fn serve(&mut self, connection: BorrowedFd<'_>) -> io::Result<()> {
        if peer_pid(connection)? != self.process.pid() {
            return Ok(());
        }
        sockopt::set_socket_timeout(connection, Timeout::Recv, Some(REQUEST_TIMEOUT))?;
        let mut request = [0u8; ID_BYTES + ATTR_BYTES + 1];
        let (len, _) = rustix::net::recv(connection, &mut request, RecvFlags::empty())?;
        let request = request.get(..len).unwrap_or(&[]);
        let answer = match request.split_first_chunk::<ID_BYTES>() {
            Some((id, event)) => self.open(u64::from_ne_bytes(*id), event),
            None => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        };
        send(connection, answer)
    }

    fn open(&mut self, id: u64, event: &[u8]) -> io::Result<OwnedFd> {
        if id == 0 {
            // The kernel shows addresses by the rights of the process that opened the list.
            return Ok(File::open("/proc/kallsyms")?.into());
        }
        let no_thread = || io::Error::from_raw_os_error(libc::ESRCH);
        let inner = i32::try_from(id).map_err(|_| no_thread())?;
        let tid = self.find(inner).ok_or_else(no_thread)?;
        let event = wanted::open(event, tid)?;
        // If the thread had ended in between, another one might have got its number.
        let is_same = self.tasks.inner(tid) == Some(inner) && self.process.is_alive();
        if is_same { Ok(event) } else { Err(no_thread()) }
    }

    /// Our id of a thread of the process.
    fn find(&mut self, inner: i32) -> Option<i32> {
        let tasks = self.tasks;
        let is_it = |tid: &i32| tasks.inner(*tid) == Some(inner);
        // In the same namespace both ids are equal.
        if is_it(&inner) {
            return Some(inner);
        }
        if let Some(tid) = self.known.get(&inner).copied().filter(is_it) {
            return Some(tid);
        }
        // A new thread: the others are known, unless one has got the number of an ended one.
        let is_known: rustc_hash::FxHashSet<i32> = self.known.values().copied().collect();
        let ids = tasks.ids();
        let new = ids.iter().filter(|tid| !is_known.contains(tid));
        self.known
            .extend(new.filter_map(|tid| Some((tasks.inner(*tid)?, *tid))));
        if let Some(tid) = self.known.get(&inner).copied().filter(is_it) {
            return Some(tid);
        }
        let all = ids
            .iter()
            .filter_map(|tid| Some((tasks.inner(*tid)?, *tid)));
        self.known = all.collect();
        self.known.get(&inner).copied()
    }
}

/// Sends a descriptor, or the number of an error.
fn send(connection: BorrowedFd<'_>, answer: io::Result<OwnedFd>) -> io::Result<()> {
    let error = match &answer {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
    };
    let fds: Vec<BorrowedFd<'_>> = answer.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let bytes = error.to_ne_bytes();
    let parts = [IoSlice::new(&bytes)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::sendmsg(connection, &parts, &mut control, flags)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restricted_process_has_a_filter_or_lacks_capabilities() {
        let status = |bits: u64, filter: u8| {
            is_restricted(&format!(
                "Name:\tjava\nCapEff:\t{bits:016x}\nSeccomp:\t{filter}\n"
            ))
        };
        assert!(!status(u64::MAX, 0) && !status(1 << 38, 0) && !status(1 << 21, 0));
        assert!(status(u64::MAX, 2) && status(0, 0) && status(1 << 19, 0));
        assert!(is_restricted(""));
    }
}
