//! The detail events, with data that the JDK's events lack. Some tools do not look up the fields of
//! an event in the metadata. They can only read a recording if the JDK's events have exactly the
//! JDK's fields. No encoding here.

use super::samples::{ENDPOINT, LABELS, LOCAL_ROOT_SPAN_ID, SPAN_ID, TRACE_ID, sample_field};
use super::table::{PROFILER, START_TIME};
use super::{Content, FieldDef, TypeDef, TypeKind, id};

/// All of them.
pub(crate) static TYPES: [&TypeDef; 4] = [
    &SAMPLE_DETAIL,
    &ALLOCATION_DETAIL,
    &MONITOR_DETAIL,
    &THREAD_CONTEXT,
];

/// A type of detail event: it adds data to an event of the JDK's. It holds for all later events of
/// that kind and thread in the chunk, up to the next detail, so only changes are written.
const fn detail(
    id: u8,
    name: &'static str,
    label: &'static str,
    description: &'static str,
    fields: &'static [FieldDef],
) -> TypeDef {
    TypeDef {
        id,
        name,
        kind: TypeKind::Event(PROFILER),
        label,
        description,
        fields,
    }
}

const FAILURE: FieldDef = sample_field("failure", Content::Text, "Failure");
const CARRIER: FieldDef = sample_field("carrier", Content::Pooled(id::THREAD), "Carrier Thread");
const EVENT_THREAD: FieldDef =
    sample_field("eventThread", Content::Pooled(id::THREAD), "Event Thread");

/// Of `jdk.ExecutionSample`.
static SAMPLE_DETAIL: TypeDef = detail(
    id::SAMPLE_DETAIL,
    "dwell.SampleDetail",
    "Execution Sample Detail",
    "Weights of the later execution samples of the thread in the chunk, up to its next such \
     event",
    &[
        START_TIME,
        sample_field("sampledThread", Content::Pooled(id::THREAD), "Thread"),
        sample_field("weight", Content::Nanos, "Weight"),
        FAILURE,
        CARRIER,
    ],
);

/// Of `jdk.ObjectAllocationSample`.
static ALLOCATION_DETAIL: TypeDef = detail(
    id::ALLOCATION_DETAIL,
    "dwell.AllocationDetail",
    "Object Allocation Sample Detail",
    "Additional data of the later object allocation samples of the thread in the chunk, up to \
     its next such event",
    &[
        START_TIME,
        EVENT_THREAD,
        sample_field("objectSize", Content::Bytes, "Object Size"),
        FAILURE,
        CARRIER,
    ],
);

/// Of `jdk.JavaMonitorEnter`.
static MONITOR_DETAIL: TypeDef = detail(
    id::MONITOR_DETAIL,
    "dwell.MonitorDetail",
    "Java Monitor Blocked Detail",
    "Weights of the later waits for monitors of the thread in the chunk, up to its next such \
     event",
    &[
        START_TIME,
        EVENT_THREAD,
        sample_field("weight", Content::Nanos, "Weight"),
        FAILURE,
        CARRIER,
    ],
);

/// Completes all of these events and `dwell.WallSample`.
static THREAD_CONTEXT: TypeDef = detail(
    id::THREAD_CONTEXT,
    "dwell.ThreadContext",
    "Thread Context",
    "The request of the thread in its later samples in the chunk, up to its next such event",
    &[
        START_TIME,
        EVENT_THREAD,
        TRACE_ID,
        SPAN_ID,
        LOCAL_ROOT_SPAN_ID,
        ENDPOINT,
        LABELS,
    ],
);
