//! Reads waits for monitors, and finds the looks that are part of the time in locks.

use super::contexts::Contexts;
use super::fields::count;
use crate::allocations::readable_class;
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::locked::class_of_detail;
use crate::locks::{LockLook, MonitorSums, MonitorWait};
use crate::tree::NodeId;
use dwell_jfr::reader::{Recording, Value};

/// What the JDK has, too, but does not say what its events stand for: those are not read.
const MONITOR_ENTER: &str = "jdk.JavaMonitorEnter";
/// What stands for the class of a lock of which looks do not tell it.
const UNKNOWN: &str = "[unknown class]";

/// Reads events; `node_of` gives the place of a stack of the recording, and of why it is not
/// complete.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    let mut nobody = None;
    for event in recording.events_named(MONITOR_ENTER) {
        if event.get("weight").is_none() {
            continue;
        }
        let thread = match event.get("eventThread") {
            Some(Value::Thread(thread)) => *thread,
            _ => *nobody.get_or_insert_with(|| builder.thread("[unknown thread]", 0, 0, false)),
        };
        let owner = match event.get("previousOwner") {
            Some(Value::Thread(thread)) => Some(*thread),
            _ => None,
        };
        let place = match event.get("stackTrace") {
            Some(Value::Stack(stack)) => Some(*stack),
            _ => None,
        };
        let failure = event.text("failure").filter(|text| !text.is_empty());
        let stack = node_of(builder, place, failure);
        let class = readable_class(event.text("monitorClass").unwrap_or(UNKNOWN));
        let frame = builder.marker(&class, FrameKind::Other);
        let node = builder.child(stack, frame);
        let class = builder.name(&class);
        let context = contexts.of_event(event, builder);
        builder.monitor_waits.push(MonitorWait {
            time_ns: event.time_ns,
            duration_ns: count(event, "duration"),
            weight_ns: count(event, "weight"),
            thread,
            node,
            class,
            context,
            owner,
        });
    }
    let sums = recording.events_named("dwell.MonitorWaits");
    let last = sums.max_by_key(|event| event.time_ns);
    builder.monitor_sums = last.map(|last| MonitorSums {
        interval_ns: count(last, "interval"),
        waits: count(last, "waits"),
        blocked_ns: count(last, "blocked"),
        lost: count(last, "lostSamples"),
        lost_ns: count(last, "lostWeight"),
        untold: count(last, "untold"),
        told_ns: count(last, "toldTime"),
    });
    if builder.monitor_sums.is_some() {
        add_looks(builder);
    }
}

/// Looks at threads that waited for what no event tells of: locks of `java.util.concurrent`.
fn add_looks(builder: &mut Builder) {
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
