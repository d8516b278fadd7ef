//! The spans of a page's requests: spans inside of a request that have samples or recorded times. A
//! request's own span is its first one, and has no number here.

use std::collections::HashMap;

use dwell_profile::{ContextId, Profile};

use super::columns::{Column, U32, U48, U48_MAX};
use super::entries::Entries;
use super::events::since;
use super::requests::Requests;

/// Maximum number of spans on a page. Work of the others counts for their request only.
const SPANS_MAX: usize = 200_000;

/// The spans that a page knows.
pub(super) struct Spans {
    /// By number the number of the request and the span's own id.
    ids: Vec<(u64, u64)>,
    /// Recorded begin and end; 0 to 0 if they were not recorded.
    times: Vec<(u64, u64)>,
    /// By context: the number of its span from 1 on. 0 is the request's own span, or unknown.
    by_context: Vec<u64>,
}

impl Spans {
    pub(super) fn of(profile: &Profile, requests: &Requests) -> Spans {
        let contexts = profile.contexts().iter().enumerate();
        let of_contexts: Vec<(u64, u64)> = contexts
            .map(|(at, context)| {
                let request = requests.number_of(Some(at as ContextId));
                let is_inner = context.span_id != context.local_root_span_id;
                match request > 0 && context.span_id != 0 && is_inner {
                    true => (request, context.span_id),
                    false => (0, 0),
                }
            })
            .collect();
        let told = told(profile, requests);
        let mut found = of_contexts.clone();
        found.extend(told.keys());
        found.sort_unstable();
        found.dedup();
        found.retain(|&(request, _)| request > 0);
        found.truncate(SPANS_MAX);
        let number = |key: &(u64, u64)| found.binary_search(key).map_or(0, |at| at as u64 + 1);
        let time = |key: &(u64, u64)| told.get(key).copied().unwrap_or((0, 0));
        Spans {
            by_context: of_contexts.iter().map(number).collect(),
            times: found.iter().map(time).collect(),
            ids: found,
        }
    }

    /// Columns; those of samples and looks have no rows where there are no such spans at all.
    pub(super) fn columns(&self, entries: &Entries<'_>) -> Vec<Column> {
        let of = |context: Option<ContextId>| {
            let number = context.and_then(|context| self.by_context.get(context as usize));
            number.copied().unwrap_or(0)
        };
        let (samples, looks) = match self.ids.is_empty() {
            true => (&[][..], &[][..]),
            false => (&*entries.samples, &*entries.looks),
        };
        let part = |name, shift: u32| {
            Column::new(name, U32, &self.ids, move |(_, id)| {
                id >> shift & 0xffff_ffff
            })
        };
        vec![
            part("span.high", 32),
            part("span.low", 0),
            Column::new(
                "span.request",
                U32.differences(),
                &self.ids,
                |(request, _)| *request,
            ),
            Column::new("span.time", U48, &self.times, |(from, _)| *from),
            Column::new("span.duration", U48, &self.times, |(from, to)| to - from),
            Column::new("sample.span", U32, samples, |sample| of(sample.context)),
            Column::new("look.span", U32, looks, |look| of(look.context)),
        ]
    }
}

/// Begin and end of spans, by the number of the request and their ids. A span with several records,
/// such as one on several threads, lasts from its first begin to its last end.
fn told(profile: &Profile, requests: &Requests) -> HashMap<(u64, u64), (u64, u64)> {
    let since = since(profile);
    let mut told = HashMap::new();
    for span in profile.spans() {
        let request = requests.number_of_root(span.local_root_span_id);
        let from = since(span.time_ns);
        let to = from.saturating_add(span.duration_ns).min(U48_MAX);
        if request > 0 && to > from && told.len() < SPANS_MAX {
            let known = told.entry((request, span.span_id)).or_insert((from, to));
            *known = (known.0.min(from), known.1.max(to));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::calls::Calls;
    use dwell_profile::{Context, Request, Sample, Span, text_art};

    fn columns_of(spans: &[(u64, u64)]) -> Vec<(&'static str, Vec<u64>)> {
        let mut builder = text_art::builder("a.A.x");
        for &(local_root_span_id, span_id) in spans {
            let context = builder.context(Context {
                local_root_span_id,
                span_id,
                ..Context::default()
            });
            builder.sample(Sample {
                time_ns: 0,
                thread: 0,
                node: 1,
                weight: 1,
                count: 1,
                failure: None,
                context: Some(context),
            });
        }
        builder.requests = vec![Request {
            time_ns: 1,
            duration_ns: 5,
            trace_id: 1,
            local_root_span_id: 7,
            endpoint: None,
            count: 1,
        }];
        let told = |span_id, time_ns| Span {
            time_ns,
            duration_ns: 3,
            local_root_span_id: 7,
            span_id,
        };
        if spans.len() > 2 {
            builder.spans = vec![told(8, 2), told(8, 1), told(10, 2)];
        }
        let profile = builder.finish();
        let requests = Requests::of(&profile);
        let entries = Entries::of(&profile, &Calls::of(&profile), &requests.work(&profile));
        let columns = Spans::of(&profile, &requests).columns(&entries);
        let numbers = |column: &Column| (column.name, column.numbers());
        columns.iter().map(numbers).collect()
    }

    #[test]
    fn inner_spans_of_known_requests_have_numbers() {
        let deep = 3 << 32 | 9;
        let columns = columns_of(&[(7, 7), (7, deep), (7, 8), (6, 5), (7, 0)]);
        assert_eq!(columns[0], ("span.high", vec![0, 0, 3]));
        assert_eq!(columns[1], ("span.low", vec![8, 10, 9]));
        assert_eq!(columns[2], ("span.request", vec![1, 0, 0]));
        // Two records, a record without a sample, and no record.
        assert_eq!(columns[3], ("span.time", vec![1, 2, 0]));
        assert_eq!(columns[4], ("span.duration", vec![4, 3, 0]));
        assert_eq!(columns[5], ("sample.span", vec![0, 0, 3, 1, 0, 0]));
        assert_eq!(columns[6], ("look.span", vec![]));
    }

    #[test]
    fn without_inner_spans_nothing_is_written() {
        for (_, numbers) in columns_of(&[(7, 7), (6, 5)]) {
            assert!(numbers.is_empty(), "{numbers:?}");
        }
    }
}
