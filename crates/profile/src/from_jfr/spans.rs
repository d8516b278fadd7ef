//! Reads the spans of a recording.

use crate::builder::Builder;
use crate::spans::Span;
use dwell_jfr::reader::Recording;

/// Takes the spans of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording) {
    for event in recording.events_named("dwell.Span") {
        let id = |field| {
            event
                .text(field)
                .and_then(|text| u64::from_str_radix(text, 16).ok())
        };
        let duration = event.int("duration");
        let duration = duration.and_then(|duration| u64::try_from(duration).ok());
        if let (Some(local_root_span_id), Some(span_id), Some(duration_ns)) =
            (id("localRootSpanId"), id("spanId"), duration)
        {
            builder.spans.push(Span {
                time_ns: event.time_ns,
                duration_ns,
                local_root_span_id,
                span_id,
            });
        }
    }
}
