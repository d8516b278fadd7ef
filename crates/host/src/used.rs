//! Processor time used by all processes, and by one of them, between two times.

use crate::Whose;
use crate::processors;
use dwell_wall::machine::Sums;

/// The kernel counts in ticks of 10 ms, too coarse for shorter times than this.
const LEAST_NS: u64 = 500_000_000;

/// Values of the counters at one time.
#[derive(Clone, Copy, Debug)]
struct Counted {
    at_ns: u64,
    sums: Sums,
    own_ns: u64,
}

/// Processor time used between two times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    /// Begin of that time, on the caller's clock.
    pub began_ns: u64,
    /// Length of that time.
    pub duration_ns: u64,
    /// Used by all processes.
    pub sums: Sums,
    /// Used by the process.
    pub own_ns: u64,
}

/// Counts from one report to the next.
#[derive(Debug)]
pub struct Account {
    whose: Whose,
    before: Option<Counted>,
}

impl Account {
    /// Starts at `now_ns`; `own_ns` is the process's CPU time so far.
    #[must_use]
    pub fn begin(whose: Whose, now_ns: u64, own_ns: Option<u64>) -> Account {
        let before = count(whose, now_ns, own_ns);
        Account { whose, before }
    }

    /// The time used since the last report; `None` if that report is too recent or a counter cannot
    /// be read. `own_ns` is called only if a report is due. If it returns `None`, the next report
    /// covers both times.
    pub fn told(&mut self, now_ns: u64, own_ns: impl FnOnce() -> Option<u64>) -> Option<Used> {
        let is_early = |before: &Counted| now_ns.saturating_sub(before.at_ns) < LEAST_NS;
        if self.before.as_ref().is_some_and(is_early) {
            return None;
        }
        let now = count(self.whose, now_ns, own_ns())?;
        let before = self.before.replace(now)?;
        used(&before, &now)
    }
}

fn count(whose: Whose, at_ns: u64, own_ns: Option<u64>) -> Option<Counted> {
    Some(Counted {
        at_ns,
        own_ns: own_ns?,
        sums: processors::used(whose)?,
    })
}

/// `None` if the set of processors has changed.
fn used(before: &Counted, now: &Counted) -> Option<Used> {
    if before.sums.processors != now.sums.processors {
        return None;
    }
    Some(Used {
        began_ns: before.at_ns,
        duration_ns: now.at_ns.saturating_sub(before.at_ns),
        sums: now.sums.since(&before.sums),
        own_ns: now.own_ns.saturating_sub(before.own_ns),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(at_ns: u64, processors: u64, busy: u64, own_ns: u64) -> Counted {
        Counted {
            at_ns,
            sums: Sums {
                processors,
                busy,
                idle: 10 * busy,
                stolen: 1,
            },
            own_ns,
        }
    }

    #[test]
    fn used_since_reported_unless_processors_changed() {
        let before = counted(5, 2, 100, 1_000_000);
        let sums = Sums {
            processors: 2,
            busy: 60,
            idle: 600,
            stolen: 0,
        };
        let expected = Used {
            began_ns: 5,
            duration_ns: 20,
            sums,
            own_ns: 2_000_000,
        };
        let told = used(&before, &counted(25, 2, 160, 3_000_000));
        assert_eq!(told, Some(expected));
        assert_eq!(used(&before, &counted(25, 3, 160, 3_000_000)), None);
    }

    #[test]
    fn short_time_reported_with_the_next_one() {
        let mut account = Account::begin(Whose::Own, 0, Some(0));
        assert!(account.told(LEAST_NS - 1, || Some(1)).is_none());
        assert!(account.told(LEAST_NS, || None).is_none());
        let told = account.told(2 * LEAST_NS, || Some(7)).unwrap();
        assert_eq!((told.began_ns, told.duration_ns), (0, 2 * LEAST_NS));
        assert_eq!(told.own_ns, 7);
        assert!(account.told(2 * LEAST_NS, || Some(9)).is_none());
    }
}
