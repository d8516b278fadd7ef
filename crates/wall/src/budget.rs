//! How many threads to sample in each tick, so that the cost stays within the budget.
//!
//! The cost of a look depends on what the threads do: only a clock is read for a thread that has
//! not run, and a signal is sent to one that runs. So the number is not computed but steered. Once
//! in a while it is changed by the ratio of the allowed cost to the actual cost, and never by
//! much. It is fixed before a tick begins, so it does not depend on the tick's results.

/// The number changes by no more than this factor at once.
const STEP_MAX: f64 = 1.25;
/// Time between two changes.
const BETWEEN_NS: u64 = 500_000_000;
/// Minimum number of sampled threads: if even these cost too much, ticks are left out.
const LOOKED_MIN: f64 = 2.0;
/// Maximum number of them.
const TICKS_MAX: f64 = 50.0;
/// If not all wanted samples can be afforded, ticks are left out before samples are, up to this
/// many: a tick costs more than several samples.
const TICKS_LONG: f64 = 10.0;
/// The decay of the mean number wanted.
const WANTED_STEP: f64 = 1.0 / 16.0;
/// The number at first.
const LOOKED_FIRST: f64 = 16.0;

/// Steers the number of threads that are sampled.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Part of one processor's time that sampling may take; none: the number is fixed.
    share: Option<f64>,
    /// Samples in a tick, if no tick is left out.
    looked: f64,
    /// The mean number wanted lately; 0 where all present threads would be.
    wanted: f64,
    /// Since the last change: elapsed time, and time spent.
    passed_ns: u64,
    spent_ns: u64,
    /// The largest number that was wanted and affordable in one tick since then.
    most: usize,
}

impl Budget {
    /// Sampling may take `share` of one processor's time.
    #[must_use]
    pub fn of_share(share: f64) -> Budget {
        Budget {
            share: Some(share.max(0.0)),
            looked: LOOKED_FIRST,
            wanted: 0.0,
            passed_ns: 0,
            spent_ns: 0,
            most: 0,
        }
    }

    /// Sampling may take `share` from now on, unless the number is fixed.
    pub fn set_share(&mut self, share: f64) {
        self.share = self.share.map(|_| share.max(0.0));
    }

    /// A fixed number, at any cost.
    #[must_use]
    pub fn fixed(looked: usize) -> Budget {
        Budget {
            share: None,
            looked: looked.max(1) as f64,
            wanted: 0.0,
            passed_ns: 0,
            spent_ns: 0,
            most: 0,
        }
    }

    /// How many of `eligible` threads to sample in the next tick.
    #[must_use]
    pub fn count(&self, eligible: usize) -> usize {
        (self.looked.max(LOOKED_MIN) as usize).min(eligible)
    }

    /// How many of `wanted` threads to sample now, if each is to be sampled, after this many
    /// `ticks`.
    pub fn count_of_wanted(&mut self, wanted: usize, ticks: u64) -> usize {
        if self.share.is_none() {
            return self.count(wanted);
        }
        self.wanted += (wanted as f64 - self.wanted) * WANTED_STEP;
        let looked = self.looked * (ticks as f64).clamp(1.0, TICKS_LONG);
        (looked.max(LOOKED_MIN) as usize).min(wanted)
    }

    /// The number of looks in this tick, `ticks` after the last one, if the number is fixed.
    #[must_use]
    pub fn after(&mut self, wanted: usize, ticks: u64) -> Budget {
        match self.share {
            Some(_) => Budget::fixed(self.count_of_wanted(wanted, ticks)),
            None => self.clone(),
        }
    }

    /// How many ticks to wait for the next sample: one, unless the minimum number is too many, or
    /// fewer than are wanted.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        let least = LOOKED_MIN / self.looked;
        let long = (self.wanted / self.looked).min(TICKS_LONG);
        least.max(long).ceil().clamp(1.0, TICKS_MAX) as u64
    }

    /// Adds samples of `looked` threads that stood for `span_ns` and cost `cpu_ns` of CPU time.
    pub fn spent(&mut self, looked: usize, span_ns: u64, cpu_ns: u64) {
        self.spent_in(1, looked, span_ns, cpu_ns);
    }

    /// The same, after several `ticks`.
    pub fn spent_in(&mut self, ticks: u64, looked: usize, span_ns: u64, cpu_ns: u64) {
        let Some(share) = self.share else { return };
        self.passed_ns = self.passed_ns.saturating_add(span_ns);
        self.spent_ns = self.spent_ns.saturating_add(cpu_ns);
        let in_a_tick = looked.div_ceil(usize::try_from(ticks).unwrap_or(1).max(1));
        self.most = self.most.max(in_a_tick);
        if self.passed_ns < BETWEEN_NS {
            return;
        }
        let may_ns = share * self.passed_ns as f64;
        let ratio = may_ns / (self.spent_ns.max(1) as f64);
        let wanted = self.looked * ratio.clamp(1.0 / STEP_MAX, STEP_MAX);
        // The number never exceeds that of the threads, so the cost of a larger number cannot be
        // known.
        let most = (self.most as f64 * STEP_MAX).max(LOOKED_FIRST);
        self.looked = wanted.min(most).max(LOOKED_MIN / TICKS_MAX);
        (self.passed_ns, self.spent_ns, self.most) = (0, 0, 0);
    }
}

