//! Spans inside of requests whose beginning and end were told.

use crate::builder::Builder;
use dwell_jfr::reader::Recording;

/// A span inside of a request, which has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it began, in nanoseconds since the Unix epoch.
    pub time_ns: u64,
    /// How long it took.
    pub duration_ns: u64,
    /// The request's first span in this process.
    pub local_root_span_id: u64,
    /// Its own id.
    pub span_id: u64,
}

/// Takes the spans of a recording.
pub(crate) fn add(builder: &mut Builder, recording: &Recording) {
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
