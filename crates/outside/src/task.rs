//! The kernel's data about the threads of a process, in files below `/proc/PID`.

use dwell_wall::cause::{Call, Fd, Os};
use dwell_wall::proc::{self, Schedule, Target, Whereabouts};
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};
use std::fs;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Maximum number of threads of a process.
const TASKS_MAX: usize = 1 << 20;
/// Maximum number of sockets of one kind that are searched.
const SOCKETS_MAX: usize = 1 << 20;

/// The files of one process.
#[derive(Clone, Copy, Debug)]
pub struct Tasks {
    /// Its pid in our namespace.
    pub pid: u32,
    /// Whether the ids of threads in the JVM equal those that the kernel shows us; they differ in a
    /// container.
    shares_ids: bool,
}

impl Tasks {
    /// The files of `pid`; `ns_pid` is its number in its own namespace.
    #[must_use]
    pub const fn new(pid: u32, ns_pid: u32) -> Tasks {
        Tasks {
            pid,
            shares_ids: pid == ns_pid,
        }
    }

    /// Kernel ids of all threads: ours, and those in the process's namespace.
    #[must_use]
    pub fn all(&self) -> Vec<(i32, i32)> {
        let ids = self.ids().into_iter().filter_map(|tid| {
            let inner = match self.shares_ids {
                true => tid,
                false => self.inner(tid)?,
            };
            Some((tid, inner))
        });
        ids.collect()
    }

