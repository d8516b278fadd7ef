//! Decides whether safepoints are long. If so, a wakeup at each end costs a small part of them.
//! Pure arithmetic.

/// Minimum duration of a long safepoint.
pub const LONG_NS: u64 = 1_000_000;
/// How long a long safepoint counts.
const REMEMBERED_NS: u64 = 10_000_000_000;
/// Time between two checks if some of the safepoints are long.
const SOME_NS: u64 = 10_000_000;
/// Maximum number of checks before the same time has passed again.
const LOOKS: u64 = 16;
/// Weight of one safepoint in the running share.
const STEP: f64 = 1.0 / 8.0;

/// Statistics of the last safepoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lengths {
    /// End of the last long one.
    last_ns: Option<u64>,
    /// The share of long ones.
    share: f64,
}

impl Lengths {
    /// Adds safepoints that have ended: their number and total duration.
    pub fn add(&mut self, now_ns: u64, count: u64, sum_ns: u64) {
        let is_long = sum_ns / count.max(1) >= LONG_NS;
        for _ in 0..count.min(64) {
            let target = f64::from(u8::from(is_long));
            self.share += (target - self.share) * STEP;
        }
        // One of several may have been long.
        if sum_ns >= LONG_NS {
            self.last_ns = Some(now_ns);
        }
    }

    fn some(&self, now_ns: u64) -> bool {
        let last_ns = self.last_ns;
        last_ns.is_some_and(|last_ns| now_ns < last_ns.saturating_add(REMEMBERED_NS))
    }

    /// Whether most are long.
    #[must_use]
    pub fn are_long(&self, now_ns: u64) -> bool {
        self.share >= 0.5 && self.some(now_ns)
    }

    /// How soon to check again without a wakeup; `None` if none was long lately. The interval grows
    /// with the time since the last long one.
    #[must_use]
    pub fn pace_ns(&self, now_ns: u64) -> Option<u64> {
        let last_ns = self.last_ns.filter(|_| self.some(now_ns))?;
        Some((now_ns.saturating_sub(last_ns) / LOOKS).max(SOME_NS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_long_safepoints_shorten_the_interval() {
        let mut lengths = Lengths::default();
        assert_eq!((lengths.are_long(0), lengths.pace_ns(0)), (false, None));
        for i in 0..200 {
            let took_ns = if i % 20 == 0 {
                3 * LONG_NS
            } else {
                LONG_NS / 30
            };
            lengths.add(i, 1, took_ns);
            assert!(!lengths.are_long(i), "{i}");
        }
        assert_eq!(lengths.pace_ns(200), Some(SOME_NS));
        assert_eq!(lengths.pace_ns(180 + 32 * SOME_NS), Some(2 * SOME_NS));
        assert_eq!(lengths.pace_ns(2 * REMEMBERED_NS), None);
    }

    #[test]
    fn waiting_follows_the_length_of_safepoints() {
        let mut lengths = Lengths::default();
        for i in 0..6 {
            lengths.add(i, 1, LONG_NS);
        }
        assert!(lengths.are_long(6) && !lengths.are_long(2 * REMEMBERED_NS));
        lengths.add(7, 20, 20 * LONG_NS / 50);
        assert!(!lengths.are_long(8));
    }
}
