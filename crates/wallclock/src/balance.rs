//! Adjusts the time that reads found a thread waiting to the kernel's account of it.
//!
//! The kernel measures exactly how long a thread was on a CPU or ready for one, so the sum of its
//! waits is known. Reads find too many waits if they come when waits do, such as together with the
//! timer that ends a sleep, or when the thread was woken and has no CPU yet. They also scatter. The
//! difference changes the weights of the next reads by one factor, so that shares of places stay as
//! they are (calibration: Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", chapter
//! 6). Reads of a thread that is known to have stayed in its place are exact and are not changed.

/// Differences up to this are kept for later reads: a period may have no read of a wait.
const KEPT_NS: i64 = 1_000_000_000;

/// The balance of one thread: time reported as waits against time by the kernel.
#[derive(Clone, Debug, Default)]
pub struct Balance {
    /// Whether the kernel's account was read before.
    is_open: bool,
    /// Reported time minus the kernel's, in ns.
    over_ns: i64,
    /// Time to add to the next runs, in ns, and as a part of what may be wrong of them.
    carry_ns: i64,
    rate: f64,
    /// Reported time since the last account that may be wrong, in ns.
    loose_ns: u64,
}

impl Balance {
    /// The weight to report for a run of waits of `weight_ns`. `loose_ns` of it may be wrong.
    pub fn report(&mut self, weight_ns: u64, loose_ns: u64) -> u64 {
        let part_ns = (self.rate * loose_ns as f64) as i64;
        let added = part_ns.clamp(self.carry_ns.min(0), self.carry_ns.max(0));
        self.carry_ns -= added;
        self.loose_ns += loose_ns;
        let weight_ns = weight_ns.saturating_add_signed(added);
        self.over_ns += weight_ns as i64;
        weight_ns
    }

    /// Takes back reported time that was no wait.
    pub fn take_back(&mut self, weight_ns: u64) {
        self.over_ns -= weight_ns as i64;
    }

    /// Takes an account of the kernel: since the last one the thread was neither on a CPU nor ready
    /// for one for `off_ns`. `open_ns` is time of a run that is not reported yet; `loose_ns` of it
    /// may be wrong.
    pub fn account(&mut self, off_ns: u64, open_ns: i64, loose_ns: u64) {
        if self.is_open {
            self.over_ns -= off_ns as i64;
            let loose_ns = (self.loose_ns + loose_ns) as i64;
            self.carry_ns = (-(self.over_ns + open_ns)).clamp(-KEPT_NS, KEPT_NS);
            self.rate = (self.carry_ns as f64 / loose_ns.max(1) as f64).clamp(-1.0, 1.0);
        }
        self.is_open = true;
        // Larger differences are given up: reads do not see such waits, or see waits that are none.
        self.over_ns = -self.carry_ns - open_ns;
        self.loose_ns = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accounts every 100 ns, in which the thread waits for `off_ns` and reads report `told_ns` of
    /// which `loose_ns` may be wrong. Returns all that was reported.
    fn reported(off_ns: u64, told_ns: u64, loose_ns: u64) -> u64 {
        let mut balance = Balance::default();
        balance.account(7, 0, 0);
        let one = |balance: &mut Balance| {
            let reported = balance.report(told_ns, loose_ns);
            balance.account(off_ns, 0, 0);
            reported
        };
        (0..10).map(|_| one(&mut balance)).sum()
    }

    #[test]
    fn reported_time_follows_the_account() {
        // All but about the last difference is made up for.
        assert_eq!(reported(50, 60, 60), 10 * 50 + 10);
        assert_eq!(reported(50, 40, 40), 10 * 50 - 10);
        assert_eq!(reported(50, 50, 50), 10 * 50);
    }

    #[test]
    fn exact_time_is_not_changed() {
        assert_eq!(reported(50, 60, 0), 10 * 60);
        assert_eq!(reported(50, 60, 4), 10 * 60 - 9 * 4);
        // A wait that reads do not see is not added to others.
        assert_eq!(reported(90, 10, 10), 10 * 10 + 9 * 10);
    }

    #[test]
    fn period_without_a_read_is_made_up_for_up_to_a_second() {
        const MS: u64 = 1_000_000;
        let all_ms = |unseen_ms| {
            let mut balance = Balance::default();
            balance.account(0, 0, 0);
            balance.account(unseen_ms * MS, 0, 0);
            let each = (0..20).map(|_| {
                let reported = balance.report(100 * MS, 100 * MS);
                balance.account(100 * MS, 0, 0);
                reported / MS
            });
            each.sum::<u64>()
        };
        assert_eq!([200, 1000, 5000].map(all_ms), [2200, 3000, 3000]);
    }

    #[test]
    fn open_run_counts_before_it_is_reported() {
        let mut balance = Balance::default();
        balance.account(0, 20, 20);
        // 30 of waits, of which 20 were read before the first account.
        balance.account(10, 30, 30);
        assert_eq!(balance.report(30, 30), 30);
        balance.account(10, 0, 0);
        assert_eq!(balance.report(40, 40), 50, "10 were missing");
    }

    #[test]
    fn time_taken_back_is_reported_again() {
        let mut balance = Balance::default();
        balance.account(0, 0, 0);
        let _ = balance.report(30, 30);
        balance.take_back(30);
        balance.account(30, 0, 0);
        assert_eq!(balance.report(30, 30), 60);
    }
}
