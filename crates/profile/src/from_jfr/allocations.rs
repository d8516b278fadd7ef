//! Reads objects that were allocated, and how they were chosen.

use super::contexts::{Contexts, WorkedFor};
use crate::allocations::{Allocation, AllocationSampling, LostAllocations, readable_class};
use crate::builder::Builder;
use crate::frame::FrameKind;
use crate::sample::ThreadId;
use crate::tree::NodeId;
use dwell_jfr::kinds::told;
use dwell_jfr::reader::Recording;

dwell_jfr::told! {
    /// An allocated object, as the JDK records it since version 16, or a live object.
    pub(super) struct Object = "jdk.ObjectAllocationSample" {
        /// The thread that allocated it.
        thread: Thread "eventThread";
        /// Where.
        stack: Stack "stackTrace";
        /// Its class.
        class: MaybeText "objectClass";
        /// The bytes that it stands for.
        weight_bytes: Bytes "weight";
        /// Its own size.
        size_bytes: Bytes "objectSize";
        /// Why the stack is not whole.
        failure: Text "failure";
    }
}

dwell_jfr::told! {
    /// An object that was allocated in a new buffer of its thread, which it represents, or outside
    /// of any buffer. The JDK before version 16 and async-profiler record these.
    pub(super) struct BufferedObject =
        "jdk.ObjectAllocationInNewTLAB" | "jdk.ObjectAllocationOutsideTLAB"
    {
        /// The thread that allocated it.
        thread: Thread "eventThread";
        /// Where.
        stack: Stack "stackTrace";
        /// Its class.
        class: MaybeText "objectClass";
        /// The size of the buffer.
        buffer_bytes: MaybeCount "tlabSize";
        /// Its own size.
        size_bytes: Bytes "allocationSize";
    }
}

impl From<BufferedObject> for Object {
    fn from(told: BufferedObject) -> Object {
        Object {
            time_ns: told.time_ns,
            thread: told.thread,
            stack: told.stack,
            class: told.class,
            weight_bytes: told.buffer_bytes.unwrap_or(0).max(told.size_bytes),
            size_bytes: told.size_bytes,
            failure: "".into(),
        }
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
    let mut reader = Reader::default();
    for told in recording.told::<(Object, WorkedFor)>() {
        let allocation = reader.read(builder, &told, contexts, &mut node_of);
        builder.allocations.push(allocation);
    }
    // The newer event says the same better where both are recorded.
    if builder.allocations.is_empty() {
        for (object, worked_for) in recording.told::<(BufferedObject, WorkedFor)>() {
            let told = (object.into(), worked_for);
            let allocation = reader.read(builder, &told, contexts, &mut node_of);
            builder.allocations.push(allocation);
        }
    }
    for told in recording.told::<told::LostAllocations>() {
        let class = builder.name(&readable_class(&told.class));
        let is_known = !told.method.is_empty();
        let method = is_known.then(|| builder.name(&told.method));
        builder.lost_allocations.push(LostAllocations {
            class,
            thread: told.thread,
            method,
            samples: told.samples,
            bytes: told.weight_bytes,
        });
    }
    let sums = recording.told::<told::Allocations>();
    let last = sums.max_by_key(|event| event.time_ns);
    builder.allocation_sampling = last.map(|last| AllocationSampling {
        interval_bytes: last.interval_bytes,
        rate: last.rate,
        asked_bytes: last.asked_bytes,
        lost: last.lost,
        lost_bytes: last.lost_bytes,
        sampled_ns: last.sampled_ns,
    });
}

/// Reads what events of objects have in common.
#[derive(Default)]
pub(super) struct Reader {
    /// Stands for threads that events do not name.
    unknown: Option<ThreadId>,
}

impl Reader {
    /// Reads the allocation of an event.
    pub(super) fn read(
        &mut self,
        builder: &mut Builder,
        (told, worked_for): &(Object, WorkedFor),
        contexts: &Contexts<'_>,
        node_of: &mut impl FnMut(&mut Builder, Option<u32>, Option<&str>) -> NodeId,
    ) -> Allocation {
        let unknown = &mut self.unknown;
        let thread = told.thread.unwrap_or_else(|| {
            *unknown.get_or_insert_with(|| builder.thread("[unknown thread]", 0, 0, false))
        });
        let failure = Some(&*told.failure).filter(|text| !text.is_empty());
        let stack = node_of(builder, told.stack, failure);
        let class = readable_class(told.class.as_deref().unwrap_or("[unknown class]"));
        let frame = builder.marker(&class, FrameKind::Other);
        let node = builder.child(stack, frame);
        let class = builder.name(&class);
        let context = contexts.of_event(worked_for, builder);
        Allocation {
            time_ns: told.time_ns,
            thread,
            node,
            class,
            bytes: told.weight_bytes,
            size: told.size_bytes,
            context,
        }
    }
}
