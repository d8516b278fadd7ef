//! Snapshots of threads that have allocated an object. They are taken in a callback of the runtime
//! on the thread itself: ordinary code, in which signals may arrive at any point.

use crate::capture::{self, Moment};
use crate::engine::Engine;
use crate::record::ThreadRecord;
use crate::slots::{Allocation, Reason, Wait};
use crate::sys;
use core::sync::atomic::Ordering;

impl Engine {
    /// Takes a snapshot of the calling thread, whose record this is, for an object that it has
    /// allocated. The snapshot shows the thread from its last managed frame on. Does nothing while
    /// no recording runs. Returns whether the drainer will see the snapshot. A reported allocation
    /// that finds no slot is counted.
    pub fn allocated(&'static self, record: &ThreadRecord, allocation: &Allocation) -> bool {
        // Counts as a handler: a stop waits for snapshots that have begun.
        self.in_flight.fetch_add(1, Ordering::SeqCst);
        let published = self.running.load(Ordering::SeqCst)
            && record.is_live()
            && self.publish_allocation(record, allocation);
        self.in_flight.fetch_sub(1, Ordering::SeqCst);
        published
    }

    fn publish_allocation(&'static self, record: &ThreadRecord, allocation: &Allocation) -> bool {
        let moment = Moment {
            begin_ns: sys::monotonic_ns(),
            cpu_ns: 0,
            points: 0,
            weight_ns: 0,
            reason: Reason::Allocation,
            allocation: *allocation,
            wait: Wait::default(),
        };
        let published = capture::publish_here(self, record, &moment);
        if allocation.is_told {
            self.counters.allocated(allocation.weight, published.ok);
        }
        published.ok
    }
}