    /// Our kernel ids of all threads.
    #[must_use]
    pub fn ids(&self) -> Vec<i32> {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/task", self.pid)) else {
            return Vec::new();
        };
        let ids = entries
            .flatten()
            .take(TASKS_MAX)
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        ids.collect()
    }

    /// How many threads there are; 0 if unknown. The directory has a link from each folder in it
    /// (stat(2)).
    #[must_use]
    pub fn count(&self) -> u64 {
        let of = fs::metadata(format!("/proc/{}/task", self.pid));
        of.map_or(0, |of| of.nlink().saturating_sub(2))
    }

    /// The id in the innermost namespace (`NSpid`, proc(5)); `None` if there is no such thread.
    #[must_use]
    pub fn inner(&self, tid: i32) -> Option<i32> {
        let text = self.read(tid, "status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        line.split_whitespace().next_back()?.parse().ok()
    }

    fn read(&self, tid: i32, file: &str) -> Option<String> {
        // The files are short: one read returns a whole file.
        let mut bytes = [0; 4096];
        let mut file = fs::File::open(format!("/proc/{}/task/{tid}/{file}", self.pid)).ok()?;
        let len = file.read(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(bytes.get(..len)?).into_owned())
    }

    /// The kernel's name of a thread, with at most 15 bytes.
    #[must_use]
    pub fn name(&self, tid: i32) -> Option<String> {
        Some(self.read(tid, "comm")?.trim_end().to_owned())
    }

    /// Its state: `R`, `S`, `D`, `T`, `t`, ...
    #[must_use]
    pub fn state(&self, tid: i32) -> Option<char> {
        proc::state(self.read(tid, "stat")?.as_bytes()).map(char::from)
    }

    /// How long it ran and waited for a processor, and how often it got one.
    #[must_use]
    pub fn schedule(&self, tid: i32) -> Option<Schedule> {
        proc::schedule(self.read(tid, "schedstat")?.as_bytes())
    }

    /// The same, for repeated reads.
    #[must_use]
    pub fn clock(&self, tid: i32) -> Option<Clock> {
        let path = format!("/proc/{}/task/{tid}/schedstat", self.pid);
        Some(Clock(fs::File::open(path).ok()?))
    }

    /// The files of a thread that is read again and again. `None` if it has exited.
    #[must_use]
    pub fn files(&self, tid: i32) -> Option<Files> {
        Some(Files {
            clock: self.clock(tid)?,
            call: OnceCell::new(),
            path: (self.pid, tid),
        })
    }

    /// CPU time of all threads, in user mode and in the kernel (`stat`, proc(5)).
    #[must_use]
    pub fn cpu_time(&self) -> (u64, u64) {
        let text = fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        ticks_in(&text).unwrap_or((0, 0))
    }

    /// State and place of the thread.
    #[must_use]
    pub fn whereabouts(&self, tid: i32) -> Option<Whereabouts> {
        proc::whereabouts(self.read(tid, "syscall")?.as_bytes())
    }

    /// The kind of the call, and the object of its descriptor. `poll` returns the descriptor if the
    /// call waits for only one.
    #[must_use]
    pub fn call(
        &self,
        call: Option<Target>,
        poll: impl FnOnce(u64) -> Option<i32>,
        sockets: &Sockets,
    ) -> (Os, Option<String>) {
        let Some(target) = call else {
            return (Os::NoCall, None);
        };
        let fd = match target {
            Target::Descriptor(fd) => Some(fd),
            Target::Poll { fds, count: 1 } => poll(fds),
            _ => None,
        };
        let path = fd.and_then(|fd| self.descriptor(fd));
        let socket = path
            .as_deref()
            .and_then(|path| path.strip_prefix("socket:["));
        let socket = socket.and_then(|rest| rest.strip_suffix(']'));
        let call = match (target, &path, socket) {
            (_, _, Some(_)) => Call::On(Fd::Socket),
            (_, Some(_), None) | (Target::Path, ..) => Call::On(Fd::File),
            (Target::Futex, ..) => Call::Futex,
            (Target::Clock, ..) => Call::Sleep,
            (Target::Poll { .. } | Target::Many, ..) => Call::Many,
            (Target::Child, ..) => Call::Child,
            (Target::Descriptor(_) | Target::Other, ..) => Call::Other,
        };
        let detail = match socket {
            Some(inode) => sockets.find(inode, || self.peer(inode)),
            None => path,
        };
        (Os::Call(call), detail)
    }

    fn descriptor(&self, fd: i32) -> Option<String> {
        let path = fs::read_link(format!("/proc/{}/fd/{fd}", self.pid)).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// The other end of a TCP socket, or the address on which it listens.
    fn peer(&self, inode: &str) -> Option<String> {
        ["tcp", "tcp6"].into_iter().find_map(|kind| {
            let text = fs::read_to_string(format!("/proc/{}/net/{kind}", self.pid)).ok()?;
            peer_in(&text, inode)
        })
    }
}

/// The other ends of sockets, by the sockets' numbers. The kernel's list has all sockets of the
/// machine and takes a millisecond to read, so found ones are kept. A number may be used again, so
/// they are kept for a moment only.
#[derive(Debug, Default)]
pub struct Sockets(RefCell<FxHashMap<String, Option<String>>>);

impl Sockets {
    fn find(&self, inode: &str, read: impl FnOnce() -> Option<String>) -> Option<String> {
        if let Some(known) = self.0.borrow().get(inode) {
            return known.clone();
        }
        let found = read();
        self.0.borrow_mut().insert(inode.to_owned(), found.clone());
        found
    }
}

/// The kernel's counters of one thread.
#[derive(Debug)]
pub struct Clock(fs::File);

impl Clock {
    /// As [`Tasks::schedule`].
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        let mut bytes = [0; 128];
        let len = self.0.read_at(&mut bytes, 0).ok()?;
        proc::schedule(bytes.get(..len)?)
    }
}

/// Files of one thread. Opening one costs several times as much as reading it.
#[derive(Debug)]
pub struct Files {
    clock: Clock,
    /// `syscall`, once it was needed.
    call: OnceCell<Option<fs::File>>,
    path: (u32, i32),
}

impl Files {
    /// As [`Tasks::schedule`].
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        self.clock.schedule()
    }

    /// As [`Tasks::whereabouts`].
    #[must_use]
    pub fn whereabouts(&self) -> Option<Whereabouts> {
        let (pid, tid) = self.path;
        let open = || fs::File::open(format!("/proc/{pid}/task/{tid}/syscall")).ok();
        let file = self.call.get_or_init(open).as_ref()?;
        let mut bytes = [0; 256];
        let len = file.read_at(&mut bytes, 0).ok()?;
        proc::whereabouts(bytes.get(..len)?)
    }

    /// Whether the number of the first descriptor is below `limit`.
    #[must_use]
    pub fn is_below(&self, limit: usize) -> bool {
        usize::try_from(self.clock.0.as_raw_fd()).is_ok_and(|number| number < limit)
    }
}

