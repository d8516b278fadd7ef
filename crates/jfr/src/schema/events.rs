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
        /// How many walks ended so
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
        /// Live threads that could be chosen
        eligible: u64 = Count "eligible" "Eligible Threads";
        /// Threads that were chosen
        sampled: u64 = Count "sampled" "Sampled Threads";
        /// Chosen threads without a result
        failed: u64 = Count "failed" "Failed";
        /// CPU time of sampling
        cpu_ns: u64 = Nanos "cpu" "CPU Time";
        /// Virtual threads without a carrier, estimated from those that were chosen
        unmounted: u64 = Count "unmounted" "Unmounted Virtual Threads";
        /// Virtual threads without a carrier that were chosen
        unmounted_sampled: u64 = Count "unmountedSampled" "Sampled Unmounted Virtual Threads";
        /// Chosen virtual threads without a result
        unmounted_failed: u64 = Count "unmountedFailed" "Failed Unmounted Virtual Threads";
        /// Chosen threads that have not run since their last look
        followed: u64 = Count "followed" "Followed Threads";
        /// Chosen threads for which the kernel's page showed whether they have run
        by_page: u64 = Count "byPage" "Threads Known by Page";
        /// Chosen threads that have run and were placed by their fingerprints
        by_fingerprint: u64 = Count "byFingerprint" "Threads Known by Fingerprint";
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
    /// The allocations since the recording began, by the samples
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
        /// The interval that was asked for: less than the other one where it has grown
        asked_bytes: u64 = Bytes "askedInterval" "Asked Interval";
    }
    /// One check of the sampled objects: which are still alive
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
        /// Objects among them that were not followed for want of room
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
        /// The time with recording of waits on: less than the recording if that was switched
        told_ns: u64 = Nanos "toldTime" "Told Time";
        /// The interval that was asked for: less than the other one where it has grown
        asked_ns: u64 = Nanos "askedInterval" "Asked Interval";
    }
    /// Where a monitor's owner was when a wait for it began, for waits drawn by chance
    MonitorOwner = 89 "dwell.MonitorOwner" PROFILER, "Owner of a Monitor" {
        /// The owner
        owner: ThreadId = Thread "eventThread" "Owner";
        /// Where it was; none if that is not known
        stack: StackId = Stack "stackTrace" "Stack Trace";
        /// The class of the monitor's object
        class: &'a str = Text "monitorClass" "Monitor Class";
        /// The thread that waited
        waiter: ThreadId = Thread "waiter" "Waiter";
        /// Where
        waiter_stack: StackId = Stack "waiterStackTrace" "Waiter's Stack Trace";
        /// Where the runtime keeps the monitor
        address: u64 = Count "address" "Monitor Address";
        /// How long that wait lasted
        duration_ns: u64 = Nanos "waited" "Waited";
        /// The time in waits that it stands for
        weight_ns: u64 = Nanos "weight" "Weight";
        /// Why the stack is not known or not whole
        failure: &'a str = Text "failure" "Failure";
    }
    /// A time in which nothing could be recorded
    Gap = 114 "dwell.Gap" PROFILER, "Gap",
        duration_ticks "How long it lasted"
    {
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
        /// Upper limit of the handling times; they were at most an eighth less
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
    Request = 119 "dwell.Request" PROFILER, "Request",
        duration_ticks "How long it took"
    {
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
    Span = 105 "dwell.Span" PROFILER, "Span",
        duration_ticks "How long it took"
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
        duration_ticks "How long the collector had all threads stand still"
    {
    }
    told {
        line: "pauses",
        one: "GC pause",
        lane: "Collections (pauses)",
        title: "Collection",
        what: "pause of all threads",
        all_stand: true,
        much: "Collections stop the program",
        cause: "gc-stall",
    }
    /// A stop of all threads by the JVM
    Safepoint = 127 "dwell.Safepoint" JVM, "Safepoint",
        duration_ticks "From when it was asked for until the threads went on"
    {
        /// Its number; of several the last one's
        safepoint_id: u64 = Long "safepointId" "Safepoint Id";
        /// The operation of the JVM; empty if unknown
        operation: &'a str = Text "operation" "Operation";
        /// Until all threads had stopped
        reaching_ns: u64 = Nanos "timeToSafepoint" "Time To Safepoint";
        /// From then on
        operation_ns: u64 = Nanos "operationTime" "Operation Time";
        /// Java threads that there were
        threads: u64 = Count "threads" "Threads";
        /// Threads among them that ran when the safepoint was requested
        running: u64 = Count "running" "Running Threads";
        /// Threads that were seen to be late
        late: u64 = Count "late" "Late Threads";
        /// Safepoints that the event stands for; of more than one, times are sums
        count: u64 = Count "count" "Safepoints";
        /// Where that was read
        source: &'a str = Text "source" "Source";
    }
    /// A thread that others waited for at a safepoint
    SafepointLate = 109 "dwell.SafepointLate" JVM, "Late For Safepoint",
        duration_ticks "From when the safepoint was asked for until the thread stopped"
    {
        /// The safepoint
        safepoint_id: u64 = Long "safepointId" "Safepoint Id";
        /// The operation of the JVM
        operation: &'a str = Text "operation" "Operation";
        /// The thread
        thread: ThreadId = Thread "eventThread" "Thread";
        /// Where it was
        stack: StackId = Stack "stackTrace" "Stack Trace";
        /// Its state: java, vm, runnable (it had no processor), page-fault
        state: &'a str = Text "state" "State";
        /// Its part of the time to the safepoint, which those that are late share at each moment
        held_ns: u64 = Nanos "held" "Held Others";
        /// Whether it was the last one
        is_last: u64 = Count "last" "Was Last";
    }
    /// The limit of the control group, and how often it held the process back since then
    CpuLimit = 125 "dwell.CpuLimit" OS, "CPU Limit" {
        /// Processors' time that it may use in a second; 0: as much as there is
        quota_ns: u64 = Nanos "quota" "Quota Per Second";
        /// Processors that the process may run on
        processors: u64 = Count "processors" "Processors";
        /// Periods of the control group
        periods: u64 = Count "periods" "Periods";
        /// Periods among them in which the quota was used up
        throttled: u64 = Count "throttled" "Throttled Periods";
        /// How long threads were held back, all together
        throttled_ns: u64 = Nanos "throttledTime" "Throttled Time";
    }
    /// Processor time that all processes used on the processors of this one
    Machine = 107 "dwell.Machine" OS, "Machine Load",
        duration_ticks "Of which time"
    {
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
    /// CPU and waiting time of a sampled thread since its last event
    ThreadTime = 126 "dwell.ThreadTime" OS, "Thread CPU Time",
        duration_ticks "Of which time"
    {
        /// The thread
        thread: ThreadId = Thread "sampledThread" "Thread";
        /// Time on a processor
        cpu_ns: u64 = Nanos "cpu" "CPU Time";
        /// Time it was ready and waited for a processor
        waited_ns: u64 = Nanos "waited" "Run-Queue Time";
        /// How often it got a processor
        turns: u64 = Count "turns" "Turns";
    }
    /// The work of the JVM's compilers since the last event, by the JVM's own counters
    Compilers = 108 "dwell.Compilers" JVM, "Compilers",
        duration_ticks "Of which time"
    {
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
    others {
        /// A class that was loaded
        ClassLoad = "jdk.ClassLoad",
            duration_ns "From when it was looked for until it was there, superclasses included"
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
