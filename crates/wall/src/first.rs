//! What first looks at threads may cost. Where they are is known of nobody when a recording begins,
//! or when a thousand threads begin at once: until each has been looked at, every look stands for
//! many. So these looks may take more of a processor than others, for a short while; a program that
//! makes threads all the time pays for them from what all looks may cost.

use crate::budget::Price;

/// The part of a processor that first looks may take while there is credit.
const SHARE: f64 = 0.08;
/// CPU time for first looks: some thousands of them, with the pages that tell turns.
const CREDIT_NS: f64 = 300e6;
/// With less there is none: what comes back shall be spent at once, and not little by little.
const CREDIT_LEAST_NS: f64 = 5e6;
/// The part of a processor at which credit comes back.
const BACK: f64 = 0.0002;
/// What is looked at in a tick without any.
const WITHOUT_CREDIT: usize = 2;
/// What a first look is taken to cost before one was made.
const EACH_NS: f64 = 20_000.0;

/// How many first looks there may be.
#[derive(Clone, Debug)]
pub struct First {
    /// A number that is given.
    fixed: Option<usize>,
    each: Price,
    credit_ns: f64,
}

impl Default for First {
    fn default() -> First {
        First {
            fixed: None,
            each: Price::of(EACH_NS),
            credit_ns: CREDIT_NS,
        }
    }
}

impl First {
    /// As many in a tick as said, whatever it costs.
    #[must_use]
    pub fn fixed(looked: usize) -> First {
        First {
            fixed: Some(looked.max(1)),
            credit_ns: f64::INFINITY,
            ..First::default()
        }
    }

    /// How many of `unknown` threads to look at in a tick of `span_ns`.
    #[must_use]
    pub fn count(&self, unknown: usize, span_ns: u64) -> usize {
        let affordable = || self.each.count(SHARE * span_ns as f64);
        let most = match self.fixed {
            Some(looked) => looked,
            None if self.has_credit() => affordable().max(WITHOUT_CREDIT),
            None => WITHOUT_CREDIT,
        };
        unknown.min(most)
    }

    /// Whether they may still take more than other looks.
    #[must_use]
    pub fn has_credit(&self) -> bool {
        self.credit_ns >= CREDIT_LEAST_NS
    }

    /// First looks at `looked` threads have cost `cpu_ns` of CPU time.
    pub fn spent(&mut self, looked: usize, cpu_ns: u64) {
        self.each.spent(looked, cpu_ns);
    }

    /// Takes the cost of first looks in a tick from the credit. What is not covered by it.
    pub fn pay(&mut self, cpu_ns: u64, span_ns: u64) -> u64 {
        self.credit_ns =
            (self.credit_ns + BACK * span_ns as f64).min(self.credit_ns.max(CREDIT_NS));
        let cost = cpu_ns as f64;
        let unpaid = (cost - self.credit_ns.max(0.0)).max(0.0);
        self.credit_ns = (self.credit_ns - cost).max(0.0);
        unpaid as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 20_000_000;
    const LOOK_NS: u64 = 15_000;

    #[test]
    fn ten_thousand_threads_are_known_within_seconds() {
        let mut first = First::default();
        let (mut unknown, mut ticks, mut unpaid_ns) = (10_000, 0, 0);
        while unknown > 0 && ticks < 500 {
            let looked = first.count(unknown, TICK_NS);
            unknown -= looked;
            let cpu_ns = looked as u64 * LOOK_NS;
            first.spent(looked, cpu_ns);
            unpaid_ns += first.pay(cpu_ns, TICK_NS);
            ticks += 1;
        }
        // 8 % of a processor are 106 looks in a tick.
        assert!((93..110).contains(&ticks), "{ticks}");
        assert_eq!(unpaid_ns, 0);
    }

    #[test]
    fn who_makes_threads_all_the_time_pays_from_the_other_budget() {
        let mut first = First::default();
        let mut last_ns = 0;
        for tick in 0..20_000 {
            let looked = first.count(1000, TICK_NS);
            let cpu_ns = looked as u64 * LOOK_NS;
            first.spent(looked, cpu_ns);
            let unpaid_ns = first.pay(cpu_ns, TICK_NS);
            if tick >= 10_000 {
                last_ns += cpu_ns - unpaid_ns;
            }
        }
        let share = last_ns as f64 / (10_000 * TICK_NS) as f64;
        assert!((share - BACK).abs() < 5e-5, "{share}");
        // Others wait for a while, and it is there again.
        for _ in 0..100_000 {
            assert_eq!(first.pay(0, TICK_NS), 0);
        }
        assert!(first.count(1000, TICK_NS) > WITHOUT_CREDIT);
        assert!(first.credit_ns <= CREDIT_NS);
    }

    #[test]
    fn a_number_given_stays() {
        let mut first = First::fixed(16);
        for _ in 0..100 {
            assert_eq!(first.count(1000, TICK_NS), 16);
            first.spent(16, 1 << 30);
            assert_eq!(first.pay(1 << 30, TICK_NS), 0);
        }
        assert_eq!(first.count(3, TICK_NS), 3);
    }
}
