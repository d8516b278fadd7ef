//! The attach handshake and one command over the listener's socket.
//!
//! Runs with the target's effective user and group. Order matters: every reason to refuse is
//! checked before a file is created or a signal sent. The trigger file is removed however the
//! handshake ends.

use crate::Error;
use crate::options::AttachFlags;
use crate::process::Process;
use crate::procfs::Status;
use crate::protocol::{self, Reply, Unwritable, Version};
use crate::root::{Root, fd_path};
use crate::sys::peer_pid;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Maximum length of a reply, in bytes.
const REPLY_BYTES_MAX: usize = 16 << 20;
/// How long a starting JVM may take to install its signal handler.
const STARTUP_WAIT: Duration = Duration::from_secs(20);
/// A JVM younger than this may lose the first request, because it clears left-over sockets late.
const YOUNG_MS: u64 = 20_000;
const POLL_FIRST: Duration = Duration::from_millis(2);
const POLL_MAX: Duration = Duration::from_millis(50);

/// The target's data for the handshake.
pub(crate) struct Client<'a> {
    pub process: &'a Process,
    pub root: &'a Root,
    pub ns_pid: u32,
    pub uid: u32,
    pub flags: AttachFlags,
    pub timeout: Duration,
}

/// A time limit.
struct Deadline {
    at: Instant,
    poll: Duration,
}

impl Deadline {
    fn after(wait: Duration) -> Deadline {
        Deadline {
            at: Instant::now() + wait,
            poll: POLL_FIRST,
        }
    }

    fn left(&self) -> Option<Duration> {
        self.at
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
    }

    /// Sleeps a little, longer each time; `false` once the time is over.
    fn pause(&mut self) -> bool {
        let Some(left) = self.left() else {
            return false;
        };
        std::thread::sleep(self.poll.min(left));
        self.poll = (self.poll * 2).min(POLL_MAX);
        true
    }
}

