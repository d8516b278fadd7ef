//! The agent's library and its commands, from the side of the command.
//!
//! The library is part of this program. Commands are `load` requests of the attach protocol. The
//! agent answers into a reply file, which is made for one command and removed afterwards with its
//! directory. So a late answer finds no file to write to.

use crate::reply::Reply;
use anyhow::{Context, Result, bail};
use dwell_attach::{Error, Library, Served, Target};
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Seek, SeekFrom};

const NAME: &str = "libdwell.so";
/// Prefix of reply directories' names; sixteen digits follow.
const REPLY_PREFIX: &str = "dwell-reply-";
/// The reply's name in its directory.
const REPLY_FILE: &str = "reply";
/// Largest answer that is read, in bytes.
const REPLY_BYTES_MAX: u64 = 1 << 20;

/// The agent's library.
pub const LIBRARY: Library<'static> = Library {
    name: NAME,
    bytes: include_bytes!(env!("DWELL_AGENT_SO_PATH")),
};

/// The agent in one JVM.
pub struct Agent {
    target: Target,
    library: String,
    was_loaded: bool,
    /// The library, if it is loaded from this process's memory.
    _served: Option<Served>,
}

impl Agent {
    /// The agent in this JVM, placed where the JVM can load it.
    pub fn new(target: Target) -> Result<Agent> {
        // Nothing is written for a JVM that cannot answer.
        target.check_runs()?;
        // A loaded agent must be used again: a second copy would not know its state.
        match target.loaded_library(NAME) {
            Some(library) => Ok(Agent::with(target, library, true, None)),
            None => {
                let (library, served) = place(&target)?;
                if target.warns_of_agents() {
                    let pid = target.jvm().pid;
                    note!(
                        "JVM {pid} warns that an agent is loaded (JEP 451); start it with \
                         -XX:+EnableDynamicAgentLoading to avoid that"
                    );
                }
                Ok(Agent::with(target, library, false, served))
            }
        }
    }

    /// The agent in this JVM, which must have loaded it before.
    pub fn loaded(target: Target) -> Result<Agent> {
        let pid = target.jvm().pid;
        match target.loaded_library(NAME) {
            Some(library) => Ok(Agent::with(target, library, true, None)),
            None => bail!("JVM {pid} is not being recorded; begin with: dwell start {pid}"),
        }
    }

    fn with(target: Target, library: String, was_loaded: bool, served: Option<Served>) -> Agent {
        // A command that was killed could not remove its reply. No matter if this fails.
        let _ = target.remove_forgotten(REPLY_PREFIX, REPLY_FILE);
        Agent {
            target,
            library,
            was_loaded,
            _served: served,
        }
    }

    /// Whether the JVM had it before.
    pub fn was_loaded(&self) -> bool {
        self.was_loaded
    }

    /// The JVM.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Executes a command; an answer of `error` becomes an error.
    pub fn command(&self, options: &str) -> Result<Reply> {
        let pid = self.target.jvm().pid;
        let name = format!("{REPLY_PREFIX}{}", random_name());
        let mut scratch = self.target.scratch(&name, REPLY_FILE)?;
        let result = self
            .target
            .load_agent(&self.library, &format!("{options},reply={}", scratch.path))
            .map_err(anyhow::Error::from)
            .and_then(|code| {
                let mut bytes = Vec::new();
                scratch.file.seek(SeekFrom::Start(0))?;
                scratch
                    .file
                    .by_ref()
                    .take(REPLY_BYTES_MAX)
                    .read_to_end(&mut bytes)?;
                Ok((code, Reply::parse(&bytes)))
            });
        // It is gone with the JVM's /tmp if the JVM has exited.
        let _ = self.target.remove_scratch(&scratch.path);
        match result? {
            (0, Some(reply)) if reply.ok => Ok(reply),
            (_, Some(reply)) => bail!("JVM {pid}: {}", reply.text()),
            (code, None) => bail!("JVM {pid}: the agent returned {code} without an answer"),
        }
    }
}

/// Puts the library into a directory of the JVM, else into our memory, if the JVM may read that.
fn place(target: &Target) -> Result<(String, Option<Served>)> {
    match target.place(&LIBRARY) {
        Ok(path) => Ok((path, None)),
        Err(refused @ Error::NoPlace { .. }) => match target.serve(&LIBRARY) {
            Some(served) => Ok((served.path.clone(), Some(served))),
            None => Err(refused.into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// Sixteen unpredictable hexadecimal digits.
pub fn random_name() -> String {
    // The standard library seeds each of these from the system's random numbers.
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

/// Whether a path can be part of the agent's options, in which a comma ends it and `%` is replaced.
pub fn can_be_an_option(path: &str) -> bool {
    const LENGTH_MAX: usize = 600;
    path.len() <= LENGTH_MAX
        && path.starts_with('/')
        && !path.contains([',', '%'])
        && !path.chars().any(char::is_control)
}

/// Opens a file that the agent in this JVM has written.
pub fn open_recording(target: &Target, path: &str) -> Result<std::fs::File> {
    target
        .open_file(path)
        .with_context(|| format!("the recording {path} of the JVM"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        assert_ne!(random_name(), random_name());
        assert_eq!(random_name().len(), 16);
    }

    #[test]
    fn only_harmless_paths_become_options() {
        assert!(can_be_an_option("/tmp/a b=c.jfr"));
        for bad in ["a.jfr", "/a,b.jfr", "/a%p.jfr", "/a\nb.jfr"] {
            assert!(!can_be_an_option(bad), "{bad}");
        }
        assert!(!can_be_an_option(&format!("/{}", "x".repeat(1000))));
    }
}
