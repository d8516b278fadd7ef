//! What is done once a second besides flushing.

use super::census::Census;
use crate::runtime::Runtime;
use crate::runtime::setup::Setup;

/// Threads with a kernel ring at most: each takes two pages of locked memory.
const RINGS_MAX: usize = 256;
/// A thread gets a ring once it has had this many samples: short ones never do.
const RING_SAMPLES_MIN: u64 = 2;

/// Threads whose timers are looked after at once at most: of more, some each time.
const TENDED_MAX: usize = 200;

/// What was done last time.
#[derive(Debug, Default)]
pub struct Keeper {
    /// From where on threads are looked after next.
    tended: usize,
}

impl Keeper {
    /// Finds new threads, looks after timers, gives busy threads a ring for kernel frames.
    pub fn run<R: Runtime>(&mut self, setup: &Setup<R>, census: &mut Census<R>) {
        census.find_in_time(setup.engine);
        self.tended = setup.engine.tend_some(self.tended, TENDED_MAX);
        give_rings(setup);
    }
}

fn give_rings<R: Runtime>(setup: &Setup<R>) {
    // Somebody may have put a fault handler in front of ours without passing faults on.
    dwell_signal::fault::reinstall_if_replaced();
    if setup.kernel_frames {
        let busy = setup
            .engine
            .live_records()
            .filter(|r| r.samples() >= RING_SAMPLES_MIN);
        for record in busy.take(RINGS_MAX) {
            // Refused (locked-memory limit, no event): the thread's samples have no kernel frames.
            let _ = setup.engine.attach_ring(record);
        }
    }
}
