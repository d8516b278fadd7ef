//! The JVM's counters of safepoints: sums only, but nearly every JVM has them.

use dwell_signal::Live;
use dwell_walker::Memory;
use dwell_walker::hotspot::{Layout, perfdata};

/// Number of safepoints, time to reach them, and time in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Safepoints requested.
    pub count: u64,
    /// Time until all threads had arrived.
    pub reaching_ns: u64,
    /// Time from then on.
    pub operation_ns: u64,
}

impl Sums {
    /// Growth since `before`.
    #[must_use]
    pub fn since(&self, before: &Sums) -> Sums {
        Sums {
            count: self.count.saturating_sub(before.count),
            reaching_ns: self.reaching_ns.saturating_sub(before.reaching_ns),
            operation_ns: self.operation_ns.saturating_sub(before.operation_ns),
        }
    }
}

/// Addresses of the counters.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    count: u64,
    reaching: u64,
    time: u64,
    /// Whether the time of safepoints includes the time to reach them.
    is_whole: bool,
}

impl Counters {
    /// Finds the counters; `None` if this JVM has no counters (`-XX:-UsePerfData`).
    #[must_use]
    pub fn find(live: &Live, layout: &Layout, jvm_version: &str) -> Option<Counters> {
        let names = [
            "sun.rt.safepoints",
            "sun.rt.safepointSyncTime",
            "sun.rt.safepointTime",
        ];
        let [count, reaching, time] = perfdata::find(live, layout, names).ok()?;
        Some(Counters {
            count: count?,
            reaching: reaching?,
            time: time?,
            is_whole: counts_whole_time(jvm_version),
        })
    }

    /// Present values. Times are counted in ns on Linux (`os::elapsed_frequency`).
    #[must_use]
    pub fn read(&self, live: &Live) -> Sums {
        let get = |at| live.word(at).unwrap_or(0);
        let reaching_ns = get(self.reaching);
        let time_ns = get(self.time);
        Sums {
            count: get(self.count),
            reaching_ns,
            operation_ns: match self.is_whole {
                true => time_ns.saturating_sub(reaching_ns),
                false => time_ns,
            },
        }
    }
}

/// Up to 13 a safepoint's time included the time to reach it. Versions up to 8 have no `+`.
fn counts_whole_time(jvm_version: &str) -> bool {
    let major = jvm_version.split(|c: char| !c.is_ascii_digit()).next();
    let major: Option<u32> = major.and_then(|text| text.parse().ok());
    !jvm_version.contains('+') || major.is_none_or(|major| major < 14)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safepoint_time_includes_reaching_it_up_to_13() {
        for version in ["25.504-b08", "11.0.29+7-Debian", "13+33", "9.0.4+11", ""] {
            assert!(counts_whole_time(version), "{version}");
        }
        for version in ["14+36", "17.0.15+6-Debian-1deb12u1", "25.0.5+1", "28-ea+3"] {
            assert!(!counts_whole_time(version), "{version}");
        }
    }
}
