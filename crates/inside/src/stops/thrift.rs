//! How often the watcher may look by itself, so that looking takes no more than a small part of a
//! processor: where threads are late all the time (on a busy machine, say) it would look a
//! thousand times a second. Pure arithmetic.

/// A look is followed by a rest of so many times what looks cost: 0.1 % of one processor, ...
const RESTS: u64 = 1000;
/// ... or 0.4 % where much time is lost.
const RESTS_WORTH: u64 = 250;
/// The mean is one of so many looks.
const LOOKS: u64 = 16;

/// What looks cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thrift {
    /// CPU time of the thread when it looked last, in ns.
    last_ns: Option<u64>,
    /// What a look costs, in ns.
    cost_ns: u64,
}

impl Thrift {
    /// The thread, which has used `cpu_ns` by now, looks again.
    pub fn looks(&mut self, cpu_ns: u64) {
        if let Some(last_ns) = self.last_ns.replace(cpu_ns) {
            let cost_ns = cpu_ns.saturating_sub(last_ns);
            let sum_ns = self.cost_ns.saturating_mul(LOOKS - 1);
            self.cost_ns = sum_ns.saturating_add(cost_ns) / LOOKS;
        }
    }

    /// The shortest rest, in ns; where threads are late for much of the time it is worth more to
    /// see who is.
    #[must_use]
    pub fn rest_ns(&self, is_worth_it: bool) -> u64 {
        let rests = if is_worth_it { RESTS_WORTH } else { RESTS };
        self.cost_ns.saturating_mul(rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that rests as long as it is told to, or for the time it would like to, and uses
    /// `cost_ns` for each look: its part of a processor.
    fn part(cost_ns: impl Fn(u64) -> u64, wanted_ns: u64, is_worth_it: bool) -> f64 {
        let (mut thrift, mut cpu_ns, mut now_ns) = (Thrift::default(), 0, 0);
        for look in 0..100_000 {
            thrift.looks(cpu_ns);
            cpu_ns += cost_ns(look);
            now_ns += cost_ns(look) + wanted_ns.max(thrift.rest_ns(is_worth_it));
        }
        cpu_ns as f64 / now_ns as f64
    }

    #[test]
    fn looks_take_so_much_of_a_processor_and_no_more() {
        let steady = part(|_| 30_000, 1_000_000, true);
        assert!((0.0038..0.0041).contains(&steady), "{steady}");
        let steady = part(|_| 30_000, 1_000_000, false);
        assert!((0.0009..0.0011).contains(&steady), "{steady}");
        // One of a hundred takes a hundred times as long.
        let uneven = part(
            |look| if look % 100 == 0 { 500_000 } else { 5_000 },
            1_000_000,
            false,
        );
        assert!(uneven < 0.0012, "{uneven}");
    }

    #[test]
    fn who_looks_seldom_or_quickly_is_let_be() {
        let cheap = part(|_| 500, 1_000_000, false);
        assert!((0.0004..0.0006).contains(&cheap), "{cheap}");
        let mut thrift = Thrift::default();
        assert_eq!(thrift.rest_ns(false), 0);
        thrift.looks(u64::MAX);
        thrift.looks(0);
        assert_eq!(thrift.rest_ns(false), 0);
    }
}
