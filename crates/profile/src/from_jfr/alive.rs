//! Reads objects that are still there: those of the recording's last look.

use super::allocations::Reader;
use super::contexts::Contexts;
use super::fields::count;
use crate::builder::Builder;
use crate::live::{LiveObject, LiveSampling};
use crate::tree::NodeId;
use dwell_jfr::reader::Recording;

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording, and of why it
/// is not complete.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    let looks = recording.events_named("dwell.LiveObjects");
    let Some(last) = looks.max_by_key(|event| event.time_ns) else {
        return;
    };
    let number = count(last, "snapshot");
    let mut reader = Reader::default();
    for event in recording.events_named("dwell.LiveObject") {
        if count(event, "snapshot") == number {
            let allocated = reader.read(builder, event, contexts, &mut node_of);
            builder.live.push(LiveObject {
                allocated,
                age_ns: count(event, "age"),
                collections: count(event, "collections"),
            });
        }
    }
    builder.live_sampling = Some(LiveSampling {
        time_ns: last.time_ns,
        interval_bytes: count(last, "interval"),
        one_of: count(last, "oneOf").max(1),
        samples: count(last, "samples"),
        lost: count(last, "lostSamples"),
        followed_ns: count(last, "followedTime"),
    });
}
