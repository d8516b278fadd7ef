//! The part of a thread's waits for a processor that follow a wake-up: they belong to the place
//! where it waited before. The others follow a preemption and belong to the code that it ran.

use crate::proc::Switches;

/// Accounts between two readings of the switches, which take ten times as long as an account.
const ACCOUNTS: u32 = 8;
/// Waits of an account for which the switches are read.
const WORTH_NS: u64 = 1_000_000;

/// The part of one thread. The kernel counts both kinds of waits, and measures their sum only. So
/// they are assumed to be equally long.
#[derive(Clone, Debug)]
pub struct Woken {
    last: Option<Switches>,
    part: f64,
    accounts: u32,
}

impl Default for Woken {
    fn default() -> Woken {
        Woken {
            last: None,
            // A thread with hardly any waits mostly has those after a wake-up.
            part: 1.0,
            accounts: 0,
        }
    }
}

impl Woken {
    /// The part after wake-ups of an account with waits of `waited_ns`, in ns. `read` reads the
    /// thread's switches.
    pub fn of(&mut self, waited_ns: u64, read: impl FnOnce() -> Option<Switches>) -> u64 {
        self.accounts = self.accounts.saturating_add(1);
        let is_due = self.last.is_none() || self.accounts >= ACCOUNTS;
        if is_due
            && waited_ns >= WORTH_NS
            && let Some(now) = read()
        {
            self.accounts = 0;
            let last = self.last.replace(now).unwrap_or_default();
            let own = now.own.saturating_sub(last.own);
            let all = own.saturating_add(now.forced.saturating_sub(last.forced));
            if all > 0 {
                self.part = own as f64 / all as f64;
            }
        }
        (waited_ns as f64 * self.part) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(own: u64, forced: u64) -> Option<Switches> {
        Some(Switches { own, forced })
    }

    #[test]
    fn waits_are_split_by_switches_since_the_last_reading() {
        let mut woken = Woken::default();
        assert_eq!(woken.of(10 * MS, || at(30, 10)), 15 * MS / 2);
        for _ in 1..ACCOUNTS {
            assert_eq!(woken.of(4 * MS, || panic!("read too often")), 3 * MS);
        }
        assert_eq!(woken.of(10 * MS, || at(30, 20)), 0, "only preempted since");
        for _ in 1..ACCOUNTS {
            let _ = woken.of(MS, || None);
        }
        assert_eq!(woken.of(10 * MS, || at(31, 20)), 10 * MS);
    }

    #[test]
    fn short_waits_are_after_wake_ups_and_need_no_reading() {
        let mut woken = Woken::default();
        assert_eq!(woken.of(MS - 1, || panic!("not worth it")), MS - 1);
        assert_eq!(woken.of(MS, || None), MS);
        // Without a switch between two readings, the part stays.
        assert_eq!(woken.of(8 * MS, || at(1, 3)), 2 * MS);
        for _ in 1..ACCOUNTS {
            let _ = woken.of(MS, || None);
        }
        assert_eq!(woken.of(8 * MS, || at(1, 3)), 2 * MS);
    }
}