/// The cost of one of many equal steps, learned from the steps done.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    each_ns: f64,
    least_ns: f64,
}

/// How fast an older price is forgotten.
const PRICE_STEP: f64 = 0.25;

impl Price {
    /// Begins with a guess; the price is never lower than a twentieth of it.
    #[must_use]
    pub fn of(each_ns: f64) -> Price {
        Price {
            each_ns,
            least_ns: each_ns / 20.0,
        }
    }

    /// How many can be had for `may_ns`.
    #[must_use]
    pub fn count(&self, may_ns: f64) -> usize {
        (may_ns / self.each_ns) as usize
    }

    /// Adds `count` steps that cost `cpu_ns` together.
    pub fn spent(&mut self, count: usize, cpu_ns: u64) {
        if count > 0 {
            let each_ns = (cpu_ns as f64 / count as f64).max(self.least_ns);
            self.each_ns += (each_ns - self.each_ns) * PRICE_STEP;
        }
    }
}

/// CPU time that others spend on the results of looks. They work once in a while, and the time is
/// paid little by little, so that the number of looks stays even.
#[derive(Clone, Debug, Default)]
pub struct Debt {
    owed_ns: f64,
}

/// Number of ticks in which a debt shrinks to a third.
const PAID_TICKS: f64 = 64.0;

