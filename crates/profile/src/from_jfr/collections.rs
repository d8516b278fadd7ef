//! Reads the causes of collections, from events of the JDK's recorder.

use crate::builder::Builder;
use crate::collections::Collection;
use crate::tree::NodeId;
use dwell_jfr::reader::Recording;

dwell_jfr::told! {
    /// A collection.
    pub(super) struct Collected = "jdk.GarbageCollection" {
        /// Its cause.
        cause: Text "cause";
        /// How long it had all threads stand still.
        paused_ns: TickSpan "sumOfPauses";
    }

    /// A call of `System.gc()`.
    pub(super) struct Call = "jdk.SystemGC" {
        /// Where.
        stack: Stack "stackTrace";
    }
}

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    for event in recording.told::<Collected>() {
        let cause = builder.name(&event.cause);
        builder.collections.push(Collection {
            cause,
            paused_ns: event.paused_ns,
        });
    }
    for event in recording.told::<Call>().filter(|it| it.stack.is_some()) {
        let node = node_of(builder, event.stack, None);
        builder.collection_calls.push(node);
    }
}
