//! Whether what was walked and named before still holds.
//!
//! Code and methods that were on a stack at a moment are alive then. The JVM can free them only
//! after it has found that they no longer are, and it finds that at a safepoint: at the end of
//! marking with every collector, also those that unload classes and code while threads run
//! (src/hotspot/share/gc/z/zGeneration.cpp, gc/shenandoah/shenandoahConcurrentGC.cpp,
//! gc/g1/g1ConcurrentMark.cpp); a redefinition is a safepoint's operation, too. So two samples of a
//! thread without a safepoint between them, with the same bytes on their stacks, have the same
//! frames there, with the same names.

use dwell_walker::Memory;
use dwell_walker::hotspot::{Layout, perfdata};

/// The JVM's count of safepoints, as each drain finds it.
#[derive(Debug, Default)]
pub struct Moment {
    /// Where the JVM counts them; `None` if it does not (`-XX:-UsePerfData`).
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

    /// Whether there may have been a safepoint between samples of the drain before and those of the
    /// one that begins. The former may be older than the drain they were in: a safepoint that it
    /// had just found is between them, too.
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

    /// Only the count is there.
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
    fn a_safepoint_ends_it_for_two_drains() {
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
    fn without_a_count_each_drain_stands_alone() {
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