impl Debt {
    /// Others have spent `new_ns` more. Returns the part that the next look, `ticks` after the
    /// last one, has to pay. Never more than `most_ns`: some looks must remain at any cost of the
    /// others.
    pub fn pay(&mut self, new_ns: u64, ticks: u64, most_ns: u64) -> u64 {
        // Debt that cannot be paid in time is forgiven.
        let most = most_ns as f64;
        self.owed_ns = (self.owed_ns + new_ns as f64).min(PAID_TICKS * most);
        let part = 1.0 - (-(ticks as f64) / PAID_TICKS).exp();
        let paid = (self.owed_ns * part).min(most);
        self.owed_ns -= paid;
        paid as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 20_000_000;

    /// Ten seconds with a cost of `fixed_ns` a tick and `each_ns` a sample: the number at the end
    /// and the share of the last second.
    fn settled(budget: &mut Budget, eligible: usize, fixed_ns: u64, each_ns: u64) -> (usize, f64) {
        let mut last = 0;
        for tick in 0..1000 {
            let looked = budget.count(eligible);
            let cost_ns = fixed_ns + each_ns * looked as u64;
            budget.spent(looked, TICK_NS, cost_ns);
            if tick >= 950 {
                last += cost_ns;
            }
        }
        (budget.count(eligible), last as f64 / (50 * TICK_NS) as f64)
    }

    #[test]
    fn the_number_follows_the_cost() {
        let mut budget = Budget::of_share(0.005);
        // 0.5 % of 20 ms are 100 us.
        let (looked, share) = settled(&mut budget, 10_000, 40_000, 400);
        assert!((140..=160).contains(&looked), "{looked}");
        assert!((share - 0.005).abs() < 0.0003, "{share}");
        // All of them begin to run.
        let (looked, share) = settled(&mut budget, 10_000, 40_000, 15_000);
        assert!((3..=4).contains(&looked), "{looked}");
        assert!(share < 0.0052, "{share}");
    }

    #[test]
    fn ticks_are_skipped_if_the_minimum_is_too_expensive() {
        let mut budget = Budget::of_share(0.005);
        let (mut spent_ns, mut passed_ns) = (0, 0);
        for look in 0..2000 {
            let (looked, span_ns) = (budget.count(10_000), budget.ticks() * TICK_NS);
            let cost_ns = 100_000 + 150_000 * looked as u64;
            budget.spent(looked, span_ns, cost_ns);
            if look >= 500 {
                spent_ns += cost_ns;
                passed_ns += span_ns;
            }
        }
        assert_eq!(budget.count(10_000), 2);
        // 400 us are to be spent in four ticks.
        assert!((4..=5).contains(&budget.ticks()), "{}", budget.ticks());
        let share = spent_ns as f64 / passed_ns as f64;
        assert!((0.004..=0.0055).contains(&share), "{share}");
        // The cost is low again.
        for _ in 0..1000 {
            budget.spent(budget.count(100), budget.ticks() * TICK_NS, 10_000);
        }
        assert_eq!((budget.count(100), budget.ticks()), (100, 1));
    }

    #[test]
    fn number_stays_bounded_with_few_threads() {
        let mut budget = Budget::of_share(0.005);
        assert_eq!(settled(&mut budget, 10, 1000, 100).0, 10);
        assert_eq!(budget.count(10_000), 16);
        // A thousand threads begin at once: the number grows step by step.
        let before = budget.count(1000);
        for _ in 0..25 {
            budget.spent(before, TICK_NS, 1000);
        }
        assert!(budget.count(1000) <= 20, "{}", budget.count(1000));
    }

    #[test]
    fn debt_from_one_burst_is_paid_evenly_and_in_full() {
        let mut debt = Debt::default();
        let (mut paid_ns, mut least, mut most) = (0, u64::MAX, 0);
        // 1 ms a second, in one piece.
        for tick in 0..3000 {
            let new_ns = if tick % 50 == 0 { 1_000_000 } else { 0 };
            let now_ns = debt.pay(new_ns, 1, 50_000);
            if tick >= 1000 {
                (least, most) = (least.min(now_ns), most.max(now_ns));
                paid_ns += now_ns;
            }
        }
        // 40 seconds. Each payment rounds down, and the debt at the end is no more than the last
        // addition.
        assert!((39_000_000..=40_000_000).contains(&paid_ns), "{paid_ns}");
        assert!(most < 3 * least, "{least} {most}");
        // Ticks that were left out are paid for.
        let mut other = debt.clone();
        let at_once = debt.pay(0, 10, 1_000_000);
        let one_by_one: u64 = (0..10).map(|_| other.pay(0, 1, 1_000_000)).sum();
        assert!(at_once.abs_diff(one_by_one) <= 10, "{at_once} {one_by_one}");
        // A payment never exceeds the maximum, and large debts do not last.
        let first = debt.pay(u64::MAX, 1, 50_000);
        assert!((49_000..=50_000).contains(&first), "{first}");
        let rest: u64 = (0..1000).map(|_| debt.pay(0, 1, 50_000)).sum();
        assert!(rest <= 63 * 50_000 + 1000, "{rest}");
    }

    #[test]
    fn ticks_are_left_out_before_looks_are() {
        // A tick costs as much as eight samples; 12 are wanted, and one tick pays for none of
        // them.
        let (fixed_ns, each_ns, wanted) = (100_000, 12_000, 12);
        let mut budget = Budget::of_share(0.0036);
        let (mut spent_ns, mut passed_ns, mut looks) = (0, 0, 0);
        for look in 0..2000 {
            let ticks = budget.ticks();
            let looked = budget.count_of_wanted(wanted, ticks);
            let (span_ns, cost_ns) = (ticks * TICK_NS, fixed_ns + each_ns * looked as u64);
            budget.spent_in(ticks, looked, span_ns, cost_ns);
            if look >= 1000 {
                spent_ns += cost_ns;
                passed_ns += span_ns;
                looks += looked;
            }
        }
        let share = spent_ns as f64 / passed_ns as f64;
        assert!((0.0030..=0.0040).contains(&share), "{share}");
        // Nearly all of the requested looks each time.
        assert!(looks as f64 / 1000.0 > 10.0, "{looks}");
        // Many more than affordable: as many as ten ticks pay for.
        for _ in 0..2000 {
            let ticks = budget.ticks();
            let looked = budget.count_of_wanted(500, ticks);
            let cost_ns = fixed_ns + each_ns * looked as u64;
            budget.spent_in(ticks, looked, ticks * TICK_NS, cost_ns);
        }
        assert_eq!(budget.ticks(), 10);
        let looked = budget.count_of_wanted(500, 10);
        assert!((46..=56).contains(&looked), "{looked}");
        // Few: in each tick.
        for _ in 0..2000 {
            let ticks = budget.ticks();
            let looked = budget.count_of_wanted(2, ticks);
            budget.spent_in(ticks, looked, ticks * TICK_NS, 40_000 + each_ns * 2);
        }
        assert_eq!(budget.ticks(), 1);
    }

    #[test]
    fn a_price_is_learned() {
        let mut price = Price::of(1000.0);
        assert_eq!(price.count(5000.0), 5);
        (0..100).for_each(|_| price.spent(10, 2000));
        assert_eq!(price.count(5100.0), 25);
        // The price never reaches zero.
        (0..100).for_each(|_| price.spent(10, 0));
        assert!((100..=102).contains(&price.count(5100.0)));
        price.spent(0, 1 << 40);
        assert!((100..=102).contains(&price.count(5100.0)));
    }

    #[test]
    fn a_number_given_stays() {
        let mut budget = Budget::fixed(16);
        assert_eq!(settled(&mut budget, 1000, 1 << 30, 1 << 20).0, 16);
        assert_eq!(budget.count(3), 3);
    }
}
