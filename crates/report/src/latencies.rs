//! Latencies of two recordings by endpoint: number of requests, durations and changes.
//!
//! Percentiles of the kept requests are order statistics: their 95 % intervals are those of the
//! ranks, so nothing is said of the form of a distribution. The interval of a change follows from
//! both (Zou and Donner's method of variance estimates recovery).

use crate::number::{count, duration};
use crate::plain::{plain, shortened};
use dwell_profile::{Latencies, Profile};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The percentiles that are compared.
const PERCENTS: [f64; 3] = [50.0, 95.0, 99.0];
/// Standard deviations that contain 95 % of a normal distribution.
const DEVIATIONS: f64 = 1.96;
/// A percentile that fewer kept requests are beyond has no interval.
const BEYOND: f64 = 5.0;
/// Endpoints in text, and the width of their names.
const ROWS: usize = 15;
const NAME: usize = 60;

/// A time with the interval that it is in with a probability of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Estimate {
    ns: f64,
    low_ns: f64,
    high_ns: f64,
}

/// The same percentile of both recordings.
struct Percentile {
    percent: f64,
    a: Estimate,
    b: Estimate,
    /// `None`: too few requests are beyond it.
    change: Option<Estimate>,
}

/// An endpoint of both recordings.
pub(crate) struct Row {
    endpoint: Option<String>,
    per_second: [f64; 2],
    percentiles: Vec<Percentile>,
}

impl Estimate {
    fn of(latencies: &Latencies, percent: f64) -> Estimate {
        let part = percent / 100.0;
        let kept = latencies.kept.max(1) as f64;
        let half = DEVIATIONS * (part * (1.0 - part) / kept).sqrt();
        let at = |part: f64| latencies.percentile_ns(100.0 * part.clamp(0.0, 1.0)) as f64;
        Estimate {
            ns: at(part),
            low_ns: at(part - half),
            high_ns: at(part + half),
        }
    }

    fn change(a: Estimate, b: Estimate) -> Estimate {
        let ns = b.ns - a.ns;
        Estimate {
            ns,
            low_ns: ns - (b.ns - b.low_ns).hypot(a.high_ns - a.ns),
            high_ns: ns + (b.high_ns - b.ns).hypot(a.ns - a.low_ns),
        }
    }

    fn is_significant(self) -> bool {
        self.low_ns > 0.0 || self.high_ns < 0.0
    }
}

/// Endpoints with requests in both recordings, those that take the most time first.
pub(crate) fn rows(a: &Profile, b: &Profile) -> Vec<Row> {
    let (of_a, of_b) = (a.latencies(), b.latencies());
    let both: BTreeSet<Option<&str>> = (of_a.keys().filter(|name| of_b.contains_key(*name)))
        .copied()
        .collect();
    let seconds = |profile: &Profile| profile.info().duration_ns.max(1) as f64 / 1e9;
    let mut rows: Vec<(f64, Row)> = both
        .into_iter()
        .filter_map(|name| {
            let (a_of, b_of) = (of_a.get(&name)?, of_b.get(&name)?);
            let percentiles = PERCENTS.map(|percent| {
                let (first, second) = (Estimate::of(a_of, percent), Estimate::of(b_of, percent));
                let beyond = a_of.kept.min(b_of.kept) as f64 * (1.0 - percent / 100.0);
                Percentile {
                    percent,
                    a: first,
                    b: second,
                    change: (beyond >= BEYOND).then(|| Estimate::change(first, second)),
                }
            });
            let per_second = [
                a_of.requests as f64 / seconds(a),
                b_of.requests as f64 / seconds(b),
            ];
            let size = per_second[1] * b_of.percentile_ns(50.0) as f64;
            let row = Row {
                endpoint: name.map(str::to_owned),
                per_second,
                percentiles: percentiles.into(),
            };
            Some((size, row))
        })
        .collect();
    rows.sort_by(|x, y| y.0.total_cmp(&x.0));
    rows.into_iter().map(|(_, row)| row).collect()
}

/// The rows for a terminal; empty if there are none.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    text.push_str("\nLatencies by endpoint\n");
    text.push_str("                A          B      change   95 % interval of the change\n");
    for row in rows.iter().take(ROWS) {
        let name = row.endpoint.as_deref().unwrap_or("(no endpoint)");
        let [a, b] = row.per_second;
        let _ = writeln!(
            text,
            "{}: {a:.1} and {b:.1} requests per second",
            shortened(name, NAME)
        );
        for it in &row.percentiles {
            let head = format!(
                "  p{:<3}{:>11}{:>11}",
                it.percent,
                time(it.a.ns),
                time(it.b.ns)
            );
            let _ = match it.change {
                Some(change) => writeln!(
                    text,
                    "{head}{:>12}   {} to {}{}",
                    signed(change.ns),
                    signed(change.low_ns),
                    signed(change.high_ns),
                    if change.is_significant() { " *" } else { "" }
                ),
                None => writeln!(text, "{head}{:>12}   too few requests", ""),
            };
        }
    }
    let more = rows.len().saturating_sub(ROWS) as u64;
    if more > 0 {
        let _ = writeln!(text, "  and {} more endpoints", count(more));
    }
    text
}

