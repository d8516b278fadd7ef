//! Everything that can keep us from attaching, each in one line with its remedy.
//!
//! Texts are shown to the user as they are: they name the pid and say what to do.

use std::io;
use std::path::PathBuf;

/// Why a JVM could not be examined, attached to, or made to load a library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No process has this pid, or it has exited.
    #[error("no process {pid}; `dwell ps` lists the JVMs that run")]
    NoSuchProcess {
        /// The pid asked for.
        pid: u32,
    },
    /// The number is a thread's, not a process's.
    #[error("{pid} is a thread of process {process}; use {process}")]
    Thread {
        /// The number asked for.
        pid: u32,
        /// The process the thread belongs to.
        process: u32,
    },
    /// The process has no libjvm.
    #[error("process {pid} ({name}) is not a JVM; `dwell ps` lists the JVMs that run")]
    NotJvm {
        /// The pid asked for.
        pid: u32,
        /// The kernel's name for the process.
        name: String,
    },
    /// A JVM of another make, whose reaction to the handshake would be different.
    #[error("process {pid} runs {vm}, not HotSpot; only HotSpot JVMs (OpenJDK) can be profiled")]
    NotHotSpot {
        /// The pid asked for.
        pid: u32,
        /// What it runs.
        vm: &'static str,
    },
    /// Mono, which takes a profiler along when it starts, and never later.
    #[error(
        "process {pid} is a Mono program, and Mono loads profilers only when it starts: start it \
         with `dwell record -- mono app.exe`, or with \
         MONO_ENV_OPTIONS=--profile=dwell:file=app.jfr after `dwell install-mono`"
    )]
    Mono {
        /// The pid asked for.
        pid: u32,
    },
    /// The kernel does not let us look into the process.
    #[error("process {pid} belongs to user {owner}; run dwell as {}", who_may(.owner))]
    NotPermitted {
        /// The pid asked for.
        pid: u32,
        /// The name (or number) of its user.
        owner: String,
    },
    /// The process is ours, but protected (capabilities, a container's policy).
    #[error(
        "the kernel denies looking into process {pid} ({detail}); {}",
        who_lacks()
    )]
    Protected {
        /// The pid asked for.
        pid: u32,
        /// What was refused.
        detail: String,
    },
    /// Stopped by job control or a debugger: it cannot answer.
    #[error("process {pid} is stopped; let it go on first: kill -CONT {pid}")]
    Stopped {
        /// The pid asked for.
        pid: u32,
    },
    /// `-XX:+DisableAttachMechanism`.
    #[error(
        "JVM {pid} runs with -XX:+DisableAttachMechanism; restart it without, \
         or start it with the agent: dwell record -- java ..."
    )]
    AttachDisabled {
        /// The pid asked for.
        pid: u32,
    },
    /// `-Xrs`, or a handler of its own was taken away: SIGQUIT would end the process.
    #[error(
        "JVM {pid} does not handle SIGQUIT, attaching would end it; restart it without -Xrs, \
         or start it with the agent: dwell record -- java ..."
    )]
    QuitNotCaught {
        /// The pid asked for.
        pid: u32,
    },
    /// `-XX:-EnableDynamicAgentLoading`.
    #[error(
        "JVM {pid} does not load agents at run time (-XX:-EnableDynamicAgentLoading); restart it \
         without that flag, or start it with the agent: dwell record -- java ..."
    )]
    AgentsDisabled {
        /// The pid asked for.
        pid: u32,
    },
    /// The listener did not come up or did not reply in time.
    #[error(
        "JVM {pid} did not answer within {seconds} s ({stage}); it may hang in a safepoint \
         or be starved of CPU: try again, or look at its threads"
    )]
    TimedOut {
        /// The pid asked for.
        pid: u32,
        /// How long was waited.
        seconds: u64,
        /// What was being waited for.
        stage: &'static str,
    },
    /// The target exited meanwhile.
    #[error("process {pid} exited while it was being attached to")]
    Exited {
        /// The pid asked for.
        pid: u32,
    },
    /// Something that is not the target listens on its socket, or it is not safe to use.
    #[error("{path} does not belong to JVM {pid} ({detail}); remove it and try again")]
    UntrustedSocket {
        /// The pid asked for.
        pid: u32,
        /// The socket, as the target names it.
        path: String,
        /// What is wrong with it.
        detail: String,
    },
    /// Old protocol, and the argument does not fit.
    #[error("{what} is {len} bytes long, this JVM takes at most {max}; use a shorter file path")]
    TooLong {
        /// Which argument.
        what: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// The listener refused the command.
    #[error("JVM {pid} refused '{command}' (code {code}): {text}")]
    Refused {
        /// The pid asked for.
        pid: u32,
        /// The attach command.
        command: String,
        /// The listener's result code.
        code: i32,
        /// What it said.
        text: String,
    },
    /// The reply is not what the protocol prescribes.
    #[error("JVM {pid} sent a reply that is not understood: {text:?}")]
    BadReply {
        /// The pid asked for.
        pid: u32,
        /// The reply's beginning.
        text: String,
    },
    /// The target could not load the library.
    #[error("JVM {pid} could not load {path}: {text}")]
    LoadFailed {
        /// The pid asked for.
        pid: u32,
        /// The library, as the target sees it.
        path: String,
        /// The loader's words.
        text: String,
    },
    /// No directory of the target can take the library.
    #[error("no directory that JVM {pid} can load a library from is writable (tried {tried})")]
    NoPlace {
        /// The pid asked for.
        pid: u32,
        /// Directories tried, each with the reason.
        tried: String,
    },
    /// No directory of this machine can take the library.
    #[error("no directory that the agent can be loaded from is writable (tried {tried})")]
    NoPlaceHere {
        /// Directories tried, each with the reason.
        tried: String,
    },
    /// A system call failed in a way that has no better name.
    #[error("{what} failed for process {pid}: {reason}")]
    Io {
        /// The pid asked for.
        pid: u32,
        /// The operation, with the path it concerned.
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

/// What root lacks to look into a process, or who has it.
fn who_lacks() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => {
            "root lacks CAP_SYS_PTRACE here: run dwell on the host, or give the container \
             --cap-add=SYS_PTRACE"
        }
        false => "run dwell as root",
    }
}

/// Who may look into a process of this user.
fn who_may(owner: &str) -> String {
    match owner {
        // By number where the machine has no name for it.
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
    fn a_reason_is_told_once() {
        // What prints errors prints what they come from, too.
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
