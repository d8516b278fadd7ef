//! Why the kernel does not permit us to read or to sample a process, and the remedy. Must not try
//! it again.

use crate::sys::perf;
use std::fmt;
use std::io::{self, ErrorKind};

/// The remedy for this refusal to read process `pid`.
#[must_use]
pub fn remedy(pid: u32, why: ErrorKind) -> String {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.ok().and_then(|text| text.trim().parse().ok());
    let is_root = rustix::process::geteuid().is_root();
    let status = dwell_attach::Process::open(pid).and_then(|process| process.status());
    advice(why, is_root, scope, status.ok().map(|status| status.euid))
}

/// The remedy by the facts: our user, `kernel.yama.ptrace_scope` if it exists, the process's user.
fn advice(why: ErrorKind, is_root: bool, scope: Option<u8>, owner: Option<u32>) -> String {
    let text = match (why, is_root, scope) {
        (ErrorKind::NotFound, ..) => "`dwell ps` lists the JVMs that run",
        (ErrorKind::PermissionDenied, _, Some(3)) => {
            "kernel.yama.ptrace_scope is 3, which forbids this for all users until the next boot: \
             use the agent, dwell record"
        }
        (ErrorKind::PermissionDenied, true, _) => return dwell_attach::root_lacks(owner),
        (ErrorKind::PermissionDenied, false, Some(1)) => {
            "run dwell as root, or allow it to the JVM's user: sysctl kernel.yama.ptrace_scope=0"
        }
        _ => "run dwell as root",
    };
    text.to_owned()
}

/// Why perf events of another process are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A seccomp filter, the usual one of containers: the call does not reach the kernel.
    Seccomp,
    /// The kernel does not permit them: its error.
    NotPermitted(String),
    /// The kernel's error if it is not about permission.
    Failed(String),
}

impl Refusal {
    /// By the error of `perf_event_open`.
    #[must_use]
    pub fn of(error: &io::Error) -> Refusal {
        Refusal::by(error, perf::is_filtered)
    }

    fn by(error: &io::Error, is_filtered: impl FnOnce() -> bool) -> Refusal {
        let is_denied = error.kind() == ErrorKind::PermissionDenied;
        let is_missing = error.raw_os_error() == Some(libc::ENOSYS);
        match is_denied || is_missing {
            true if is_filtered() => Refusal::Seccomp,
            _ if is_denied => Refusal::NotPermitted(error.to_string()),
            _ => Refusal::Failed(error.to_string()),
        }
    }

    /// How to get perf events; `None` if it is not a matter of permission.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        self.remedy_for(rustix::process::geteuid().is_root())
    }

    fn remedy_for(&self, is_root: bool) -> Option<&'static str> {
        match (self, is_root) {
            (Refusal::Seccomp, _) => Some(
                "run dwell on the host, or give this container a seccomp profile that allows \
                 perf_event_open",
            ),
            (Refusal::NotPermitted(_), true) => Some(
                "root lacks CAP_PERFMON here: run dwell on the host, or lower \
                 kernel.perf_event_paranoid there to 2",
            ),
            (Refusal::NotPermitted(_), false) => {
                Some("run dwell as root, or lower kernel.perf_event_paranoid to 2 as its user")
            }
            (Refusal::Failed(_), _) => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Seccomp => to.write_str("seccomp forbids perf_event_open here"),
            Refusal::NotPermitted(why) | Refusal::Failed(why) => to.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seccomp_is_named_only_if_the_call_is_filtered() {
        let of = |errno: i32, is_filtered: bool| {
            Refusal::by(&io::Error::from_raw_os_error(errno), || is_filtered)
        };
        for errno in [libc::EPERM, libc::ENOSYS, libc::EACCES] {
            assert_eq!(of(errno, true), Refusal::Seccomp, "{errno}");
            assert_ne!(of(errno, false), Refusal::Seccomp, "{errno}");
        }
        for (errno, is_denied) in [
            (libc::EPERM, true),
            (libc::EACCES, true),
            (libc::ENOSYS, false),
            (libc::EMFILE, false),
            (libc::ESRCH, false),
        ] {
            let found = matches!(of(errno, false), Refusal::NotPermitted(_));
            assert_eq!(found, is_denied, "{errno}");
        }
        assert_eq!(
            of(libc::EMFILE, true).remedy_for(true),
            None,
            "no permission helps"
        );
    }

    #[test]
    fn refused_samples_have_the_remedy_of_their_cause() {
        let text = |refusal: Refusal, is_root| refusal.remedy_for(is_root).unwrap();
        for is_root in [true, false] {
            let seccomp = text(Refusal::Seccomp, is_root);
            assert!(seccomp.contains("seccomp") && !seccomp.contains("paranoid"));
        }
        let denied = || Refusal::NotPermitted("Permission denied".to_owned());
        assert!(text(denied(), true).contains("CAP_PERFMON"));
        assert!(text(denied(), false).starts_with("run dwell as root"));
    }

    #[test]
    fn filter_is_not_claimed_where_events_open() {
        // A process that can open an event is not filtered.
        let wish = perf::Wish {
            period_ns: 1_000_000,
            stack_bytes: 8,
            ring_bytes: 4096,
            inherit: false,
        };
        if perf::Event::open(0, -1, &wish).is_ok() {
            assert!(!perf::is_filtered());
        } else {
            println!("not tried: perf events are refused");
        }
    }

    #[test]
    fn each_refusal_has_its_remedy() {
        let denied = ErrorKind::PermissionDenied;
        for (why, is_root, scope, expected) in [
            (denied, false, Some(1), "kernel.yama.ptrace_scope=0"),
            (denied, false, Some(2), "run dwell as root"),
            (denied, false, Some(3), "use the agent"),
            (denied, true, Some(3), "use the agent"),
            (denied, true, Some(1), "--cap-add=SYS_PTRACE"),
            (denied, true, None, "--cap-add=SYS_PTRACE"),
            (denied, false, None, "run dwell as root"),
            (denied, false, Some(0), "run dwell as root"),
            (ErrorKind::NotFound, false, None, "dwell ps"),
        ] {
            let found = advice(why, is_root, scope, Some(1000));
            assert!(
                found.contains(expected),
                "{why} {is_root} {scope:?}: {found}"
            );
            assert!(!found.contains('\n'));
        }
        // Only a user that may change the setting gets this advice.
        assert!(!advice(denied, false, Some(2), None).contains("sysctl"));
        let found = advice(denied, true, None, Some(1000));
        assert!(found.ends_with("or run dwell as user 1000"), "{found}");
    }
}
