//! CPU time and results of the JVM's compilers, once a second: the JVM's own counters, read in its
//! memory without a call. Reports nothing if the JVM has no counters (`-XX:-UsePerfData`).

use dwell_jfr::writer::Event;
use dwell_recorder::sys::process;
use dwell_walker::Memory;
use dwell_walker::hotspot::{Layout, perfdata};

/// Sums since the JVM's start. Times are counted in ns on Linux (`os::elapsed_frequency`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    compilations: u64,
    compiling_ns: u64,
    bailouts: u64,
    invalidated: u64,
}

/// Reads the counters and reports their growth.
pub struct Compilers {
    /// Addresses of the counters; `None`: the JVM has no counters.
    places: Option<[u64; 4]>,
    before: Sums,
    told_ns: u64,
}

impl Compilers {
    /// Begins now.
    #[must_use]
    pub fn new<M: Memory>(memory: &M, layout: &Layout) -> Compilers {
        let names = [
            "sun.ci.totalCompiles",
            "java.ci.totalTime",
            "sun.ci.totalBailouts",
            "sun.ci.totalInvalidates",
        ];
        let found = perfdata::find(memory, layout, names);
        let places = match found {
            Ok([Some(count), Some(time), Some(bailouts), Some(invalidated)]) => {
                Some([count, time, bailouts, invalidated])
            }
            _ => None,
        };
        Compilers {
            places,
            before: places.map_or(Sums::default(), |places| read(memory, places)),
            told_ns: process::monotonic_ns(),
        }
    }

    /// The growth since the last report, if there is any.
    pub fn growth(&mut self, memory: &impl Memory) -> Option<Event<'static>> {
        let now = read(memory, self.places?);
        let now_ns = process::monotonic_ns();
        let (before, since_ns) = (self.before, self.told_ns);
        self.told_ns = now_ns;
        if now == before {
            return None;
        }
        self.before = now;
        Some(Event::Compilers {
            ticks: since_ns,
            duration_ticks: now_ns.saturating_sub(since_ns),
            compilations: now.compilations.saturating_sub(before.compilations),
            compiling_ns: now.compiling_ns.saturating_sub(before.compiling_ns),
            bailouts: now.bailouts.saturating_sub(before.bailouts),
            invalidated: now.invalidated.saturating_sub(before.invalidated),
        })
    }
}

fn read(memory: &impl Memory, places: [u64; 4]) -> Sums {
    let [compilations, compiling_ns, bailouts, invalidated] =
        places.map(|at| memory.word(at).unwrap_or(0));
    Sums {
        compilations,
        compiling_ns,
        bailouts,
        invalidated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_walker::Fault;

    /// Four counters, one after the other.
    struct Counters([u64; 4]);

    impl Memory for Counters {
        fn word(&self, addr: u64) -> Result<u64, Fault> {
            Ok(self.0[addr as usize / 8])
        }

        fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Fault> {
            let value = self.word(addr)?.to_le_bytes();
            buf.copy_from_slice(&value[..buf.len()]);
            Ok(())
        }
    }

    #[test]
    fn compilers_report_growth_only() {
        let mut compilers = Compilers {
            places: Some([0, 8, 16, 24]),
            before: Sums::default(),
            told_ns: process::monotonic_ns(),
        };
        let mut told = |values: [u64; 4]| match compilers.growth(&Counters(values)) {
            Some(Event::Compilers {
                compilations,
                compiling_ns,
                bailouts,
                invalidated,
                ..
            }) => Some([compilations, compiling_ns, bailouts, invalidated]),
            _ => None,
        };
        assert_eq!(told([5, 700, 1, 0]), Some([5, 700, 1, 0]));
        assert_eq!(told([5, 700, 1, 0]), None);
        assert_eq!(told([9, 1000, 1, 2]), Some([4, 300, 0, 2]));
        compilers.places = None;
        assert!(compilers.growth(&Counters([1; 4])).is_none());
    }
}
