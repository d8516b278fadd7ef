//! The content of a recording, for the callers of the reader. Plain data; no decoding.

use super::header::ChunkInfo;
use super::stacks::Stacks;
use crate::{FrameKind, ThreadState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The contents of a file. Threads, methods and stacks of all chunks are in one table each, without
/// duplicates; samples refer to them by place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    /// The chunks in the order of the file.
    pub chunks: Vec<ChunkInfo>,
    /// All threads that something refers to.
    pub threads: Vec<Thread>,
    /// All methods that something refers to.
    pub methods: Vec<Method>,
    /// All stacks that something refers to.
    pub stacks: Stacks,
    /// All samples in the order of the file, which is only nearly that of time.
    pub samples: Vec<Sample>,
    /// Samples that say the same within so long are one, because there are so many; 0: none are.
    pub bin_ns: u64,
    /// Why stacks are not complete; see [`Sample::failure`].
    pub failures: Vec<Arc<str>>,
    /// Additional data of wall-clock samples; see [`Sample::wall`].
    pub walls: Vec<Wall>,
    /// Contexts of threads; see [`Sample::context`].
    pub contexts: Vec<Context>,
    /// Texts that [`Wall`] and [`Context`] refer to.
    pub texts: Vec<Arc<str>>,
    /// The other events, as far as they were asked for.
    pub events: Vec<GenericEvent>,
    /// How many events of each type the file has, read or not.
    pub counts: BTreeMap<Arc<str>, u64>,
    /// Names of the types of events in the file, by the numbers that settings refer to.
    pub types: BTreeMap<u64, Arc<str>>,
    /// The unreadable parts, in words.
    pub warnings: Vec<String>,
    /// How much of the file could not be read because it is cut off or damaged.
    pub unread: Unread,
}

/// The missing and the unreadable parts of a file. A file that was cut exactly between two chunks
/// looks complete, and is not reported here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unread {
    /// Chunks that are not whole: something of them was left out, or they were never finished.
    pub chunks: u64,
    /// Bytes that are in the file and were left out.
    pub bytes: u64,
    /// Bytes that the header of the last chunk promises beyond the file's end.
    pub absent: u64,
    /// Whether all that was left out lies at the file's end.
    pub is_at_end: bool,
    /// Where what was left out begins.
    pub(crate) from: u64,
}

impl Unread {
    /// Whether everything was read.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.chunks == 0 && self.bytes == 0
    }

    /// Adds a stretch that was left out.
    pub(crate) fn stretch(&mut self, from: usize, to: usize) {
        let bytes = to.saturating_sub(from) as u64;
        if bytes > 0 {
            self.from = match self.bytes {
                0 => from as u64,
                _ => self.from.min(from as u64),
            };
            self.bytes = self.bytes.saturating_add(bytes);
        }
    }

    /// Adds what was left out of another part of the file.
    pub(crate) fn add(&mut self, other: &Unread) {
        self.from = match (self.bytes, other.bytes) {
            (0, _) => other.from,
            (_, 0) => self.from,
            _ => self.from.min(other.from),
        };
        self.chunks = self.chunks.saturating_add(other.chunks);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.absent = self.absent.saturating_add(other.absent);
    }

    /// Ends the account: the file has this length.
    pub(crate) fn finish(&mut self, length: u64) {
        // Stretches do not overlap.
        self.is_at_end = self.bytes == 0 || self.from.saturating_add(self.bytes) >= length;
        self.from = 0;
    }
}

impl Recording {
    /// The stack of a sample; empty if the sample has no stack.
    pub fn stack(&self, sample: &Sample) -> Option<Stack> {
        self.stacks.get(sample.stack)
    }

    /// The thread of a sample.
    pub fn thread(&self, sample: &Sample) -> Option<&Thread> {
        self.threads.get(sample.thread as usize)
    }

    /// The method of a frame.
    pub fn method(&self, frame: &StackFrame) -> Option<&Method> {
        self.methods.get(frame.method as usize)
    }

    /// Why the stack of a sample is not complete.
    pub fn failure(&self, sample: &Sample) -> Option<&str> {
        self.failures
            .get(sample.failure? as usize)
            .map(|text| &**text)
    }

    /// The context of the thread of a sample.
    pub fn context(&self, sample: &Sample) -> Option<&Context> {
        self.contexts.get(sample.context? as usize)
    }

