//! Decides whether earlier walks and names are still valid.
//!
//! Code and methods on a stack are alive at that moment. The JVM can free them only after it has
//! found them dead, and it finds that at a safepoint: at the end of marking. This is true for all
//! collectors, also for those that unload classes and code while threads run
//! (src/hotspot/share/gc/z/zGeneration.cpp, gc/shenandoah/shenandoahConcurrentGC.cpp,
//! gc/g1/g1ConcurrentMark.cpp). A redefinition of classes is also an operation at a safepoint. So
//! two samples of a thread with the same stack bytes have the same frames with the same names, if
//! there was no safepoint between them.

use dwell_walker::Memory;
use dwell_walker::hotspot::{Layout, perfdata};

/// The JVM's count of safepoints, read once in each drain.
#[derive(Debug, Default)]
pub struct Moment {
    /// Address of the count; `None` if the JVM has no counters (`-XX:-UsePerfData`).
    at: Option<u64>,
    count: Option<u64>,
    has_changed: bool,
}

impl Moment {
    /// Finds the count.
    #[must_use]
    pub fn new<M: Memory>(mem: &M, layout: &Layout) -> Moment {
        let found = perfdata::find(mem, layout, ["sun.rt.safepoints"]);
        Moment {
            at: found.ok().and_then(|[at]| at),
            ..Moment::default()
        }
    }

    /// Whether there may have been a safepoint between samples of the last drain and samples of
    /// this one. Samples may be older than their drain. So a safepoint that the last drain found
    /// also counts.
    pub fn is_another<M: Memory>(&mut self, mem: &M) -> bool {
        let count = self.at.and_then(|at| mem.word(at).ok());
        let has_changed = count.is_none() || count != self.count;
        self.count = count;
        std::mem::replace(&mut self.has_changed, has_changed) || has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::Fault;
    use std::cell::Cell;

    /// Memory that has only the count.
    struct Count(Cell<u64>);

    impl Memory for Count {
        fn word(&self, addr: u64) -> Result<u64, Fault> {
            match addr {
                8 => Ok(self.0.get()),
                _ => Err(Fault { addr }),
            }
        }

        fn read(&self, addr: u64, _: &mut [u8]) -> Result<(), Fault> {
            Err(Fault { addr })
        }
    }

    #[test]
    fn safepoint_ends_the_moment_for_two_drains() {
        let memory = Count(Cell::new(5));
        let mut moment = Moment {
            at: Some(8),
            ..Moment::default()
        };
        let mut next = |count| {
            memory.0.set(count);
            moment.is_another(&memory)
        };
        let found = [5, 5, 5, 5, 6, 6, 6, 7, 9, 9, 9].map(&mut next);
        let wanted = [
            true, true, false, false, true, true, false, true, true, true, false,
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn without_a_count_each_drain_is_a_new_moment() {
        let memory = Count(Cell::new(5));
        for at in [None, Some(16)] {
            let mut moment = Moment {
                at,
                ..Moment::default()
            };
            assert!((0..5).all(|_| moment.is_another(&memory)));
        }
    }
}
