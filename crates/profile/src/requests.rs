//! Requests that ended while the recording ran: how many of each endpoint, and how long they took.

use crate::names::{NameId, Names};
use std::collections::BTreeMap;

/// A request that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// Its trace; 0: none.
    pub trace_id: u128,
    /// Its first span in this process.
    pub local_root_span_id: u64,
    /// Its endpoint, if that is known.
    pub endpoint: Option<NameId>,
    /// How many requests it stands for: of many, some are kept, each as likely as the others.
    pub count: u64,
}

/// How long requests of one kind took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Durations with the requests they stand for, the shortest first.
    sorted: Vec<(u64, u64)>,
    /// All requests.
    pub requests: u64,
    /// Those that were kept.
    pub kept: u64,
}

impl Latencies {
    fn of(requests: &[Request]) -> Latencies {
        let mut sorted: Vec<_> = requests.iter().map(|r| (r.duration_ns, r.count)).collect();
        sorted.sort_unstable();
        Latencies {
            requests: sorted.iter().fold(0, |sum: u64, r| sum.saturating_add(r.1)),
            kept: sorted.len() as u64,
            sorted,
        }
    }

    /// The least duration that so many percent of the requests did not exceed; 0 without requests.
    #[must_use]
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = (percent / 100.0 * self.requests as f64).ceil() as u64;
        let mut seen = 0u64;
        for (duration_ns, count) in &self.sorted {
            seen = seen.saturating_add(*count);
            if seen >= wanted.max(1) {
                return *duration_ns;
            }
        }
        self.longest_ns()
    }

    /// The longest duration.
    #[must_use]
    pub fn longest_ns(&self) -> u64 {
        self.sorted
            .last()
            .map_or(0, |(duration_ns, _)| *duration_ns)
    }
}

/// Latencies by endpoint; those of requests without one under `None`.
pub(crate) fn latencies<'n>(
    requests: &[Request],
    names: &'n Names,
) -> BTreeMap<Option<&'n str>, Latencies> {
    let mut by_endpoint: BTreeMap<Option<&str>, Vec<Request>> = BTreeMap::new();
    for request in requests {
        let endpoint = request.endpoint.map(|name| names.text(name));
        by_endpoint.entry(endpoint).or_default().push(*request);
    }
    let latencies = |(endpoint, requests): (_, Vec<_>)| (endpoint, Latencies::of(&requests));
    by_endpoint.into_iter().map(latencies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;

    fn request(duration_ns: u64, count: u64) -> Request {
        Request {
            time_ns: 0,
            duration_ns,
            trace_id: 0,
            local_root_span_id: 0,
            endpoint: None,
            count,
        }
    }

    #[test]
    fn percentiles_count_request_weights() {
        let requests: Vec<_> = (1..=100).rev().map(|ms| request(ms, 1)).collect();
        let even = Latencies::of(&requests);
        assert_eq!(even.requests, 100);
        let at = |percent| even.percentile_ns(percent);
        assert_eq!((at(50.0), at(95.0), at(99.0), at(100.0)), (50, 95, 99, 100));
        assert_eq!((at(0.0), even.longest_ns()), (1, 100));
        let uneven = Latencies::of(&[request(1, 98), request(10, 1), request(100, 1)]);
        let at = |percent| uneven.percentile_ns(percent);
        assert_eq!((at(50.0), at(98.0), at(99.0), at(99.9)), (1, 1, 10, 100));
        assert_eq!(Latencies::default().percentile_ns(99.0), 0);
    }

    #[test]
    fn requests_are_grouped_by_endpoint() {
        let mut builder = Builder::default();
        let endpoint = Some(builder.name("GET /a"));
        builder.requests = vec![
            request(5, 2),
            Request {
                endpoint,
                ..request(7, 3)
            },
        ];
        let profile = builder.finish();
        let latencies = profile.latencies();
        let found = |endpoint| {
            latencies
                .get(&endpoint)
                .map(|l| (l.requests, l.longest_ns()))
        };
        assert_eq!(found(None), Some((2, 5)));
        assert_eq!(found(Some("GET /a")), Some((3, 7)));
    }
}
