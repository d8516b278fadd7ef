//! Helpers for tests that record real JVMs with the real agent: JDKs found, programs started with
//! their truths read back, recordings looked into by our reader and by the JDK's.
//!
//! Used by tests only, so a helper panics with what it saw instead of returning an error. Nothing
//! is built here: the agent and the Java parts must be there (`./test` builds them).
#![forbid(unsafe_code)]

mod jdk;
mod mono;
mod oracle;
mod outside;
mod place;
mod proc;
mod program;
mod quota;
mod recording;
mod silent;
pub mod stats;

pub use jdk::{Jdk, both, each, jdks, since};
pub use mono::{Mono, Ran, skipped};
pub use oracle::{Verified, jfr_tool, verify};
pub use outside::{record_outside, record_outside_with};
pub use place::{Place, agent, experiment_agent, java_file, source_line};
pub use proc::{
    CpuTime, cpu_time, fd_targets, perf_is_permitted, stolen_ns, task_names, thread_cpu, waited_ns,
};
pub use program::{Program, Starter, Truths};
pub use quota::Quota;
pub use recording::{ContextView, FrameView, SampleView, View};