/// Fields 14 and 15 of `stat`, whose clock ticks are 10 ms on every Linux for x86-64 and arm64.
fn ticks_in(text: &[u8]) -> Option<(u64, u64)> {
    const TICK_NS: u64 = 10_000_000;
    let end = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(end + 1..)?).ok()?;
    let mut words = rest.split_ascii_whitespace().skip(11);
    let mut time = || words.next()?.parse::<u64>().ok()?.checked_mul(TICK_NS);
    Some((time()?, time()?))
}

/// Finds a socket in `/proc/net/tcp` or `tcp6` (proc(5)).
fn peer_in(text: &str, inode: &str) -> Option<String> {
    let mut lines = text.lines().skip(1).take(SOCKETS_MAX);
    let line = lines.find(|line| line.split_whitespace().nth(9) == Some(inode))?;
    let mut words = line.split_whitespace().skip(1);
    let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
    const LISTENS: &str = "0A";
    match words.next()? {
        LISTENS => Some(format!("at {local}")),
        _ => Some(format!("peer {remote}")),
    }
}

/// An address in the kernel's format: words of the host's byte order in hexadecimal.
fn address(text: &str) -> Option<std::net::SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..host.len()).step_by(8) {
        let word = u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let host: std::net::IpAddr = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => four.into(),
        Err(_) => <[u8; 16]>::try_from(bytes.as_slice()).ok()?.into(),
    };
    // An IPv4 address in an IPv6 socket is shown as IPv4.
    Some(std::net::SocketAddr::new(host.to_canonical(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_threads_are_there() {
        let pid = std::process::id();
        let tasks = Tasks::new(pid, pid);
        let all = tasks.all();
        assert!(
            all.iter()
                .any(|(tid, inner)| *tid == pid as i32 && tid == inner)
        );
        assert!(tasks.count() >= 1);
        assert!(tasks.name(pid as i32).is_some_and(|name| !name.is_empty()));
        assert!(tasks.state(pid as i32).is_some());
        assert!(Tasks::new(u32::MAX, 1).all().is_empty());
    }

    #[test]
    fn sockets_show_their_other_end() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let client = std::net::TcpStream::connect(address).unwrap();
        let tasks = Tasks::new(std::process::id(), std::process::id());
        let sockets = Sockets::default();
        let told = |fd: i32| tasks.call(Some(Target::Descriptor(fd)), |_| None, &sockets);
        let on_socket = Os::Call(Call::On(Fd::Socket));
        assert_eq!(
            told(client.as_raw_fd()),
            (on_socket, Some(format!("peer {address}")))
        );
        assert_eq!(
            told(server.as_raw_fd()),
            (on_socket, Some(format!("at {address}")))
        );
        let file = std::fs::File::open("/dev/null").unwrap();
        let on_file = Os::Call(Call::On(Fd::File));
        assert_eq!(told(file.as_raw_fd()), (on_file, Some("/dev/null".into())));
        let poll = Some(Target::Poll { fds: 7, count: 1 });
        let polled = tasks.call(poll, |at| (at == 7).then(|| client.as_raw_fd()), &sockets);
        assert_eq!(polled.0, on_socket);
        assert_eq!(tasks.call(None, |_| None, &sockets), (Os::NoCall, None));
    }

    #[test]
    fn known_sockets_are_not_read_again() {
        let sockets = Sockets::default();
        let end = || Some("peer 1".to_owned());
        assert_eq!(sockets.find("7", end), end());
        assert_eq!(sockets.find("7", || panic!("it is known")), end());
        assert_eq!(sockets.find("8", || None), None);
        assert_eq!(sockets.find("8", end), None);
    }

    #[test]
    fn times_are_read_behind_any_name() {
        let text = b"7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14";
        assert_eq!(ticks_in(text), Some((110_000_000, 120_000_000)));
        assert_eq!(ticks_in(b"7 (a) S 1"), None);
        assert_eq!(ticks_in(b""), None);
    }

    #[test]
    fn invalid_lines_give_no_sockets() {
        for text in [
            "",
            "a\nb",
            "sl\n0: 00:1 x 01 0 0 0 0 0 77",
            "h\n 0: 0100007F:1F90 \u{e9}",
        ] {
            assert_eq!(peer_in(text, "77"), None);
        }
        let line = "h\n 0: 0100007F:1F90 00000000:0000 0A 0:0 0:0 0 0 0 77 1";
        assert_eq!(peer_in(line, "77").as_deref(), Some("at 127.0.0.1:8080"));
    }
}
