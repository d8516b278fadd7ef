//! How many alarms that came to nothing are answered: where safepoints are short and many, being
//! woken for each would cost more than looking now and then. Pure arithmetic.

/// Answered in one second at most.
const FALSE_MAX: u32 = 10;
const SECOND_NS: u64 = 1_000_000_000;

/// Those of the last second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarms {
    since_ns: u64,
    count: u32,
}

impl Alarms {
    /// How long none is answered from now on: until the second is over if there were too many.
    #[must_use]
    pub fn pause_ns(&mut self, now_ns: u64) -> u64 {
        let end_ns = self.since_ns.saturating_add(SECOND_NS);
        if now_ns >= end_ns {
            *self = Alarms {
                since_ns: now_ns,
                count: 0,
            };
        }
        match self.count < FALSE_MAX {
            true => 0,
            false => end_ns.saturating_sub(now_ns),
        }
    }

    /// One came to nothing.
    pub fn was_false(&mut self) {
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn false_alarms_are_answered_so_often_in_a_second() {
        let mut alarms = Alarms::default();
        let (begin_ns, end_ns) = (5 * SECOND_NS, 15 * SECOND_NS);
        let (mut now_ns, mut answered) = (begin_ns, 0);
        while now_ns < end_ns {
            match alarms.pause_ns(now_ns) {
                0 => {
                    alarms.was_false();
                    answered += 1;
                    now_ns += SECOND_NS / 1000;
                }
                pause_ns => now_ns += pause_ns,
            }
        }
        assert_eq!((answered, now_ns), (10 * FALSE_MAX, end_ns));
        // Those that were right do not count.
        assert!((0..10_000u64).all(|ns| alarms.pause_ns(100 * SECOND_NS + ns) == 0));
    }
}
