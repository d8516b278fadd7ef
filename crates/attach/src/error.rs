//! The errors that keep us from attaching, each in one line with its remedy.
//!
//! Texts are shown to the user unchanged: they name the pid and the remedy.

use std::io;
use std::path::PathBuf;

/// The reason why a JVM could not be examined, attached to, or made to load a library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No process has this pid, or it has exited.
    #[error("no process {pid}; `dwell ps` lists the JVMs that run")]
    NoSuchProcess {
        /// The requested pid.
        pid: u32,
    },
    /// The number is a thread's, not a process's.
    #[error("{pid} is a thread of process {process}; use {process}")]
    Thread {
        /// The requested number.
        pid: u32,
        /// The process the thread belongs to.
        process: u32,
    },
    /// The process has no libjvm.
    #[error("process {pid} ({name}) is not a JVM; `dwell ps` lists the JVMs that run")]
    NotJvm {
        /// The requested pid.
        pid: u32,
        /// The kernel's name for the process.
        name: String,
    },
    /// A JVM of another maker, which would react to the handshake in another way.
    #[error("process {pid} runs {vm}, not HotSpot; only HotSpot JVMs (OpenJDK) can be profiled")]
    NotHotSpot {
        /// The requested pid.
        pid: u32,
        /// The JVM that it runs.
        vm: &'static str,
    },
    /// A JVM for another processor, which runs under emulation.
    #[error(
        "JVM {pid} is built for {theirs}, and this dwell for {ours}; use dwell for {theirs}, on a \
         machine where that JVM runs without emulation"
    )]
    OtherProcessor {
        /// The requested pid.
        pid: u32,
        /// Its processor.
        theirs: String,
        /// The command's.
        ours: String,
    },
    /// A library for another processor.
    #[error(
        "{library} is built for {theirs}, and this dwell for {ours}; install both from one package"
    )]
    OtherLibrary {
        /// The library's name.
        library: String,
        /// Its processor.
        theirs: String,
        /// The command's.
        ours: String,
    },
    /// A Mono program on a processor for which there is no module.
    #[error(
        "Mono programs can be recorded on x86-64 only, and this machine is {ours}; run the program \
         on an x86-64 machine"
    )]
    MonoOnOtherProcessor {
        /// The machine's processor.
        ours: String,
    },
    /// Mono, which loads a profiler only when it starts.
    #[error(
        "process {pid} is a Mono program, and Mono loads profilers only when it starts: start it \
         with `dwell record -- mono app.exe`, or with \
         MONO_ENV_OPTIONS=--profile=dwell:file=app.jfr after `dwell install-mono`"
    )]
    Mono {
        /// The requested pid.
        pid: u32,
    },
    /// The kernel does not permit us to read the process.
    #[error("process {pid} belongs to user {owner}; run dwell as {}", permitted_users(.owner))]
    NotPermitted {
        /// The requested pid.
        pid: u32,
        /// The name (or number) of its user.
        owner: String,
    },
    /// The process is ours, but protected (capabilities, a container's policy).
    #[error(
        "the kernel denies access to process {pid} ({detail}); {}",
        missing_right(*.owner)
    )]
    Protected {
        /// The requested pid.
        pid: u32,
        /// Number of its user.
        owner: u32,
        /// The operation that was refused.
        detail: String,
    },
    /// Stopped by job control or a debugger, so that it cannot answer.
    #[error("process {pid} is stopped; resume it first: kill -CONT {pid}")]
    Stopped {
        /// The requested pid.
        pid: u32,
    },
    /// `-XX:+DisableAttachMechanism`.
    #[error(
        "JVM {pid} runs with -XX:+DisableAttachMechanism; restart it without, \
         or start it with the agent: dwell record -- java ..."
    )]
    AttachDisabled {
        /// The requested pid.
        pid: u32,
    },
    /// `-Xrs`, or its handler was removed: SIGQUIT would end the process.
    #[error(
        "JVM {pid} does not handle SIGQUIT, attaching would end it; restart it without -Xrs, \
         or start it with the agent: dwell record -- java ..."
    )]
    QuitNotCaught {
        /// The requested pid.
        pid: u32,
    },
    /// `-XX:-EnableDynamicAgentLoading`.
    #[error(
        "JVM {pid} does not load agents at run time (-XX:-EnableDynamicAgentLoading); restart it \
         without that flag, or start it with the agent: dwell record -- java ..."
    )]
    AgentsDisabled {
        /// The requested pid.
        pid: u32,
    },
    /// The listener did not start or did not reply in time.
    #[error(
        "JVM {pid} did not answer within {seconds} s ({stage}); it may hang in a safepoint \
         or be starved of CPU: try again, or check its threads"
    )]
    TimedOut {
        /// The requested pid.
        pid: u32,
        /// Length of the wait.
        seconds: u64,
        /// The step that did not finish.
        stage: &'static str,
    },
    /// The target exited during the attempt.
    #[error("process {pid} exited while it was being attached to")]
    Exited {
        /// The requested pid.
        pid: u32,
    },
    /// Another process listens on the target's socket, or the socket is not safe to use.
    #[error("{path} does not belong to JVM {pid} ({detail}); remove it and try again")]
    UntrustedSocket {
        /// The requested pid.
        pid: u32,
        /// Path of the socket in the target.
        path: String,
        /// The problem with it.
        detail: String,
    },
    /// The argument is too long for the old protocol.
    #[error(
        "{what} is {len} bytes long, the maximum for this JVM is {max}; use a shorter file path"
    )]
    TooLong {
        /// Name of the argument.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The listener refused the command.
    #[error("JVM {pid} refused '{command}' (code {code}): {text}")]
    Refused {
        /// The requested pid.
        pid: u32,
        /// The attach command.
        command: String,
        /// The listener's result code.
        code: i32,
        /// The listener's text.
        text: String,
    },
    /// The reply does not follow the protocol.
    #[error("JVM {pid} sent a reply that is not understood: {text:?}")]
    BadReply {
        /// The requested pid.
        pid: u32,
        /// Start of the reply.
        text: String,
    },
    /// The target could not load the library.
    #[error("JVM {pid} could not load {path}: {text}")]
    LoadFailed {
        /// The requested pid.
        pid: u32,
        /// Path of the library in the target.
        path: String,
        /// The loader's text.
        text: String,
    },
    /// The library fits into no directory of the target.
    #[error(
        "no directory that JVM {pid} can load a library from is writable (tried {tried}); {}",
        without_delivery(*.pid)
    )]
    NoPlace {
        /// The requested pid.
        pid: u32,
        /// Directories tried, each with its error.
        tried: String,
    },
    /// HotSpot has its socket in `/tmp` and nowhere else.
    #[error("JVM {pid} cannot listen in /tmp ({reason}); {}", without_delivery(*.pid))]
    NoTmp {
        /// The requested pid.
        pid: u32,
        /// The problem with `/tmp`.
        reason: String,
    },
    /// The library fits into no directory of this machine.
    #[error("no directory that the agent can be loaded from is writable (tried {tried})")]
    NoPlaceHere {
        /// Directories tried, each with its error.
        tried: String,
    },
    /// A system call failed for a reason without a variant of its own.
    #[error("{what} failed for process {pid}: {reason}")]
    Io {
        /// The requested pid.
        pid: u32,
        /// The operation, with its path.
        what: String,
        /// The system's reason.
        reason: io::Error,
    },
    /// A local path could not be used.
    #[error("{}: {reason}", path.display())]
    Local {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
}

