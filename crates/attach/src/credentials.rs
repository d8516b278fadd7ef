//! Acting as the target's user, on a short-lived thread of its own.
//!
//! HotSpot answers only its own effective user and group, and trusts only files of that user. Linux
//! keeps credentials per thread, so the calling thread never changes. For root this also means that
//! nothing is written into a target's directories with more rights than the target has.

use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;

/// Effective user and group to act as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub uid: u32,
    pub gid: u32,
}

impl Credentials {
    /// Our own.
    pub(crate) fn own() -> Credentials {
        Credentials {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
        }
    }

    /// Runs `work` with these credentials; an error if we may not adopt them.
    pub(crate) fn run<T: Send>(self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        if self == Credentials::own() {
            return Ok(work());
        }
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                self.assume()?;
                Ok(work())
            });
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Whether these credentials can be adopted.
    pub(crate) fn available(self) -> bool {
        self.run(|| ()).is_ok()
    }

    fn assume(self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        // Groups first: they can no longer be changed without root's rights.
        if gid != getegid() || uid != geteuid() {
            set_thread_groups(&[gid])?;
            set_thread_res_gid(None, gid, None)?;
        }
        set_thread_res_uid(None, uid, None)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_credentials_need_no_rights() {
        assert_eq!(Credentials::own().run(|| 7).unwrap(), 7);
    }

    #[test]
    fn only_the_work_is_done_as_another_user() {
        let before = Credentials::own();
        let other = Credentials {
            uid: 4242,
            gid: 4243,
        };
        match other.run(Credentials::own) {
            Ok(seen) => assert_eq!(seen, other),
            Err(_) => assert_ne!(before.uid, 0, "root may become anybody"),
        }
        assert_eq!(Credentials::own(), before);
    }
}
