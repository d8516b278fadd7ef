//! The requests of a page, and the requests that have samples and looks.

use std::collections::HashMap;

use dwell_profile::{ContextId, Profile, Request};

use super::columns::{Column, U16, U32, U48, U48_MAX, endpoint, endpoints, place_of};
use super::entries::Entries;
use super::events::since;

/// Maximum number of requests listed on a page.
const REQUESTS_MAX: usize = 100_000;

/// At most about `most` requests: the longest half of these. Of the others of each endpoint, one
/// request stands for several of similar duration, so quantiles stay nearly the same.
fn thinned(requests: &[Request], most: usize) -> Vec<Request> {
    if requests.len() <= most {
        return requests.to_vec();
    }
    let mut others = requests.to_vec();
    others.sort_by_key(|request| std::cmp::Reverse(request.duration_ns));
    let mut kept: Vec<Request> = others.drain(..most / 2).collect();
    others.sort_by_key(|request| (request.endpoint, request.duration_ns));
    let step = others.len().div_ceil((most / 2).max(1)).max(1);
    for of_endpoint in others.chunk_by(|a, b| a.endpoint == b.endpoint) {
        for alike in of_endpoint.chunks(step) {
            let Some(middle) = alike.get(alike.len() / 2) else {
                continue;
            };
            let count = alike
                .iter()
                .fold(0, |sum: u64, r| sum.saturating_add(r.count));
            kept.push(Request { count, ..*middle });
        }
    }
    kept
}

/// The requests that a page knows.
pub(super) struct Requests {
    /// In the order of time.
    kept: Vec<Request>,
    /// By context: the number of its request from 1 on, or 0 without a request.
    by_context: Vec<u64>,
    /// The number of the request with a local root.
    by_root: HashMap<u64, u64>,
}

impl Requests {
    pub(super) fn of(profile: &Profile) -> Requests {
        let mut kept = thinned(profile.requests(), REQUESTS_MAX);
        kept.sort_by_key(|request| (request.time_ns, request.local_root_span_id));
        let mut by_root: HashMap<u64, u64> = HashMap::new();
        for (place, request) in kept.iter().enumerate() {
            if request.local_root_span_id != 0 {
                by_root.insert(request.local_root_span_id, place as u64 + 1);
            }
        }
        let contexts = profile.contexts().iter();
        let by_context = contexts
            .map(|context| by_root.get(&context.local_root_span_id))
            .map(|number| number.copied().unwrap_or(0))
            .collect();
        Requests {
            kept,
            by_context,
            by_root,
        }
    }

    /// The number of the request with this local root; 0: none.
    pub(super) fn number_of_root(&self, local_root: u64) -> u64 {
        self.by_root.get(&local_root).copied().unwrap_or(0)
    }

    /// The number of the request that a context is of; 0: none.
    pub(super) fn number_of(&self, context: Option<ContextId>) -> u64 {
        let number = context.and_then(|context| self.by_context.get(context as usize));
        number.copied().unwrap_or(0)
    }

    /// By context: a number that contexts share if the page shows them as one.
    pub(super) fn work(&self, profile: &Profile) -> Vec<u64> {
        let endpoints = endpoints(profile);
        let numbers = self.by_context.iter().enumerate();
        numbers
            .map(|(context, request)| {
                let context = Some(context as ContextId);
                1 + (request << 20 | endpoint(profile, &endpoints, context))
            })
            .collect()
    }

    pub(super) fn columns(&self, profile: &Profile, entries: &Entries<'_>) -> Vec<Column> {
        let mut columns = self.table(profile);
        let of = |context| self.number_of(context);
        columns.push(Column::new(
            "sample.request",
            U32,
            &entries.samples,
            |sample| of(sample.context),
        ));
        if profile.has_wall() {
            columns.push(Column::new("look.request", U32, &entries.looks, |look| {
                of(look.context)
            }));
        }
        columns
    }

