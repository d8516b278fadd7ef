//! Reads objects that are still there: those of the recording's last look.

use super::allocations::{Object, Reader};
use super::contexts::{Contexts, WorkedFor};
use crate::builder::Builder;
use crate::live::{LiveObject, LiveSampling};
use crate::tree::NodeId;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

dwell_jfr::told! {
    /// Fields of a live object that other allocations lack.
    pub(super) struct Survivor = "dwell.LiveObject" {
        /// The look that found it.
        snapshot: Count "snapshot";
        /// How old it was then.
        age_ns: Nanos "age";
        /// Collections that it had survived.
        collections: Count "collections";
    }
}

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording, and of why it
/// is not complete.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    let looks = recording.told::<told::LiveObjects>();
    let Some(last) = looks.max_by_key(|event| event.time_ns) else {
        return;
    };
    let mut reader = Reader::default();
    for (survivor, told) in recording.told::<(Survivor, (Object, WorkedFor))>() {
        if survivor.snapshot == last.snapshot {
            let allocated = reader.read(builder, &told, contexts, &mut node_of);
            builder.live.push(LiveObject {
                allocated,
                age_ns: survivor.age_ns,
                collections: survivor.collections,
            });
        }
    }
    builder.live_sampling = Some(LiveSampling {
        time_ns: last.time_ns,
        interval_bytes: last.interval_bytes,
        one_of: last.one_of.max(1),
        samples: last.samples,
        lost: last.lost,
        followed_ns: last.followed_ns,
    });
}
