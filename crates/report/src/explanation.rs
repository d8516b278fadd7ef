//! Findings as text for a terminal and as JSON. Names of the program are made plain in both.

use dwell_explain::{Evidence, Explanation, Finding, Focus, Share, View};
use dwell_profile::{EndpointCheck, Profile, SelfCheck, Unread};
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::event_lines::event_table;
use crate::number::{count, duration, percent, plural};
use crate::page::event_tables::values;
use crate::plain::{plain, shortened};
use crate::{self_check, totals, unread};

/// The widest line.
const COLUMNS: usize = 100;
/// Rows of a table of events.
const EVENT_ROWS: usize = 5;
/// Width of the numbers of findings, and of the labels of their parts.
const NUMBER: usize = 3;
const LABEL: usize = 12;
/// Ending of the names of shares of CPU time.
const CPU_TIME: &str = "CPU time";
/// Methods of a stack in one line.
const STACK: usize = 5;
/// Endpoints whose wall time is compared with their latencies, and the width of their names.
const ENDPOINTS_CHECKED: usize = 15;
const NAME: usize = 40;

/// All findings in full.
#[must_use]
pub fn explanation_text(explanation: &Explanation) -> String {
    let mut text = String::new();
    if explanation.findings.is_empty() {
        text.push_str("no finding: no rule detects a problem in this recording\n");
    } else if let Some((ns, of)) = explanation.lost_of {
        let of = format!("Time lost, out of {} ({of}):", duration(ns));
        wrapped(&mut text, "", 0, &of);
        text.push('\n');
    }
    for (place, finding) in explanation.findings.iter().enumerate() {
        if place > 0 {
            text.push('\n');
        }
        let number = format!("{:<NUMBER$}", format!("{}.", place + 1));
        wrapped(&mut text, &number, NUMBER, &headline(finding));
        part(&mut text, "cost", &cost(finding));
        for evidence in &finding.evidence {
            part(&mut text, "evidence", &shown_by(evidence));
            stack(&mut text, &evidence.stack);
        }
        part(&mut text, "fix", &finding.remedy);
        let sure = format!("{}: {}", finding.sure.label(), finding.because);
        part(&mut text, "confidence", &sure);
    }
    for table in &explanation.event_tables {
        text.push('\n');
        text.push_str(&event_table(table, EVENT_ROWS));
    }
    tail(&mut text, explanation);
    text
}

/// Findings in one or two lines each, for the end of a report. Empty without findings.
pub(crate) fn in_short(explanation: &Explanation) -> String {
    let mut text = String::new();
    for finding in &explanation.findings {
        wrapped(&mut text, "- ", 2, &headline(finding));
        wrapped(&mut text, "  fix: ", 7, &finding.remedy);
    }
    text
}

/// The problem, after its cost.
fn headline(finding: &Finding) -> String {
    match finding.lost_ns() {
        Some(ns) => format!("{}: {}", duration(ns), finding.what),
        None => finding.what.clone(),
    }
}

fn tail(text: &mut String, explanation: &Explanation) {
    text.push('\n');
    if explanation.left_out > 0 {
        let more = plural(explanation.left_out as u64, "smaller finding");
        let are = if explanation.left_out == 1 {
            "is"
        } else {
            "are"
        };
        wrapped(text, "", 0, &format!("{more} {are} not shown"));
    }
    if let Some(idle) = &explanation.idle {
        let told = format!("{}: not part of any finding", crate::idle::in_words(idle));
        wrapped(text, "idle: ", 6, &told);
    }
    if !explanation.waits_note.is_empty() {
        wrapped(text, "waits: ", 7, &explanation.waits_note);
    }
    if explanation.has_derived_endpoints {
        wrapped(text, "endpoints: ", 11, crate::FROM_STACKS);
    }
    if let Some(check) = &explanation.self_check {
        checked(text, check);
    }
    wrapped(text, "no finding: ", 12, &explanation.passed.join(", "));
    for skipped in &explanation.not_applicable {
        let line = format!("{}: {}", skipped.rule, skipped.why);
        wrapped(text, "not enough data: ", 17, &line);
    }
}

