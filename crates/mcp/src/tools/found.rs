//! The tool `findings`: the results of the rules of `explain`, with evidence and fix.

use super::{Tool, opened};
use crate::answer::{Answer, integer, list, number, object, schema, string, typed};
use crate::arguments::Arguments;
use crate::recordings::Recordings;
use crate::selection::{ENDPOINT, FILE, LIMIT_OF_ROWS, OFFSET, cautions, page};
use dwell_explain::Options;
use dwell_profile::matches;
use serde_json::{Value, json};

/// Pieces of evidence of a finding, and methods of a stack.
const EVIDENCE: usize = 4;
const STACK: usize = 6;

pub(crate) const FINDINGS: Tool = Tool {
    name: "findings",
    title: "Why the program is slow",
    about: "Findings of the rules, most costly first. share has the cost as a part of `of`, with a \
            95 % confidence interval (low, high) and the time in ns; lostNs is the time that the \
            problem costs; evidence shows where to look; remedy is the change to make; sure is the \
            confidence and because its reason. Rules without a finding or without data are listed.",
    arguments: || vec![FILE, ENDPOINT, LIMIT_OF_ROWS, OFFSET],
    output,
    answer,
};

fn output() -> Value {
    let texts = || list(string());
    let share = object(&[
        ("of", string()),
        ("value", number()),
        ("low", number()),
        ("high", number()),
        ("ns", integer()),
        ("samples", integer()),
    ]);
    let view = object(&[
        ("measure", string()),
        ("causes", texts()),
        ("endpoint", typed(&["string", "null"])),
        ("threads", typed(&["string", "null"])),
    ]);
    let evidence = object(&[("text", string()), ("view", view), ("stack", texts())]);
    let finding = object(&[
        ("rule", string()),
        ("what", string()),
        ("lostNs", typed(&["integer", "null"])),
        ("share", share),
        ("evidence", list(evidence)),
        ("remedy", string()),
        ("sure", string()),
        ("because", string()),
    ]);
    let skipped = object(&[("rule", string()), ("why", string())]);
    let fields = [
        ("file", string()),
        ("foundNothing", texts()),
        ("notApplicable", list(skipped)),
        ("leftOut", integer()),
    ];
    schema(&fields, finding)
}

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    let (profile, mut answer) = opened(recordings, arguments, "Findings, most costly first")?;
    let endpoint = arguments.text(ENDPOINT.name).map(str::to_owned);
    if let Some(pattern) = &endpoint {
        let mut known = (0..profile.contexts().len() as u32).filter_map(|id| profile.endpoint(id));
        if !known.any(|endpoint| matches(pattern, endpoint)) {
            return Err(
                "endpoint: no sample has such an endpoint; `requests`, or `top` by \
                        endpoint, lists them"
                    .to_owned(),
            );
        }
    }
    let explanation = dwell_explain::explain(&profile, &Options { endpoint });
    let text = dwell_report::explanation_json(&explanation, profile.unread());
    let mut all: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    for name in ["foundNothing", "notApplicable", "leftOut"] {
        answer.put(name, all[name].take());
    }
    let rows = match all["findings"].take() {
        Value::Array(rows) => rows,
        _ => Vec::new(),
    };
    answer.rows_in_all = rows.len();
    answer.rows = page(arguments).of(rows).map(shortened).collect();
    if let Some(idle) = explanation.idle {
        answer.notes.push(format!(
            "idle threads are in no finding: {} of the wall time",
            dwell_report::percent(idle.share())
        ));
    }
    if let Some(check) = &explanation.self_check {
        answer
            .notes
            .push(format!("self-check: {}", check.summary()));
    }
    answer.notes.extend(cautions(&profile));
    Ok(answer)
}

/// A finding with less evidence.
fn shortened(mut finding: Value) -> Value {
    if let Some(evidence) = finding["evidence"].as_array_mut() {
        evidence.truncate(EVIDENCE);
        for one in evidence {
            if let Some(stack) = one["stack"].as_array_mut() {
                stack.truncate(STACK);
            }
        }
    }
    json!(finding)
}
