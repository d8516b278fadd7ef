//! How many threads to look at in each tick, so that looking costs what it may.
//!
//! What a look costs depends on what the threads do: nothing but a clock for those that have not
//! run, a signal for those that run. So the number is not computed but steered: once in a while it
//! is changed by the ratio of what looking may cost to what it has cost, and never by much. It is
//! fixed before a tick begins, so it does not depend on what is seen in it.

/// The number changes at most by this factor at once.
const STEP_MAX: f64 = 1.25;
/// So much time passes between two changes.
const BETWEEN_NS: u64 = 500_000_000;
/// Fewer are never looked at: where even so many cost too much, ticks are left out.
const LOOKED_MIN: f64 = 2.0;
/// So many of them at most.
const TICKS_MAX: f64 = 50.0;
/// Where not all can be afforded that are wanted, ticks are left out before looks are, up to so
/// many: a tick costs more than several looks.
const TICKS_LONG: f64 = 10.0;
/// The part of the budget that ticks may take where threads have signs: the rest is for looks.
const TICKS_PART: f64 = 0.8;
/// And where hardly any thread is found to have left its place, so that there is little to see.
const TICKS_PART_STILL: f64 = 0.45;
/// The part of the looks that those at threads of known signs get at least, ...
const CARRIED_PART: f64 = 0.25;
/// ... and the least chance of one.
const CHANCE_MIN: f64 = 1.0 / 64.0;
/// How fast it is forgotten how many were wanted.
const WANTED_STEP: f64 = 1.0 / 16.0;
/// Before anything is known.
const LOOKED_FIRST: f64 = 16.0;

/// Steers the number of threads that are looked at.
#[derive(Clone, Debug)]
pub struct Budget {
    /// Part of one processor's time that looking may take; none: the number is given.
    share: Option<f64>,
    /// In a tick, if none is left out.
    looked: f64,
    /// How many are wanted of late; 0 where all there are would be.
    wanted: f64,
    /// Where threads have signs, a tick of late: those whose place has to be seen, those whose
    /// place their signs tell, and the cost of a tick without looks, in ns.
    unknown: f64,
    carried: f64,
    tick_ns: f64,
    /// Since the last change: time that has passed, and what was spent.
    passed_ns: u64,
    spent_ns: u64,
    /// Most that was wanted and could be had in one tick since then.
    most: usize,
}

impl Budget {
    /// Looking may take `share` of one processor's time.
    #[must_use]
    pub fn of_share(share: f64) -> Budget {
        Budget {
            share: Some(share.max(0.0)),
            looked: LOOKED_FIRST,
            wanted: 0.0,
            unknown: 0.0,
            carried: 0.0,
            tick_ns: 0.0,
            passed_ns: 0,
            spent_ns: 0,
            most: 0,
        }
    }

    /// Looking may take `share` from now on, unless the number is given.
    pub fn set_share(&mut self, share: f64) {
        self.share = self.share.map(|_| share.max(0.0));
    }

    /// As many as said, whatever it costs.
    #[must_use]
    pub fn fixed(looked: usize) -> Budget {
        Budget {
            share: None,
            looked: looked.max(1) as f64,
            wanted: 0.0,
            unknown: 0.0,
            carried: 0.0,
            tick_ns: 0.0,
            passed_ns: 0,
            spent_ns: 0,
            most: 0,
        }
    }

    /// How many of `eligible` threads to look at in the next tick.
    #[must_use]
    pub fn count(&self, eligible: usize) -> usize {
        (self.looked.max(LOOKED_MIN) as usize).min(eligible)
    }

    /// How many of `wanted` threads to look at now, where a look at each is wanted, after so many
    /// `ticks`.
    pub fn count_of_wanted(&mut self, wanted: usize, ticks: u64) -> usize {
        if self.share.is_none() {
            return self.count(wanted);
        }
        self.wanted += (wanted as f64 - self.wanted) * WANTED_STEP;
        let looked = self.looked * (ticks as f64).clamp(1.0, TICKS_LONG);
        (looked.max(LOOKED_MIN) as usize).min(wanted)
    }

    /// What may be looked at now, `ticks` after the last look, as a number that is given.
    #[must_use]
    pub fn after(&mut self, wanted: usize, ticks: u64) -> Budget {
        match self.share {
            Some(_) => Budget::fixed(self.count_of_wanted(wanted, ticks)),
            None => self.clone(),
        }
    }

