//! Schemas of markers: which fields they have, and where the Firefox Profiler shows them.

use dwell_profile::{Form, Profile, StretchKind};
use serde_json::{Value, json};

/// A field: its key, its label and its format.
type Field = (&'static str, &'static str, &'static str);

const ENDPOINT: Field = ("endpoint", "Endpoint", "sanitized-string");
const TRACE: Field = ("traceId", "Trace", "string");

/// The name of a schema, the label in charts and tables, its description and its fields.
const SCHEMAS: [(&str, &str, &str, &[Field]); 10] = [
    (
        "Safepoint",
        "{marker.data.operation}",
        "The JVM stopped all threads. Late threads ran on while the others waited.",
        &[
            ("operation", "Operation", "string"),
            ("reaching", "Time to safepoint", "duration"),
            ("operationTime", "Operation time", "duration"),
            ("threads", "Threads", "integer"),
            ("running", "Running threads", "integer"),
            ("late", "Late threads", "string"),
            ("count", "Safepoints", "integer"),
        ],
    ),
    (
        "Late",
        "{marker.data.operation}",
        "This thread ran on while others had stopped for a safepoint.",
        &[
            ("operation", "Operation", "string"),
            ("held", "Held others up", "duration"),
            ("state", "State", "string"),
            ("last", "Last thread", "string"),
        ],
    ),
    (
        "Request",
        "{marker.data.endpoint}",
        "A request that ended while the recording ran.",
        &[ENDPOINT, TRACE, ("count", "Stands for", "integer")],
    ),
    (
        "Span",
        "{marker.data.endpoint}",
        "A span inside of a request.",
        &[ENDPOINT, TRACE, ("spanId", "Span", "string")],
    ),
    (
        "Monitor",
        "{marker.data.class}",
        "This thread waited to enter a monitor. Such events are sampled: each stands for a time.",
        &[
            ("class", "Class", "string"),
            ("owner", "Owner", "string"),
            ("weight", "Stands for", "duration"),
            ENDPOINT,
            TRACE,
        ],
    ),
    (
        "Owner",
        "{marker.data.owner}",
        "Samples of a thread that waited for a lock which another thread had.",
        &[
            ("why", "Cause", "string"),
            ("detail", "Waits for", "sanitized-string"),
            ("owner", "Owner", "string"),
            ("ownerAt", "Owner is in", "string"),
            ("weight", "Stands for", "duration"),
            ENDPOINT,
            TRACE,
        ],
    ),
    (
        "Compilation",
        "{marker.data.method}",
        "The JVM compiled a method.",
        &[
            ("method", "Method", "string"),
            ("level", "Level", "integer"),
        ],
    ),
    (
        "Compilers",
        "{marker.data.compilations}",
        "Compilations of a part of the time, by the JVM's counters.",
        &[
            ("compilations", "Compilations", "integer"),
            ("compiling", "Time of all compilers", "duration"),
            ("wasted", "Given up or unusable", "integer"),
        ],
    ),
    (
        "Throttled",
        "Throttled",
        "The control group held the process back, because its CPU quota was used up.",
        &[
            ("periods", "Periods", "integer"),
            ("throttled", "Throttled periods", "integer"),
            ("held", "Held back", "duration"),
        ],
    ),
    (
        "Gap",
        "{marker.data.why}",
        "The profiler could not sample.",
        &[
            ("why", "Cause", "string"),
            ("samples", "Lost samples", "integer"),
            ("weight", "Their weight", "duration"),
        ],
    ),
];

/// The schemas of all markers that a profile may have.
pub fn schemas(profile: &Profile) -> Value {
    let fixed = SCHEMAS.iter().map(|(name, label, description, fields)| {
        let fields = fields
            .iter()
            .map(|(key, label, format)| json!({ "key": key, "label": label, "format": format }));
        schema(name, label, description, fields.collect())
    });
    let kinds = profile.stretches().kinds().map(|(kind, _)| {
        let title = kind.words.title;
        schema(title, title, kind.words.what, fields(kind))
    });
    fixed.chain(kinds).collect()
}

fn schema(name: &str, label: &str, description: &str, fields: Value) -> Value {
    json!({
        "name": name,
        "tableLabel": label,
        "chartLabel": label,
        "description": description,
        "display": ["marker-chart", "marker-table", "timeline-overview"],
        "fields": fields,
    })
}

/// The fields of a kind of stretch.
fn fields(kind: &StretchKind) -> Value {
    let fields = kind.labels.iter().zip(kind.forms).map(|(label, form)| {
        let format = match form {
            Form::Nanos => "nanoseconds",
            Form::Number => "integer",
            Form::Text | Form::Thread | Form::Other => "string",
        };
        json!({ "key": label, "label": label, "format": format })
    });
    fields.collect()
}
