//! The requests that safepoints delay: those in progress while all threads were stopped, or waited
//! for the last thread to stop. Pure.

use crate::profile::Profile;
use crate::stops::Safepoint;
use std::collections::BTreeMap;

/// The time that safepoints took from the requests of one endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// Requests.
    pub requests: u64,
    /// Requests among them that were in progress at a safepoint.
    pub stopped: u64,
    /// How long they took, all together.
    pub duration_ns: u64,
    /// Of that, time at safepoints and until they were reached.
    pub stopped_ns: u64,
    /// The most that one request lost so.
    pub most_ns: u64,
}

impl Profile {
    /// The time that safepoints took from requests, by endpoint; `None` for requests without one. A
    /// thread that waited for something else during the safepoint lost no time by it. So the sums
    /// are the maximum that safepoints can have taken.
    #[must_use]
    pub fn paid_for_safepoints(&self) -> BTreeMap<Option<&str>, Paid> {
        let stops = self.safepoints().iter().filter_map(Safepoint::span);
        let stops = Stops::of(stops.collect());
        let mut by_endpoint: BTreeMap<Option<&str>, Paid> = BTreeMap::new();
        for request in self.requests() {
            let endpoint = request.endpoint.map(|name| self.names().text(name));
            let paid = by_endpoint.entry(endpoint).or_default();
            let end = request.time_ns.saturating_add(request.duration_ns);
            let lost_ns = stops.within(request.time_ns, end);
            paid.requests = paid.requests.saturating_add(request.count);
            let times = |ns: u64| ns.saturating_mul(request.count);
            paid.duration_ns = paid.duration_ns.saturating_add(times(request.duration_ns));
            paid.stopped_ns = paid.stopped_ns.saturating_add(times(lost_ns));
            paid.most_ns = paid.most_ns.max(lost_ns);
            if lost_ns > 0 {
                paid.stopped = paid.stopped.saturating_add(request.count);
            }
        }
        by_endpoint
    }
}

/// Times that do not overlap, in their order, with the sum of all before each.
struct Stops {
    all: Vec<(u64, u64, u64)>,
}

impl Stops {
    fn of(mut spans: Vec<(u64, u64)>) -> Stops {
        spans.sort_unstable();
        let mut all: Vec<(u64, u64, u64)> = Vec::new();
        for (start, end) in spans {
            match all.last_mut() {
                // A clock step can make them overlap.
                Some(last) if start < last.1 => last.1 = last.1.max(end),
                Some(last) => {
                    let before = last.2.saturating_add(last.1 - last.0);
                    all.push((start, end, before));
                }
                None => all.push((start, end, 0)),
            }
        }
        // The merge has changed the sums.
        let mut before = 0u64;
        for stop in &mut all {
            stop.2 = before;
            before = before.saturating_add(stop.1 - stop.0);
        }
        Stops { all }
    }

    /// How much of the time before `at` they were.
    fn before(&self, at: u64) -> u64 {
        let after = self.all.partition_point(|stop| stop.0 < at);
        let last = after.checked_sub(1).and_then(|place| self.all.get(place));
        last.map_or(0, |(start, end, before)| {
            before.saturating_add(at.min(*end).saturating_sub(*start))
        })
    }

    fn within(&self, from: u64, to: u64) -> u64 {
        self.before(to).saturating_sub(self.before(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Request};
    use proptest::prelude::*;

    fn request(time_ns: u64, duration_ns: u64, count: u64) -> Request {
        Request {
            time_ns,
            duration_ns,
            trace_id: 0,
            local_root_span_id: 0,
            endpoint: None,
            count,
        }
    }

    #[test]
    fn requests_pay_for_stops_inside_them() {
        let mut builder = Builder::default();
        let operation = builder.name("G1CollectFull");
        let stop = |time_ns, reaching_ns, operation_ns, count| Safepoint {
            time_ns,
            id: time_ns,
            operation,
            reaching_ns,
            operation_ns,
            threads: 1,
            running: 1,
            count,
            is_known: true,
        };
        // The third is a sum, and the last one was only counted: their times are not known.
        let counted = Safepoint {
            is_known: false,
            ..stop(500, 0, 50, 1)
        };
        builder.safepoints = vec![
            stop(100, 10, 20, 1),
            stop(200, 0, 50, 1),
            stop(0, 900, 0, 9),
            counted,
        ];
        builder.requests = vec![
            request(120, 100, 2),
            request(90, 200, 1),
            request(500, 50, 1),
        ];
        let profile = builder.finish();
        let paid = profile.paid_for_safepoints();
        let expected = Paid {
            requests: 4,
            stopped: 3,
            duration_ns: 450,
            // Twice 10 of the first and 20 of the second; all of both.
            stopped_ns: 2 * 30 + 80,
            most_ns: 80,
        };
        assert_eq!(paid.get(&None), Some(&expected));
    }

    proptest! {
        #[test]
        fn sums_are_those_of_counting(
            spans in proptest::collection::vec((0u64..50, 0u64..20), 0..8),
            from in 0u64..60,
            len in 0u64..60,
        ) {
            let spans: Vec<_> = spans.into_iter().map(|(at, len)| (at, at + len)).collect();
            let inside = |at: &u64| spans.iter().any(|(start, end)| (*start..*end).contains(at));
            let counted = (from..from + len).filter(inside).count() as u64;
            prop_assert_eq!(Stops::of(spans.clone()).within(from, from + len), counted);
        }
    }
}
