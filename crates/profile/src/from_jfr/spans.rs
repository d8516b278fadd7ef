//! Reads the spans of a recording.

use crate::builder::Builder;
use crate::spans::Span;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

/// Takes the spans of a recording.
pub(super) fn add(builder: &mut Builder, recording: &Recording) {
    for event in recording.told::<told::Span>() {
        let id = |text| u64::from_str_radix(text, 16).ok();
        if let (Some(local_root_span_id), Some(span_id)) =
            (id(&event.local_root_span_id), id(&event.span_id))
        {
            builder.spans.push(Span {
                time_ns: event.time_ns,
                duration_ns: event.duration_ns,
                local_root_span_id,
                span_id,
            });
        }
    }
}
