//! Reads the requests of a recording.

use super::contexts::Contexts;
use crate::builder::Builder;
use crate::requests::Request;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

/// Takes the requests of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording, contexts: &Contexts<'_>) {
    for event in recording.told::<told::Request>() {
        let local_root_span_id = hex(&event.local_root_span_id) as u64;
        let endpoint = match &*event.endpoint {
            "" => contexts.endpoint_of(local_root_span_id),
            told => Some(told),
        };
        let endpoint = endpoint.map(|endpoint| builder.name(endpoint));
        builder.requests.push(Request {
            time_ns: event.time_ns,
            duration_ns: event.duration_ns,
            trace_id: hex(&event.trace_id),
            local_root_span_id,
            endpoint,
            // In older recordings, which lack the field, each event is one request.
            count: event.count.max(1),
        });
    }
}

fn hex(id: &str) -> u128 {
    u128::from_str_radix(id, 16).unwrap_or(0)
}
