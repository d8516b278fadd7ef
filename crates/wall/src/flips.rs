//! Threads that wait for microseconds at a time. A look takes about as long, so most of them would
//! not stand still for it, and those that do have waited longer than others: counted by looks,
//! short waits would be rarer than they are. So of such a thread looks only say where it waits; how
//! long it did is what is left of the time when its turns on processors, and its waits for one, are
//! taken from it, by the kernel's exact account.

use crate::proc::Schedule;

/// After so many looks in a row for which it stood still, a thread's looks count again.
const CLEAR_LOOKS: u8 = 16;

/// The account of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flips {
    since: Option<(u64, Schedule)>,
    clear: u8,
    /// From the last look for which it stood still to the end of the interval of that look, in ns:
    /// its wait was counted until that look, and looks of later intervals count those.
    rest_ns: i64,
}

impl Flips {
    /// Whether its time is counted so.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// It did not stand still for a look; `read` gives the kernel's account of it, by which its
    /// time counts from now on. Without one its looks go on counting.
    pub fn moved(&mut self, now_ns: u64, read: impl FnOnce() -> Option<Schedule>) {
        self.clear = 0;
        if self.since.is_none() {
            self.since = read().map(|schedule| (now_ns, schedule));
        }
    }

    /// A look, of an interval that ends at `until_ns`, saw where it waits: how long it waited since
    /// that was asked last, in ns. `None` if its looks count. To be asked while it waits: then the
    /// account is up to date.
    pub fn waited(
        &mut self,
        (now_ns, until_ns): (u64, u64),
        read: impl FnOnce() -> Option<Schedule>,
    ) -> Option<u64> {
        let (since_ns, before) = self.since?;
        let Some(now) = read() else {
            *self = Flips::default();
            return None;
        };
        self.clear += 1;
        self.since = (self.clear < CLEAR_LOOKS).then_some((now_ns, now));
        self.rest_ns = until_ns.cast_signed().saturating_sub_unsigned(now_ns);
        let used_ns = now.on_cpu_ns.saturating_sub(before.on_cpu_ns);
        let ready_ns = now.waited_ns.saturating_sub(before.waited_ns);
        let passed_ns = now_ns.saturating_sub(since_ns);
        Some(passed_ns.saturating_sub(used_ns.saturating_add(ready_ns)))
    }

    /// It has not run since the last look: looks count from now on. What the first of them stands
    /// for besides, in ns, is the rest of the interval of the last one (less than nothing if that
    /// look came after its interval).
    #[must_use]
    pub fn end(&mut self) -> i64 {
        std::mem::take(self).rest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const MS: u64 = 1_000_000;

    fn schedule(on_cpu_ms: u64, waited_ms: u64) -> Option<Schedule> {
        Some(Schedule {
            on_cpu_ns: on_cpu_ms * MS,
            waited_ns: waited_ms * MS,
            turns: 1,
        })
    }

    #[test]
    fn what_is_left_was_waited() {
        let mut flips = Flips::default();
        assert_eq!(flips.waited((MS, MS), || panic!("nothing to ask")), None);
        flips.moved(20 * MS, || schedule(100, 50));
        flips.moved(40 * MS, || panic!("it is on already"));
        // 40 ms, of which it ran 13 and was ready for 2.
        let waited = flips.waited((60 * MS, 60 * MS), || schedule(113, 52));
        assert_eq!(waited, Some(25 * MS));
        assert_eq!(
            flips.waited((80 * MS, 80 * MS), || schedule(133, 52)),
            Some(0)
        );
        // An account that is ahead of the clock.
        assert_eq!(
            flips.waited((81 * MS, 85 * MS), || schedule(140, 52)),
            Some(0)
        );
        assert_eq!(flips.end(), 4 * MS.cast_signed());
        assert_eq!(flips.end(), 0);
        assert!(!flips.is_on());
    }

    #[test]
    fn who_stands_still_is_counted_by_looks_again() {
        let mut flips = Flips::default();
        flips.moved(0, || schedule(0, 0));
        for look in 1..=u64::from(CLEAR_LOOKS) {
            assert!(flips.is_on());
            assert_eq!(
                flips.waited((look * MS, look * MS), || schedule(0, 0)),
                Some(MS)
            );
        }
        assert!(!flips.is_on());
        flips.moved(0, || None);
        assert!(!flips.is_on(), "there is no account");
        flips.moved(0, || schedule(0, 0));
        assert_eq!(flips.waited((MS, MS), || None), None);
        assert!(!flips.is_on(), "there is none any more");
    }

    /// Waits of 50 us between runs of 30 us: a look of 20 us sees six in ten of the former, and the
    /// sums are right nevertheless; with waits of 1 s in between, too.
    #[test]
    fn short_waits_are_as_long_as_they_are() {
        const RUN: u64 = 30_000;
        let (mut flips, mut random) = (Flips::default(), Random::new(9));
        let (mut at, mut ran, mut truth, mut told, mut due) = (0u64, 0u64, 0u64, 0u64, 7_001u64);
        let mut by_looks = 0;
        for number in 0..400_000u64 {
            let wait = if number % 40_000 == 39_999 {
                1_000_000_000
            } else {
                50_000
            };
            at += RUN;
            ran += RUN;
            while due < at + wait {
                let account = Schedule {
                    on_cpu_ns: ran,
                    ..Schedule::default()
                };
                match (due >= at, due + 20_000 < at + wait) {
                    // It waits, and stands still.
                    (true, true) => {
                        by_looks += 20 * MS;
                        told += flips
                            .waited((due, due), || Some(account))
                            .unwrap_or(20 * MS);
                    }
                    (true, false) => flips.moved(due, || Some(account)),
                    (false, _) => {}
                }
                due += 20 * MS + random.below(100_000);
            }
            at += wait;
            truth += wait;
        }
        // After each long wait, in which it stands still, part of a tick is not counted: 0.5 %.
        let ratio = told as f64 / truth as f64;
        assert!((ratio - 1.0).abs() < 0.015, "{ratio}");
        assert!((by_looks as f64) < 0.8 * truth as f64, "looks are as good");
    }

    /// Runs of 100 ms, in which a look finds it not to stand still, and waits of 22 ms, in which
    /// four or five do: the first counts from the wait's begin, the second from there to the end of
    /// its own interval, the others their intervals. (The end of each wait is up to chance, by
    /// 1.44 ms: 0.1 % of them all.)
    #[test]
    fn long_waits_are_as_long_as_they_are() {
        const TICK: u64 = 5 * MS;
        const RUN: u64 = 100 * MS;
        const WAIT: u64 = 22 * MS;
        const ROUNDS: u64 = 4000;
        let (mut flips, mut random) = (Flips::default(), Random::new(3));
        let (mut told, mut seen_in) = (0, None);
        let ticks = ROUNDS * (RUN + WAIT) / TICK;
        for begin in (0..ticks).map(|tick| tick * TICK) {
            let now = begin + random.below(TICK);
            let (round, within) = (now / (RUN + WAIT), now % (RUN + WAIT));
            let account = Schedule {
                on_cpu_ns: round * RUN + within.min(RUN),
                ..Schedule::default()
            };
            if within < RUN {
                flips.moved(now, || Some(account));
            } else if seen_in == Some(round) {
                told += TICK.saturating_add_signed(flips.end());
            } else {
                let waited = flips.waited((now, begin + TICK), || Some(account));
                told += waited.unwrap_or(TICK);
                seen_in = Some(round);
            }
        }
        let ratio = told as f64 / (ROUNDS * WAIT) as f64;
        assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    }
}
