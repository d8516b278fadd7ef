//! Parsers of the kernel's files about a control group's processor time: Documentation/admin-guide
//! (cgroup-v2.rst, cgroup-v1/cpuacct.rst) and scheduler/sched-bwc.rst. They accept any bytes.

/// How often, and how long, a group was throttled since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which its threads wanted to run.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled: u64,
    /// Sum of the times that its threads were throttled.
    pub throttled_ns: u64,
}

/// `cpu.stat` of either version.
#[must_use]
pub fn throttling(text: &str) -> Option<Throttling> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(key, _)| *key == name)?;
        value.trim().parse::<u64>().ok()
    };
    Some(Throttling {
        periods: value("nr_periods")?,
        throttled: value("nr_throttled")?,
        // Nanoseconds in version 1.
        throttled_ns: match value("throttled_usec") {
            Some(us) => us.saturating_mul(1000),
            None => value("throttled_time")?,
        },
    })
}

/// `cpu.max`: nanoseconds of processor time per second; `None` if there is no limit.
#[must_use]
pub fn quota_ns(text: &str) -> Option<u64> {
    let mut words = text.split_ascii_whitespace();
    let quota = words.next()?.parse().ok()?;
    of_period(quota, words.next()?.parse().ok()?)
}

/// `cpu.cfs_quota_us` (-1: no limit) and `cpu.cfs_period_us` of version 1.
#[must_use]
pub fn quota_v1_ns(quota: &str, period: &str) -> Option<u64> {
    of_period(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

fn of_period(quota_us: u64, period_us: u64) -> Option<u64> {
    let ns = u128::from(quota_us) * 1_000_000_000;
    u64::try_from(ns.checked_div(u128::from(period_us))?).ok()
}

/// The path of the process's group for processors in `/proc/self/cgroup`, and whether it is version
/// 2.
#[must_use]
pub fn path(text: &str) -> Option<(bool, &str)> {
    let mut found = None;
    for line in text.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.split(',').any(|name| name == "cpu") {
            return Some((false, path));
        }
        if controllers.is_empty() {
            found = Some((true, path));
        }
    }
    found
}

/// Sums over all threads in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Length of the period.
    pub span_ns: u64,
    /// Number of processors that the threads may run on.
    pub processors: u64,
    /// Time that they ran.
    pub ran_ns: u64,
    /// Time that they were ready and did not run.
    pub ready_ns: u64,
}

/// The part of the ready time in which the group was throttled. `throttled_ns` is counted on each
/// processor (`throttle_cfs_rq` of kernel/sched/fair.c).
///
/// The kernel does not report why a single thread does not run. But while a processor is throttled,
/// no thread runs there: threads that would be running, or ready, are then all ready. This is the
/// part `throttled_ns / (processors * span_ns)` of the time `ran_ns + ready_ns`.
#[must_use]
pub fn throttled_part(throttled_ns: u64, all: Span) -> f64 {
    let whole = all.span_ns as f64 * all.processors as f64;
    if throttled_ns == 0 || all.ready_ns == 0 || whole <= 0.0 {
        return 0.0;
    }
    let held_back = (throttled_ns as f64 / whole).min(1.0);
    let (ran, ready) = (all.ran_ns as f64, all.ready_ns as f64);
    (held_back * (ran + ready) / ready).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ready_threads_are_throttled_as_long_as_their_group() {
        let of = |throttled_ms: u64, ran_ms: u64, ready_ms: u64| {
            let all = Span {
                span_ns: 1_000_000_000,
                processors: 2,
                ran_ns: ran_ms * 1_000_000,
                ready_ns: ready_ms * 1_000_000,
            };
            throttled_part(throttled_ms * 1_000_000, all)
        };
        // Ten threads, 0.6 of 2 processors: all ten are stopped for 0.7 of the time.
        assert!((of(1400, 600, 9400) - 7.0 / 9.4).abs() < 1e-9);
        assert_eq!(of(0, 600, 9400), 0.0);
        assert_eq!(of(1400, 600, 0), 0.0);
        // One thread is stopped only for its quota, and two clocks are never read at the same
        // moment.
        assert_eq!(of(700, 600, 400), 0.875);
        assert_eq!(of(2000, 600, 1400), 1.0);
        assert_eq!(of(9000, 0, 1400), 1.0);
        assert_eq!(throttled_part(5, Span::default()), 0.0);
    }

    #[test]
    fn both_versions_are_read() {
        let expected = Throttling {
            periods: 7,
            throttled: 3,
            throttled_ns: 5000,
        };
        let two = "usage_usec 9\nnr_periods 7\nnr_throttled 3\nthrottled_usec 5\n";
        assert_eq!(throttling(two), Some(expected));
        let one = "nr_periods 7\nnr_throttled 3\nthrottled_time 5000\n";
        assert_eq!(throttling(one), Some(expected));
        assert_eq!(throttling("usage_usec 9\n"), None);
        assert_eq!(quota_ns("150000 100000\n"), Some(1_500_000_000));
        assert_eq!(quota_ns("max 100000\n"), None);
        assert_eq!(quota_v1_ns("50000\n", "100000\n"), Some(500_000_000));
        assert_eq!(quota_v1_ns("-1\n", "100000\n"), None);
        assert_eq!(quota_ns("1 0"), None);
    }

    #[test]
    fn the_group_for_processors_is_found() {
        assert_eq!(
            path("0::/user.slice/a.scope\n"),
            Some((true, "/user.slice/a.scope"))
        );
        let one = "12:memory:/m\n4:cpu,cpuacct:/docker/a:b\n0::/x\n";
        assert_eq!(path(one), Some((false, "/docker/a:b")));
        assert_eq!(path("nonsense"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in ".{0,200}") {
            let _ = (throttling(&text), quota_ns(&text), quota_v1_ns(&text, &text), path(&text));
        }
    }
}