    /// A text that something refers to by place.
    pub fn text(&self, place: Option<u32>) -> Option<&str> {
        self.texts.get(place? as usize).map(|text| &**text)
    }

    /// The other events of one type.
    pub fn events_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a GenericEvent> {
        self.events.iter().filter(move |event| &*event.name == name)
    }
}

/// A thread. All fields are empty when a sample names no thread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Name that the operating system knows.
    pub os_name: Arc<str>,
    /// Thread id of the operating system; 0: none (a virtual thread).
    pub os_tid: i64,
    /// `Thread.getName()`; `None` for a thread that is not a Java thread.
    pub java_name: Option<Arc<str>>,
    /// `Thread.threadId()`; 0: not a Java thread.
    pub java_tid: i64,
    /// Name of the thread group.
    pub group: Option<Arc<str>>,
    /// Whether this is a virtual thread.
    pub is_virtual: bool,
}

/// A method or native function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Method {
    /// Class name with dots (`java.lang.String`), a library, or `[kernel]`. Empty: not known.
    pub class: Arc<str>,
    /// Name of the method or function. Empty: not known.
    pub name: Arc<str>,
    /// Descriptor as the class file has it.
    pub descriptor: Arc<str>,
    /// Whether tools shall leave its frames out.
    pub hidden: bool,
    /// The name of the module of its class. Empty if unknown or absent.
    pub module: Arc<str>,
    /// Where that module, or the class's jar, is: a URL. Empty: not known.
    pub location: Arc<str>,
}

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Place in [`Recording::methods`].
    pub method: u32,
    /// Source line; 0 or less: not known.
    pub line: i32,
    /// Byte code index; -1: not known.
    pub bci: i32,
    /// How the frame ran.
    pub kind: FrameKind,
}

/// A stack, leaf first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The frames. Empty when a sample has no stack.
    pub frames: Vec<StackFrame>,
    /// Whether frames are missing at the root end.
    pub truncated: bool,
}

/// The event that a sample was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleKind {
    /// `jdk.ExecutionSample`: with a weight if this crate wrote it, one tick of a timer otherwise.
    Execution,
    /// `jdk.NativeMethodSample`: a thread in native code, on or off CPU.
    Native,
    /// `jdk.CPUTimeSample` of JDK 25 and later.
    CpuTime,
    /// `dwell.WallSample`: wall-clock samples of a thread that did not run.
    Wall,
    /// `profiler.WallClockSample` of async-profiler: a thread, running or not, at a time.
    WallClock,
    /// `datadog.ExecutionSample` of ddprof: a thread that used CPU time.
    DatadogCpu,
    /// `datadog.MethodSample` of ddprof: a thread, running or not, at a time.
    DatadogWall,
}

impl SampleKind {
    /// The event's name.
    pub const fn event_name(self) -> &'static str {
        match self {
            Self::Execution => "jdk.ExecutionSample",
            Self::Native => "jdk.NativeMethodSample",
            Self::CpuTime => "jdk.CPUTimeSample",
            Self::Wall => "dwell.WallSample",
            Self::WallClock => "profiler.WallClockSample",
            Self::DatadogCpu => "datadog.ExecutionSample",
            Self::DatadogWall => "datadog.MethodSample",
        }
    }

    pub(crate) fn from_event_name(name: &str) -> Option<Self> {
        [
            Self::Execution,
            Self::Native,
            Self::CpuTime,
            Self::Wall,
            Self::WallClock,
            Self::DatadogCpu,
            Self::DatadogWall,
        ]
        .into_iter()
        .find(|kind| kind.event_name() == name)
    }

    /// Whether the event says how many ticks of its profiler's clock a sample stands for, and not
    /// what those last: [`Wall::count`] of the sample's [`Sample::wall`] then.
    pub const fn counts_ticks(self) -> bool {
        matches!(self, Self::WallClock | Self::DatadogCpu | Self::DatadogWall)
    }
}

