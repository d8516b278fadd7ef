//! The kind of a descriptor, and the peer at its other end.

use dwell_signal::{perf_client, sys};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::net::TcpStream;
use std::os::fd::{FromRawFd, IntoRawFd};

/// Gives a file that stays open for long a number that the program can spare: one that its native
/// code cannot name in `select(2)`.
///
/// # Errors
/// The file with its old number, if there is no such number.
pub fn move_up(file: File) -> Result<File, File> {
    let fd = file.into_raw_fd();
    let moved = sys::move_up(fd);
    // SAFETY: the descriptor is the file's own, or the one that has taken its place, and nobody
    // else's.
    let file = unsafe { File::from_raw_fd(moved.unwrap_or(fd)) };
    match moved {
        Ok(_) => Ok(file),
        Err(_) => Err(file),
    }
}

/// The kernel's symbols with their addresses, if a command opens the list for this process.
#[must_use]
pub fn kernel_symbols() -> Option<File> {
    let fd = perf_client::symbols()?;
    // SAFETY: the kernel has just made this descriptor for the caller alone.
    Some(unsafe { File::from_raw_fd(fd) })
}

/// Whether `fd` is a socket; `None` if it is not open.
#[must_use]
pub fn is_socket(fd: i32) -> Option<bool> {
    // SAFETY: zeroed is a valid stat, which fstat fills.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: stat is a valid place for the result; a descriptor that is not open is an error.
    let answer = unsafe { libc::fstat(fd, &raw mut stat) };
    (answer == 0).then_some(stat.st_mode & libc::S_IFMT == libc::S_IFSOCK)
}

/// The peer of a socket (`peer 127.0.0.1:80`), or the address where it listens
/// (`at 0.0.0.0:8080`); `None` if it is a socket of another kind.
#[must_use]
pub fn peer(fd: i32) -> Option<String> {
    if fd < 0 {
        return None;
    }
    // SAFETY: not -1, which is no value of a descriptor's type. It is only lent: nothing is read
    // from it or written, and it is never closed here. If its owner closes it in between, or it is
    // another thing, the two calls fail or describe that thing; no memory depends on it.
    let socket = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(fd) });
    match (socket.peer_addr(), socket.local_addr()) {
        (Ok(peer), _) => Some(format!("peer {peer}")),
        (Err(_), Ok(local)) => Some(format!("at {local}")),
        (Err(_), Err(_)) => None,
    }
}

/// The path of a file, or the kernel's name for the thing (`pipe:[123]`).
#[must_use]
pub fn path(fd: i32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn sockets_are_known_from_files() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let file = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(is_socket(socket.as_raw_fd()), Some(true));
        assert_eq!(is_socket(file.as_raw_fd()), Some(false));
        assert_eq!(is_socket(i32::MAX), None);
        assert_eq!(path(file.as_raw_fd()).as_deref(), Some("/dev/null"));
    }

    #[test]
    fn socket_reports_its_peer() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let client = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(peer(client.as_raw_fd()), Some(format!("peer {address}")));
        assert_eq!(peer(server.as_raw_fd()), Some(format!("at {address}")));
        assert_eq!((peer(i32::MAX), peer(-1)), (None, None));
        // Only lent.
        assert_eq!(is_socket(client.as_raw_fd()), Some(true));
    }
}
