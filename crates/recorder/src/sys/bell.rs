//! Waiting for the first of several events: a time, another thread that rings, or a descriptor
//! that is ready.

use crate::sys::fds;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// A bell that one thread rings and another one waits for (eventfd(2)).
#[derive(Debug)]
pub struct Bell(File);

impl Bell {
    /// A new one; `None` if the kernel refuses it.
    #[must_use]
    pub fn new() -> Option<Bell> {
        // SAFETY: takes numbers only.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        // SAFETY: just opened, without another owner.
        let file = (fd >= 0).then(|| unsafe { File::from_raw_fd(fd) })?;
        Some(Bell(fds::move_up(file).unwrap_or_else(|file| file)))
    }

    /// Wakes the thread that waits for it, or that waits next.
    pub fn ring(&self) {
        // Fails only if it has been rung more often than the kernel can count.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// It has been heard.
    pub fn hush(&self) {
        // Fails if the bell has not been rung.
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

impl AsRawFd for Bell {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Waits up to `timeout_ns` until one of the descriptors can be read. Returns which can be.
/// Negative ones are ignored.
#[must_use]
pub fn wait<const N: usize>(fds: [RawFd; N], timeout_ns: u64) -> [bool; N] {
    let mut polled = fds.map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let time = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the array is valid for its length and the time for the call, which changes no signal
    // mask. A signal or an error ends it early; callers wait in a loop, so that does no harm.
    let answer = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            N as libc::nfds_t,
            &raw const time,
            std::ptr::null(),
        )
    };
    polled.map(|it| answer > 0 && it.revents != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG_NS: u64 = 60_000_000_000;

    #[test]
    fn ring_wakes_a_wait_once() {
        let bell = std::sync::Arc::new(Bell::new().unwrap());
        let other = std::sync::Arc::clone(&bell);
        let ringing = std::thread::spawn(move || other.ring());
        assert_eq!(wait([-1, bell.as_raw_fd()], LONG_NS), [false, true]);
        ringing.join().unwrap();
        bell.ring();
        bell.hush();
        assert_eq!(wait([bell.as_raw_fd()], 1_000_000), [false]);
        bell.hush();
        assert_eq!(wait([-1], 0), [false]);
    }
}
