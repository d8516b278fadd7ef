//! Helpers for tests that record real JVMs with the real agent: JDKs found, programs started with
//! their truths read back, recordings looked into by our reader and by the JDK's.
//!
//! Used by tests only, so a helper panics with what it saw instead of returning an error. Nothing
//! is built here: the agent and the Java parts must be there (`./test` builds them).
#![forbid(unsafe_code)]

/// Asserts, inside a measured test, a property that must hold in every run: no crash, no wrong
/// stack or context, no damaged file. The line that it prints makes the runner of the tests
/// (`xtask/src/suite`) not repeat this failure.
#[macro_export]
macro_rules! must {
    ($is_so:expr, $($message:tt)+) => {
        if !$is_so {
            let message = format!($($message)+);
            println!("never: {}", message.lines().next().unwrap_or_default());
            panic!("{message}");
        }
    };
}

mod frozen_group;
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

pub use frozen_group::FrozenGroup;
pub use jdk::{Jdk, both, each, is_whole, jdks, since, turn, turn_beside_jdk};
pub use mono::{Mono, Ran, skipped};
pub use oracle::{Verified, jfr_tool, verify};
pub use outside::{record_outside, record_outside_with};
pub use place::{Place, agent, experiment_agent, java_file, source_line};
pub use proc::{
    CpuTime, cpu_time, fd_targets, perf_is_permitted, stolen_ns, task_names, thread_cpu, waited_ns,
};
pub use program::{Program, Starter, Truths, WAITS, number_of};
pub use quota::Quota;
pub use recording::{ContextView, FrameView, SampleView, View};
