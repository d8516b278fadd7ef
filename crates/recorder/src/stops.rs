//! Stops of all threads, from the watching thread to the drainer. Bounded: only sums are kept of
//! many short stops in a second.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of short single stops kept between two flushes.
const SHORT_MAX: usize = 100;
/// And of the others.
const LONG_MAX: usize = 2000;
/// Shorter ones may be summed up.
pub const SHORT_NS: u64 = 1_000_000;

/// A thread that others waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateThread {
    /// Its key.
    pub thread: u64,
    /// Its activity.
    pub state: &'static str,
    /// When it arrived.
    pub until_ns: u64,
    /// Its part of the time.
    pub held_ns: u64,
    /// Whether its stack was requested.
    pub asked: bool,
}

/// A stop, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stop {
    /// Its number.
    pub id: u64,
    /// The operation that it is for.
    pub operation: String,
    /// When it was requested.
    pub began_ns: u64,
    /// Until all had arrived.
    pub reaching_ns: u64,
    /// From then on.
    pub operation_ns: u64,
    /// Managed threads.
    pub threads: u64,
    /// Threads among them that ran.
    pub running: u64,
    /// Threads seen to be late.
    pub late: u64,
    /// The threads that delayed the others longest.
    pub named: Vec<LateThread>,
    /// How many it stands for.
    pub count: u64,
    /// Where it was read.
    pub source: &'static str,
}

impl Stop {
    /// When the threads continued; for several stops, their total duration, starting with the
    /// first.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        self.reaching_ns.saturating_add(self.operation_ns)
    }
}

/// Stops since the last flush.
#[derive(Debug, Default)]
pub struct Shelf {
    kept: Mutex<Kept>,
    /// CPU time of the watcher so far.
    cpu_ns: AtomicU64,
    /// When the stop began whose late threads are sampled; 0: no such stop.
    open_ns: AtomicU64,
    is_stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct Kept {
    single: Vec<Stop>,
    /// One for each operation.
    sums: Vec<Stop>,
}

impl Shelf {
    /// Sets the CPU time that the watcher has used.
    pub fn set_cpu_ns(&self, cpu_ns: u64) {
        self.cpu_ns.store(cpu_ns, Ordering::Relaxed);
    }

    /// CPU time that the watcher has used, in ns.
    #[must_use]
    pub fn cpu_ns(&self) -> u64 {
        self.cpu_ns.load(Ordering::Relaxed)
    }

    /// Announces a stop that was requested at this time and is still to come, however long that
    /// takes; `None`: no stop.
    pub fn set_open(&self, began_ns: Option<u64>) {
        self.open_ns.store(began_ns.unwrap_or(0), Ordering::SeqCst);
    }

    /// When a stop was requested that is still to come.
    #[must_use]
    pub fn open_ns(&self) -> Option<u64> {
        Some(self.open_ns.load(Ordering::SeqCst)).filter(|began_ns| *began_ns != 0)
    }

    /// All threads stand still now, or are to; or they run.
    pub fn set_stopped(&self, is_stopped: bool) {
        self.is_stopped.store(is_stopped, Ordering::Relaxed);
    }

    /// Whether they stand still, as far as that is watched.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Adds a stop.
    pub fn add(&self, stop: Stop) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let room = match stop.duration_ns() < SHORT_NS {
            true => SHORT_MAX,
            false => LONG_MAX,
        };
        if kept.single.len() < room {
            kept.single.push(stop);
            return;
        }
        let mut sums = kept.sums.iter_mut();
        match sums.find(|sum| sum.operation == stop.operation) {
            Some(sum) => {
                sum.id = stop.id;
                sum.reaching_ns = sum.reaching_ns.saturating_add(stop.reaching_ns);
                sum.operation_ns = sum.operation_ns.saturating_add(stop.operation_ns);
                sum.late += stop.late;
                sum.count += stop.count;
            }
            None => kept.sums.push(Stop {
                named: Vec::new(),
                ..stop
            }),
        }
    }

    /// All stops: the single ones in their order, then sums.
    #[must_use]
    pub fn take(&self) -> Vec<Stop> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Kept { mut single, sums } = std::mem::take(&mut *kept);
        single.extend(sums);
        single
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop(id: u64, operation: &str, reaching_ns: u64) -> Stop {
        Stop {
            id,
            operation: operation.to_owned(),
            reaching_ns,
            count: 1,
            ..Stop::default()
        }
    }

    #[test]
    fn many_short_stops_are_summed_without_loss() {
        let shelf = Shelf::default();
        for id in 0..1000 {
            let name = if id % 2 == 0 { "A" } else { "B" };
            shelf.add(stop(id, name, 1000));
        }
        shelf.add(stop(1000, "C", 5 * SHORT_NS));
        let all = shelf.take();
        assert_eq!(all.len(), SHORT_MAX + 1 + 2);
        assert_eq!(all.iter().map(|stop| stop.count).sum::<u64>(), 1001);
        let sum: u64 = all.iter().map(Stop::duration_ns).sum();
        assert_eq!(sum, 1000 * 1000 + 5 * SHORT_NS);
        assert!(
            all.iter()
                .any(|stop| stop.operation == "C" && stop.count == 1)
        );
        assert_eq!(shelf.take(), []);
    }
}
