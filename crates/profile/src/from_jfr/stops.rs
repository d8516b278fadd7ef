//! Reads safepoints, and the threads that others waited for.

use crate::builder::Builder;
use crate::stops::{Late, Safepoint};
use crate::tree::NodeId;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;
use std::collections::BTreeMap;

dwell_jfr::told! {
    /// The way of all threads to a safepoint, of the JDK's recorder.
    pub(super) struct Begun = "jdk.SafepointBegin" {
        /// How long it took.
        duration_ns: TickSpan "duration";
        /// The number of the safepoint.
        safepoint_id: Count "safepointId";
        /// Java threads.
        threads: Count "totalThreadCount";
    }

    /// An operation of the JVM.
    pub(super) struct Operation = "jdk.ExecuteVMOperation" {
        /// How long it lasted.
        duration_ns: TickSpan "duration";
        /// Its name.
        operation: Text "operation";
        /// The safepoint in which it was; 0: in none.
        safepoint_id: Count "safepointId";
    }
}

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
    add_of_the_jdk(builder, recording);
    builder
        .safepoints
        .sort_by_key(|stop| (stop.time_ns, stop.id));
}

/// Adds the safepoints of the JDK's recorder: the way there is one event, each operation another.
fn add_of_the_jdk(builder: &mut Builder, recording: &Recording) {
    let mut all: BTreeMap<u64, Safepoint> = BTreeMap::new();
    let unnamed = builder.name("");
    let stop = |time_ns: u64, id: u64| Safepoint {
        time_ns,
        id,
        operation: unnamed,
        reaching_ns: 0,
        operation_ns: 0,
        threads: 0,
        running: 0,
        count: 1,
        is_known: true,
    };
    for event in recording.told::<Begun>() {
        let id = event.safepoint_id;
        all.insert(
            id,
            Safepoint {
                reaching_ns: event.duration_ns,
                threads: event.threads,
                ..stop(event.time_ns, id)
            },
        );
    }
    for event in recording.told::<Operation>() {
        let id = event.safepoint_id;
        if id == 0 {
            continue;
        }
        let safepoint = all.entry(id).or_insert_with(|| stop(event.time_ns, id));
        safepoint.operation = builder.name(&event.operation);
        safepoint.operation_ns = safepoint.operation_ns.saturating_add(event.duration_ns);
    }
    builder.safepoints.extend(all.into_values());
}
