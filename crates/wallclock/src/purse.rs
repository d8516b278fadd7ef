//! The budget of sampling: a bucket of CPU time that fills at a fixed rate.

/// Capacity of the bucket, as seconds of the budget.
const HELD_S: f64 = 5.0;
/// Fill, as seconds of the budget, from which all samples of known fingerprints are made.
const FULL_S: f64 = 0.5;
/// Samples of new fingerprints that a recording may make in addition, at any cost. It may begin
/// with ten thousand threads that were never sampled.
const FIRST: u32 = 12_000;
/// Maximum part of an interval for samples in one tick. More would delay the next ticks.
const TICK_PART: f64 = 0.25;
/// Cost of a sample before one was measured, in ns.
const SAMPLE_NS: f64 = 25_000.0;
/// Weight of the last cost in the moving average.
const STEP: f64 = 0.05;

/// The bucket, or a fixed number of samples a tick.
#[derive(Clone, Debug)]
pub struct Purse {
    /// Part of one processor; `None`: the number of samples is `fixed`.
    share: Option<f64>,
    fixed: usize,
    /// CPU time that may be spent, in ns; negative if overdrawn.
    held_ns: f64,
    /// Remainder of [`FIRST`].
    first: u32,
    sample_ns: f64,
    /// Samples that may still be made in this tick.
    left: usize,
}

impl Purse {
    /// A purse that allows `share` of one processor.
    #[must_use]
    pub fn of_share(share: f64) -> Purse {
        let share = share.max(1e-6);
        Purse {
            share: Some(share),
            fixed: 0,
            held_ns: share * FULL_S * 1e9,
            first: FIRST,
            sample_ns: SAMPLE_NS,
            left: 0,
        }
    }

    /// A purse that allows a fixed number of samples a tick, regardless of cost.
    #[must_use]
    pub fn fixed(samples: usize) -> Purse {
        Purse {
            share: None,
            fixed: samples.max(1),
            ..Purse::of_share(1.0)
        }
    }

    /// Sets the share, unless the number of samples is fixed.
    pub fn set_share(&mut self, share: f64) {
        self.share = self.share.map(|_| share.max(1e-6));
    }

    /// Adds the budget of a tick that stands for `span_ns`.
    pub fn earn(&mut self, span_ns: u64) {
        match self.share {
            None => self.left = self.fixed,
            Some(share) => {
                let most = share * HELD_S * 1e9;
                self.held_ns = (self.held_ns + share * span_ns as f64).min(most);
                self.left = (TICK_PART * span_ns as f64 / self.sample_ns) as usize + 1;
            }
        }
    }

    /// Subtracts CPU time that was spent. The debt never exceeds the capacity of the bucket.
    pub fn spend(&mut self, cpu_ns: u64) {
        if let Some(share) = self.share {
            let least = -share * HELD_S * 1e9;
            self.held_ns = (self.held_ns - cpu_ns as f64).max(least);
        }
    }

    /// Records a sample; `is_new`: its fingerprint is new. [`Self::spend`] also counts its cost.
    pub fn sampled(&mut self, cpu_ns: u64, is_new: bool) {
        self.left = self.left.saturating_sub(1);
        let cpu_ns = cpu_ns as f64;
        self.sample_ns += (cpu_ns - self.sample_ns) * STEP;
        self.sample_ns = self.sample_ns.max(SAMPLE_NS / 20.0);
        if is_new && self.first > 0 {
            self.first -= 1;
            self.held_ns += cpu_ns;
        }
    }

    /// Whether the budget allows a sample; `is_new`: its fingerprint is new.
    #[must_use]
    pub fn can_pay(&self, is_new: bool) -> bool {
        let has_some = self.held_ns > 0.0 || is_new && self.first > 0;
        self.left > 0 && (self.share.is_none() || has_some)
    }

    /// The part of samples of known fingerprints to make, from 0 to 1.
    #[must_use]
    pub fn fill(&self) -> f64 {
        match self.share {
            None => f64::from(self.left > 0),
            Some(share) => (self.held_ns / (share * FULL_S * 1e9)).clamp(0.0, 1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK_NS: u64 = 20_000_000;

    #[test]
    fn steady_spending_settles_at_the_share() {
        let mut purse = Purse::of_share(0.01);
        let mut spent = 0;
        for tick in 0..10_000 {
            purse.earn(TICK_NS);
            while purse.can_pay(false) {
                purse.spend(30_000);
                purse.sampled(30_000, false);
                spent += if tick >= 5_000 { 30_000 } else { 0 };
            }
        }
        let share = spent as f64 / (5_000 * TICK_NS) as f64;
        assert!((share - 0.01).abs() < 0.0002, "{share}");
    }

    #[test]
    fn overdraft_is_bounded() {
        let mut purse = Purse::of_share(0.01);
        purse.spend(1_000_000_000_000);
        assert!(!purse.can_pay(false) && purse.fill() == 0.0);
        assert!(purse.can_pay(true) || purse.left == 0);
        for _ in 0..=(5.0 * 1e9 / TICK_NS as f64) as u64 {
            purse.earn(TICK_NS);
        }
        assert!(purse.can_pay(false));
    }

    #[test]
    fn fixed_number_is_per_tick() {
        let mut purse = Purse::fixed(2);
        for _ in 0..3 {
            purse.earn(TICK_NS);
            assert!(purse.can_pay(false) && purse.fill() == 1.0);
            purse.sampled(1, false);
            purse.spend(u64::MAX);
            assert!(purse.can_pay(false));
            purse.sampled(1, false);
            assert!(!purse.can_pay(false) && purse.fill() == 0.0);
        }
    }

    #[test]
    fn samples_of_one_tick_are_limited() {
        let mut purse = Purse::of_share(0.05);
        purse.earn(TICK_NS);
        let mut count = 0;
        while purse.can_pay(false) {
            purse.sampled(25_000, false);
            count += 1;
        }
        assert_eq!(count, 201);
    }
}