impl Client<'_> {
    /// Executes one command and returns the listener's reply.
    pub(crate) fn command(&self, command: &str, args: &[&str]) -> Result<Reply, Error> {
        match protocol::encode(Version::V1, command, args) {
            Ok(request) => {
                let reply = self.exchange(&request)?;
                if reply.code != protocol::BAD_VERSION || !self.speaks_v2()? {
                    return Ok(reply);
                }
            }
            Err(reason) => {
                if !self.speaks_v2()? {
                    return Err(self.unwritable(reason));
                }
            }
        }
        let request = protocol::encode(Version::V2, command, args);
        self.exchange(&request.map_err(|reason| self.unwritable(reason))?)
    }

    fn speaks_v2(&self) -> Result<bool, Error> {
        let request = protocol::encode(Version::V1, "getversion", &[]);
        let reply = self.exchange(&request.map_err(|reason| self.unwritable(reason))?)?;
        Ok(reply.announced_version() == Version::V2)
    }

    fn unwritable(&self, reason: Unwritable) -> Error {
        match reason {
            Unwritable::TooLong { what, len, max } => Error::TooLong { what, len, max },
            Unwritable::Nul => Error::io(
                self.process.pid(),
                "writing a NUL",
                std::io::Error::from(ErrorKind::InvalidInput),
            ),
        }
    }

    fn exchange(&self, request: &[u8]) -> Result<Reply, Error> {
        // A stopped process still accepts connections and requests on its listener's socket.
        check_runs(self.process)?;
        let deadline = Deadline::after(self.timeout);
        let mut stream = self.connect(&deadline)?;
        let pid = self.process.pid();
        let bytes = self.write_and_read(&mut stream, request, &deadline)?;
        Reply::parse(&bytes).ok_or_else(|| {
            let start = bytes.get(..bytes.len().min(120)).unwrap_or(&[]);
            Error::BadReply {
                pid,
                text: String::from_utf8_lossy(start).into_owned(),
            }
        })
    }

    fn write_and_read(
        &self,
        stream: &mut UnixStream,
        request: &[u8],
        deadline: &Deadline,
    ) -> Result<Vec<u8>, Error> {
        let io = |error| Error::io(self.process.pid(), "talking to the attach listener", error);
        let late = || self.timed_out("waiting for the reply");
        stream
            .set_write_timeout(Some(deadline.left().ok_or_else(late)?))
            .map_err(io)?;
        match stream.write_all(request) {
            // A listener that refuses early closes its end; the reply has the reason.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if is_timeout(&error) => return Err(late()),
            other => other.map_err(io)?,
        }
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        while bytes.len() < REPLY_BYTES_MAX {
            stream
                .set_read_timeout(Some(deadline.left().ok_or_else(late)?))
                .map_err(io)?;
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(buffer.get(..count).unwrap_or(&[])),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => return Err(late()),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => return Err(io(error)),
            }
        }
        if bytes.is_empty() && !self.process.is_alive() {
            return Err(Error::Exited {
                pid: self.process.pid(),
            });
        }
        Ok(bytes)
    }

    fn timed_out(&self, stage: &'static str) -> Error {
        // The process may have been stopped during the wait.
        if let Err(error) = check_runs(self.process) {
            return error;
        }
        Error::TimedOut {
            pid: self.process.pid(),
            seconds: self.timeout.as_secs(),
            stage,
        }
    }

    /// A connection to the listener, which is started first if it does not run yet.
    fn connect(&self, deadline: &Deadline) -> Result<UnixStream, Error> {
        if let Some(stream) = self.try_socket(deadline)? {
            return Ok(stream);
        }
        self.check_quit_is_safe()?;
        self.check_tmp()?;
        let _trigger = self.create_trigger()?;
        self.process.send_quit()?;
        let began = Instant::now();
        let mut again = self.is_young();
        let mut waiting = Deadline {
            at: deadline.at,
            poll: POLL_FIRST,
        };
        while waiting.pause() {
            if let Some(stream) = self.try_socket(deadline)? {
                return Ok(stream);
            }
            if !self.process.is_alive() {
                return Err(Error::Exited {
                    pid: self.process.pid(),
                });
            }
            if again && began.elapsed() > Duration::from_secs(1) {
                again = false;
                self.check_quit_is_safe()?;
                self.process.send_quit()?;
            }
        }
        Err(self.timed_out("starting its attach listener"))
    }

    fn is_young(&self) -> bool {
        self.process
            .uptime_ms()
            .is_some_and(|age_ms| age_ms < YOUNG_MS)
    }

    /// Refuses unless SIGQUIT has a handler and will lead to a listener.
    fn check_quit_is_safe(&self) -> Result<(), Error> {
        let pid = self.process.pid();
        if self.flags.attach_disabled == Some(true) {
            return Err(Error::AttachDisabled { pid });
        }
        let mut startup = Deadline::after(STARTUP_WAIT.min(self.timeout));
        loop {
            if check_runs(self.process)?.catches_quit() {
                return Ok(());
            }
            let starting = self.is_young() && self.flags.signals_reduced != Some(true);
            if !starting || !startup.pause() {
                return Err(Error::QuitNotCaught { pid });
            }
        }
    }

    /// Refuses if the JVM cannot make its socket: it would never answer.
    fn check_tmp(&self) -> Result<(), Error> {
        let pid = self.process.pid();
        missing_tmp(self.root).map_or(Ok(()), |reason| Err(Error::NoTmp { pid, reason }))
    }

    /// The listener's socket as HotSpot names it.
    fn socket_path(&self) -> String {
        format!("/tmp/.java_pid{}", self.ns_pid)
    }

    /// Connects if the socket exists and has a listener; `None` if the listener must be started
    /// first.
    fn try_socket(&self, deadline: &Deadline) -> Result<Option<UnixStream>, Error> {
        let pid = self.process.pid();
        let path = self.socket_path();
        let untrusted = |detail: &str| Error::UntrustedSocket {
            pid,
            path: path.clone(),
            detail: detail.to_owned(),
        };
        let file = match self.root.open(&path, OFlags::PATH | OFlags::NOFOLLOW, 0) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(pid, path, error)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|error| Error::io(pid, &*path, error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(untrusted("not a socket"));
        }
        if stat.st_uid != self.uid && stat.st_uid != 0 {
            return Err(untrusted(&format!("owned by user id {}", stat.st_uid)));
        }
        // If our root is not the JVM's user in the JVM's own namespace, the socket is left over
        // from a process that had this id before. The JVM cannot replace it by its own.
        let is_foreign = stat.st_uid != self.uid;
        let stream = match self.connect_to(&file, deadline) {
            Err(Error::Io { reason, .. })
                if is_foreign && reason.kind() == ErrorKind::PermissionDenied =>
            {
                return Err(untrusted("left over from a process of root"));
            }
            other => other?,
        };
        let Some(stream) = stream else {
            return Ok(None);
        };
        match peer_pid(stream.as_fd()) {
            Ok(peer) if peer == pid => Ok(Some(stream)),
            Ok(peer) => Err(untrusted(&format!("process {peer} listens on it"))),
            Err(error) => Err(Error::io(pid, path, error)),
        }
    }

    /// Connects to exactly the socket that was checked; `None` without a listener.
    fn connect_to(&self, file: &OwnedFd, deadline: &Deadline) -> Result<Option<UnixStream>, Error> {
        let io = |error: Errno| Error::io(self.process.pid(), self.socket_path(), error);
        let address = SocketAddrUnix::new(fd_path(file)).map_err(io)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::STREAM;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None).map_err(io)?;
        let mut waiting = Deadline {
            at: deadline.at,
            poll: POLL_FIRST,
        };
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::CONNREFUSED | Errno::NOENT) => return Ok(None),
                // The queue of a listener that does not accept is full.
                Err(Errno::AGAIN) if waiting.pause() => {}
                Err(Errno::AGAIN) => return Err(self.timed_out("connecting to its listener")),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io(error)),
            }
        }
        let stream = UnixStream::from(socket);
        stream
            .set_nonblocking(false)
            .map_err(|error| Error::io(self.process.pid(), self.socket_path(), error))?;
        Ok(Some(stream))
    }

    /// The file that makes HotSpot's SIGQUIT handler start the listener instead of printing a
    /// thread dump. HotSpot searches it in its working directory first, then in /tmp.
    fn create_trigger(&self) -> Result<Trigger, Error> {
        let name = format!(".attach_pid{}", self.ns_pid);
        let places = [
            self.root.open_dir("/tmp"),
            self.process.working_dir().map(|(dir, _)| dir),
        ];
        let mut reason = std::io::Error::from(ErrorKind::NotFound);
        for dir in places {
            match dir.and_then(|dir| Trigger::create(dir, &name, self.uid)) {
                Ok(trigger) => return Ok(trigger),
                Err(error) => reason = error,
            }
        }
        Err(Error::io(
            self.process.pid(),
            format!("creating /tmp/{name}"),
            reason,
        ))
    }
}

