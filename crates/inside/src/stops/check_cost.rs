//! Limits the watcher's own checks to a small share of a processor. If threads are late all the
//! time (on a busy machine, for example), it would check a thousand times a second. Pure
//! arithmetic.

/// Pause after a check, in multiples of its cost: 0.1 % of one processor, ...
const PAUSES: u64 = 1000;
/// ... or 0.4 % if much time is lost.
const PAUSES_IF_LATE: u64 = 250;
/// Number of checks that the running mean covers.
const MEAN_OF: u64 = 16;

/// Cost of checks.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckCost {
    /// CPU time of the thread at its last check, in ns.
    last_ns: Option<u64>,
    /// Cost of a check in ns.
    cost_ns: u64,
}

impl CheckCost {
    /// Adds a check of the thread, which has used `cpu_ns` so far.
    pub fn add(&mut self, cpu_ns: u64) {
        if let Some(last_ns) = self.last_ns.replace(cpu_ns) {
            let cost_ns = cpu_ns.saturating_sub(last_ns);
            let sum_ns = self.cost_ns.saturating_mul(MEAN_OF - 1);
            self.cost_ns = sum_ns.saturating_add(cost_ns) / MEAN_OF;
        }
    }

    /// The shortest pause in ns. It is shorter while late threads cost much time.
    #[must_use]
    pub fn min_pause_ns(&self, loses_much: bool) -> u64 {
        let pauses = if loses_much { PAUSES_IF_LATE } else { PAUSES };
        self.cost_ns.saturating_mul(pauses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of a processor that a thread uses for checks: each costs `cost_ns`, and it pauses as
    /// long as it must, or as long as it wants to.
    fn part(cost_ns: impl Fn(u64) -> u64, wanted_ns: u64, loses_much: bool) -> f64 {
        let (mut cost, mut cpu_ns, mut now_ns) = (CheckCost::default(), 0, 0);
        for look in 0..100_000 {
            cost.add(cpu_ns);
            cpu_ns += cost_ns(look);
            now_ns += cost_ns(look) + wanted_ns.max(cost.min_pause_ns(loses_much));
        }
        cpu_ns as f64 / now_ns as f64
    }

    #[test]
    fn checks_take_at_most_their_share_of_a_processor() {
        let steady = part(|_| 30_000, 1_000_000, true);
        assert!((0.0038..0.0041).contains(&steady), "{steady}");
        let steady = part(|_| 30_000, 1_000_000, false);
        assert!((0.0009..0.0011).contains(&steady), "{steady}");
        // One in a hundred costs a hundred times as much.
        let uneven = part(
            |look| if look % 100 == 0 { 500_000 } else { 5_000 },
            1_000_000,
            false,
        );
        assert!(uneven < 0.0012, "{uneven}");
    }

    #[test]
    fn rare_or_cheap_checks_need_no_longer_pause() {
        let cheap = part(|_| 500, 1_000_000, false);
        assert!((0.0004..0.0006).contains(&cheap), "{cheap}");
        let mut cost = CheckCost::default();
        assert_eq!(cost.min_pause_ns(false), 0);
        cost.add(u64::MAX);
        cost.add(0);
        assert_eq!(cost.min_pause_ns(false), 0);
    }
}
