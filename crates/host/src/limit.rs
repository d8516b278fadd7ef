//! The processor limit of a process, and how often its control group was throttled since the last
//! report.

use crate::cgroup::Group;
use crate::{Whose, processors};
use dwell_wall::cgroup::Throttling;

/// A changed limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Limit in nanoseconds of processor time per second; 0: no limit.
    pub quota_ns: u64,
    /// Number of processors that the process may run on.
    pub processors: u64,
    /// Throttling since the last report.
    pub since: Throttling,
}

/// Reports changes of the limit.
#[derive(Debug)]
pub struct Limits {
    whose: Whose,
    group: Option<Group>,
    throttling: Throttling,
    quota_ns: Option<u64>,
}

impl Limits {
    /// Starts now; `group` is the process's.
    #[must_use]
    pub fn begin(whose: Whose, group: Option<Group>) -> Limits {
        Limits {
            whose,
            throttling: group.as_ref().map(Group::throttling).unwrap_or_default(),
            group,
            quota_ns: None,
        }
    }

    /// Makes the next call return the limit even if it did not change.
    pub fn begin_chunk(&mut self) {
        self.quota_ns = None;
    }

    /// The limit, if it or the throttling changed.
    pub fn told(&mut self) -> Option<Limit> {
        let quota_ns = self.group.as_ref().map_or(0, Group::quota_ns);
        let group = self.group.as_ref().filter(|_| quota_ns > 0);
        let now = group.map(Group::throttling).unwrap_or_default();
        let before = std::mem::replace(&mut self.throttling, now);
        if self.quota_ns == Some(quota_ns) && now == before {
            return None;
        }
        self.quota_ns = Some(quota_ns);
        Some(Limit {
            quota_ns,
            processors: u64::from(processors::allowed_count(self.whose)),
            since: Throttling {
                periods: now.periods.saturating_sub(before.periods),
                throttled: now.throttled.saturating_sub(before.throttled),
                throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_reported_once_and_again_in_each_chunk() {
        let mut limits = Limits::begin(Whose::Own, Group::of(Whose::Own));
        let first = limits.told().expect("the first time");
        assert!(first.processors > 0);
        limits.begin_chunk();
        let again = limits.told().expect("a new chunk");
        assert_eq!(again.processors, first.processors);
        assert_eq!(again.quota_ns, first.quota_ns);
        // With a quota, the group may have been throttled between the calls.
        assert!(first.quota_ns > 0 || limits.told().is_none());
    }
}
