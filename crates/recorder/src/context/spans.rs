//! Spans inside of requests that have ended since the last flush. The longest spans of each
//! endpoint are kept, as users look at the slow requests one by one. So their number is bounded.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Spans of one endpoint kept for a flush.
const KEPT_MAX: usize = 64;
/// Spans kept of all endpoints, unless so many endpoints have spans that each gets [`KEPT_MIN`].
const ALL_MAX: usize = 256;
/// Spans of one endpoint kept in any case.
const KEPT_MIN: usize = 4;
/// Endpoints that are kept separate in one flush; the others share one quota.
const ENDPOINTS_MAX: usize = 64;
/// The number of no text.
const OTHERS: u32 = u32::MAX;

/// A span that has ended. The order is by duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// How long it took.
    pub duration_ns: u64,
    /// When it began, on the monotonic clock.
    pub start_ns: u64,
    /// Its trace.
    pub trace: u128,
    /// The first span of the trace in this process: the request.
    pub local_root: u64,
    /// Its own id.
    pub span: u64,
    /// Number of the endpoint's text; 0: not known when it ended.
    pub endpoint: u32,
}

/// The spans since the last flush.
#[derive(Default)]
pub struct Spans {
    /// The shortest that are kept on top.
    by_endpoint: FxHashMap<u32, BinaryHeap<Reverse<Span>>>,
}

impl Spans {
    /// Adds a span, in the place of a shorter one if there is no room.
    pub fn add(&mut self, span: Span) {
        let known = self.by_endpoint.contains_key(&span.endpoint);
        let key = match known || self.by_endpoint.len() < ENDPOINTS_MAX {
            true => span.endpoint,
            false => OTHERS,
        };
        let kept = self.by_endpoint.entry(key).or_default();
        if kept.len() < KEPT_MAX {
            kept.push(Reverse(span));
        } else if let Some(mut shortest) = kept.peek_mut()
            && shortest.0 < span
        {
            *shortest = Reverse(span);
        }
    }

    /// Takes those kept.
    #[must_use]
    pub fn take(&mut self) -> Vec<Span> {
        let of_each = (ALL_MAX / self.by_endpoint.len().max(1)).max(KEPT_MIN);
        let mut taken = Vec::new();
        for (_, kept) in self.by_endpoint.drain() {
            // Turned round: the longest first.
            let longest = kept.into_sorted_vec();
            taken.extend(longest.into_iter().take(of_each).map(|Reverse(span)| span));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(duration_ns: u64, endpoint: u32) -> Span {
        Span {
            duration_ns,
            endpoint,
            ..Span::default()
        }
    }

    #[test]
    fn the_longest_of_each_endpoint_are_kept() {
        let mut spans = Spans::default();
        // A permutation: 7 has no divisor in common with 1000.
        for number in 0..1000 {
            spans.add(span(number * 7 % 1000, 1));
        }
        spans.add(span(3, 2));
        let mut kept = spans.take();
        kept.sort_unstable();
        assert_eq!(kept.first(), Some(&span(3, 2)));
        let long: Vec<_> = (936..1000).map(|length| span(length, 1)).collect();
        assert_eq!(kept[1..], long);
        assert_eq!(spans.take(), []);
    }

    #[test]
    fn kept_spans_are_bounded_for_many_endpoints() {
        let mut spans = Spans::default();
        for endpoint in 0..1000 {
            for length in 0..20 {
                spans.add(span(length, endpoint));
            }
        }
        let kept = spans.take();
        assert_eq!(kept.len(), (ENDPOINTS_MAX + 1) * KEPT_MIN);
        assert!(kept.iter().all(|span| span.duration_ns >= 16));
    }
}
