//! Decides whether earlier walks and names are still valid.
//!
//! Code and methods on a stack are alive at that moment. The JVM can free them only after it has
//! found them dead, and it finds that at a safepoint: at the end of marking. This is true for all
//! collectors, also for those that unload classes and code while threads run
//! (src/hotspot/share/gc/z/zGeneration.cpp, gc/shenandoah/shenandoahConcurrentGC.cpp,
//! gc/g1/g1ConcurrentMark.cpp). A redefinition of classes is also an operation at a safepoint. So
//! two samples of a thread with the same stack bytes have the same frames with the same names, if
//! there was no safepoint between them.
//!
//! JDK 14 to 19 also free code without a safepoint: a sweeper finds it dead by handshakes
//! (src/hotspot/share/runtime/sweeper.cpp). Other code can be in its place only after a
//! compilation. So these count as well in JVMs without virtual threads, which are those up to 18.

use dwell_walker::Memory;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::{Layout, perfdata};

/// The JVM's counts of safepoints and of compilations, read once in each drain.
#[derive(Debug, Default)]
pub struct Moment {
    /// Address of the first count; `None` if the JVM has no counters (`-XX:-UsePerfData`).
    at: Option<u64>,
    count: Option<u64>,
    /// Address of the second count, if compilations count.
    compiled_at: Option<u64>,
    compiled: Option<u64>,
    has_changed: bool,
}

impl Moment {
    /// Finds the count.
    #[must_use]
    pub fn new<M: Memory>(mem: &M, layout: &Layout) -> Moment {
        let names = ["sun.rt.safepoints", "sun.ci.totalCompiles"];
        let [at, compiled_at] = perfdata::find(mem, layout, names).unwrap_or_default();
        let has_sweeper = !present(layout.thread_vthread);
        Moment {
            at,
            compiled_at: compiled_at.filter(|_| has_sweeper),
            ..Moment::default()
        }
    }

    /// Whether there may have been a safepoint, or new code, between samples of the last drain and
    /// samples of this one. Samples may be older than their drain. So a safepoint that the last
    /// drain found also counts.
    pub fn is_another<M: Memory>(&mut self, mem: &M) -> bool {
        let read = |at: Option<u64>| at.and_then(|at| mem.word(at).ok());
        let (count, compiled) = (read(self.at), read(self.compiled_at));
        let has_changed = count.is_none() || count != self.count || compiled != self.compiled;
        (self.count, self.compiled) = (count, compiled);
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
                16 => Ok(self.0.get() / 10),
                32 => Ok(1),
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
    fn new_code_ends_the_moment_where_a_sweeper_frees_code() {
        let memory = Count(Cell::new(5));
        // Here the safepoints stay the same, and the compilations change with each ten.
        let mut moment = Moment {
            at: Some(32),
            compiled_at: Some(16),
            ..Moment::default()
        };
        let mut next = |count| {
            memory.0.set(count);
            moment.is_another(&memory)
        };
        let found = [5, 6, 7, 8, 15, 16, 17, 25].map(&mut next);
        let wanted = [true, true, false, false, true, true, false, true];
        assert_eq!(found, wanted);
    }

    #[test]
    fn without_a_count_each_drain_is_a_new_moment() {
        let memory = Count(Cell::new(5));
        for at in [None, Some(64)] {
            let mut moment = Moment {
                at,
                ..Moment::default()
            };
            assert!((0..5).all(|_| moment.is_another(&memory)));
        }
    }
}
