//! The page of two recordings: both in one profile, with a description of each in the header.

use std::io::{self, Write};

use dwell_profile::diff::{Per, both};
use dwell_profile::{Measured, Profile, Unit};
use serde_json::{Value, json};

use super::columns::endpoints;
use super::write_page;
use crate::latencies;

/// Writes the page that compares two recordings. `names` are the files' names. `per` is the first
/// scale of the numbers, and the page offers all scales that both recordings have.
///
/// # Errors
///
/// Those of `out`, and one of kind `InvalidData` if the viewer was built without a place for the
/// data.
pub fn compare_html(
    a: &Profile,
    b: &Profile,
    per: Per,
    names: [&str; 2],
    out: &mut impl Write,
) -> io::Result<()> {
    let two = both(a, b);
    let told: Vec<&str> = endpoints(&two.profile)
        .into_iter()
        .map(|name| two.profile.names().text(name))
        .collect();
    let compare = json!({
        "per": word(per),
        "possible": possible(a, b),
        "threadsOfA": two.threads_of_a,
        "isOneUnit": a.unit() == b.unit(),
        "latencies": latencies::value(&latencies::rows(a, b), false),
        "sides": [side(a, names[0], &told), side(b, names[1], &told)],
    });
    let title = format!("{} against {}", names[1], names[0]);
    write_page(&two.profile, &title, Vec::new, (Some(compare), false), out)
}

fn word(per: Per) -> &'static str {
    match per {
        Per::Second => "second",
        Per::Request => "request",
        Per::Sample => "sample",
    }
}

/// Measures that both profiles have.
fn possible(a: &Profile, b: &Profile) -> Vec<&'static str> {
    let is_same_unit = a.unit() == b.unit();
    let lasted = [a, b].iter().all(|it| it.info().duration_ns > 0);
    let had_requests = [a, b].iter().all(|it| requests(it, None) > 0);
    let mut possible = Vec::new();
    if is_same_unit && lasted {
        possible.push(word(Per::Second));
    }
    if is_same_unit && had_requests {
        possible.push(word(Per::Request));
    }
    possible.push(word(Per::Sample));
    possible
}

/// Requests that ended, all or those of an endpoint.
fn requests(profile: &Profile, endpoint: Option<&str>) -> u64 {
    let wanted = profile.requests().iter().filter(|request| {
        let of = request.endpoint.map(|name| profile.names().text(name));
        endpoint.is_none() || of == endpoint
    });
    wanted.fold(0, |sum, request| sum.saturating_add(request.count))
}

fn side(profile: &Profile, name: &str, endpoints: &[&str]) -> Value {
    let (info, total) = (profile.info(), profile.total());
    let of_endpoints: Vec<u64> = (endpoints.iter())
        .map(|endpoint| requests(profile, Some(endpoint)))
        .collect();
    json!({
        "name": name,
        "durationNs": info.duration_ns,
        "samples": total.samples,
        "requests": requests(profile, None),
        "requestsOf": of_endpoints,
        "cpuNs": match (profile.unit(), &info.measured) {
            (Unit::Nanoseconds, Measured::CpuTime) => total.sum,
            _ => 0,
        },
        "jvm": info.jvm(),
        "arguments": info.java_arguments,
        "mode": info.mode,
        "unread": profile.unread().map(crate::unread_words),
        "failed": profile.failed().share(&total),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Request, text_art};

    fn profile(seconds: u64, requests: u64) -> Profile {
        let mut builder = text_art::builder("weight: 5 6\na.A.x a.A.y");
        builder.info.duration_ns = seconds * 1_000_000_000;
        let endpoint = Some(builder.name("GET /"));
        if requests > 0 {
            builder.requests.push(Request {
                time_ns: 0,
                duration_ns: 1,
                trace_id: 0,
                local_root_span_id: 0,
                endpoint,
                count: requests,
            });
        }
        builder.finish()
    }

    #[test]
    fn common_measures_are_offered() {
        let (with, without) = (profile(2, 7), profile(3, 0));
        assert_eq!(possible(&with, &with), ["second", "request", "sample"]);
        assert_eq!(possible(&with, &without), ["second", "sample"]);
        assert_eq!(possible(&profile(0, 1), &with), ["request", "sample"]);
        let mut counted = text_art::builder("a.A.x");
        counted.unit = Unit::Samples;
        counted.info.duration_ns = 1;
        assert_eq!(possible(&with, &counted.finish()), ["sample"]);
    }

    #[test]
    fn sides_are_described_with_their_requests() {
        let told = side(&profile(2, 7), "a.jfr", &["GET /", "GET /other"]);
        assert_eq!(told["requestsOf"], json!([7, 0]));
        assert_eq!((&told["cpuNs"], &told["requests"]), (&json!(11), &json!(7)));
    }

    #[test]
    fn names_never_reach_the_markup() {
        let name = "</script><script>alert(1)</script>";
        let mut page = Vec::new();
        let (a, b) = (profile(1, 1), profile(1, 1));
        compare_html(&a, &b, Per::Second, [name, name], &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(!page.contains("alert(1)"));
        assert!(page.contains("Content-Security-Policy"));
    }
}
