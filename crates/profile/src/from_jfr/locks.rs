//! Reads waits for monitors, and finds the looks that are part of the time in locks.

use super::contexts::{Contexts, WorkedFor};
use crate::allocations::readable_class;
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::locked::class_of_detail;
use crate::locks::{LockLook, MonitorOwner, MonitorSums, MonitorWait};
use crate::tree::NodeId;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

dwell_jfr::told! {
    /// A wait for a monitor.
    pub(super) struct Wait = "jdk.JavaMonitorEnter" {
        /// How long it lasted.
        duration_ns: TickSpan "duration";
        /// The thread that waited.
        thread: Thread "eventThread";
        /// Where.
        stack: Stack "stackTrace";
        /// The monitor's class.
        class: MaybeText "monitorClass";
        /// The thread that owned the monitor.
        owner: Thread "previousOwner";
        /// The time that it stands for; only our events say.
        weight_ns: MaybeCount "weight";
        /// Why the stack is not whole.
        failure: Text "failure";
    }
}

/// Replaces the class of a lock that wall-clock samples do not have.
const UNKNOWN: &str = "[unknown class]";

/// Reads events; `node_of` gives the place of a stack of the recording, and of why it is not
/// complete.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    let mut unknown = None;
    let is_ours = super::is_ours(recording);
    for (wait, worked_for) in recording.told::<(Wait, WorkedFor)>() {
        // Of other recorders each one that lasts long enough stands for itself.
        let of_others = (!is_ours).then_some(wait.duration_ns);
        let Some(weight_ns) = wait.weight_ns.or(of_others) else {
            continue;
        };
        let thread = wait.thread.unwrap_or_else(|| {
            *unknown.get_or_insert_with(|| builder.thread("[unknown thread]", 0, 0, false))
        });
        let failure = Some(&*wait.failure).filter(|text| !text.is_empty());
        let stack = node_of(builder, wait.stack, failure);
        let class = readable_class(wait.class.as_deref().unwrap_or(UNKNOWN));
        let frame = builder.marker(&class, FrameKind::Other);
        let node = builder.child(stack, frame);
        let class = builder.name(&class);
        let context = contexts.of_event(&worked_for, builder);
        builder.monitor_waits.push(MonitorWait {
            time_ns: wait.time_ns,
            duration_ns: wait.duration_ns,
            weight_ns,
            thread,
            node,
            class,
            context,
            owner: wait.owner,
        });
    }
    if !is_ours {
        builder.name_monitors();
        builder.complete_details();
    }
    add_owners(builder, recording, &mut node_of);
    let sums = recording.told::<told::MonitorWaits>();
    let last = sums.max_by_key(|event| event.time_ns);
    builder.monitor_sums = last.map(|last| MonitorSums {
        interval_ns: last.interval_ns,
        asked_ns: last.asked_ns,
        waits: last.waits,
        blocked_ns: last.blocked_ns,
        lost: last.lost,
        lost_ns: last.lost_ns,
        untold: last.untold,
        told_ns: last.told_ns,
    });
    if builder.monitor_sums.is_some() {
        add_looks(builder);
    }
}

fn add_owners(
    builder: &mut Builder,
    recording: &Recording,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    for event in recording.told::<told::MonitorOwner>() {
        let failure = Some(&*event.failure).filter(|text| !text.is_empty());
        let node = (event.stack).map(|stack| node_of(builder, Some(stack), failure));
        let waiter_node = node_of(builder, event.waiter_stack, None);
        let class = match &*event.class {
            "" => UNKNOWN.to_owned(),
            class => readable_class(&class.replace('/', ".")),
        };
        let class = builder.name(&class);
        let failure = failure.map(|text| builder.name(text));
        builder.monitor_owners.push(MonitorOwner {
            time_ns: event.time_ns,
            duration_ns: event.duration_ns,
            weight_ns: event.weight_ns,
            class,
            owner: event.owner,
            node,
            failure,
            waiter: event.waiter,
            waiter_node,
        });
    }
}

/// Adds wall-clock samples of waits without events: locks of `java.util.concurrent`.
pub(super) fn add_looks(builder: &mut Builder) {
    for place in 0..builder.looks_len() {
        let Some(look) = builder.look_at(place).copied() else {
            break;
        };
        if builder.text(look.cause) != "lock" {
            continue;
        }
        let detail = look.detail.map_or("", |detail| builder.text(detail));
        let class = match class_of_detail(detail) {
            "" => UNKNOWN,
            class => class,
        };
        let class = readable_class(class);
        let frame = builder.marker(&class, FrameKind::Other);
        let node = builder.child(look.node, frame);
        let class = builder.name(&class);
        builder.lock_looks.push(LockLook {
            look: place,
            node,
            class,
        });
    }
}