/// Wall time compared with the recording's latencies.
fn checked(text: &mut String, check: &SelfCheck) {
    let rows = check.endpoints.iter().take(ENDPOINTS_CHECKED);
    let row = |it: &EndpointCheck| {
        let mark = self_check::mark(it.accounted.agreement);
        format!(
            "{} {}{mark}",
            shortened(it.name(), NAME),
            it.accounted.shown()
        )
    };
    let mut rows: Vec<String> = rows.map(row).collect();
    if check.endpoints.len() > rows.len() {
        rows.push("...".to_owned());
    }
    let told = match check.endpoints.len() {
        1 => check.summary(),
        _ => format!("{}: {}", check.summary(), rows.join(", ")),
    };
    wrapped(text, "self-check: ", 12, &told);
    for warning in self_check::warnings(check) {
        wrapped(text, "warning: ", 9, &warning);
    }
    for reason in self_check::reasons(check) {
        wrapped(text, "note: ", 6, &reason);
    }
}

fn part(text: &mut String, label: &str, what: &str) {
    let label = format!("{:NUMBER$}{label:<LABEL$}", "");
    wrapped(text, &label, NUMBER + LABEL, what);
}

/// Size by which findings are compared: the time lost, or the same part of counted samples.
fn size(finding: &Finding) -> Option<f64> {
    let is_counted = finding.share.samples > 0 && finding.share.ns == 0;
    let is_known = finding.lost_ns().is_some() || is_counted;
    (is_known && finding.weight > 0.0 && finding.weight < f64::MAX).then_some(finding.weight)
}

/// The findings as the page shows them.
#[must_use]
pub fn page_findings(explanation: &Explanation) -> Vec<crate::page::Finding> {
    let sizes = explanation.findings.iter().filter_map(size);
    let most = sizes.fold(f64::MIN_POSITIVE, f64::max);
    let found = explanation.findings.iter().map(|finding| {
        let first = finding.evidence.first();
        let view = first.map(|evidence| &evidence.view);
        let focus = view.and_then(|view| view.focus.as_ref()).map(Focus::parts);
        crate::page::Finding {
            what: finding.what.clone(),
            share: cost(finding),
            evidence: first.map_or_else(String::new, |evidence| evidence.text.clone()),
            remedy: finding.remedy.clone(),
            sure: finding.sure.label().to_owned(),
            measure: view.map_or("wall", |view| view.measure.label()).to_owned(),
            causes: view.map_or_else(Vec::new, |view| view.causes.clone()),
            endpoint: view.and_then(|view| view.endpoint.clone()),
            threads: view.and_then(|view| view.threads.clone()),
            focus: focus.map(|(sort, name)| (sort.to_owned(), name.to_owned())),
            cost: match finding.lost_ns() {
                Some(ns) => duration(ns),
                None => percent(finding.share.value),
            },
            bar: size(finding).map(|size| size / most),
        }
    });
    found.collect()
}

/// The share, and what it has to do with the time lost, by which findings are ordered, if that is
/// another time.
fn cost(finding: &Finding) -> String {
    if finding.weight >= f64::MAX {
        return "the confidence in all other findings".to_owned();
    }
    let (of, lost_ns) = (&finding.share, finding.lost_ns().unwrap_or(0));
    let (shown, lost) = (duration(of.ns), duration(lost_ns));
    let is_other = lost_ns > 0 && of.ns > 0 && shown != lost;
    match (is_other, of.samples) {
        (true, 0) => format!(
            "{}, {shown}; {lost} of all threads with work together",
            share(of, None)
        ),
        (true, _) if lost_ns < of.ns => match of.of.ends_with(CPU_TIME) {
            true => share(of, Some(lost_ns)),
            false => format!("{}; {lost} of it counts as lost", share(of, None)),
        },
        _ => share(of, None),
    }
}