    /// How many ticks to wait for the next look: one, unless the least number is too many, or fewer
    /// than are wanted.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        let least = LOOKED_MIN / self.looked;
        let long = (self.wanted / self.looked).min(TICKS_LONG);
        least.max(long).ceil().clamp(1.0, TICKS_MAX) as u64
    }

    /// The chance of a look for each whose place its sign tells, `ticks` after the last tick. Says
    /// nothing of those who are met now: nobody's chance may hang on what is done in this tick.
    #[must_use]
    pub fn chance(&self, ticks: u64) -> f64 {
        let looked = self.looked * (ticks as f64).clamp(1.0, TICKS_MAX);
        let left = (looked - self.unknown).max(CARRIED_PART * looked);
        (left / self.carried.max(1.0)).clamp(CHANCE_MIN, 1.0)
    }

    /// So many there were in a tick whose place had to be seen, and so many whose place signs tell;
    /// finding that out has cost `cpu_ns`, with waking up, unless that says nothing of other ticks.
    pub fn met(&mut self, unknown: usize, carried: usize, cpu_ns: Option<u64>) {
        let step = |mean: &mut f64, now: f64| *mean += (now - *mean) * WANTED_STEP;
        step(&mut self.unknown, unknown as f64);
        step(&mut self.carried, carried as f64);
        if let Some(cpu_ns) = cpu_ns {
            step(&mut self.tick_ns, cpu_ns as f64);
        }
    }

    /// How many of `unknown` threads, whose place has to be seen, are looked at after so many
    /// `ticks`.
    #[must_use]
    pub fn count_of_unknown(&self, unknown: usize, ticks: u64) -> usize {
        let looked = self.looked * (ticks as f64).clamp(1.0, TICKS_MAX);
        (looked.max(LOOKED_MIN) as usize).min(unknown)
    }

    /// How many ticks of `interval_ns` to wait for the next one, where threads have signs: as few
    /// as can be paid, as each tells of all of them.
    #[must_use]
    pub fn ticks_by_sign(&self, interval_ns: u64) -> u64 {
        let moved = (self.unknown + self.carried).min(1.0);
        let part = TICKS_PART_STILL + moved * (TICKS_PART - TICKS_PART_STILL);
        let may_ns = part * self.share.unwrap_or(1.0) * interval_ns as f64;
        let ticks = (self.tick_ns / may_ns).min(TICKS_LONG);
        // Fewer looks are never made in a tick.
        let least = LOOKED_MIN.min(self.unknown) + CHANCE_MIN * self.carried;
        ticks.max(least / self.looked).ceil().clamp(1.0, TICKS_MAX) as u64
    }

    /// A look at `looked` threads, that stood for `span_ns`, has cost `cpu_ns` of CPU time.
    pub fn spent(&mut self, looked: usize, span_ns: u64, cpu_ns: u64) {
        self.spent_in(1, looked, span_ns, cpu_ns);
    }

    /// The same, after so many `ticks`.
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
        // More than there are is never looked at, so it cannot be known what it would cost.
        let most = (self.most as f64 * STEP_MAX).max(LOOKED_FIRST);
        self.looked = wanted.min(most).max(LOOKED_MIN / TICKS_MAX);
        (self.passed_ns, self.spent_ns, self.most) = (0, 0, 0);
    }
}

/// What one of many equal things costs, learned while they are done.
#[derive(Clone, Copy, Debug)]
pub struct Price {
    each_ns: f64,
    least_ns: f64,
}

/// How fast an older price is forgotten.
const PRICE_STEP: f64 = 0.25;

impl Price {
    /// Begins with a guess, of which the price is at least a twentieth.
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

    /// So many have cost `cpu_ns` together.
    pub fn spent(&mut self, count: usize, cpu_ns: u64) {
        if count > 0 {
            let each_ns = (cpu_ns as f64 / count as f64).max(self.least_ns);
            self.each_ns += (each_ns - self.each_ns) * PRICE_STEP;
        }
    }
}

/// What others have spent on what looks have seen: they work once in a while, and are paid little
/// by little, so that the number of looks stays even.
#[derive(Clone, Debug, Default)]
pub struct Debt {
    owed_ns: f64,
}

/// In so many ticks a debt gets as small as a third.
const PAID_TICKS: f64 = 64.0;