    fn table(&self, profile: &Profile) -> Vec<Column> {
        let (time, endpoints) = (since(profile), endpoints(profile));
        // As text in the page, put together again: a double holds no 64 bits.
        let part = |name, shift: u32| {
            Column::new(name, U32, &self.kept, move |r| {
                (r.trace_id >> shift) as u64 & 0xffff_ffff
            })
        };
        vec![
            Column::new("request.time", U48.differences(), &self.kept, |r| {
                time(r.time_ns)
            }),
            Column::new("request.duration", U48, &self.kept, |r| {
                r.duration_ns.min(U48_MAX)
            }),
            Column::new("request.endpoint", U16, &self.kept, |r| {
                place_of(&endpoints, r.endpoint)
            }),
            Column::new("request.count", U32, &self.kept, |r| {
                r.count.min(u64::from(u32::MAX))
            }),
            part("request.trace_high", 96),
            part("request.trace_mid_high", 64),
            part("request.trace_mid_low", 32),
            part("request.trace_low", 0),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::calls::Calls;
    use dwell_profile::{Builder, Context, Look, text_art};

    fn request(time_ns: u64, duration_ns: u64, root: u64) -> Request {
        Request {
            time_ns,
            duration_ns,
            trace_id: 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10,
            local_root_span_id: root,
            endpoint: None,
            count: 2,
        }
    }

    #[test]
    fn too_many_requests_keep_the_longest_and_thin_the_others() {
        let requests: Vec<_> = (1..=1000)
            .map(|number| Request {
                endpoint: Some((number % 3) as u32),
                count: 1,
                ..request(number, number, number)
            })
            .collect();
        let kept = thinned(&requests, 100);
        assert!(kept.len() <= 103, "{}", kept.len());
        assert!((951..=1000).all(|ns| kept.iter().any(|r| r.duration_ns == ns && r.count == 1)));
        for endpoint in 0..3 {
            let of = |list: &[Request]| -> Vec<Request> {
                let of = list.iter().filter(|r| r.endpoint == Some(endpoint));
                of.copied().collect()
            };
            let sum = |list: &[Request]| list.iter().map(|r| r.count).sum::<u64>();
            assert_eq!(sum(&of(&kept)), sum(&of(&requests)));
            // The median moves by no more than a group of those put together.
            let mut sorted = of(&kept);
            sorted.sort_by_key(|r| r.duration_ns);
            let mut seen = 0;
            let median = sorted.iter().find(|r| {
                seen += r.count;
                seen * 2 >= sum(&sorted)
            });
            assert!(median.unwrap().duration_ns.abs_diff(500) <= 3 * 20);
        }
        assert_eq!(thinned(&requests[..100], 100).len(), 100);
    }

    #[test]
    fn looks_and_samples_name_their_request_by_its_place_in_time() {
        let mut builder: Builder = text_art::builder("a.A.x  a.A.y");
        let contexts = [7, 8, 9].map(|root| {
            builder.context(Context {
                local_root_span_id: root,
                ..Context::default()
            })
        });
        let cause = builder.cause("park");
        for context in contexts {
            builder.look(Look {
                time_ns: 0,
                duration_ns: 3,
                thread: 0,
                node: 0,
                cause,
                weight_ns: 1,
                count: 1,
                choices: 0,
                context: Some(context),
                detail: None,
                owner: Some(0),
                owner_node: None,
            });
        }
        builder.requests = vec![request(20, 5, 8), request(10, 9, 7)];
        let profile = builder.finish();
        let requests = Requests::of(&profile);
        let work = requests.work(&profile);
        assert!(work[0] != work[1] && work[1] != work[2] && !work.contains(&0));
        let columns = requests.columns(
            &profile,
            &Entries::of(&profile, &Calls::of(&profile), &work),
        );
        let numbers = |name: &str| {
            let column = columns.iter().find(|column| column.name == name);
            column.unwrap().numbers()
        };
        assert_eq!(numbers("look.request"), [1, 2, 0]);
        assert_eq!(numbers("sample.request"), [0, 0]);
        assert_eq!(numbers("request.duration"), [9, 5]);
        assert_eq!(numbers("request.trace_low"), [0x0d0e_0f10; 2]);
    }
}