fn share(share: &Share, on_all_ns: Option<u64>) -> String {
    let all = format!("{} of {}", percent(share.value), share.of);
    if share.samples == 0 {
        return format!("{all}, counted");
    }
    // Samples that only count stand for no time.
    let time = match share.ns {
        0 => String::new(),
        ns => format!("{}, ", duration(ns)),
    };
    let time = time
        + &on_all_ns.map_or(String::new(), |ns| {
            format!("{} on all CPUs, ", duration(ns))
        });
    format!(
        "{all} (95 % by samples: {} to {}), {time}{} samples",
        percent(share.low),
        percent(share.high),
        count(share.samples)
    )
}

fn shown_by(evidence: &Evidence) -> String {
    format!("{} [{}]", evidence.text, view(&evidence.view))
}

/// Where to look, in words.
fn view(view: &View) -> String {
    let mut parts = vec![view.measure.label().to_owned()];
    if !view.causes.is_empty() {
        parts.push(format!("cause {}", view.causes.join(",")));
    }
    parts.extend(
        view.endpoint
            .as_ref()
            .map(|name| format!("endpoint {name}")),
    );
    parts.extend(view.threads.as_ref().map(|name| format!("threads {name}")));
    parts.join(", ")
}

fn stack(text: &mut String, stack: &[String]) {
    let indent = NUMBER + LABEL + 2;
    for method in stack.iter().take(STACK) {
        let name = shortened(method, COLUMNS - indent);
        text.push_str(&format!("{:indent$}{name}\n", ""));
    }
}

/// Adds words behind a label, on as many lines as needed. A word that is longer than a line is cut.
pub(crate) fn wrapped(text: &mut String, label: &str, indent: usize, words: &str) {
    text.push_str(label);
    let mut width = label.width().max(indent);
    let mut is_first = true;
    for word in plain(words).split(' ').filter(|word| !word.is_empty()) {
        let word = shortened(word, COLUMNS - indent);
        if !is_first && width + 1 + word.width() > COLUMNS {
            text.push('\n');
            text.push_str(&" ".repeat(indent));
            width = indent;
            is_first = true;
        }
        if !is_first {
            text.push(' ');
            width += 1;
        }
        width += word.width();
        text.push_str(&word);
        is_first = false;
    }
    text.push('\n');
}

/// Findings, and the verdicts of all other rules, as JSON with an end of line.
#[must_use]
pub fn explanation_json(explanation: &Explanation, unread: Option<&Unread>) -> String {
    format!("{:#}\n", value(explanation, unread))
}

/// The same with the sums of the whole recording.
#[must_use]
pub fn explanation_and_totals_json(explanation: &Explanation, profile: &Profile) -> String {
    let mut all = value(explanation, profile.unread());
    if let Value::Object(all) = &mut all {
        all.insert("totals".to_owned(), totals::value(profile));
    }
    format!("{all:#}\n")
}

fn value(explanation: &Explanation, unread: Option<&Unread>) -> Value {
    let skipped = explanation.not_applicable.iter();
    let skipped = skipped.map(|s| json!({ "rule": s.rule, "why": plain(&s.why) }));
    json!({
        "version": 1,
        // Parts of the file that could not be read and are not in the findings; null if none.
        "unread": unread::value(unread),
        "findings": explanation.findings.iter().map(finding).collect::<Vec<_>>(),
        "lostOf": explanation.lost_of.map(|(ns, of)| json!({ "ns": ns, "of": of })),
        "leftOut": explanation.left_out,
        "foundNothing": explanation.passed,
        "notApplicable": skipped.collect::<Vec<_>>(),
        "idle": explanation.idle.map(|idle| json!({
            "ns": idle.weight.sum,
            "share": rounded(idle.share()),
            "threads": idle.threads,
            "ofThreads": idle.all_threads,
        })),
        // null: no wall time, or no requests to compare it with.
        "selfCheck": explanation.self_check.as_ref().map(|check| self_check::value(check, plain)),
        "eventTables": values(&explanation.event_tables, EVENT_ROWS, plain),
    })
}

