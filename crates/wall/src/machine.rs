//! Sums over the machine's processors from `/proc/stat` (proc(5), fs/proc/stat.c): text in, sums
//! out.

/// Processor time since the machine was started, in one unit: the kernel's is clock ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of processors.
    pub processors: u64,
    /// Time that they worked, for any process.
    pub busy: u64,
    /// Time that they were idle.
    pub idle: u64,
    /// Time that the hypervisor took.
    pub stolen: u64,
}

/// The sums of the processors that `is_wanted` selects, by number. `None` if the text has no such
/// processor, or does not have the kernel's format.
#[must_use]
pub fn ticks(text: &str, is_wanted: impl Fn(usize) -> bool) -> Option<Sums> {
    let mut sums = Sums::default();
    // These lines come first.
    for line in text.lines().take_while(|line| line.starts_with("cpu")) {
        let (name, values) = line.split_once(' ')?;
        let number = name.strip_prefix("cpu")?;
        // The sum of all processors comes before the first one.
        if number.is_empty() || !is_wanted(number.parse().ok()?) {
            continue;
        }
        let mut values = values.split_ascii_whitespace().map(str::parse::<u64>);
        let mut next = || values.next()?.ok();
        let [user, nice, system, idle] = [next()?, next()?, next()?, next()?];
        // The lines of old kernels end here. The time of guests is included in the first two
        // values.
        let [waiting, interrupts, soft, stolen] = [next(), next(), next(), next()];
        let busy = [
            user,
            nice,
            system,
            interrupts.unwrap_or(0),
            soft.unwrap_or(0),
        ];
        sums.processors += 1;
        sums.busy = busy.into_iter().fold(sums.busy, u64::saturating_add);
        // A processor whose threads wait for a disk can run others.
        for ticks in [idle, waiting.unwrap_or(0)] {
            sums.idle = sums.idle.saturating_add(ticks);
        }
        sums.stolen = sums.stolen.saturating_add(stolen.unwrap_or(0));
    }
    (sums.processors > 0).then_some(sums)
}

impl Sums {
    /// The difference since `before`. Some counters may go back for a moment (proc(5)), which
    /// counts as zero.
    #[must_use]
    pub fn since(&self, before: &Sums) -> Sums {
        Sums {
            processors: self.processors,
            busy: self.busy.saturating_sub(before.busy),
            idle: self.idle.saturating_sub(before.idle),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  30 3 60 600 9 1 2 5 4 0\n\
                        cpu0 10 1 20 200 4 1 0 2 4 0\n\
                        cpu1 20 2 40 400 5 0 2 3 0 0\n\
                        cpu10 7 0 0 1\n\
                        intr 5 6\n\
                        cpu2 1 1 1 1\n";

    #[test]
    fn only_wanted_processors_are_summed() {
        let both = Sums {
            processors: 2,
            busy: 10 + 1 + 20 + 1 + 20 + 2 + 40 + 2,
            idle: 204 + 405,
            stolen: 5,
        };
        assert_eq!(ticks(STAT, |number| number < 2), Some(both));
        let old = Sums {
            processors: 1,
            busy: 7,
            idle: 1,
            stolen: 0,
        };
        assert_eq!(ticks(STAT, |number| number == 10), Some(old));
        // The line follows other lines, so it is not one of a processor.
        assert_eq!(ticks(STAT, |number| number == 2), None);
        for nonsense in [
            "",
            "cpu0",
            "cpu0 1 2 3\n",
            "cpu0 1 2 x 4\n",
            "cpux 1 2 3 4\n",
        ] {
            assert_eq!(ticks(nonsense, |_| true), None, "{nonsense}");
        }
    }

    #[test]
    fn decreasing_counter_counts_as_zero() {
        let at = |busy, idle| Sums {
            processors: 1,
            busy,
            idle,
            stolen: 7,
        };
        let since = at(9, 3).since(&at(5, 4));
        assert_eq!((since.busy, since.idle, since.stolen), (4, 0, 0));
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(cpu)?[0-9]?( [0-9]{1,20}){0,12}\n?.{0,80}") {
            let _ = ticks(&text, |_| true);
        }
    }
}