/// The right that root lacks to examine a process of this user, or the user to run as.
fn missing_right(owner: u32) -> String {
    match rustix::process::geteuid().is_root() {
        true => root_lacks(Some(owner)),
        false => "run dwell as root".to_owned(),
    }
}

/// The remedies for root that may not examine a process of this user. That user itself needs no
/// capability.
#[must_use]
pub fn root_lacks(owner: Option<u32>) -> String {
    let text = "root lacks CAP_SYS_PTRACE here: run dwell on the host, or give the container \
                --cap-add=SYS_PTRACE";
    match owner {
        Some(owner) if owner != 0 => format!("{text}, or run dwell as user {owner}"),
        _ => text.to_owned(),
    }
}

/// The ways to record a JVM that cannot be given the library, or cannot be talked to.
fn without_delivery(pid: u32) -> String {
    format!(
        "use dwell record --no-agent {pid}, or start the JVM with -agentpath and libdwell.so on a \
         volume"
    )
}

/// The users that may examine a process of this user.
fn permitted_users(owner: &str) -> String {
    match owner {
        // As a number if the machine has no name for it.
        "root" | "0" => "root".to_owned(),
        _ => format!("{owner} or as root"),
    }
}

impl Error {
    pub(crate) fn io(pid: u32, what: impl Into<String>, reason: impl Into<io::Error>) -> Self {
        Error::Io {
            pid,
            what: what.into(),
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_is_printed_once() {
        // A program that prints an error also prints its source.
        let reason = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::io(7, "opening /x", reason);
        assert!(std::error::Error::source(&error).is_none());
        assert!(
            error
                .to_string()
                .ends_with("for process 7: no storage space")
        );
    }

    #[test]
    fn root_without_rights_may_run_as_the_owner() {
        let text = root_lacks(Some(1000));
        assert!(
            text.ends_with("give the container --cap-add=SYS_PTRACE, or run dwell as user 1000"),
            "{text}"
        );
        for owner in [Some(0), None] {
            assert!(root_lacks(owner).ends_with("--cap-add=SYS_PTRACE"));
        }
    }

    #[test]
    fn place_refusals_name_both_other_ways() {
        let (pid, tried) = (7, "/tmp: Read-only file system".to_owned());
        let reason = "Read-only file system".to_owned();
        for error in [Error::NoPlace { pid, tried }, Error::NoTmp { pid, reason }] {
            let text = error.to_string();
            for part in ["JVM 7 ", "Read-only", "--no-agent", "-agentpath", "volume"] {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert!(!text.contains('\n'));
        }
    }

    #[test]
    fn root_is_named_once() {
        let text = |owner: &str| {
            let owner = owner.to_owned();
            Error::NotPermitted { pid: 7, owner }.to_string()
        };
        assert_eq!(
            text("root"),
            "process 7 belongs to user root; run dwell as root"
        );
        assert_eq!(
            text("alice"),
            "process 7 belongs to user alice; run dwell as alice or as root"
        );
    }
}
