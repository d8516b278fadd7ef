//! The tool `requests`: number and latency of the requests of each endpoint, and the slowest ones.

use super::{Tool, opened};
use crate::answer::{
    Answer, Unit, amount, amount_schema, integer, list, number, object, rounded, schema, string,
    typed,
};
use crate::arguments::{Argument, Arguments, Kind};
use crate::recordings::Recordings;
use crate::selection::{ENDPOINT, FILE, LIMIT_OF_ROWS, OFFSET, cautions, page};
use dwell_profile::{Profile, Request, RequestKey, WallFilter, Weight, matches};
use dwell_report::duration;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// Causes of a request's time.
const CAUSES: usize = 6;

const SLOWEST: Argument = Argument::new(
    "slowest",
    Kind::Whole(0, 20),
    "Number of single requests, the slowest ones; default 5",
);

pub(crate) const REQUESTS: Tool = Tool {
    name: "requests",
    title: "Requests and the slowest ones",
    about: "Requests by endpoint: number, rate, latency percentiles; and the slowest single \
            requests with their trace id, the second at which they began, and the time of their \
            threads by cause. Needs a program that reports its requests.",
    arguments: || vec![FILE, ENDPOINT, SLOWEST, LIMIT_OF_ROWS, OFFSET],
    output,
    answer,
};

fn output() -> Value {
    let nullable = || typed(&["string", "null"]);
    let latency = || {
        let fields = [("ns", integer()), ("text", string())];
        object(&fields)
    };
    let row = object(&[
        ("endpoint", nullable()),
        ("requests", integer()),
        ("kept", integer()),
        ("perSecond", typed(&["number", "null"])),
        ("p50", latency()),
        ("p95", latency()),
        ("p99", latency()),
        ("longest", latency()),
    ]);
    let cause = object(&[("name", string()), ("total", amount_schema())]);
    let slow = object(&[
        ("endpoint", nullable()),
        ("atS", number()),
        ("duration", latency()),
        ("traceId", nullable()),
        ("causes", list(cause)),
    ]);
    schema(&[("file", string()), ("slowest", list(slow))], row)
}

fn latency(ns: u64) -> Value {
    json!({ "ns": ns, "text": duration(ns) })
}

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "Requests by endpoint")?;
    if profile.requests().is_empty() {
        return Err(match profile.has_derived_endpoints() {
            true => {
                "the recording has no requests; its endpoints are from stacks, without \
                     latencies: `top` by endpoint has their time"
            }
            false => {
                "the recording has no requests: the program must report them by the Java API \
                      or OpenTelemetry (docs/context.md)"
            }
        }
        .to_owned());
    }
    let pattern = arguments.text(ENDPOINT.name);
    let is_wanted = |name: Option<&str>| {
        pattern.is_none_or(|pattern| name.is_some_and(|name| matches(pattern, name)))
    };
    let latencies = profile.latencies().into_iter();
    let mut rows: Vec<_> = latencies.filter(|(name, _)| is_wanted(*name)).collect();
    if rows.is_empty() {
        return Err(
            "endpoint: no request has such an endpoint; leave it out to list all".to_owned(),
        );
    }
    rows.sort_by_key(|(_, latencies)| std::cmp::Reverse(latencies.requests));
    answer.rows_in_all = rows.len();
    let seconds = profile.info().duration_ns as f64 / 1e9;
    let rows = page(arguments).of(rows).map(|(name, of)| {
        json!({
            "endpoint": name,
            "requests": of.requests,
            "kept": of.kept,
            "perSecond": (seconds >= 0.1).then(|| rounded(of.requests as f64 / seconds)),
            "p50": latency(of.percentile_ns(50.0)),
            "p95": latency(of.percentile_ns(95.0)),
            "p99": latency(of.percentile_ns(99.0)),
            "longest": latency(of.longest_ns()),
        })
    });
    answer.rows = rows.collect();
    let number = arguments.whole(SLOWEST.name).unwrap_or(5) as usize;
    answer.put("slowest", slowest(&profile, number, is_wanted));
    let is_sampled = profile.requests().iter().any(|it| it.count > 1);
    answer.notes.extend(is_sampled.then(|| {
        "of many requests some are kept: slower ones than the slowest may be missing".to_owned()
    }));
    if let Some(check) = profile.self_check(pattern) {
        answer
            .notes
            .push(format!("self-check: {}", check.summary()));
    }
    answer.notes.extend(cautions(&profile));
    Ok(answer)
}

/// The slowest requests of wanted endpoints.
fn slowest(
    profile: &Profile,
    number: usize,
    is_wanted: impl Fn(Option<&str>) -> bool,
) -> Vec<Value> {
    let endpoint = |it: &Request| it.endpoint.map(|name| profile.names().text(name));
    let requests = profile.requests().iter();
    let mut requests: Vec<&Request> = requests.filter(|it| is_wanted(endpoint(it))).collect();
    requests.sort_by_key(|it| (std::cmp::Reverse(it.duration_ns), it.time_ns));
    requests.truncate(number);
    let causes = causes(profile, &requests);
    let slowest = requests.iter().map(|it| {
        let traced = (it.trace_id != 0).then(|| format!("{:032x}", it.trace_id));
        let since_ns = it.time_ns.saturating_sub(profile.info().start_ns);
        json!({
            "endpoint": endpoint(it),
            "atS": since_ns as f64 / 1e9,
            "duration": latency(it.duration_ns),
            "traceId": traced,
            "causes": causes.get(&key(it)).map_or_else(Vec::new, split),
        })
    });
    slowest.collect()
}

fn key(request: &Request) -> RequestKey {
    (request.trace_id, request.local_root_span_id)
}

/// The wall time of some requests by cause.
fn causes<'p>(
    profile: &'p Profile,
    requests: &[&Request],
) -> HashMap<RequestKey, BTreeMap<&'p str, Weight>> {
    let keys = requests.iter().filter(|it| it.local_root_span_id != 0);
    let mut sums: HashMap<RequestKey, BTreeMap<&str, Weight>> =
        keys.map(|it| (key(it), BTreeMap::new())).collect();
    let filter = WallFilter::default();
    if !profile.has_wall() || sums.is_empty() {
        return sums;
    }
    for wall in profile.wall(&filter) {
        let context = wall
            .context
            .and_then(|id| profile.contexts().get(id as usize));
        let Some(context) = context else { continue };
        if let Some(sum) = sums.get_mut(&(context.trace_id, context.local_root_span_id)) {
            *sum.entry(wall.cause).or_default() += &wall.weight;
        }
    }
    sums
}

/// The causes of a request's time, the largest first.
fn split(causes: &BTreeMap<&str, Weight>) -> Vec<Value> {
    let mut whole = Weight::default();
    causes.values().for_each(|weight| whole += weight);
    let causes = super::ranking::largest_first(causes.clone());
    let causes = causes.iter().take(CAUSES);
    causes
        .map(|(name, weight)| {
            json!({ "name": name, "total": amount(weight, &whole, Unit::Nanoseconds) })
        })
        .collect()
}
