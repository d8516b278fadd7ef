//! The report of samples that failed or had no slot: changes since the last flush. Pure.

use super::sample::FailureCounts;
use crate::runtime::progress::DROPS;
use dwell_jfr::writer::Event;
use dwell_signal::Cause;

/// Failures that the file contains so far.
#[derive(Debug, Default)]
pub struct Told {
    failures: FailureCounts,
}

impl Told {
    /// Failures by cause since the last report; `now` are all since the recording began.
    pub fn failures(&mut self, ticks: u64, now: &FailureCounts) -> Vec<Event<'static>> {
        let mut news = Vec::new();
        for (cause, (samples, weight_ns)) in now {
            let told = self.failures.entry(cause).or_default();
            let new = (samples - told.0, weight_ns - told.1);
            *told = (*samples, *weight_ns);
            if new.0 > 0 {
                let (samples, weight_ns) = new;
                news.push(Event::Failures {
                    ticks,
                    cause,
                    samples,
                    weight_ns,
                });
            }
        }
        news
    }
}

/// Samples that are missing or not as requested, `since` the last report; `lost_ns` of CPU time
/// are in no sample.
pub fn losses(
    ticks: u64,
    since: impl Fn(Cause) -> u64,
    lost_ns: u64,
) -> impl Iterator<Item = Event<'static>> {
    let counted = DROPS.map(|(name, cause)| (name, cause, since(cause)));
    let some = counted.into_iter().filter(|(_, _, samples)| *samples > 0);
    some.map(move |(name, cause, samples)| Event::Lost {
        ticks,
        cause: name,
        samples,
        // Weight that has moved on to other samples is not missing in the sum.
        weight_ns: match cause {
            Cause::PointsLost => lost_ns,
            _ => 0,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(told: &mut Told, now: &[(&'static str, (u64, u64))]) -> Vec<(String, u64, u64)> {
        let news = told.failures(7, &now.iter().copied().collect());
        let one = |event| match event {
            Event::Failures {
                ticks: 7,
                cause,
                samples,
                weight_ns,
            } => (cause.to_owned(), samples, weight_ns),
            _ => panic!("another event"),
        };
        news.into_iter().map(one).collect()
    }

    #[test]
    fn each_failure_is_reported_once() {
        let mut told = Told::default();
        let first = failures(&mut told, &[("a", (2, 20)), ("b", (1, 5))]);
        assert_eq!(first, [("a".to_owned(), 2, 20), ("b".to_owned(), 1, 5)]);
        let now = [("a", (5, 21)), ("b", (1, 5)), ("c", (1, 0))];
        let second = failures(&mut told, &now);
        assert_eq!(second, [("a".to_owned(), 3, 1), ("c".to_owned(), 1, 0)]);
        assert_eq!(failures(&mut told, &now), []);
    }

    #[test]
    fn only_lost_points_have_a_weight() {
        let since = |cause| match cause {
            Cause::NoSlot => 3,
            Cause::PointsLost => 2,
            _ => 0,
        };
        let one = |event| match event {
            Event::Lost {
                ticks: 9,
                cause,
                samples,
                weight_ns,
            } => (cause, samples, weight_ns),
            _ => panic!("another event"),
        };
        let told: Vec<_> = losses(9, since, 70).map(one).collect();
        let expected = [
            ("no_free_slot_weight_moved_on", 3, 0),
            ("thread_ended_without_slot", 2, 70),
        ];
        assert_eq!(told, expected);
    }
}
