//! Which looks at threads that were ready count as held back by the control group's quota.
//!
//! The kernel counts how long the group was held back, not whom: each such look is `throttled` with
//! the probability that [`throttled_part`] gives for the time since the last flush, so that sums
//! are right in the mean.

use crate::cgroup::Group;
use crate::{Whose, processors};
use dwell_wall::cgroup::{Span, throttled_part};
use dwell_wall::random::Random;

/// The kernel adds a time to the sum when it is over, some tenths of a second later: of less time
/// than this the sum says nothing.
const LEAST_NS: u64 = 900_000_000;
/// At the beginning something is better than nothing.
const FIRST_NS: u64 = 90_000_000;
/// Numbers that are random enough below this are a part of it.
const PARTS: u64 = 1 << 32;

/// What was counted at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    at_ns: u64,
    throttled_ns: u64,
    ran_ns: u64,
}

/// Decides.
#[derive(Debug)]
pub struct Throttled {
    whose: Whose,
    group: Option<Group>,
    /// `None` as long as the group has no quota.
    before: Option<Counted>,
    looked_ns: u64,
    /// Time that threads were ready since then.
    ready_ns: u64,
    random: Random,
    part: Option<u64>,
}

impl Throttled {
    /// From `now_ns` on; `group` is the process's. What that has used `ran_ns` answers: it is asked
    /// where there is a quota, else never, since the kernel has to add that up over the threads.
    #[must_use]
    pub fn begin(
        whose: Whose,
        group: Option<Group>,
        now_ns: u64,
        ran_ns: impl FnOnce() -> u64,
    ) -> Throttled {
        let mut throttled = Throttled {
            whose,
            group,
            before: None,
            looked_ns: now_ns,
            ready_ns: 0,
            random: Random::new(now_ns),
            part: None,
        };
        throttled.before = throttled.count(now_ns, ran_ns);
        throttled
    }

    /// Looks at the group again, if it is time, before looks at threads that were ready for
    /// `ready_ns` are told.
    pub fn look(&mut self, ready_ns: u64, now_ns: u64, ran_ns: impl FnOnce() -> u64) {
        self.ready_ns += ready_ns;
        let least_ns = self.part.map_or(FIRST_NS, |_| LEAST_NS);
        if now_ns.saturating_sub(self.looked_ns) < least_ns {
            return;
        }
        self.looked_ns = now_ns;
        let ready_ns = std::mem::take(&mut self.ready_ns);
        let now = self.count(now_ns, ran_ns);
        let before = std::mem::replace(&mut self.before, now);
        let allowed = u64::from(processors::allowed_count(self.whose));
        // Its quota may come and go.
        self.part = match (before, now) {
            (Some(before), Some(now)) => Some(part(&before, &now, ready_ns, allowed)),
            _ => None,
        };
    }

    /// Whether the next look counts as held back.
    pub fn is_next(&mut self) -> bool {
        let part = self.part.unwrap_or(0);
        part > 0 && self.random.below(PARTS) < part
    }

    fn count(&self, at_ns: u64, ran_ns: impl FnOnce() -> u64) -> Option<Counted> {
        let group = self.group.as_ref().filter(|group| group.quota_ns() > 0)?;
        Some(Counted {
            at_ns,
            throttled_ns: group.throttling().throttled_ns,
            ran_ns: ran_ns(),
        })
    }
}

/// As a part of [`PARTS`].
fn part(before: &Counted, now: &Counted, ready_ns: u64, processors: u64) -> u64 {
    let all = Span {
        span_ns: now.at_ns.saturating_sub(before.at_ns),
        processors,
        ran_ns: now.ran_ns.saturating_sub(before.ran_ns),
        ready_ns,
    };
    let throttled_ns = now.throttled_ns.saturating_sub(before.throttled_ns);
    (throttled_part(throttled_ns, all) * PARTS as f64) as u64
}
