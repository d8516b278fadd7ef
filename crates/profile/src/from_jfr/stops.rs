//! Reads safepoints, and the threads that others waited for.

use crate::builder::Builder;
use crate::stops::{Late, Safepoint};
use crate::tree::NodeId;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

/// The origin of sums, in which the operations of single safepoints are unknown.
const COUNTERS: &str = "counters";

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, u32) -> Option<NodeId>,
) {
    for event in recording.told::<told::Safepoint>() {
        let operation = builder.name(&event.operation);
        builder.safepoints.push(Safepoint {
            time_ns: event.time_ns,
            id: event.safepoint_id,
            operation,
            reaching_ns: event.reaching_ns,
            operation_ns: event.operation_ns,
            threads: event.threads,
            running: event.running,
            count: event.count.max(1),
            is_known: &*event.source != COUNTERS,
        });
    }
    for event in recording.told::<told::SafepointLate>() {
        let Some(thread) = event.thread else {
            continue;
        };
        let node = event.stack.and_then(|stack| node_of(builder, stack));
        let operation = builder.name(&event.operation);
        let state = builder.name(&event.state);
        builder.late.push(Late {
            time_ns: event.time_ns,
            duration_ns: event.duration_ns,
            safepoint: event.safepoint_id,
            operation,
            thread,
            node,
            state,
            held_ns: event.held_ns,
            is_last: event.is_last > 0,
        });
    }
    builder
        .safepoints
        .sort_by_key(|stop| (stop.time_ns, stop.id));
}
