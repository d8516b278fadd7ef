//! The tool `diff`: two recordings compared.

use super::Tool;
use crate::answer::{Answer, integer, list, number, object, schema, string, typed};
use crate::arguments::{Argument, Arguments, Kind};
use crate::recordings::Recordings;
use crate::selection::{LIMIT_OF_ROWS, OFFSET, cautions, page};
use dwell_profile::diff::Per;
use serde_json::{Value, json};

/// Endpoints with latencies.
const LATENCIES: usize = 8;

const A: Argument = Argument::new(
    "a",
    Kind::File,
    "The first recording; default: the first file",
);
const B: Argument = Argument::new(
    "b",
    Kind::File,
    "The second recording; default: the second file",
);
const PER: Argument = Argument::new(
    "per",
    Kind::Word(&["second", "request", "sample"]),
    "Unit of comparison: per second of the recording, per completed request, or shares of all \
     samples. Default: second",
);
const TABLE: Argument = Argument::new(
    "table",
    Kind::Word(&["self", "total", "causes", "waits"]),
    "self and total: CPU time by method. causes: wall time by cause. waits: by cause and method. \
     Default: self",
);
const ALL: Argument = Argument::new(
    "all",
    Kind::Flag,
    "Also rows whose change may be chance; default false",
);

pub(crate) const DIFF: Tool = Tool {
    name: "diff",
    title: "Two recordings compared",
    about: "Changes of time from a to b, the largest first, with the standard \
            error of each change. significant has been tested for all rows together: other changes \
            may be chance. Rates are in `unit` per `per`. state: both, new in b, gone in b.",
    arguments: || vec![A, B, PER, TABLE, ALL, LIMIT_OF_ROWS, OFFSET],
    output,
    answer,
};

fn output() -> Value {
    let row = object(&[
        ("name", string()),
        ("a", number()),
        ("b", number()),
        ("samplesA", integer()),
        ("samplesB", integer()),
        ("change", number()),
        ("standardError", number()),
        ("z", number()),
        ("significant", typed(&["boolean"])),
        ("state", string()),
    ]);
    let change = json!({
        "type": ["object", "null"],
        "properties": {
            "ns": number(), "low": number(), "high": number(),
            "significant": typed(&["boolean"]),
        },
    });
    let percentile = object(&[
        ("percent", number()),
        ("a", number()),
        ("b", number()),
        ("change", change),
    ]);
    let latency = object(&[
        ("endpoint", typed(&["string", "null"])),
        ("perSecond", list(number())),
        ("percentiles", list(percentile)),
    ]);
    let fields = [
        ("a", string()),
        ("b", string()),
        ("per", string()),
        ("unit", string()),
        ("base", list(number())),
        ("latencies", list(latency)),
    ];
    schema(&fields, row)
}

fn answer(recordings: &mut Recordings, arguments: &Arguments) -> Result<Answer, String> {
    if recordings.names().len() < 2 {
        return Err("diff: the server has one recording; start it with two: \
                    dwell mcp A.jfr B.jfr"
            .to_owned());
    }
    let files = [
        arguments.file(A.name).unwrap_or(0),
        arguments.file(B.name).unwrap_or(1),
    ];
    let (a, b) = (recordings.open(files[0])?, recordings.open(files[1])?);
    let per = match arguments.text(PER.name) {
        Some("request") => Per::Request,
        Some("sample") => Per::Sample,
        _ => Per::Second,
    };
    // Its messages name options of the command.
    let compared = dwell_report::compared(&a, &b, per).map_err(|it| it.replace("--per", "per"))?;
    let all: Value = serde_json::from_str(&compared.json()).map_err(|error| error.to_string())?;
    let key = arguments.text(TABLE.name).unwrap_or("self");
    let table = all["tables"].get(key).ok_or_else(|| {
        format!("table: {key} needs wall time in both recordings; record with -e cpu,wall")
    })?;
    let mut answer = Answer::new(format!("Changes of {key} from a to b"));
    answer.put("a", recordings.name(files[0]));
    answer.put("b", recordings.name(files[1]));
    answer.put("per", all["per"].clone());
    answer.put("unit", all["unit"].clone());
    answer.put("base", table["base"].clone());
    let latencies = all["latencies"].as_array().into_iter().flatten();
    let latencies = latencies.take(LATENCIES).cloned();
    answer.put("latencies", latencies.collect::<Vec<Value>>());
    let is_wanted =
        |row: &&Value| arguments.flag(ALL.name) || row["significant"].as_bool() == Some(true);
    let rows = table["rows"].as_array().map_or(&[][..], |rows| rows);
    let wanted: Vec<&Value> = rows.iter().filter(is_wanted).collect();
    answer.rows_in_all = wanted.len();
    let rest = rows.len() - wanted.len();
    let rows = page(arguments).of(wanted).map(|row| rounded(row.clone()));
    answer.rows = rows.collect();
    if rest > 0 {
        answer.notes.push(format!(
            "{rest} more rows have changes that may be chance (all: true)"
        ));
    }
    if let Some(more) = table["leftOut"].as_u64().filter(|more| *more > 0) {
        answer
            .notes
            .push(format!("{more} smaller changes are not listed"));
    }
    for (letter, profile) in [("a", &a), ("b", &b)] {
        let cautions = cautions(profile).into_iter();
        let cautions = cautions.map(|text| format!("{letter}: {text}"));
        answer.notes.extend(cautions);
    }
    Ok(answer)
}

/// A row with numbers of at most six digits that matter.
fn rounded(mut row: Value) -> Value {
    for name in ["a", "b", "change", "standardError", "z"] {
        if let Some(number) = row[name].as_f64() {
            let short = format!("{number:.5e}").parse::<f64>().unwrap_or(number);
            row[name] = short.into();
        }
    }
    row
}
