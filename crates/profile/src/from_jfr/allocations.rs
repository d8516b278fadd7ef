//! Reads objects that were allocated, and how they were chosen.

use super::contexts::Contexts;
use super::fields::count;
use crate::allocations::{Allocation, AllocationSampling, readable_class};
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::sample::ThreadId;
use crate::tree::NodeId;
use dwell_jfr::reader::{GenericEvent, Recording, Value};

/// What the JDK has since 16, too.
const ALLOCATION: &str = "jdk.ObjectAllocationSample";

/// Reads both kinds of events; `node_of` gives the place of a stack of the recording, and of why it
/// is not complete.
pub(super) fn add(
    builder: &mut Builder,
    recording: &Recording,
    contexts: &Contexts<'_>,
    mut node_of: impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
) {
    let mut reader = Reader::default();
    for event in recording.events_named(ALLOCATION) {
        let allocation = reader.read(builder, event, contexts, &mut node_of);
        builder.allocations.push(allocation);
    }
    let sums = recording.events_named("dwell.Allocations");
    let last = sums.max_by_key(|event| event.time_ns);
    builder.allocation_sampling = last.map(|last| AllocationSampling {
        interval_bytes: count(last, "interval"),
        rate: count(last, "rate"),
        lost: count(last, "lostSamples"),
        lost_bytes: count(last, "lostWeight"),
        sampled_ns: count(last, "sampledTime"),
    });
}

/// Reads what events of objects have in common.
#[derive(Default)]
pub(super) struct Reader {
    /// Stands for threads that events do not name.
    nobody: Option<ThreadId>,
}

impl Reader {
    /// The allocation that an event tells of.
    pub(super) fn read(
        &mut self,
        builder: &mut Builder,
        event: &GenericEvent,
        contexts: &Contexts<'_>,
        node_of: &mut impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
    ) -> Allocation {
        let nobody = &mut self.nobody;
        let thread = match event.get("eventThread") {
            Some(Value::Thread(thread)) => *thread,
            _ => *nobody.get_or_insert_with(|| builder.thread("[unknown thread]", 0, 0, false)),
        };
        let place = match event.get("stackTrace") {
            Some(Value::Stack(stack)) => Some(*stack),
            _ => None,
        };
        let failure = event.text("failure").filter(|text| !text.is_empty());
        let stack = node_of(builder, place, failure);
        let class = readable_class(event.text("objectClass").unwrap_or("[unknown class]"));
        let frame = builder.marker(&class, FrameKind::Other);
        let node = builder.child(stack, frame);
        let class = builder.name(&class);
        let context = contexts.of_event(event, builder);
        Allocation {
            time_ns: event.time_ns,
            thread,
            node,
            class,
            bytes: count(event, "weight"),
            size: count(event, "objectSize"),
            context,
        }
    }
}