/// The process's state; an error if it is stopped or has exited.
pub(crate) fn check_runs(process: &Process) -> Result<Status, Error> {
    let pid = process.pid();
    let status = process.status()?;
    if status.has_exited() {
        return Err(Error::Exited { pid });
    }
    if status.is_stopped() {
        return Err(Error::Stopped { pid });
    }
    Ok(status)
}

/// Why no user can make a file in `/tmp` of this root.
fn missing_tmp(root: &Root) -> Option<String> {
    let is_read_only = |tmp: &OwnedFd| {
        rustix::fs::fstatvfs(tmp)
            .is_ok_and(|mounted| mounted.f_flag.contains(StatVfsMountFlags::RDONLY))
    };
    match root.open_dir("/tmp") {
        Ok(tmp) => is_read_only(&tmp).then(|| Errno::ROFS.to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(error.to_string()),
        Err(_) => None,
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The trigger file; removed when dropped.
struct Trigger {
    dir: OwnedFd,
    name: String,
}

impl Trigger {
    fn create(dir: OwnedFd, name: &str, uid: u32) -> std::io::Result<Trigger> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::openat(&dir, name, flags, mode) {
            Ok(_) => {}
            // Left over, or from another client: usable if HotSpot accepts it.
            Err(Errno::EXIST) => {
                let stat = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
                if stat.st_uid != uid && stat.st_uid != 0 {
                    return Err(ErrorKind::AlreadyExists.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(Trigger {
            dir,
            name: name.to_owned(),
        })
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        // A failure has no remedy, and HotSpot ignores the file once it listens.
        let _ = rustix::fs::unlinkat(&self.dir, &*self.name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tmp_is_found_before_the_jvm_is_asked() {
        let path = std::env::temp_dir().join(format!("dwell-client-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        let root = Root::new(std::fs::File::open(&path).unwrap().into());
        let reason = missing_tmp(&root).unwrap();
        assert!(reason.starts_with("No such file"), "{reason}");
        std::fs::create_dir(path.join("tmp")).unwrap();
        assert_eq!(missing_tmp(&root), None);
        std::fs::remove_dir_all(path).unwrap();
    }
}
