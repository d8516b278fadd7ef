//! Snapshots of threads that have got a monitor after a wait. They are taken in a callback of the
//! runtime on the thread itself: ordinary code, in which signals may arrive at any point.

use crate::capture::{self, Moment};
use crate::engine::Engine;
use crate::record::ThreadRecord;
use crate::slots::{Allocation, Reason, Wait, WalkTarget};
use crate::sys;
use core::sync::atomic::Ordering;

impl Engine {
    /// Takes a snapshot of the calling thread, whose record this is, for a wait that is over. The
    /// snapshot shows the thread from its last managed frame on. Does nothing while no recording
    /// runs. Returns whether the drainer will see the snapshot. A wait that finds no slot is
    /// counted.
    pub fn waited(&'static self, record: &ThreadRecord, wait: &Wait) -> bool {
        // Counts as a handler: a stop waits for snapshots that have begun.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let published = self.running.load(Ordering::SeqCst)
            && record.is_live()
            && self.publish_wait(record, wait);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        published
    }

    /// Lets `look` walk another thread, whose record this is and which itself waits, as the answer
    /// to `request`. `look` returns whether the stack is true. The caller waits for what that
    /// thread owns, and is in no handler. Returns whether the drainer will see the snapshot.
    pub fn looked(
        &'static self,
        record: &ThreadRecord,
        request: u64,
        look: impl FnOnce(&mut WalkTarget<'_>) -> bool,
    ) -> bool {
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let published = self.running.load(Ordering::SeqCst)
            && record.is_live()
            && capture::publish_other(self, record, request, look);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        published
    }

    fn publish_wait(&'static self, record: &ThreadRecord, wait: &Wait) -> bool {
        let moment = Moment {
            begin_ns: sys::monotonic_ns(),
            cpu_ns: 0,
            points: 0,
            weight_ns: 0,
            reason: Reason::Wait,
            allocation: Allocation::default(),
            wait: *wait,
        };
        let published = capture::publish_here(self, record, &moment);
        self.counters.wait(wait.weight_ns, published.ok);
        published.ok
    }
}
