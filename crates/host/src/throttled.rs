//! Selects the samples of ready threads that count as throttled by the control group's quota.
//!
//! The kernel counts how long the group was throttled, not which threads. Each sample of a ready
//! thread is `throttled` with the probability that [`throttled_part`] gives for the time since the
//! last flush. So sums are unbiased.

use crate::cgroup::Group;
use crate::{Whose, processors};
use dwell_wall::cgroup::{Span, throttled_part};
use dwell_wall::random::Random;

/// The kernel adds a throttled time when it is over, some tenths of a second later. The sum is not
/// reliable for shorter times than this.
const LEAST_NS: u64 = 900_000_000;
/// A shorter time is used for the first estimate.
const FIRST_NS: u64 = 90_000_000;
/// Probabilities are multiples of one over this number.
const PARTS: u64 = 1 << 32;

/// Values of the counters at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    at_ns: u64,
    throttled_ns: u64,
    ran_ns: u64,
}

/// Decides for each sample of a ready thread.
#[derive(Debug)]
pub struct Throttled {
    whose: Whose,
    group: Option<Group>,
    /// `None` as long as the group has no quota.
    before: Option<Counted>,
    looked_ns: u64,
    /// Sum of the times that threads were ready since then.
    ready_ns: u64,
    random: Random,
    part: Option<u64>,
}

impl Throttled {
    /// Starts at `now_ns`; `group` is the process's. `ran_ns` returns the CPU time of the process.
    /// It is called only if there is a quota, because the kernel has to sum that time over all
    /// threads.
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

    /// Reads the group's counters again if it is time. Must be called before samples of threads
    /// that were ready for `ready_ns` are written.
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
        // The quota may be set or removed at any time.
        self.part = match (before, now) {
            (Some(before), Some(now)) => Some(part(&before, &now, ready_ns, allowed)),
            _ => None,
        };
    }

    /// Whether the next sample counts as throttled.
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

/// The probability as a multiple of 1/[`PARTS`].
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
