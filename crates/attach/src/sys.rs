//! The one system call that the safe wrappers cannot express: the process that listens on a socket.
//!
//! rustix's wrapper promises a pid that is not 0, but the kernel reports 0 for a peer outside our
//! pid namespace. No other code belongs here.
#![allow(unsafe_code)]

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Pid of the process at the other end of a connected Unix socket: the one that listens, or the one
/// that has connected. 0 if that process is not visible from our pid namespace.
///
/// # Errors
/// The kernel's: the descriptor is no socket.
pub fn peer_pid(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut peer = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the whole call (borrowed), `peer` has room for `len`
    // bytes, and the kernel writes no more than `len` bytes.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            peer.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `ucred` is three integers, for which zeroed memory is a valid value, whatever
    // part of it the kernel wrote.
    let peer = unsafe { peer.assume_init() };
    Ok(u32::try_from(peer.pid).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (one, _two) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(peer_pid(one.as_fd()).unwrap(), std::process::id());
    }

    #[test]
    fn a_file_has_no_peer() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(peer_pid(file.as_fd()).is_err());
    }
}
