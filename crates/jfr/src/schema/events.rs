//! The table of events: from each entry come the public [`Event`] variant, its metadata and its
//! encoder. An entry's doc comment is also the description that tools show. Nothing else encodes
//! events, except the sample itself (its table entry is here, its encoder in `writer`).

use super::{Content, FieldDef, TypeDef, TypeKind, id};
use crate::ids::{StackId, ThreadId};
use crate::wire::{put_text, put_varint};

#[allow(
    non_upper_case_globals,
    reason = "named like the other kinds in the table"
)]
impl Content {
    /// A thread of the chunk.
    const Thread: Content = Content::Pooled(id::THREAD);
    /// A stack of the chunk.
    const Stack: Content = Content::Pooled(id::STACK_TRACE);
}

/// `jdk.ExecutionSample` with the JDK's fields and no others: there are readers that do not ask the
/// metadata what fields an event has. What else is known of it stands in events beside it:
/// [`super::details`].
pub(crate) static EXECUTION_SAMPLE: TypeDef = TypeDef {
    id: id::EXECUTION_SAMPLE,
    name: "jdk.ExecutionSample",
    kind: TypeKind::Event(&["Java Virtual Machine", "Profiling"]),
    label: "Execution Sample",
    description: "Snapshot of a thread's state: dwell.SampleDetail says what it stands for",
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

/// Looks at a thread that did not run, and why.
pub(crate) static WALL_SAMPLE: TypeDef = TypeDef {
    id: id::WALL_SAMPLE,
    name: "dwell.WallSample",
    kind: TypeKind::Event(&["Profiler"]),
    label: "Wall-Clock Sample",
    description: "Looks at a thread that did not run and always saw the same: where it was, why, \
                  and the wall-clock time that they stand for",
    fields: &[
        START_TIME,
        sample_field("duration", Content::TickSpan, "Until The Last Look"),
        sample_field("sampledThread", Content::Pooled(id::THREAD), "Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("cause", Content::Text, "Cause"),
        sample_field("detail", Content::Text, "Detail"),
        sample_field("weight", Content::Nanos, "Weight"),
        sample_field("count", Content::Count, "Looks"),
        sample_field("choices", Content::Count, "As Certain As So Many Looks"),
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
    description: "An object that was allocated, and the bytes that it stands for",
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
    description: "An object that was sampled when it was allocated, at the start time, and was not \
                  found dead by a collection when it was looked at",
    fields: &[
        START_TIME,
        sample_field("eventThread", Content::Pooled(id::THREAD), "Event Thread"),
        sample_field(
            "stackTrace",
            Content::Pooled(id::STACK_TRACE),
            "Stack Trace",
        ),
        sample_field("objectClass", Content::Pooled(id::CLASS), "Object Class"),
        sample_field("weight", Content::Bytes, "Bytes That It Stands For"),
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
    description: "A wait for a monitor that another thread had, and the time in waits that it \
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
    description: "An object that is still there, and the bytes that it stands for",
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

pub(super) const START_TIME: FieldDef = FieldDef {
    name: "startTime",
    content: Content::Ticks,
    label: "Start Time",
    description: "",
};

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

/// A value that can stand in an event.
trait Put {
    fn put(self, out: &mut Vec<u8>);
}

impl Put for &str {
    fn put(self, out: &mut Vec<u8>) {
        put_text(out, self);
    }
}

impl Put for u64 {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self);
    }
}

impl Put for ThreadId {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.index());
    }
}

impl Put for StackId {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.index());
    }
}

impl Put for u32 {
    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, u64::from(self));
    }
}

