//! Reads safepoints, and the threads that others waited for.

use super::fields::count;
use crate::builder::Builder;
use crate::stops::{Late, Safepoint};
use crate::tree::NodeId;
use dwell_jfr::reader::{Recording, Value};

/// Where sums come from: what single safepoints were for is not known then.
const COUNTERS: &str = "counters";

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, u32) -> Option<NodeId>,
) {
    for event in recording.events_named("dwell.Safepoint") {
        let operation = builder.name(event.text("operation").unwrap_or(""));
        builder.safepoints.push(Safepoint {
            time_ns: event.time_ns,
            id: count(event, "safepointId"),
            operation,
            reaching_ns: count(event, "timeToSafepoint"),
            operation_ns: count(event, "operationTime"),
            threads: count(event, "threads"),
            running: count(event, "running"),
            count: count(event, "count").max(1),
            is_known: event.text("source") != Some(COUNTERS),
        });
    }
    for event in recording.events_named("dwell.SafepointLate") {
        let Some(Value::Thread(thread)) = event.get("eventThread") else {
            continue;
        };
        let node = match event.get("stackTrace") {
            Some(Value::Stack(stack)) => node_of(builder, *stack),
            _ => None,
        };
        let operation = builder.name(event.text("operation").unwrap_or(""));
        let state = builder.name(event.text("state").unwrap_or(""));
        builder.late.push(Late {
            time_ns: event.time_ns,
            duration_ns: count(event, "duration"),
            safepoint: count(event, "safepointId"),
            operation,
            thread: *thread,
            node,
            state,
            held_ns: count(event, "held"),
            is_last: count(event, "last") > 0,
        });
    }
    builder
        .safepoints
        .sort_by_key(|stop| (stop.time_ns, stop.id));
}
