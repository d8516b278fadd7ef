//! Stacks of threads that are stopped for a moment, one at a time: at the user's request, or if
//! seccomp forbids samples. For machines without perf events, and for threads that do not get a
//! processor.

use crate::look::{Looker, Trail, Whom, failure_of};
use crate::memory::Pages;
use crate::sys::ptrace;
use dwell_walker::Failure;
use dwell_walker::hotspot::threads as vm_threads;
use std::io;
use std::time::{Duration, Instant};

/// The result of a stop.
pub struct Stopped<'t> {
    /// Frames, innermost first, and their places.
    pub trail: Trail,
    /// Why frames are missing.
    pub failure: Option<Failure>,
    /// The memory for naming the frames.
    pub pages: Pages<'t>,
    /// How long the thread was stopped.
    pub stood: Duration,
}

/// Stops `whom`, copies its stack, and resumes it.
///
/// # Errors
/// The kernel's, see ptrace(2).
pub fn look<'t>(looker: &Looker<'_, 't>, whom: Whom) -> io::Result<Stopped<'t>> {
    let pages = Pages::new(looker.vm.live);
    let began = Instant::now();
    let (trail, failure) = ptrace::with_stopped(whom.tid, |regs| {
        let anchor = match whom.java_thread {
            0 => dwell_walker::Anchor::default(),
            thread => {
                vm_threads::anchor(looker.vm.live, &looker.vm.layout, thread).unwrap_or_default()
            }
        };
        let mut trail = Trail::default();
        let walk = looker.walk_from(whom, &pages, regs, anchor, &mut trail);
        (trail, failure_of(&walk))
    })?;
    Ok(Stopped {
        trail,
        failure,
        pages,
        stood: began.elapsed(),
    })
}