/// The rows for programs; `name` makes names harmless where that is needed.
pub(crate) fn value(rows: &[Row], is_plain: bool) -> Value {
    let name = |name: &String| match is_plain {
        true => plain(name),
        false => name.clone(),
    };
    let percentile = |it: &Percentile| {
        json!({
            "percent": it.percent,
            "a": it.a.ns,
            "b": it.b.ns,
            // null: too few requests.
            "change": it.change.map(|change| json!({
                "ns": change.ns,
                "low": change.low_ns,
                "high": change.high_ns,
                "significant": change.is_significant(),
            })),
        })
    };
    let rows = rows.iter().map(|row| {
        json!({
            "endpoint": row.endpoint.as_ref().map(name),
            "perSecond": row.per_second,
            "percentiles": row.percentiles.iter().map(percentile).collect::<Vec<_>>(),
        })
    });
    rows.collect()
}

fn time(ns: f64) -> String {
    duration(ns.round() as u64)
}

fn signed(ns: f64) -> String {
    let sign = match ns {
        ns if ns > 0.0 => "+",
        ns if ns < 0.0 => "-",
        _ => "",
    };
    format!("{sign}{}", time(ns.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Request};

    /// Ten seconds with requests of these times in ms, each as often as said.
    fn profile(requests: &[(&str, u64, u64)]) -> Profile {
        let mut builder = Builder::default();
        builder.info.duration_ns = 10_000_000_000;
        for (endpoint, ms, times) in requests {
            let endpoint = Some(builder.name(endpoint));
            for i in 0..*times {
                builder.requests.push(Request {
                    time_ns: 0,
                    // Spread a little.
                    duration_ns: ms * 1_000_000 + i * 1000,
                    trace_id: 0,
                    local_root_span_id: 0,
                    endpoint,
                    count: 1,
                });
            }
        }
        builder.finish()
    }

    #[test]
    fn slower_endpoint_is_significant_and_the_other_is_not() {
        let a = profile(&[("GET /slow", 10, 500), ("GET /same", 10, 500)]);
        let b = profile(&[
            ("GET /slow", 30, 250),
            ("GET /same", 10, 480),
            ("GET /new", 1, 9),
        ]);
        let rows = rows(&a, &b);
        let names: Vec<_> = rows
            .iter()
            .filter_map(|row| row.endpoint.as_deref())
            .collect();
        assert_eq!(
            names,
            ["GET /slow", "GET /same"],
            "of both, the largest first"
        );
        assert_eq!(rows[0].per_second, [50.0, 25.0]);
        let change = rows[0].percentiles[0].change.unwrap();
        assert!(
            (change.ns - 20e6).abs() < 3e5 && change.is_significant(),
            "{change:?}"
        );
        assert!(change.low_ns < change.ns && change.ns < change.high_ns);
        let same = rows[1].percentiles[0].change.unwrap();
        assert!(!same.is_significant(), "{same:?}");
        // 250 requests have 2.5 beyond p99.
        assert!(rows[0].percentiles[2].change.is_none());
        let text = text(&rows);
        for line in [
            "Latencies by endpoint",
            "GET /slow: 50.0 and 25.0 requests per second",
        ] {
            assert!(text.lines().any(|it| it == line), "no {line:?} in\n{text}");
        }
        assert!(
            text.contains("too few requests") && text.contains(" *\n"),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= 100));
        let told = value(&rows, true);
        assert_eq!(told[0]["percentiles"][0]["change"]["significant"], true);
        assert_eq!(told[0]["percentiles"][2]["change"], Value::Null);
    }

    #[test]
    fn interval_of_a_percentile_holds_in_19_of_20_cases() {
        // Deterministic: every 400th number of a long series, begun at each of 400 places.
        let (mut held, all) = (0, 400);
        for first in 0..all {
            let requests: Vec<(&str, u64, u64)> = (0..300u64)
                .map(|i| {
                    let mixed = (i * 7919 + first * 104_729).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    ("GET /a", (mixed >> 40) % 10_000, 1)
                })
                .collect();
            let profile = profile(&requests);
            let latencies = profile.latencies();
            let estimate = Estimate::of(&latencies[&Some("GET /a")], 95.0);
            let truth = 9_500.0 * 1e6;
            held += u32::from(estimate.low_ns <= truth && truth <= estimate.high_ns);
        }
        let share = f64::from(held) / all as f64;
        assert!((0.9..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn recordings_without_requests_have_no_table() {
        let none = profile(&[]);
        assert_eq!(text(&rows(&none, &profile(&[("GET /a", 1, 9)]))), "");
    }

    #[test]
    fn names_are_inert() {
        let hostile = "a\u{1b}[2J\u{202e}";
        let it = profile(&[(hostile, 1, 20)]);
        let rows = rows(&it, &it);
        let told = text(&rows) + &value(&rows, true).to_string();
        assert!(!told.contains(['\u{1b}', '\u{202e}']), "{told:?}");
    }
}
