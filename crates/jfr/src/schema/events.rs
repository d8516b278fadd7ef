//! One place for each kind of event that is not a sample. From an entry of the table come the
//! public [`Event`] variant, its metadata and its encoder (`table.rs`); the type that it is read
//! as; and, where it ends with `told`, how reports sum it up and speak of it (`kinds.rs`). Its doc
//! comment is also the description that tools show.

use super::table::{JVM, OS, PROCESSOR, PROFILER, Put, RECORDER, START_TIME, description, events};
use super::{Content, FieldDef, TypeDef, TypeKind};
use crate::ids::{StackId, ThreadId};
use crate::wire::put_varint;

/// Gives the table to a macro.
#[rustfmt::skip]
macro_rules! table { ($into:ident) => { $into! {
    /// The subject of the recording and its options; once in every chunk
    Recording = 110 "dwell.Recording" PROFILER, "Recording" {
        /// Version of the profiler
        version: &'a str = Text "version" "Version";
        /// Process that was profiled
        pid: u64 = Long "pid" "Process Identifier";
        /// The measured quantities: cpu, wall, ...
        mode: &'a str = Text "mode" "Mode";
        /// The trigger of the samples
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
        /// Number of walks that ended early for this reason
        samples: u64 = Count "samples" "Samples";
        /// The time that they stand for
        weight_ns: u64 = Nanos "weight" "Weight";
    }
    /// The profiler's own work and cost, since the recording began
    SelfCost = 113 "dwell.Self" PROFILER, "Profiler Cost" {
        /// Stacks that were walked
        walks: u64 = Count "walks" "Walks";
        /// Samples that were written
        samples: u64 = Count "samples" "Samples";
        /// Samples that were dropped
        dropped: u64 = Count "dropped" "Dropped";
        /// Bytes that were written to the file
        bytes: u64 = Bytes "bytes" "Bytes Written";
        /// CPU time of the profiler's own threads, signal handlers and thread callbacks
        agent_cpu_ns: u64 = Nanos "agentCpu" "Agent CPU Time";
        /// Signals that were handled
        handlers: u64 = Count "handlers" "Handled Signals";
        /// CPU time of the signal handlers, estimated
        handler_cpu_ns: u64 = Nanos "handlerCpu" "Handler CPU Time";
        /// CPU time of callbacks when threads begin and end, estimated
        callback_cpu_ns: u64 = Nanos "callbackCpu" "Callback CPU Time";
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
    /// One tick of the wall-clock sampler: the threads that it sampled, and the live ones
    WallTick = 117 "dwell.WallTick" PROFILER, "Wall-Clock Tick" {
        /// The time that the tick stands for
        span_ns: u64 = Nanos "span" "Span";
        /// Intervals in that time; more than 1 if ticks were missed
        ticks_passed: u64 = Count "ticks" "Ticks";
        /// Live threads
        live: u64 = Count "live" "Live Threads";
        /// Live threads that could be selected
        eligible: u64 = Count "eligible" "Eligible Threads";
        /// Selected threads
        sampled: u64 = Count "sampled" "Sampled Threads";
        /// Selected threads without a result
        failed: u64 = Count "failed" "Failed";
        /// CPU time of sampling
        cpu_ns: u64 = Nanos "cpu" "CPU Time";
        /// Virtual threads without a carrier, estimated from the selected ones
        unmounted: u64 = Count "unmounted" "Unmounted Virtual Threads";
        /// Selected virtual threads without a carrier
        unmounted_sampled: u64 = Count "unmountedSampled" "Sampled Unmounted Virtual Threads";
        /// Selected virtual threads without a result
        unmounted_failed: u64 = Count "unmountedFailed" "Failed Unmounted Virtual Threads";
        /// Selected threads that have not run since their last sample
        followed: u64 = Count "followed" "Followed Threads";
        /// Selected threads for which the kernel's page showed whether they have run
        by_page: u64 = Count "byPage" "Threads Known by Page";
        /// Selected threads that have run and were placed by their fingerprints
        by_fingerprint: u64 = Count "byFingerprint" "Threads Known by Fingerprint";
    }
    /// Wall time of a cause since the recording began, by samples of threads that did not run
    WallSum = 106 "dwell.WallSum" PROFILER, "Wall Time by Cause" {
        /// The cause of the waits
        cause: &'a str = Text "cause" "Cause";
        /// Wall time that the samples stand for
        weight_ns: u64 = Nanos "weight" "Weight";
        /// One standard error of the weight, from random selection
        error_ns: u64 = Nanos "standardError" "Standard Error";
        /// Number of samples
        looks: u64 = Count "looks" "Samples";
    }
    /// Allocations since the recording began, estimated from samples
    Allocations = 103 "dwell.Allocations" PROFILER, "Allocations" {
        /// Mean number of bytes between two samples
        interval_bytes: u64 = Bytes "interval" "Interval";
        /// Samples
        samples: u64 = Count "samples" "Samples";
        /// The bytes that the samples stand for
        weight_bytes: u64 = Bytes "weight" "Weight";
        /// Samples that were taken but not kept
        lost: u64 = Count "lostSamples" "Lost Samples";
        /// The bytes that the lost samples stood for
        lost_bytes: u64 = Bytes "lostWeight" "Lost Weight";
        /// Time with allocation samples on: less than the recording if that was switched
        sampled_ns: u64 = Nanos "sampledTime" "Sampled Time";
        /// Wanted samples per second, if the interval adapts; 0 if it is fixed
        rate: u64 = Count "rate" "Rate";
        /// The requested interval; less than the present one if that has grown
        asked_bytes: u64 = Bytes "askedInterval" "Asked Interval";
    }
    /// Sampled allocations that were not kept since the previous flush, by class, thread and method
    LostAllocations = 104 "dwell.LostAllocations" PROFILER, "Lost Allocations" {
        /// The thread that allocated them; none: several, or unknown
        thread: ThreadId = Thread "eventThread" "Event Thread";
        /// Their class
        class: &'a str = Text "objectClass" "Object Class";
        /// The method that allocated them; empty: several, or unknown
        method: &'a str = Text "method" "Method";
        /// Samples
        samples: u64 = Count "lostSamples" "Lost Samples";
        /// The bytes that the samples stood for
        weight_bytes: u64 = Bytes "lostWeight" "Lost Weight";
    }
    /// One check of the sampled objects: which are still alive
    LiveObjects = 99 "dwell.LiveObjects" PROFILER, "Live Objects" {
        /// Its number, which its objects refer to; the last one is at the end of the recording
        snapshot: u64 = Count "snapshot" "Snapshot";
        /// Mean number of bytes between two samples
        interval_bytes: u64 = Bytes "interval" "Interval";
        /// Objects that are still alive
        objects: u64 = Count "objects" "Objects";
        /// One in this number of sampled objects was followed; weights include this factor
        one_of: u64 = Count "oneOf" "One Of";
        /// Objects that were sampled
        samples: u64 = Count "samples" "Samples";
        /// Sampled objects that were not followed because of lack of room
        lost: u64 = Count "lostSamples" "Lost Samples";
        /// Time for which objects have been followed
        followed_ns: u64 = Nanos "followedTime" "Followed Time";
    }
    /// Waits for monitors since the recording began: all of them, and the sampled ones
    MonitorWaits = 97 "dwell.MonitorWaits" PROFILER, "Waits for Monitors" {
        /// Longer waits are more likely to be sampled; from this duration on, all are
        interval_ns: u64 = Nanos "interval" "Interval";
        /// All waits
        waits: u64 = Count "waits" "Waits";
        /// Total duration of all waits
        blocked_ns: u64 = Nanos "blocked" "Blocked Time";
        /// Sampled waits
        samples: u64 = Count "samples" "Samples";
        /// The time in waits that the sampled ones stand for
        weight_ns: u64 = Nanos "weight" "Weight";
        /// Sampled waits that were not kept
        lost: u64 = Count "lostSamples" "Lost Samples";
        /// The time that the lost waits stood for
        lost_ns: u64 = Nanos "lostWeight" "Lost Weight";
        /// Waits with an unknown begin; no other number includes them
        untold: u64 = Count "untold" "Waits With Unknown Begin";
        /// Time with recording of waits on: less than the recording if that was switched
        told_ns: u64 = Nanos "toldTime" "Recorded Time";
        /// The requested interval; less than the present one if that has grown
        asked_ns: u64 = Nanos "askedInterval" "Asked Interval";
    }
    /// The stack of a monitor's owner when a wait for it began, for randomly sampled waits
    MonitorOwner = 89 "dwell.MonitorOwner" PROFILER, "Owner of a Monitor" {
        /// The owner
        owner: ThreadId = Thread "eventThread" "Owner";
        /// The owner's stack; none if unknown
        stack: StackId = Stack "stackTrace" "Stack Trace";
        /// The class of the monitor's object
        class: &'a str = Text "monitorClass" "Monitor Class";
        /// The thread that waited
        waiter: ThreadId = Thread "waiter" "Waiter";
        /// Its stack
        waiter_stack: StackId = Stack "waiterStackTrace" "Waiter's Stack Trace";
        /// Address of the monitor in the runtime
        address: u64 = Count "address" "Monitor Address";
        /// Duration of the wait
        duration_ns: u64 = Nanos "waited" "Waited";
        /// The time in waits that it stands for
        weight_ns: u64 = Nanos "weight" "Weight";
        /// Why the stack is unknown or incomplete
        failure: &'a str = Text "failure" "Failure";
    }
    /// A time without recording
    Gap = 114 "dwell.Gap" PROFILER, "Gap",
        duration_ticks "Duration"
    {
        /// Why nothing was recorded
        cause: &'a str = Text "cause" "Cause";
        /// Samples lost in that time
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
        /// Upper limit of the handling times; they were at most an eighth less
        up_to_ns: u64 = Nanos "upTo" "Up To";
        /// Number of signals
        handlers: u64 = Count "handlers" "Handled Signals";
    }
    /// The endpoint of a request, for samples of its local root without an endpoint
    Endpoint = 118 "dwell.Endpoint" PROFILER, "Endpoint" {
        /// First span of the request in this process
        local_root_span_id: &'a str = Text "localRootSpanId" "Local Root Span Id";
        /// The endpoint
        endpoint: &'a str = Text "endpoint" "Endpoint";
    }
    /// A request that has ended
    Request = 119 "dwell.Request" PROFILER, "Request",
        duration_ticks "Duration"
    {
        /// Its trace
        trace_id: &'a str = Text "traceId" "Trace Id";
        /// Its first span in this process
        local_root_span_id: &'a str = Text "localRootSpanId" "Local Root Span Id";
        /// Its endpoint, if known at its end
        endpoint: &'a str = Text "endpoint" "Endpoint";
        /// Number of requests that it stands for; of many, some are kept
        count: u64 = Count "count" "Requests";
    }
    /// A span of a request, after its end; of many, the longest are kept
    Span = 105 "dwell.Span" PROFILER, "Span",
        duration_ticks "Duration"
    {
        /// Its trace
        trace_id: &'a str = Text "traceId" "Trace Id";
        /// The first span of the trace in this process
        local_root_span_id: &'a str = Text "localRootSpanId" "Local Root Span Id";
        /// Its own id
        span_id: &'a str = Text "spanId" "Span Id";
    }
    /// A pause of all threads for the garbage collector
    GcPause = 124 "dwell.GcPause" | "jdk.GCPhasePause" JVM, "Garbage Collection Pause",
        duration_ticks "Duration of the pause"
    {
    }
    told {
        line: "pauses",
        one: "GC pause",
        lane: "GC pauses",
        title: "GC pause",
        what: "pause of all threads",
        all_stand: true,
        much: "GC pauses stop the program",
        cause: "gc-stall",
    }
    /// A stop of all threads by the JVM
    Safepoint = 127 "dwell.Safepoint" JVM, "Safepoint",
        duration_ticks "From the request until the threads continued"
    {
        /// Its number; for several, the number of the last one
        safepoint_id: u64 = Long "safepointId" "Safepoint Id";
        /// The operation of the JVM; empty if unknown
        operation: &'a str = Text "operation" "Operation";
        /// Time until all threads had stopped
        reaching_ns: u64 = Nanos "timeToSafepoint" "Time To Safepoint";
        /// Time from then until the threads continued
        operation_ns: u64 = Nanos "operationTime" "Operation Time";
        /// Number of Java threads
        threads: u64 = Count "threads" "Threads";
        /// Java threads that ran when the safepoint was requested
        running: u64 = Count "running" "Running Threads";
        /// Number of late threads observed
        late: u64 = Count "late" "Late Threads";
        /// Safepoints in the event; for more than one, times are sums
        count: u64 = Count "count" "Safepoints";
        /// Source of the data
        source: &'a str = Text "source" "Source";
    }
    /// A thread that others waited for at a safepoint
    SafepointLate = 109 "dwell.SafepointLate" JVM, "Late For Safepoint",
        duration_ticks "From the request of the safepoint until the thread stopped"
    {
        /// The safepoint
        safepoint_id: u64 = Long "safepointId" "Safepoint Id";
        /// The operation of the JVM
        operation: &'a str = Text "operation" "Operation";
        /// The thread
        thread: ThreadId = Thread "eventThread" "Thread";
        /// Its stack
        stack: StackId = Stack "stackTrace" "Stack Trace";
        /// Its state: java, vm, runnable (it had no processor), page-fault
        state: &'a str = Text "state" "State";
        /// Its share of the time to the safepoint; threads late at the same moment share it
        held_ns: u64 = Nanos "held" "Held Others";
        /// Whether it was the last one
        is_last: u64 = Count "last" "Was Last";
    }
    /// CPU limit of the control group, and throttling since the last event
    CpuLimit = 125 "dwell.CpuLimit" OS, "CPU Limit" {
        /// CPU time allowed per second; 0 if unlimited
        quota_ns: u64 = Nanos "quota" "Quota Per Second";
        /// Processors that the process may run on
        processors: u64 = Count "processors" "Processors";
        /// Periods of the control group
        periods: u64 = Count "periods" "Periods";
        /// Periods in which the quota was used up
        throttled: u64 = Count "throttled" "Throttled Periods";
        /// Total time that threads were throttled
        throttled_ns: u64 = Nanos "throttledTime" "Throttled Time";
    }
    /// CPU time of all processes on the processors that this process may use
    Machine = 107 "dwell.Machine" OS, "Machine Load",
        duration_ticks "Length of the period"
    {
        /// Number of processors
        processors: u64 = Count "processors" "Processors";
        /// Total time that they were busy, for any process
        busy_ns: u64 = Nanos "busy" "Busy Time";
        /// CPU time of this process
        own_ns: u64 = Nanos "own" "Own CPU Time";
        /// Total time that they were idle
        idle_ns: u64 = Nanos "idle" "Idle Time";
        /// Time that the hypervisor took
        stolen_ns: u64 = Nanos "stolen" "Stolen Time";
    }
    /// CPU and waiting time of a sampled thread since its last event
    ThreadTime = 126 "dwell.ThreadTime" OS, "Thread CPU Time",
        duration_ticks "Length of the period"
    {
        /// The thread
        thread: ThreadId = Thread "sampledThread" "Thread";
        /// Time on a processor
        cpu_ns: u64 = Nanos "cpu" "CPU Time";
        /// Time that it was ready and waited for a processor
        waited_ns: u64 = Nanos "waited" "Run-Queue Time";
        /// Number of times that it got a processor
        turns: u64 = Count "turns" "Turns";
    }
    /// The work of the JVM's compilers since the last event, by the JVM's own counters
    Compilers = 108 "dwell.Compilers" JVM, "Compilers",
        duration_ticks "Length of the period"
    {
        /// Number of compiled methods and loops
        compilations: u64 = Count "compilations" "Compilations";
        /// Total time of all compilers
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
    others {
        /// A class that was loaded
        ClassLoad = "jdk.ClassLoad",
            duration_ns "From the request of the class until it was loaded, superclasses included"
        {
            /// Its name
            class: Text "loadedClass" "Class";
            /// Whose class it is
            loader: Loader "definingClassLoader" "Loader";
            /// The thread that requested it
            thread: Thread "eventThread" "Thread";
        }
        told {
            line: "classes",
            one: "class load",
            lane: "Classes loaded",
            title: "Class",
            what: "class that was loaded",
            all_stand: false,
            much: "",
            cause: "class-init",
        }
    }
} } }
pub(crate) use table;

table!(events);
