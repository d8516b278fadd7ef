//! Finds JVMs and talks to HotSpot's attach listener without any JDK tool.
//!
//! [`list`] returns the JVMs of this machine; [`Target::examine`] examines one of them without
//! disturbing it; [`Target::load_agent`] makes it load an agent library. This crate must not write
//! outside the target's temporary directories. It must not send a signal to a process unless that
//! is certainly a HotSpot JVM that catches the signal. Nothing here knows about profiling.
//!
//! Parsers of `/proc`, of performance data and of replies are pure functions (`procfs`, `options`,
//! `hsperf`, `version`, `passwd`, `protocol`). Read next: `target`, which uses them, then `client`
//! for the handshake.
#![deny(unsafe_code)]

mod client;
mod credentials;
mod deliver;
mod discover;
mod error;
mod hidden;
pub mod hsperf;
mod in_memory;
pub mod options;
pub mod passwd;
mod process;
mod processor;
pub mod procfs;
pub mod protocol;
mod root;
mod scratch;
mod sys;
mod target;
pub mod version;

pub use deliver::{Library, place_locally};
pub use discover::{Jvm, list};
pub use error::{Error, root_lacks};
pub use in_memory::Served;
pub use process::Process;
pub use processor::check_mono;
pub use protocol::Reply;
pub use scratch::{Listener, Scratch};
pub use sys::peer_pid;
pub use target::Target;
