//! Limits the answers to false alarms. Where safepoints are short and frequent, a wakeup for each
//! costs more than a check at intervals. Pure arithmetic.

use super::lengths::LONG_NS;

/// Maximum number of answers in a second.
const FALSE_MAX: u32 = 10;
const SECOND_NS: u64 = 1_000_000_000;
/// Number of false alarms of each long safepoint that do not count. The VM's thread is also
/// switched often while it works, and an alarm costs little of that time.
const LET_PASS_MAX: u32 = 4;
/// False alarms further apart than this do not count. While a thread does not come to a handshake,
/// the VM's thread naps for a millisecond at a time. That gives such rare alarms, a hundred in a
/// row with no safepoint between them. The safepoint that follows waits for the same thread, and
/// its alarm needs an answer.
const SELDOM_NS: u64 = 5_000_000;

/// A safepoint: time of its request, and its duration so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasted {
    /// Request time on the monotonic clock, which identifies it.
    pub began_ns: u64,
    /// Until its end, or now.
    pub lasted_ns: u64,
}

/// False alarms of the last second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarms {
    since_ns: u64,
    count: u32,
    /// The long safepoint whose alarms did not count, and their number.
    passed: (u64, u32),
    /// Time of the last alarm, and the last safepoint before it.
    before: Option<(u64, Option<u64>)>,
}

impl Alarms {
    /// How long no alarm is answered from now on: to the end of the second if there were too many.
    #[must_use]
    pub fn pause_ns(&mut self, now_ns: u64) -> u64 {
        let end_ns = self.since_ns.saturating_add(SECOND_NS);
        if now_ns >= end_ns {
            (self.since_ns, self.count) = (now_ns, 0);
        }
        match self.count < FALSE_MAX {
            true => 0,
            false => {
                // An alarm after a pause is not one of the rare kind.
                self.before = None;
                end_ns.saturating_sub(now_ns)
            }
        }
    }

    /// Adds a false alarm; `last` is the last safepoint.
    pub fn was_false(&mut self, now_ns: u64, last: Option<Lasted>) {
        let after = last.map(|last| last.began_ns);
        let before = self.before.replace((now_ns, after));
        let is_seldom = before.is_some_and(|(before_ns, of)| {
            of == after && now_ns.saturating_sub(before_ns) >= SELDOM_NS
        });
        if is_seldom {
            return;
        }
        if let Some(last) = last.filter(|last| last.lasted_ns >= LONG_NS) {
            if self.passed.0 != last.began_ns {
                self.passed = (last.began_ns, 0);
            }
            if self.passed.1 < LET_PASS_MAX {
                self.passed.1 += 1;
                return;
            }
        }
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Lasted = Lasted {
        began_ns: 7,
        lasted_ns: LONG_NS,
    };

    #[test]
    fn false_alarms_are_answered_up_to_a_limit_per_second() {
        let mut alarms = Alarms::default();
        let (begin_ns, end_ns) = (5 * SECOND_NS, 15 * SECOND_NS);
        let (mut now_ns, mut answered) = (begin_ns, 0);
        while now_ns < end_ns {
            match alarms.pause_ns(now_ns) {
                0 => {
                    // The last long one was long ago, so its uncounted alarms are soon used up.
                    alarms.was_false(now_ns, (answered >= 5).then_some(LONG));
                    answered += 1;
                    now_ns += SECOND_NS / 1000;
                }
                pause_ns => now_ns += pause_ns,
            }
        }
        assert_eq!((answered, now_ns), (10 * FALSE_MAX + LET_PASS_MAX, end_ns));
        // Right alarms do not count.
        assert!((0..10_000u64).all(|ns| alarms.pause_ns(100 * SECOND_NS + ns) == 0));
    }

    #[test]
    fn alarms_of_long_safepoints_do_not_stop_the_answers() {
        let mut alarms = Alarms::default();
        assert_eq!(alarms.pause_ns(SECOND_NS), 0);
        for stop in 0..50u64 {
            for _ in 0..LET_PASS_MAX {
                let last = Lasted {
                    began_ns: stop,
                    ..LONG
                };
                alarms.was_false(SECOND_NS + stop, Some(last));
            }
            assert_eq!(alarms.pause_ns(SECOND_NS + stop), 0, "{stop}");
        }
        // Short ones are.
        let short = |began_ns| Lasted {
            began_ns,
            lasted_ns: LONG_NS - 1,
        };
        for stop in 0..u64::from(FALSE_MAX) {
            alarms.was_false(SECOND_NS + 50, Some(short(stop)));
        }
        assert_eq!(alarms.pause_ns(SECOND_NS + 50), SECOND_NS - 50);
    }

    #[test]
    fn naps_until_a_handshake_do_not_stop_the_answers() {
        let mut alarms = Alarms::default();
        let ring = |alarms: &mut Alarms, stop: u64, nap_ns: u64| {
            (1..200u64).all(|nap| {
                let now_ns = 100 * SECOND_NS + nap * nap_ns;
                let last = Lasted {
                    // As many safepoints as alarms, or one.
                    began_ns: stop * nap,
                    lasted_ns: LONG_NS / 2,
                };
                let is_answered = alarms.pause_ns(now_ns) == 0;
                alarms.was_false(now_ns, Some(last));
                is_answered
            })
        };
        assert!(ring(&mut alarms, 0, SELDOM_NS));
        // Alarms of short safepoints or of short naps do stop the answers.
        assert!(!ring(&mut Alarms::default(), 1, SELDOM_NS));
        assert!(!ring(&mut Alarms::default(), 0, SELDOM_NS - 1));
    }
}
