//! The types of samples and of other events with a stack: their fields. Their encoders are in
//! `writer`, and [`super::details`] has the additional data of a sample.

use super::table::START_TIME;
use super::{Content, FieldDef, TypeDef, TypeKind, id};

/// `jdk.ExecutionSample` with exactly the JDK's fields: some readers do not look up the fields of
/// an event in the metadata. Additional data is in separate events:
/// [`super::details`].
pub(crate) static EXECUTION_SAMPLE: TypeDef = TypeDef {
    id: id::EXECUTION_SAMPLE,
    name: "jdk.ExecutionSample",
    kind: TypeKind::Event(&["Java Virtual Machine", "Profiling"]),
    label: "Execution Sample",
    description: "Snapshot of a thread's state: dwell.SampleDetail has its weight",
    fields: &[
        START_TIME,
        sample_field("sampledThread", Content::Pooled(id::THREAD), "Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("state", Content::Pooled(id::THREAD_STATE), "Thread State"),
    ],
};

/// Equal samples of a thread that did not run, with the cause of its wait.
pub(crate) static WALL_SAMPLE: TypeDef = TypeDef {
    id: id::WALL_SAMPLE,
    name: "dwell.WallSample",
    kind: TypeKind::Event(&["Profiler"]),
    label: "Wall-Clock Sample",
    description: "Equal samples of a thread that did not run: its stack, the cause of its wait, \
                  and the wall-clock time that they stand for",
    fields: &[
        START_TIME,
        sample_field("duration", Content::TickSpan, "Until The Last Sample"),
        sample_field("sampledThread", Content::Pooled(id::THREAD), "Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("cause", Content::Text, "Cause"),
        sample_field("detail", Content::Text, "Detail"),
        sample_field("weight", Content::Nanos, "Weight"),
        sample_field("count", Content::Count, "Samples"),
        sample_field("choices", Content::Count, "Effective Sample Size"),
        sample_field("owner", Content::Pooled(id::THREAD), "Owner"),
        sample_field(
            "ownerStackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Owner's Stack Trace",
        ),
        sample_field("failure", Content::Text, "Failure"),
        sample_field("carrier", Content::Pooled(id::THREAD), "Carrier Thread"),
    ],
};

/// `jdk.ObjectAllocationSample`, as the JDK has it since 16; more is in [`super::details`].
pub(crate) static ALLOCATION_SAMPLE: TypeDef = TypeDef {
    id: id::ALLOCATION_SAMPLE,
    name: "jdk.ObjectAllocationSample",
    kind: TypeKind::Event(&["Java Application"]),
    label: "Object Allocation Sample",
    description: "An allocated object, and the bytes that it stands for",
    fields: &[
        START_TIME,
        sample_field("eventThread", Content::Pooled(id::THREAD), "Event Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("objectClass", Content::Pooled(id::CLASS), "Object Class"),
        sample_field("weight", Content::Bytes, "Sample Weight"),
    ],
};

/// An object that was sampled when it was allocated, and is still there.
pub(crate) static LIVE_OBJECT: TypeDef = TypeDef {
    id: id::LIVE_OBJECT,
    name: "dwell.LiveObject",
    kind: TypeKind::Event(&["Profiler"]),
    label: "Live Object",
    description: "An object that was sampled when it was allocated, at the start time, and that \
                  no collection had found dead when it was checked",
    fields: &[
        START_TIME,
        sample_field("eventThread", Content::Pooled(id::THREAD), "Event Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("objectClass", Content::Pooled(id::CLASS), "Object Class"),
        sample_field("weight", Content::Bytes, "Weight"),
        sample_field("objectSize", Content::Bytes, "Object Size"),
        sample_field("failure", Content::Text, "Failure"),
        sample_field("age", Content::Nanos, "Age"),
        sample_field("collections", Content::Count, "Survived Collections"),
        sample_field("snapshot", Content::Count, "Snapshot"),
        TRACE_ID,
        SPAN_ID,
        LOCAL_ROOT_SPAN_ID,
        ENDPOINT,
        LABELS,
    ],
};

/// `jdk.JavaMonitorEnter`, as the JDK has it; more is in [`super::details`].
pub(crate) static MONITOR_ENTER: TypeDef = TypeDef {
    id: id::MONITOR_ENTER,
    name: "jdk.JavaMonitorEnter",
    kind: TypeKind::Event(&["Java Application"]),
    label: "Java Monitor Blocked",
    description: "A wait for a monitor that another thread held, and the time in waits that it \
                  stands for",
    fields: &[
        START_TIME,
        sample_field("duration", Content::TickSpan, "Duration"),
        sample_field("eventThread", Content::Pooled(id::THREAD), "Event Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("monitorClass", Content::Pooled(id::CLASS), "Monitor Class"),
        sample_field(
            "previousOwner",
            Content::Pooled(id::THREAD),
            "Owner When The Wait Began",
        ),
        sample_field("address", Content::Count, "Monitor Address"),
    ],
};

/// `profiler.WallClockSample` as async-profiler has it since 3.0; in plain files only.
pub(crate) static WALL_CLOCK_SAMPLE: TypeDef = TypeDef {
    id: id::WALL_CLOCK_SAMPLE,
    name: "profiler.WallClockSample",
    kind: TypeKind::Event(&["Java Virtual Machine", "Profiling"]),
    label: "Wall Clock Sample",
    description: "A thread's stack, and at how many points of the wall clock it was there",
    fields: &[
        START_TIME,
        sample_field("sampledThread", Content::Pooled(id::THREAD), "Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("state", Content::Pooled(id::THREAD_STATE), "Thread State"),
        sample_field("samples", Content::Int, "Samples"),
    ],
};

/// `profiler.LiveObject` as async-profiler has it; in plain files only.
pub(crate) static COMMON_LIVE_OBJECT: TypeDef = TypeDef {
    id: id::COMMON_LIVE_OBJECT,
    name: "profiler.LiveObject",
    kind: TypeKind::Event(&["Java Virtual Machine", "Memory"]),
    label: "Live Object",
    description: "An object that is still alive, and the bytes that it stands for",
    fields: &[
        START_TIME,
        sample_field("eventThread", Content::Pooled(id::THREAD), "Event Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("objectClass", Content::Pooled(id::CLASS), "Object Class"),
        sample_field("allocationSize", Content::Bytes, "Allocation Size"),
        sample_field("allocationTime", Content::Ticks, "Allocation Time"),
    ],
};

pub(super) const TRACE_ID: FieldDef = sample_field("traceId", Content::Text, "Trace Id");
pub(super) const SPAN_ID: FieldDef = sample_field("spanId", Content::Text, "Span Id");
pub(super) const LOCAL_ROOT_SPAN_ID: FieldDef =
    sample_field("localRootSpanId", Content::Text, "Local Root Span Id");
pub(super) const ENDPOINT: FieldDef = sample_field("endpoint", Content::Text, "Endpoint");
pub(super) const LABELS: FieldDef = sample_field("labels", Content::Text, "Labels");

pub(super) const fn sample_field(
    name: &'static str,
    content: Content,
    label: &'static str,
) -> FieldDef {
    FieldDef {
        name,
        content,
        label,
        description: "",
    }
}
