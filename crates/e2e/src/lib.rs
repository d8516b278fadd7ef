//! Helpers for tests that record real JVMs with the real agent: JDKs found, programs started with
//! their truths read back, recordings looked into by our reader and by the JDK's.
//!
//! Used by tests only, so a helper panics with what it saw instead of returning an error. Nothing
//! is built here: the agent and the Java parts must be there (`./test` builds them).
#![forbid(unsafe_code)]

mod jdk;
mod oracle;
mod place;
mod proc;
mod program;
mod recording;
pub mod stats;

pub use jdk::{Jdk, both, each, jdks, since};
pub use oracle::{Verified, jfr_tool, verify};
pub use place::{Place, agent, experiment_agent, java_file, source_line};
pub use proc::{CpuTime, cpu_time, fd_targets, perf_is_permitted, task_names, thread_cpu};
pub use program::{Program, Starter, Truths};
pub use recording::{ContextView, FrameView, SampleView, View};