fn finding(finding: &Finding) -> Value {
    let share = &finding.share;
    json!({
        "rule": finding.rule,
        "what": plain(&finding.what),
        // null: it is not about time.
        "lostNs": finding.lost_ns(),
        "share": {
            "of": plain(&share.of),
            "value": rounded(share.value),
            "low": rounded(share.low),
            "high": rounded(share.high),
            "ns": share.ns,
            "samples": share.samples,
        },
        "evidence": finding.evidence.iter().map(evidence).collect::<Vec<_>>(),
        "remedy": plain(&finding.remedy),
        "sure": finding.sure.label(),
        "because": plain(&finding.because),
    })
}

fn evidence(evidence: &Evidence) -> Value {
    let plain_all = |names: &[String]| names.iter().map(|n| plain(n)).collect::<Vec<_>>();
    let view = &evidence.view;
    json!({
        "text": plain(&evidence.text),
        "view": {
            "measure": view.measure.label(),
            "causes": plain_all(&view.causes),
            "endpoint": view.endpoint.as_deref().map(plain),
            "threads": view.threads.as_deref().map(plain),
        },
        "stack": plain_all(&evidence.stack),
    })
}

fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_explain::{Measure, Skipped, Sure};
    use dwell_profile::{Traced, TracedKind, Weight};

    fn explanation(name: &str) -> Explanation {
        Explanation {
            findings: vec![Finding {
                rule: "lock-contention",
                what: format!("{name} waits 40 % of its time {}", "and so on ".repeat(12)),
                share: Share {
                    of: format!("the wall time of {name}"),
                    value: 0.4,
                    low: 0.31,
                    high: 0.5,
                    ns: 3_000_000_000,
                    samples: 40,
                    waits: 0,
                },
                evidence: vec![Evidence {
                    text: "seen in 40 looks".to_owned(),
                    view: View {
                        measure: Measure::Wall,
                        causes: vec!["monitor".to_owned()],
                        endpoint: Some(name.to_owned()),
                        threads: None,
                        focus: Some(Focus::Lock("a.Lock".to_owned())),
                    },
                    stack: vec![format!("a.B.{name}")],
                }],
                remedy: "shorten it".to_owned(),
                sure: Sure::High,
                because: "it was seen".to_owned(),
                weight: 1.0,
            }],
            lost_of: Some((20_000_000_000, "the wall time of requests")),
            left_out: 0,
            passed: vec!["warm-up"],
            not_applicable: vec![Skipped {
                rule: "slow-safepoints",
                why: "the recording has no safepoints".to_owned(),
            }],
            idle: Some(dwell_profile::Idle {
                weight: Weight::of(6_000_000_000),
                busy: Weight::of(2_000_000_000),
                threads: 3,
                all_threads: 5,
            }),
            self_check: None,
            waits_note: String::new(),
            has_derived_endpoints: false,
            event_tables: Vec::new(),
        }
    }

    #[test]
    fn derived_endpoints_are_reported_with_the_remedy() {
        let derived = Explanation {
            has_derived_endpoints: true,
            ..explanation("Orders.get (from stacks)")
        };
        let line = format!("endpoints: {}", crate::FROM_STACKS);
        let has = |of: &Explanation| explanation_text(of).lines().any(|l| l == line);
        assert!(has(&derived) && !has(&explanation("GET /a")));
    }

    #[test]
    fn every_part_is_printed_within_the_width() {
        let text = explanation_text(&explanation("GET /a"));
        for line in [
            "Time lost, out of 20.0 s (the wall time of requests):",
            "   cost        40.0 % of the wall time of GET /a (95 % by samples: 31.0 % to 50.0 %), \
             3.00 s, 40",
            "               samples; 1.00 s of it counts as lost",
            "   evidence    seen in 40 looks [wall, cause monitor, endpoint GET /a]",
            "                 a.B.GET /a",
            "   fix         shorten it",
            "   confidence  high: it was seen",
            "idle: 6.00 s, 75.0 % of all wall time, of 3 of 5 threads: not part of any finding",
            "no finding: warm-up",
            "not enough data: slow-safepoints: the recording has no safepoints",
        ] {
            assert!(text.lines().any(|l| l == line), "no {line:?} in\n{text}");
        }
        assert!(text.lines().all(|line| line.width() <= COLUMNS), "{text}");
        assert!(text.contains("\n1. 1.00 s: GET /a waits"), "{text}");
    }

    #[test]
    fn names_are_inert_in_text_and_json() {
        let hostile = "a\u{1b}[2J\u{202e}</script>\n\"x";
        let explanation = explanation(hostile);
        for text in [
            explanation_text(&explanation),
            explanation_json(&explanation, None),
        ] {
            let active = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(active), "{text:?}");
        }
    }

    #[test]
    fn json_says_the_same() {
        let json = |unread| -> Value {
            serde_json::from_str(&explanation_json(&explanation("GET /a"), unread)).unwrap()
        };
        let cut = Unread {
            chunks: 1,
            bytes: 7,
            absent: 9,
            is_at_end: true,
        };
        let told = &json(Some(&cut))["unread"];
        assert_eq!(
            (&told["bytes"], &told["absentBytes"]),
            (&json!(7), &json!(9))
        );
        let json = json(None);
        assert_eq!(json["unread"], Value::Null);
        assert_eq!(json["findings"][0]["rule"], "lock-contention");
        assert_eq!(json["findings"][0]["share"]["low"], 0.31);
        assert_eq!(
            json["findings"][0]["evidence"][0]["view"]["causes"][0],
            "monitor"
        );
        assert_eq!(json["notApplicable"][0]["rule"], "slow-safepoints");
        assert_eq!(json["findings"][0]["lostNs"], 1_000_000_000_u64);
        assert_eq!(json["lostOf"]["ns"], 20_000_000_000_u64);
        assert_eq!(json["foundNothing"][0], "warm-up");
        let idle = json!({ "ns": 6_000_000_000_u64, "share": 0.75, "threads": 3, "ofThreads": 5 });
        assert_eq!(json["idle"], idle);
    }

    #[test]
    fn page_findings_have_bars_by_time_lost() {
        let mut explained = explanation("GET /a");
        let mut grows = explained.findings[0].clone();
        grows.evidence[0].view.measure = Measure::Alive;
        let mut half = explained.findings[0].clone();
        half.weight = 0.5;
        let mut counted = half.clone();
        counted.share.ns = 0;
        explained.findings.extend([half, grows, counted]);
        let found = page_findings(&explained);
        let bars: Vec<_> = found.iter().map(|it| it.bar).collect();
        let expected = [Some(1.0), Some(0.5), None, Some(0.5)];
        assert_eq!(bars, expected, "bytes are no time");
        let costs: Vec<_> = found.iter().map(|it| it.cost.as_str()).collect();
        assert_eq!(costs, ["1.00 s", "500 ms", "40.0 %", "40.0 %"]);
        let lock = ("lock".to_owned(), "a.Lock".to_owned());
        assert_eq!(found[0].focus, Some(lock));
        assert!(in_short(&explained).starts_with("- 1.00 s: GET /a waits"));
    }

    #[test]
    fn no_finding_is_said_too() {
        let text = explanation_text(&Explanation::default());
        assert!(text.starts_with("no finding"), "{text}");
        assert!(!text.contains("idle"), "{text}");
        assert_eq!(in_short(&Explanation::default()), "");
    }

    #[test]
    fn cost_relates_its_time_to_the_time_lost() {
        let mut finding = explanation("GET /a").findings.remove(0);
        finding.weight = f64::MAX;
        assert_eq!(cost(&finding), "the confidence in all other findings");
        finding.share.value = 0.04;
        let all = "4.0 % of the wall time of GET /a";
        for (weight, samples, ns, expected) in [
            (3.0, 40, 3_000_000_000, "3.00 s, 40 samples"),
            (
                1.5,
                40,
                3_000_000_000,
                "3.00 s, 40 samples; 1.50 s of it counts as lost",
            ),
            (
                3.39,
                0,
                796_000_000,
                ", 796 ms; 3.39 s of all threads with work together",
            ),
            (0.796, 0, 796_000_000, ", counted"),
            (3.39, 0, 0, ", counted"),
        ] {
            finding.weight = weight;
            (finding.share.samples, finding.share.ns) = (samples, ns);
            let told = cost(&finding);
            assert!(told.starts_with(all) && told.ends_with(expected), "{told}");
        }
    }

    #[test]
    fn samples_that_only_count_have_no_time() {
        let mut some = Share {
            of: "the samples".to_owned(),
            value: 0.5,
            low: 0.4,
            high: 0.6,
            ns: 0,
            samples: 40,
            waits: 0,
        };
        let told = share(&some, None);
        assert_eq!(
            told,
            "50.0 % of the samples (95 % by samples: 40.0 % to 60.0 %), 40 samples"
        );
        some.samples = 0;
        assert_eq!(share(&some, None), "50.0 % of the samples, counted");
    }

    #[test]
    fn share_of_cpu_time_has_the_time_on_all_cpus() {
        let some = Share {
            of: "the CPU time".to_owned(),
            value: 0.5,
            low: 0.4,
            high: 0.6,
            ns: 1_400_000_000,
            samples: 40,
            waits: 0,
        };
        assert_eq!(
            share(&some, Some(700_000_000)),
            "50.0 % of the CPU time (95 % by samples: 40.0 % to 60.0 %), 1.40 s, 700 ms on all \
             CPUs, 40 samples"
        );
    }

    #[test]
    fn events_of_another_recorder_are_short_tables() {
        let mut builder = dwell_profile::Builder::default();
        for at in 0..EVENT_ROWS as u64 + 2 {
            let what = builder.name(&format!("/data/{at}\u{1b}.bin"));
            builder.traced.push(Traced {
                bytes: [0, 1 << 20],
                duration_ns: (at + 1) * 1_000_000,
                ..Traced::one(TracedKind::File, what, None)
            });
        }
        let profile = builder.finish();
        let explained = dwell_explain::explain(&profile, &dwell_explain::Options::default());
        let text = explanation_text(&explained);
        let table = text.split_once("\nFiles by time\n").unwrap().1;
        let lines: Vec<&str> = table.lines().take(EVENT_ROWS + 2).collect();
        assert_eq!(lines[0], "      events      written         time  path");
        assert!(
            lines[1].ends_with("1     1024 KiB      7.00 ms  /data/6\u{fffd}.bin"),
            "{text}"
        );
        assert_eq!(lines[EVENT_ROWS + 1].trim(), "and 2 more");
        let json: Value = serde_json::from_str(&explanation_json(&explained, None)).unwrap();
        let table = &json["eventTables"][0];
        assert_eq!(table["title"], "Files by time");
        assert_eq!(table["rows"].as_array().unwrap().len(), EVENT_ROWS);
        let row = json!({ "name": "/data/6\u{fffd}.bin", "cells": [1, 1 << 20, 7_000_000] });
        assert_eq!((&table["rows"][0], &table["more"]), (&row, &json!(2)));
        // The endpoints of these events are not known.
        let one = dwell_explain::Options {
            endpoint: Some("GET /a".to_owned()),
        };
        let of_one = dwell_explain::explain(&profile, &one);
        assert!(of_one.event_tables.is_empty());
    }
}