/// A sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When, in nanoseconds since the epoch; of several the first.
    pub time_ns: u64,
    /// How many samples of the file it is: see [`Recording::bin_ns`].
    pub count: u32,
    /// The time that the sample stands for, if the file says.
    pub weight_ns: Option<u64>,
    /// Place in [`Recording::threads`].
    pub thread: u32,
    /// Place in [`Recording::threads`] of the platform thread below a virtual thread.
    pub carrier: Option<u32>,
    /// Place in [`Recording::stacks`].
    pub stack: u32,
    /// Place in [`Recording::failures`]; `None`: the stack is complete.
    pub failure: Option<u32>,
    /// The state of the thread.
    pub state: ThreadState,
    /// The event it was read from.
    pub kind: SampleKind,
    /// Whether the JDK says that the stack was taken at a later safepoint.
    pub biased: bool,
    /// Place in [`Recording::walls`], if it is a wall-clock sample or counts ticks.
    pub wall: Option<u32>,
    /// Place in [`Recording::contexts`] of what the thread worked for; `None`: nothing is known.
    pub context: Option<u32>,
}

#[cfg(test)]
impl Sample {
    /// One of which nothing special is known, for tests to change.
    pub(crate) const PLAIN: Sample = Sample {
        time_ns: 0,
        count: 1,
        weight_ns: Some(1),
        thread: 0,
        carrier: None,
        stack: 0,
        failure: None,
        state: ThreadState::Runnable,
        kind: SampleKind::Execution,
        biased: false,
        wall: None,
        context: None,
    };
}

/// The request that a thread worked for. Absent ids are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Context {
    /// The trace.
    pub trace_id: u128,
    /// The span.
    pub span_id: u64,
    /// The first span of the trace in this process.
    pub local_root_span_id: u64,
    /// The endpoint: place in [`Recording::texts`].
    pub endpoint: Option<u32>,
    /// Labels, as `name=value,name=value`: place in [`Recording::texts`].
    pub labels: Option<u32>,
}

/// Fields of a wall-clock sample that other samples lack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wall {
    /// From the first look to the last one, in ns.
    pub duration_ns: u64,
    /// The cause of the wait: place in [`Recording::texts`].
    pub cause: Option<u32>,
    /// More on that: place in [`Recording::texts`].
    pub detail: Option<u32>,
    /// How many looks there were.
    pub count: u64,
    /// As how many looks of one weight that is certain; 0: as many as there were.
    pub choices: u64,
    /// The owner of the lock that the thread waits for: place in [`Recording::threads`].
    pub owner: Option<u32>,
    /// Where that was: place in [`Recording::stacks`].
    pub owner_stack: Option<u32>,
}

/// As how many looks of one weight two sums are certain together that are so as `choices` each: the
/// variances, `weight^2 / choices`, add up.
#[must_use]
pub fn choices_of_both(a: (u64, u64), b: (u64, u64)) -> u64 {
    let square = |(weight, choices): (u64, u64)| (weight as f64).powi(2) / choices.max(1) as f64;
    let both = (a.0 as f64 + b.0 as f64).powi(2) / (square(a) + square(b));
    match both.is_nan() {
        // Neither weighs anything.
        true => a.1.saturating_add(b.1),
        // Up to rounding no less certain than the one alone.
        false => (both.round() as u64).max(1),
    }
}

/// An event that is not a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct GenericEvent {
    /// Name of the event's type.
    pub name: Arc<str>,
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The fields in the order of the file, `startTime` included.
    pub fields: Vec<(Arc<str>, Value)>,
}

impl GenericEvent {
    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields
            .iter()
            .find(|(field, _)| &**field == name)
            .map(|(_, value)| value)
    }

    /// The value of a field that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a field that is a whole number, a duration or a time (in nanoseconds).
    pub fn int(&self, name: &str) -> Option<i64> {
        match *self.get(name)? {
            Value::Int(value) | Value::DurationNs(value) => Some(value),
            Value::TimeNs(value) => i64::try_from(value).ok(),
            _ => None,
        }
    }
}

/// A value of a generic event.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value, or a reference to something that the file does not have.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number of any width.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A duration in nanoseconds; its greatest and least value stand for "forever" and "unknown".
    DurationNs(i64),
    /// A point in time in nanoseconds since the epoch.
    TimeNs(u64),
    /// A string, a class name (with dots), or a structure that stands for its only string.
    Text(Arc<str>),
    /// Place in [`Recording::threads`].
    Thread(u32),
    /// Place in [`Recording::stacks`].
    Stack(u32),
    /// Place in [`Recording::methods`].
    Method(u32),
    /// Any other structure, shared by all that refer to it.
    Struct(Arc<[(Arc<str>, Value)]>),
    /// Several values.
    Array(Vec<Value>),
}
