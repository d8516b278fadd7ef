//! The self-check in reports: as text, and as JSON for programs and the page.

use dwell_profile::{Accounted, Agreement, EndpointCheck, SelfCheck};
use serde_json::{Value, json};

use crate::number::plural;

/// Maximum number of warnings.
const WARNINGS_MAX: usize = 5;

/// Mark behind a ratio: `!` if it is wrong, `~` if there is a reason for it.
pub(crate) fn mark(agreement: Agreement) -> &'static str {
    match agreement {
        Agreement::Low | Agreement::High => "!",
        Agreement::SeveralThreads | Agreement::OtherScopes => "~",
        Agreement::Close | Agreement::Chance => "",
    }
}

/// The largest contradictions, one sentence each.
pub(crate) fn warnings(check: &SelfCheck) -> Vec<String> {
    let mut warnings = check.warnings();
    let more = warnings.len().saturating_sub(WARNINGS_MAX);
    if more > 0 {
        warnings.truncate(WARNINGS_MAX);
        warnings.push(format!(
            "and the same for {}",
            plural(more as u64, "more endpoint")
        ));
    }
    warnings
}

/// Why ratios that are marked with `~` are no faults, of the first endpoints.
pub(crate) fn reasons(check: &SelfCheck) -> Vec<String> {
    let has_reason = |it: &&EndpointCheck| mark(it.accounted.agreement) == "~";
    let endpoints = check.endpoints.iter().filter(has_reason);
    let notes = endpoints.filter_map(|endpoint| endpoint.note(check));
    notes.take(WARNINGS_MAX).collect()
}

/// The complete check as JSON, names as `shown` makes them.
pub(crate) fn value(check: &SelfCheck, shown: impl Fn(&str) -> String) -> Value {
    let endpoint = |it: &EndpointCheck| {
        let mut row = accounted(&it.accounted, it.note(check).map(|note| shown(&note)));
        row["endpoint"] = json!(it.endpoint.as_deref().map(&shown));
        row
    };
    json!({
        "total": accounted(&check.total, check.total_note()),
        "endpoints": check.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        "threads": check.threads.as_ref().map(|ledger| json!({
            "threads": ledger.threads,
            "median": rounded(ledger.median),
            "worst": {
                "thread": shown(&ledger.worst.name),
                "ratio": rounded(ledger.worst.accounted.ratio),
                "standardError": rounded(ledger.worst.accounted.error),
            },
        })),
    })
}

fn accounted(it: &Accounted, note: Option<String>) -> Value {
    json!({
        "seenNs": it.seen_ns,
        "latencyNs": it.latency_ns,
        "ratio": rounded(it.ratio),
        "standardError": rounded(it.error),
        "agreement": it.agreement.label(),
        "isOff": it.agreement.is_off(),
        "note": note,
    })
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 10_000.0).round() / 10_000.0
}

/// Recordings for tests.
#[cfg(test)]
pub(crate) mod made_up {
    use dwell_profile::{Builder, Context, Look, Request};

    pub(crate) const MS: u64 = 1_000_000;

    /// Ten seconds with a request a second, of which the named part is seen.
    pub(crate) fn builder(rows: &[(&str, u64)]) -> Builder {
        let mut builder = Builder::default();
        builder.info.duration_ns = 10_000 * MS;
        let thread = builder.thread("http-1", 1, 1, false);
        let (sleep, node) = (builder.cause("sleep"), builder.stack([]));
        let look = |builder: &mut Builder, time_ms: u64, ms: u64, context| {
            builder.look(Look {
                time_ns: time_ms * MS,
                duration_ns: ms * MS,
                thread,
                node,
                cause: sleep,
                weight_ns: ms * MS,
                count: ms / 20,
                choices: 1_000_000_000,
                context,
                ..Look::default()
            });
        };
        look(&mut builder, 0, 10_000, None);
        for (number, (name, ms)) in rows.iter().enumerate() {
            let (root, endpoint) = (number as u64 + 1, Some(builder.name(name)));
            let context = builder.context(Context {
                span_id: root,
                local_root_span_id: root,
                endpoint,
                ..Context::default()
            });
            look(&mut builder, root * 100, *ms, Some(context));
            builder.requests.push(Request {
                time_ns: root * 100 * MS,
                duration_ns: 1000 * MS,
                trace_id: 0,
                local_root_span_id: root,
                endpoint,
                count: 1,
            });
        }
        builder
    }
}
