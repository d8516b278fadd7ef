//! Which part of an event belongs to a part of the time. All views by time take it from here, the
//! viewer from its twin (`viewer/src/data/window.ts`). Knows no event and no view.

/// When an event was: its weight lies evenly over this time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The beginning, in nanoseconds of the clock that the windows have.
    pub time_ns: u64,
    /// The length; 0: the event is at one instant.
    pub duration_ns: u64,
}

impl Extent {
    /// An instant.
    #[must_use]
    pub fn at(time_ns: u64) -> Extent {
        Extent {
            time_ns,
            duration_ns: 0,
        }
    }

    /// The end.
    #[must_use]
    pub fn end_ns(&self) -> u64 {
        self.time_ns.saturating_add(self.duration_ns)
    }

    /// Of `amount` the part that lies before a time, to the nearest whole number.
    fn before(&self, at_ns: u64, amount: u64) -> u64 {
        let elapsed_ns = match at_ns {
            // A window without an end has all, even where an end overflows.
            u64::MAX => self.duration_ns,
            at_ns => at_ns.saturating_sub(self.time_ns).min(self.duration_ns),
        };
        if self.duration_ns == 0 {
            return if at_ns > self.time_ns || at_ns == u64::MAX {
                amount
            } else {
                0
            };
        }
        let (elapsed, all) = (u128::from(elapsed_ns), u128::from(self.duration_ns));
        // At most (2^64 - 1)^2 + 2^63: no number of a damaged file overflows.
        let rounded = (u128::from(amount) * elapsed + all / 2) / all;
        u64::try_from(rounded).unwrap_or(amount)
    }
}

/// A part of the time: from its beginning on, and before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The beginning, in nanoseconds of the clock that the events have.
    pub from_ns: u64,
    /// The end; `u64::MAX` for no end.
    pub to_ns: u64,
}

impl Window {
    /// All time.
    pub const ALL: Window = Window {
        from_ns: 0,
        to_ns: u64::MAX,
    };

    /// Whether an instant is in the window.
    #[must_use]
    pub fn has(&self, time_ns: u64) -> bool {
        self.part(1, Extent::at(time_ns)) == 1
    }

    /// The part of an event's extent that is in the window; `None` where they do not meet.
    #[must_use]
    pub fn overlap(&self, extent: Extent) -> Option<Extent> {
        if *self == Window::ALL {
            return Some(extent);
        }
        if extent.duration_ns == 0 {
            return self.has(extent.time_ns).then_some(extent);
        }
        let time_ns = extent.time_ns.max(self.from_ns);
        let end_ns = extent.end_ns().min(self.to_ns);
        (end_ns > time_ns).then(|| Extent {
            time_ns,
            duration_ns: end_ns - time_ns,
        })
    }

    /// The part of an event's `amount` (time, bytes, samples) that is in the window: proportional
    /// to the overlap with the event's duration. An event without a duration is in the window or
    /// outside.
    ///
    /// The answer is a whole number. It is the difference of what is before the window's end and
    /// what is before its beginning, each rounded, so the parts in adjacent windows add up to
    /// `amount`. So is a count split: each of n looks is in the middle of its n-th of the duration.
    #[must_use]
    pub fn part(&self, amount: u64, extent: Extent) -> u64 {
        // Most views are of all time, and ask this of millions of events.
        if *self == Window::ALL {
            return amount;
        }
        let [from, to] = [self.from_ns, self.to_ns].map(|at| extent.before(at, amount));
        to.saturating_sub(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(from_ns: u64, to_ns: u64) -> Window {
        Window { from_ns, to_ns }
    }

    fn extent(time_ns: u64, duration_ns: u64) -> Extent {
        Extent {
            time_ns,
            duration_ns,
        }
    }

    #[test]
    fn wait_of_ten_seconds_gives_each_second_a_tenth() {
        let wait = extent(1_000, 10_000);
        let parts: Vec<u64> = (0..12)
            .map(|at| window(at * 1_000, at * 1_000 + 1_000).part(5_000, wait))
            .collect();
        assert_eq!(
            parts,
            [0, 500, 500, 500, 500, 500, 500, 500, 500, 500, 500, 0]
        );
        assert_eq!(window(3_500, 3_750).part(5_000, wait), 125);
        assert_eq!(Window::ALL.part(5_000, wait), 5_000);
    }

    #[test]
    fn instant_is_in_the_window_that_begins_with_it() {
        let at = Extent::at(100);
        let parts = [(0, 100), (100, 101), (101, u64::MAX)].map(|(a, b)| window(a, b).part(7, at));
        assert_eq!(parts, [0, 7, 0]);
        assert!(Window::ALL.has(u64::MAX));
        assert_eq!(window(100, 200).overlap(at), Some(at));
        assert_eq!(window(0, 100).overlap(at), None);
    }

    #[test]
    fn looks_are_in_the_middle_of_their_parts() {
        let three = extent(0, 300);
        let parts = [(0, 50), (50, 100), (100, 150), (150, 251), (251, 300)]
            .map(|(a, b)| window(a, b).part(3, three));
        assert_eq!(parts, [1, 0, 1, 1, 0]);
    }

    #[test]
    fn window_without_end_includes_overflowing_events() {
        let long = extent(u64::MAX - 5, 100);
        assert_eq!(Window::ALL.part(40, long), 40);
        assert_eq!(long.end_ns(), u64::MAX);
    }

    proptest! {
        /// Adjacent windows share out all of an event, and none gets more than its length by the
        /// threads that the event stands for.
        #[test]
        fn adjacent_windows_add_up_to_the_event(
            (time, duration) in (0u64..5_000, prop_oneof![Just(0u64), 1u64..5_000]),
            threads in 1u64..50,
            count in 0u64..1_000,
            mut cuts in prop::collection::vec(0u64..12_000, 0..20),
        ) {
            cuts.extend([0, u64::MAX]);
            cuts.sort_unstable();
            let event = extent(time, duration);
            let weight = threads * duration.max(1);
            let (mut sum, mut counts) = (0, 0);
            for pair in cuts.windows(2) {
                let window = window(pair[0], pair[1]);
                let part = window.part(weight, event);
                match window.overlap(event) {
                    None => prop_assert_eq!(part, 0),
                    Some(all) if duration == 0 => prop_assert_eq!((part, all), (weight, event)),
                    Some(all) => prop_assert_eq!(part, threads * all.duration_ns),
                }
                sum += part;
                counts += window.part(count, event);
            }
            prop_assert_eq!((sum, counts), (weight, count));
        }

        /// Any weight, also one that is no multiple of the duration: at most the rounding is off.
        #[test]
        fn part_is_right_but_for_rounding(
            (time, duration) in (0u64..u64::MAX / 4, 1u64..),
            amount: u64,
            (a, b) in (0u64..u64::MAX, 0u64..u64::MAX),
        ) {
            let (from, to) = (a.min(b), a.max(b));
            let event = extent(time, duration);
            let part = window(from, to).part(amount, event);
            let inside = window(from, to).overlap(event).map_or(0, |it| it.duration_ns);
            let exact = u128::from(amount) * u128::from(inside) / u128::from(duration);
            prop_assert!(u128::from(part).abs_diff(exact) <= 1);
        }
    }
}