/// Takes the leading blank that a doc comment leaves.
const fn description(doc: &'static str) -> &'static str {
    match doc.as_bytes() {
        [b' ', ..] => doc.split_at(1).1,
        _ => doc,
    }
}

macro_rules! events {
    ($(
        #[doc = $doc:literal]
        $variant:ident = $id:literal $name:literal $category:expr, $label:literal {
            $(
                #[doc = $field_doc:literal]
                $field:ident: $value:ty = $content:ident $field_name:literal $field_label:literal;
            )*
        }
    )*) => {
        /// An event other than a sample. `ticks` is on the clock of the chunk.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Event<'a> {
            $(
                #[doc = $doc]
                $variant {
                    /// When, in ticks of the chunk's clock.
                    ticks: u64,
                    $(
                        #[doc = $field_doc]
                        $field: $value,
                    )*
                },
            )*
        }

        /// The types of [`Event`]'s variants.
        pub(crate) static TYPES: &[TypeDef] = &[$(
            TypeDef {
                id: $id,
                name: $name,
                kind: TypeKind::Event($category),
                label: $label,
                description: description($doc),
                fields: &[
                    START_TIME,
                    $(FieldDef {
                        name: $field_name,
                        content: Content::$content,
                        label: $field_label,
                        description: description($field_doc),
                    },)*
                ],
            },
        )*];

        impl Event<'_> {
            /// When, in ticks of the chunk's clock.
            pub fn ticks(&self) -> u64 {
                match *self {
                    $(Self::$variant { ticks, .. } => ticks,)*
                }
            }

            /// When it was over, in ticks of the chunk's clock.
            pub fn end_ticks(&self) -> u64 {
                match *self {
                    Self::Gap { ticks, duration_ticks, .. }
                    | Self::Request { ticks, duration_ticks, .. }
                    | Self::Span { ticks, duration_ticks, .. }
                    | Self::GcPause { ticks, duration_ticks }
                    | Self::Safepoint { ticks, duration_ticks, .. }
                    | Self::SafepointLate { ticks, duration_ticks, .. } => {
                        ticks.saturating_add(duration_ticks)
                    }
                    _ => self.ticks(),
                }
            }

            /// Appends the type id and the fields.
            pub(crate) fn encode(&self, out: &mut Vec<u8>) {
                match *self {
                    $(Self::$variant { ticks, $($field),* } => {
                        put_varint(out, $id);
                        put_varint(out, ticks);
                        $($field.put(out);)*
                    })*
                }
            }
        }
    };
}

pub(super) const PROFILER: &[&str] = &["Profiler"];
const JVM: &[&str] = &["Java Virtual Machine"];
const OS: &[&str] = &["Operating System"];
const PROCESSOR: &[&str] = &["Operating System", "Processor"];
const RECORDER: &[&str] = &["Flight Recorder"];

