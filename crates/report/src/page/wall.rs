//! The part of the header that tells requests, and wall time by cause, endpoint and group of
//! threads.

use std::collections::BTreeMap;

use dwell_profile::{Profile, Wall, WallFilter, Weight, group_of};
use serde_json::{Value, json};

/// Endpoints, and groups of threads, that the page shows.
const ROWS_MAX: usize = 50;

/// Wall time; `None` if the recording has none.
pub(super) fn wall(profile: &Profile) -> Option<Value> {
    if !profile.has_wall() {
        return None;
    }
    let filter = WallFilter::default();
    let causes = profile.wall_by(&filter, |wall| wall.cause);
    let mut all = Weight::default();
    causes.iter().for_each(|(_, weight)| all += weight);
    let endpoint = |wall: &Wall<'_>| Some(profile.endpoint(wall.context?)?.to_owned());
    let thread = |wall: &Wall<'_>| Some(group_of(profile.thread_name(wall.thread)));
    let causes = causes.iter();
    let causes = causes.map(|(cause, weight)| part(cause, weight, &all));
    Some(json!({
        "ns": all.sum,
        "causes": causes.collect::<Vec<_>>(),
        "endpoints": rows(profile, endpoint),
        "groups": rows(profile, thread),
    }))
}

/// A row for each name that `name` gives, the largest first, with its causes.
fn rows(profile: &Profile, name: impl Fn(&Wall<'_>) -> Option<String>) -> Vec<Value> {
    let filter = WallFilter::default();
    let mut sums: BTreeMap<String, (Weight, BTreeMap<&str, Weight>)> = BTreeMap::new();
    for wall in profile.wall(&filter) {
        if let Some(name) = name(&wall) {
            let (all, causes) = sums.entry(name).or_default();
            *all += &wall.weight;
            *causes.entry(wall.cause).or_default() += &wall.weight;
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (all, _))| std::cmp::Reverse(all.sum));
    let rows = rows.into_iter().take(ROWS_MAX);
    rows.map(|(name, (all, causes))| {
        let mut causes: Vec<_> = causes.into_iter().collect();
        causes.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.sum));
        let parts = causes
            .iter()
            .map(|(cause, weight)| part(cause, weight, &all));
        json!({ "name": name, "ns": all.sum, "causes": parts.collect::<Vec<_>>() })
    })
    .collect()
}

/// The time of a cause, and one standard error of its share.
fn part(cause: &str, weight: &Weight, all: &Weight) -> Value {
    json!({ "cause": cause, "ns": weight.sum, "error": weight.share_error(all) })
}

/// Requests by endpoint, those most often asked for first.
pub(super) fn requests(profile: &Profile) -> Vec<Value> {
    let mut rows: Vec<_> = profile.latencies().into_iter().collect();
    rows.sort_by_key(|(_, latencies)| std::cmp::Reverse(latencies.requests));
    let rows = rows.into_iter().take(ROWS_MAX);
    rows.map(|(endpoint, latencies)| {
        json!({
            "endpoint": endpoint,
            "requests": latencies.requests,
            "p50Ns": latencies.percentile_ns(50.0),
            "p95Ns": latencies.percentile_ns(95.0),
            "p99Ns": latencies.percentile_ns(99.0),
            "longestNs": latencies.longest_ns(),
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Context, FrameKind, Look, Request, Sample};

    #[test]
    fn a_page_has_causes_endpoints_groups_and_requests() {
        let mut builder = Builder::default();
        let thread = builder.thread("worker-1", 1, 1, false);
        let frame = builder.marker("[code]", FrameKind::Native);
        let node = builder.stack([frame]);
        let cause = builder.cause("park");
        let endpoint = Some(builder.name("GET /a"));
        let context = Some(builder.context(Context {
            endpoint,
            ..Context::default()
        }));
        builder.sample(Sample {
            time_ns: 0,
            thread,
            node,
            weight: 100,
            failure: None,
            context,
        });
        assert_eq!(wall(&builder.clone().finish()), None);
        builder.look(Look {
            time_ns: 0,
            duration_ns: 0,
            thread,
            node,
            cause,
            weight_ns: 300,
            count: 1,
            context: None,
            detail: None,
            owner: None,
            owner_node: None,
        });
        builder.requests.push(Request {
            time_ns: 0,
            duration_ns: 7,
            trace_id: 0,
            local_root_span_id: 1,
            endpoint,
            count: 3,
        });
        let profile = builder.finish();
        let wall = wall(&profile).unwrap();
        assert_eq!(wall["ns"], 400);
        assert_eq!(wall["causes"][0]["cause"], "park");
        assert_eq!(wall["endpoints"][0]["name"], "GET /a");
        assert_eq!(wall["endpoints"][0]["causes"][0]["ns"], 100);
        assert_eq!(wall["groups"][0]["name"], "worker-*");
        assert_eq!(wall["groups"][0]["causes"][1]["cause"], "running");
        let requests = requests(&profile);
        assert_eq!(requests[0]["requests"], 3);
        assert_eq!(requests[0]["p99Ns"], 7);
    }
}