impl Debt {
    /// Others have spent `new_ns` more; what the next look, `ticks` after the last one, has to pay.
    /// Never more than `most_ns`: some looks there shall be, whatever they cost others.
    pub fn pay(&mut self, new_ns: u64, ticks: u64, most_ns: u64) -> u64 {
        // What cannot be paid in time is forgiven.
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
    use crate::random::Random;

    const TICK_NS: u64 = 20_000_000;

    /// Ten seconds with a cost of `fixed_ns` a tick and `each_ns` a look: the number at the end and
    /// the share of the last second.
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

    /// A tick of 60 us, in which so many have moved, and looks of 20 us: how many ticks stand for
    /// one after ten seconds, the chance of a look, and the share.
    fn settled_by_sign(carried: usize, unknown: usize) -> (u64, f64, f64) {
        let mut budget = Budget::of_share(0.005);
        let (mut now, mut spent, mut passed) = (0, 0, 0);
        let mut random = Random::new(7);
        while now < 500 {
            let ticks = budget.ticks_by_sign(TICK_NS);
            let chance = budget.chance(ticks);
            let drawn = (0..carried).filter(|_| random.part() < chance).count();
            let looks = drawn + budget.count_of_unknown(unknown, ticks);
            budget.met(unknown, carried, Some(60_000));
            let cost_ns = 60_000 + 20_000 * looks as u64;
            let span_ns = ticks * TICK_NS;
            budget.spent_in(ticks, looks, span_ns, cost_ns);
            now += ticks;
            if now > 250 {
                spent += cost_ns;
                passed += span_ns;
            }
        }
        let (ticks, share) = (budget.ticks_by_sign(TICK_NS), spent as f64 / passed as f64);
        (ticks, budget.chance(ticks), share)
    }

    #[test]
    fn where_signs_tell_places_ticks_are_left_out_before_looks() {
        // Of 100 us 80 may pay for a tick; the rest is two looks.
        let (ticks, chance, share) = settled_by_sign(16, 0);
        assert_eq!(ticks, 1);
        assert!((0.08..0.2).contains(&chance), "{chance}");
        assert!((share - 0.005).abs() < 0.0005, "{share}");
        // All of few are looked at.
        let (ticks, chance, share) = settled_by_sign(1, 0);
        assert_eq!((ticks, chance), (1, 1.0));
        assert!(share < 0.005);
        // Where nobody has moved there is little to see.
        let (ticks, _, share) = settled_by_sign(0, 0);
        assert_eq!(ticks, 2);
        assert!(share < 0.0016, "{share}");
        // Those whose place has to be seen leave a quarter to the others.
        let (_, chance, share) = settled_by_sign(16, 16);
        assert!((0.01..0.1).contains(&chance), "{chance}");
        assert!((share - 0.005).abs() < 0.001, "{share}");
    }

    /// Two looks of 150 us are too many for each tick.
    #[test]
    fn ticks_are_left_out_where_the_least_looks_cost_too_much() {
        let mut budget = Budget::of_share(0.005);
        let (mut now, mut spent, mut passed) = (0, 0, 0);
        while now < 2000 {
            let ticks = budget.ticks_by_sign(TICK_NS);
            let looks = budget.count_of_unknown(2, ticks);
            budget.met(2, 0, Some(60_000));
            let cost_ns = 60_000 + 150_000 * looks as u64;
            budget.spent_in(ticks, looks, ticks * TICK_NS, cost_ns);
            now += ticks;
            if now > 1000 {
                spent += cost_ns;
                passed += ticks * TICK_NS;
            }
        }
        let share = spent as f64 / passed as f64;
        assert!((share - 0.005).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_tick_that_costs_too_much_stands_for_several() {
        let mut budget = Budget::of_share(0.005);
        assert_eq!(budget.ticks_by_sign(TICK_NS), 1, "nothing is known");
        for _ in 0..200 {
            budget.met(0, 1, Some(200_000));
        }
        // 70 us a tick.
        assert_eq!(budget.ticks_by_sign(TICK_NS), 3);
        budget.set_share(0.0);
        assert_eq!(budget.ticks_by_sign(TICK_NS), TICKS_LONG as u64);
    }

    #[test]
    fn where_the_least_costs_too_much_ticks_are_left_out() {
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
        // All is cheap again.
        for _ in 0..1000 {
            budget.spent(budget.count(100), budget.ticks() * TICK_NS, 10_000);
        }
        assert_eq!((budget.count(100), budget.ticks()), (100, 1));
    }

    #[test]
    fn it_does_not_run_away_where_there_are_few() {
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
    fn what_others_spend_at_once_is_paid_evenly_and_in_full() {
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
        // 40 seconds; each rounds down, and what is owed at the end is at most what came last.
        assert!((39_000_000..=40_000_000).contains(&paid_ns), "{paid_ns}");
        assert!(most < 3 * least, "{least} {most}");
        // Ticks that were left out are paid for.
        let mut other = debt.clone();
        let at_once = debt.pay(0, 10, 1_000_000);
        let one_by_one: u64 = (0..10).map(|_| other.pay(0, 1, 1_000_000)).sum();
        assert!(at_once.abs_diff(one_by_one) <= 10, "{at_once} {one_by_one}");
        // More than the most is not asked for, and not for long.
        let first = debt.pay(u64::MAX, 1, 50_000);
        assert!((49_000..=50_000).contains(&first), "{first}");
        let rest: u64 = (0..1000).map(|_| debt.pay(0, 1, 50_000)).sum();
        assert!(rest <= 63 * 50_000 + 1000, "{rest}");
    }

    #[test]
    fn ticks_are_left_out_before_looks_are() {
        // A tick costs as much as eight looks; 12 are wanted, and one tick pays for none of them.
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
        // Nearly all of those that are wanted each time.
        assert!(looks as f64 / 1000.0 > 10.0, "{looks}");
        // Many more than can be had: as many as ten ticks pay for.
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
        // It cannot be had for nothing.
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
