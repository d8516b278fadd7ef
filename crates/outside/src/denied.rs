//! Why the kernel does not permit us to read a process, and the remedy. Must not try it again.

use std::io::ErrorKind;

/// The remedy for this refusal.
#[must_use]
pub fn remedy(why: ErrorKind) -> &'static str {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope = scope.ok().and_then(|text| text.trim().parse().ok());
    advice(why, rustix::process::geteuid().is_root(), scope)
}

/// The remedy by the facts: our user, and `kernel.yama.ptrace_scope` if it exists.
fn advice(why: ErrorKind, is_root: bool, scope: Option<u8>) -> &'static str {
    match (why, is_root, scope) {
        (ErrorKind::NotFound, ..) => "`dwell ps` lists the JVMs that run",
        (ErrorKind::PermissionDenied, _, Some(3)) => {
            "kernel.yama.ptrace_scope is 3, which forbids this for all users until the next boot: \
             use the agent, dwell record"
        }
        (ErrorKind::PermissionDenied, true, _) => {
            "root lacks CAP_SYS_PTRACE here: run dwell on the host, or give the container \
             --cap-add=SYS_PTRACE"
        }
        (ErrorKind::PermissionDenied, false, Some(1)) => {
            "run dwell as root, or allow it to the JVM's user: sysctl kernel.yama.ptrace_scope=0"
        }
        _ => "run dwell as root",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let found = advice(why, is_root, scope);
            assert!(
                found.contains(expected),
                "{why} {is_root} {scope:?}: {found}"
            );
            assert!(!found.contains('\n'));
        }
        // Only a user that may change the setting gets this advice.
        assert!(!advice(denied, false, Some(2)).contains("sysctl"));
    }
}