events! {
    /// What was recorded and how; once in every chunk
    Recording = 110 "dwell.Recording" PROFILER, "Recording" {
        /// Version of the profiler
        version: &'a str = Text "version" "Version";
        /// Process that was profiled
        pid: u64 = Long "pid" "Process Identifier";
        /// What was measured: cpu, wall, ...
        mode: &'a str = Text "mode" "Mode";
        /// What triggered the samples
        engine: &'a str = Text "engine" "Engine";
        /// Why this engine and not a better one
        engine_reason: &'a str = Text "engineReason" "Engine Reason";
        /// CPU time between two samples of one thread; 0: not sampled by CPU time
        cpu_interval_ns: u64 = Nanos "cpuInterval" "CPU Interval";
        /// Wall-clock time between two samples of one thread; 0: not sampled by wall clock
        wall_interval_ns: u64 = Nanos "wallInterval" "Wall-Clock Interval";
        /// The options as they were given
        options: &'a str = Text "options" "Options";
    }
    /// Samples that were taken but not kept
    Lost = 111 "dwell.Lost" PROFILER, "Lost Samples" {
        /// Why they were lost
        cause: &'a str = Text "cause" "Cause";
        /// How many were lost
        samples: u64 = Count "samples" "Samples";
        /// The time that they stood for
        weight_ns: u64 = Nanos "weight" "Weight";
    }
    /// Samples that were kept although their stack could not be walked to its end
    Failures = 112 "dwell.Failures" PROFILER, "Failed Walks" {
        /// Why the walk ended early
        cause: &'a str = Text "cause" "Cause";
        /// How many walks ended so
        samples: u64 = Count "samples" "Samples";
        /// The time that they stand for
        weight_ns: u64 = Nanos "weight" "Weight";
    }
    /// What the profiler itself did and cost, since the recording began
    SelfCost = 113 "dwell.Self" PROFILER, "Profiler Cost" {
        /// Stacks that were walked
        walks: u64 = Count "walks" "Walks";
        /// Samples that were written
        samples: u64 = Count "samples" "Samples";
        /// Samples that were dropped
        dropped: u64 = Count "dropped" "Dropped";
        /// Bytes that were written to the file
        bytes: u64 = Bytes "bytes" "Bytes Written";
        /// CPU time of the profiler's own threads and of its signal handlers
        agent_cpu_ns: u64 = Nanos "agentCpu" "Agent CPU Time";
        /// Signals that were handled
        handlers: u64 = Count "handlers" "Handled Signals";
        /// CPU time of the signal handlers, estimated
        handler_cpu_ns: u64 = Nanos "handlerCpu" "Handler CPU Time";
        /// Median time in the signal handler
        handler_p50_ns: u64 = Nanos "handlerP50" "Handler Time (Median)";
        /// 90th percentile of the time in the signal handler
        handler_p90_ns: u64 = Nanos "handlerP90" "Handler Time (90 %)";
        /// 99th percentile of the time in the signal handler
        handler_p99_ns: u64 = Nanos "handlerP99" "Handler Time (99 %)";
        /// Longest time in the signal handler
        handler_max_ns: u64 = Nanos "handlerMax" "Handler Time (Longest)";
        /// Time that threads waited in the signal handler to be walked
        waited_ns: u64 = Nanos "waited" "Waited To Be Walked";
        /// Time that collections waited until samples in code they may free were walked
        collections_waited_ns: u64 = Nanos "collectionsWaited" "Collections Waited For Walks";
        /// Time that walking took
        walk_ns: u64 = Nanos "walkTime" "Walk Time";
        /// Stacks that were copied
        copies: u64 = Count "copies" "Copied Stacks";
        /// Bytes of the stacks that were copied
        copied_bytes: u64 = Bytes "copied" "Copied Bytes";
        /// Memory that the profiler holds
        memory_bytes: u64 = Bytes "memory" "Memory";
    }
    /// How many threads the wall-clock sampler looked at, and how many there were
    WallTick = 117 "dwell.WallTick" PROFILER, "Wall-Clock Tick" {
        /// The time that the tick stands for
        span_ns: u64 = Nanos "span" "Span";
        /// Ticks of the interval in it: more than one if some were missed
        ticks_passed: u64 = Count "ticks" "Ticks";
        /// Threads that lived
        live: u64 = Count "live" "Live Threads";
        /// Of these, threads that could be chosen
        eligible: u64 = Count "eligible" "Eligible Threads";
        /// Threads that were chosen
        sampled: u64 = Count "sampled" "Sampled Threads";
        /// Of these, threads that nothing could be said of
        failed: u64 = Count "failed" "Failed";
        /// CPU time that looking took
        cpu_ns: u64 = Nanos "cpu" "CPU Time";
        /// Virtual threads without a carrier, estimated from those that were chosen
        unmounted: u64 = Count "unmounted" "Unmounted Virtual Threads";
        /// Of these, threads that were chosen
        unmounted_sampled: u64 = Count "unmountedSampled" "Sampled Unmounted Virtual Threads";
        /// Of these, threads that nothing could be said of
        unmounted_failed: u64 = Count "unmountedFailed" "Failed Unmounted Virtual Threads";
        /// Of those chosen, threads known not to have run since their last look
        followed: u64 = Count "followed" "Followed Threads";
        /// Of those chosen, threads of which the kernel's page told whether they have run
        by_page: u64 = Count "byPage" "Threads Told by Page";
    }
    /// Wall time of a cause since the recording began, by looks at threads that did not run
    WallSum = 106 "dwell.WallSum" PROFILER, "Wall Time by Cause" {
        /// What the threads waited for
        cause: &'a str = Text "cause" "Cause";
        /// What the looks stand for
        weight_ns: u64 = Nanos "weight" "Weight";
        /// How far chance may have put that off: one standard error
        error_ns: u64 = Nanos "standardError" "Standard Error";
        /// How many looks there were
        looks: u64 = Count "looks" "Looks";
    }
    /// What was allocated since the recording began, by the samples
    Allocations = 103 "dwell.Allocations" PROFILER, "Allocations" {
        /// The bytes between two samples, in the mean
        interval_bytes: u64 = Bytes "interval" "Interval";
        /// Samples
        samples: u64 = Count "samples" "Samples";
        /// The bytes that they stand for
        weight_bytes: u64 = Bytes "weight" "Weight";
        /// Samples that were taken but not kept
        lost: u64 = Count "lostSamples" "Lost Samples";
        /// The bytes that these stood for
        lost_bytes: u64 = Bytes "lostWeight" "Lost Weight";
        /// For how long they were sampled: less than the recording, if that was switched
        sampled_ns: u64 = Nanos "sampledTime" "Sampled Time";
        /// Samples that are wanted in a second, if the interval adapts; 0: it does not
        rate: u64 = Count "rate" "Rate";
    }
    /// One look at the objects that were sampled: which are still there
    LiveObjects = 99 "dwell.LiveObjects" PROFILER, "Live Objects" {
        /// Its number, which its objects carry; the last one is of the recording's end
        snapshot: u64 = Count "snapshot" "Snapshot";
        /// The bytes between two samples, in the mean
        interval_bytes: u64 = Bytes "interval" "Interval";
        /// Objects that are still there
        objects: u64 = Count "objects" "Objects";
        /// Of so many that were sampled one was followed; weights have it in them
        one_of: u64 = Count "oneOf" "One Of";
        /// Objects that were sampled
        samples: u64 = Count "samples" "Samples";
        /// Of these, objects that were not followed for want of room
        lost: u64 = Count "lostSamples" "Lost Samples";
        /// For how long objects had been followed by then
        followed_ns: u64 = Nanos "followedTime" "Followed Time";
    }
    /// Waits for monitors since the recording began, and what those that were chosen say of them
    MonitorWaits = 97 "dwell.MonitorWaits" PROFILER, "Waits for Monitors" {
        /// Waits are chosen by how long they last, from this on all
        interval_ns: u64 = Nanos "interval" "Interval";
        /// All waits
        waits: u64 = Count "waits" "Waits";
        /// How long all of them lasted
        blocked_ns: u64 = Nanos "blocked" "Blocked Time";
        /// Waits that were chosen
        samples: u64 = Count "samples" "Samples";
        /// The time in waits that these stand for
        weight_ns: u64 = Nanos "weight" "Weight";
        /// Waits that were chosen but not kept
        lost: u64 = Count "lostSamples" "Lost Samples";
        /// The time that these stood for
        lost_ns: u64 = Nanos "lostWeight" "Lost Weight";
        /// Waits of which it could not be noted when they began: they are in no other number
        untold: u64 = Count "untold" "Untold Waits";
        /// For how long they were told: less than the recording, if that was switched
        told_ns: u64 = Nanos "toldTime" "Told Time";
    }
    /// A time in which nothing could be recorded
    Gap = 114 "dwell.Gap" PROFILER, "Gap" {
        /// How long it lasted
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// Why nothing was recorded
        cause: &'a str = Text "cause" "Cause";
        /// Samples that fell into it
        lost_samples: u64 = Count "lostSamples" "Lost Samples";
        /// The time that the lost samples stood for
        lost_weight_ns: u64 = Nanos "lostWeight" "Lost Weight";
    }
    /// CPU time of the whole process since the recording began; the weights can be checked with it
    CpuLoad = 115 "dwell.CpuLoad" PROFILER, "Process CPU Time" {
        /// Time in user mode
        process_user_ns: u64 = Nanos "processUser" "User Time";
        /// Time in the kernel
        process_system_ns: u64 = Nanos "processSystem" "System Time";
    }
    /// Part of the histogram of times in the signal handler, since the last flush
    HandlerTime = 116 "dwell.HandlerTime" PROFILER, "Handler Time" {
        /// The signals that were handled in less than this, and in an eighth of it less at most
        up_to_ns: u64 = Nanos "upTo" "Up To";
        /// How many
        handlers: u64 = Count "handlers" "Handled Signals";
    }
    /// The endpoint of a request: that of all samples of this local root that name none
    Endpoint = 118 "dwell.Endpoint" PROFILER, "Endpoint" {
        /// First span of the request in this process
        local_root_span_id: &'a str = Text "localRootSpanId" "Local Root Span Id";
        /// The endpoint
        endpoint: &'a str = Text "endpoint" "Endpoint";
    }
    /// A request that has ended
    Request = 119 "dwell.Request" PROFILER, "Request" {
        /// How long it took
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// Its trace
        trace_id: &'a str = Text "traceId" "Trace Id";
        /// Its first span in this process
        local_root_span_id: &'a str = Text "localRootSpanId" "Local Root Span Id";
        /// Its endpoint, if that was known when it ended
        endpoint: &'a str = Text "endpoint" "Endpoint";
        /// Requests that it stands for: of many, some are kept
        count: u64 = Count "count" "Requests";
    }
    /// A span inside of a request, which has ended; of many, the longest are kept
    Span = 105 "dwell.Span" PROFILER, "Span" {
        /// How long it took
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// Its trace
        trace_id: &'a str = Text "traceId" "Trace Id";
        /// The first span of the trace in this process
        local_root_span_id: &'a str = Text "localRootSpanId" "Local Root Span Id";
        /// Its own id
        span_id: &'a str = Text "spanId" "Span Id";
    }
    /// A pause of all threads for the garbage collector
    GcPause = 124 "dwell.GcPause" JVM, "Garbage Collection Pause" {
        /// How long the collector had all threads stand still
        duration_ticks: u64 = TickSpan "duration" "Duration";
    }
    /// A stop of all threads by the JVM
    Safepoint = 127 "dwell.Safepoint" JVM, "Safepoint" {
        /// From when it was asked for until the threads went on
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// Its number; of several the last one's
        safepoint_id: u64 = Long "safepointId" "Safepoint Id";
        /// What the JVM stopped for; empty if unknown
        operation: &'a str = Text "operation" "Operation";
        /// Until all threads had stopped
        reaching_ns: u64 = Nanos "timeToSafepoint" "Time To Safepoint";
        /// From then on
        operation_ns: u64 = Nanos "operationTime" "Operation Time";
        /// Java threads that there were
        threads: u64 = Count "threads" "Threads";
        /// Of these, threads that ran when it was asked for
        running: u64 = Count "running" "Running Threads";
        /// Threads that were seen to be late
        late: u64 = Count "late" "Late Threads";
        /// Safepoints that the event stands for; of more than one, times are sums
        count: u64 = Count "count" "Safepoints";
        /// Where that was read
        source: &'a str = Text "source" "Source";
    }
    /// A thread that others waited for at a safepoint
    SafepointLate = 109 "dwell.SafepointLate" JVM, "Late For Safepoint" {
        /// From when the safepoint was asked for until the thread stopped
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// The safepoint
        safepoint_id: u64 = Long "safepointId" "Safepoint Id";
        /// What the JVM stopped for
        operation: &'a str = Text "operation" "Operation";
        /// The thread
        thread: ThreadId = Thread "eventThread" "Thread";
        /// Where it was
        stack: StackId = Stack "stackTrace" "Stack Trace";
        /// What it did: java, vm, runnable (it had no processor), page-fault
        state: &'a str = Text "state" "State";
        /// Its part of the time to the safepoint, which those that are late share at each moment
        held_ns: u64 = Nanos "held" "Held Others";
        /// Whether it was the last one
        is_last: u64 = Count "last" "Was Last";
    }
    /// What the control group lets the process use, and how often it held it back since then
    CpuLimit = 125 "dwell.CpuLimit" OS, "CPU Limit" {
        /// Processors' time that it may use in a second; 0: as much as there is
        quota_ns: u64 = Nanos "quota" "Quota Per Second";
        /// Processors that the process may run on
        processors: u64 = Count "processors" "Processors";
        /// Periods of the control group
        periods: u64 = Count "periods" "Periods";
        /// Of these, periods in which the quota was used up
        throttled: u64 = Count "throttled" "Throttled Periods";
        /// How long threads were held back, all together
        throttled_ns: u64 = Nanos "throttledTime" "Throttled Time";
    }
    /// What all processes used of the processors that this one may run on
    Machine = 107 "dwell.Machine" OS, "Machine Load" {
        /// Of which time
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// How many processors
        processors: u64 = Count "processors" "Processors";
        /// How long they worked, all together, for any process
        busy_ns: u64 = Nanos "busy" "Busy Time";
        /// Of that, CPU time of this process
        own_ns: u64 = Nanos "own" "Own CPU Time";
        /// How long they had nothing to do
        idle_ns: u64 = Nanos "idle" "Idle Time";
        /// How long the hypervisor had them
        stolen_ns: u64 = Nanos "stolen" "Stolen Time";
    }
    /// What a thread that was sampled used, and waited for, since the last one of it
    ThreadTime = 126 "dwell.ThreadTime" OS, "Thread CPU Time" {
        /// Of which time
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// The thread
        thread: ThreadId = Thread "sampledThread" "Thread";
        /// Time on a processor
        cpu_ns: u64 = Nanos "cpu" "CPU Time";
        /// Time it was ready and waited for a processor
        waited_ns: u64 = Nanos "waited" "Run-Queue Time";
        /// How often it got a processor
        turns: u64 = Count "turns" "Turns";
    }
    /// What the JVM's compilers did since the last one, by the JVM's own counters
    Compilers = 108 "dwell.Compilers" JVM, "Compilers" {
        /// Of which time
        duration_ticks: u64 = TickSpan "duration" "Duration";
        /// How many methods and loops were compiled
        compilations: u64 = Count "compilations" "Compilations";
        /// How long that took, of all compilers together
        compiling_ns: u64 = Nanos "compilationTime" "Compilation Time";
        /// Compilations that were given up
        bailouts: u64 = Count "bailouts" "Given Up";
        /// Compiled code that the JVM could not use
        invalidated: u64 = Count "invalidated" "Invalidated";
    }
    /// Description of the JVM and the Java application
    JvmInformation = 120 "jdk.JVMInformation" JVM, "JVM Information" {
        /// Name of the JVM
        jvm_name: &'a str = Text "jvmName" "JVM Name";
        /// Version of the JVM
        jvm_version: &'a str = Text "jvmVersion" "JVM Version";
        /// Options on the command line
        jvm_arguments: &'a str = Text "jvmArguments" "JVM Command Line Arguments";
        /// Options from a file
        jvm_flags: &'a str = Text "jvmFlags" "JVM Settings File Arguments";
        /// Main class and arguments of the application
        java_arguments: &'a str = Text "javaArguments" "Java Application Arguments";
        /// When the JVM started
        jvm_start_epoch_ms: u64 = EpochMs "jvmStartTime" "JVM Start Time";
        /// Process id of the JVM
        pid: u64 = Long "pid" "Process Identifier";
    }
    /// Description of the operating system
    OsInformation = 121 "jdk.OSInformation" OS, "OS Information" {
        /// Name and version
        os_version: &'a str = Text "osVersion" "OS Version";
    }
    /// Description of the processors
    CpuInformation = 122 "jdk.CPUInformation" PROCESSOR, "CPU Information" {
        /// Model in short
        cpu: &'a str = Text "cpu" "Type";
        /// Model and features
        description: &'a str = Text "description" "Description";
        /// Sockets
        sockets: u32 = Int "sockets" "Sockets";
        /// Cores
        cores: u32 = Int "cores" "Cores";
        /// Hardware threads
        hardware_threads: u32 = Int "hwThreads" "Hardware Threads";
    }
    /// A setting of an event type
    ActiveSetting = 123 "jdk.ActiveSetting" RECORDER, "Recording Setting" {
        /// Id of the event's type in this file
        event_id: u64 = Long "id" "Event Id";
        /// Name of the setting
        name: &'a str = Text "name" "Setting Name";
        /// Value of the setting
        value: &'a str = Text "value" "Setting Value";
    }
}
