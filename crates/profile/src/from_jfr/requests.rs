//! Reads the requests of a recording.

use super::contexts::Contexts;
use crate::builder::Builder;
use crate::requests::Request;
use dwell_jfr::reader::Recording;

/// Takes the requests of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording, contexts: &Contexts<'_>) {
    for event in recording.events_named("dwell.Request") {
        let number = |field| event.int(field).and_then(|value| u64::try_from(value).ok());
        let hex = |field| {
            let text = event.text(field)?;
            u128::from_str_radix(text, 16).ok()
        };
        let local_root_span_id = hex("localRootSpanId").unwrap_or(0) as u64;
        let told = event
            .text("endpoint")
            .filter(|endpoint| !endpoint.is_empty());
        let endpoint = told.or_else(|| contexts.endpoint_of(local_root_span_id));
        let endpoint = endpoint.map(|endpoint| builder.name(endpoint));
        builder.requests.push(Request {
            time_ns: event.time_ns,
            duration_ns: number("duration").unwrap_or(0),
            trace_id: hex("traceId").unwrap_or(0),
            local_root_span_id,
            endpoint,
            count: number("count").unwrap_or(1),
        });
    }
}
