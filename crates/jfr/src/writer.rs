//! Writes one chunk in memory, flush by flush. Time is an argument, and bytes are the result: this
//! module never reads a clock, touches a file or panics. [`ChunkWriter::memory_bytes`] is the
//! memory of the chunk's constants and of the events since the last flush. The caller rotates
//! chunks by it.

mod constant_pool;
mod constants;
mod details;
mod metadata;
mod monitors;
mod names;

pub use crate::ids::{ClassId, MethodId, StackId, ThreadId};
pub use crate::schema::events::Event;
use crate::schema::id;
use crate::wire::{put_framed, put_pooled_text, put_varint};
use crate::{FrameKind, ThreadState};
use constants::Constants;
use details::{Detail, Told};
pub use monitors::MonitorEnter;

/// Type id of `jdk.ExecutionSample` in our files, for [`Event::ActiveSetting`].
pub const EXECUTION_SAMPLE_TYPE_ID: u64 = id::EXECUTION_SAMPLE as u64;
/// Type id of `dwell.WallSample` in our files.
pub const WALL_SAMPLE_TYPE_ID: u64 = id::WALL_SAMPLE as u64;

/// Type id of `jdk.ObjectAllocationSample` in our files.
pub const ALLOCATION_SAMPLE_TYPE_ID: u64 = id::ALLOCATION_SAMPLE as u64;

/// Bytes of a chunk header.
pub const HEADER_BYTES: usize = 68;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Ties the ticks of a chunk to wall-clock time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkClock {
    /// Wall-clock time at `start_ticks`, in nanoseconds since the epoch.
    pub epoch_ns: u64,
    /// The clock's value at the beginning of the chunk.
    pub start_ticks: u64,
    /// The clock's rate; 0 is taken as nanoseconds.
    pub ticks_per_second: u64,
}

/// A thread as the file shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadInfo<'a> {
    /// Name that the operating system knows.
    pub os_name: &'a str,
    /// Thread id of the operating system; 0 for a virtual thread.
    pub os_tid: i64,
    /// `Thread.getName()`; `None` for a thread that is not a Java thread.
    pub java_name: Option<&'a str>,
    /// `Thread.threadId()`; 0: not a Java thread.
    pub java_tid: i64,
    /// Name of the thread group.
    pub group: Option<&'a str>,
    /// Whether this is a virtual thread.
    pub is_virtual: bool,
}

/// A method or native function as the file shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MethodInfo<'a> {
    /// Internal class name (`java/lang/String`), or a library (`libjvm.so`), or a name in
    /// brackets (`[kernel]`), which other tools than this crate's reader show in parentheses.
    pub class: &'a str,
    /// Name of the method or function.
    pub name: &'a str,
    /// Descriptor; anything that is not well formed is written as `()V`.
    pub descriptor: &'a str,
    /// Access flags of the class file format.
    pub modifiers: u16,
    /// Whether tools shall leave its frames out.
    pub hidden: bool,
    /// Where its class comes from, if that is known.
    pub origin: Option<Origin<'a>>,
}

/// Where a class comes from, as the file shows it: the module of its package. Empty: not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin<'a> {
    /// The name of the module; empty for a class of the class path.
    pub module: &'a str,
    /// Where the module, or the class's jar, is: a URL.
    pub location: &'a str,
}

/// A frame of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FrameRef {
    /// The method.
    pub method: MethodId,
    /// Source line; -1: not known.
    pub line: i32,
    /// Byte code index; -1: not known.
    pub bci: i32,
    /// How the frame ran.
    pub kind: FrameKind,
}

/// The request that a thread worked for. Zeroes and empty texts are not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context<'a> {
    /// The trace.
    pub trace_id: u128,
    /// The span.
    pub span_id: u64,
    /// The first span of the trace in this process.
    pub local_root_span_id: u64,
    /// The endpoint.
    pub endpoint: &'a str,
    /// Labels, as `name=value,name=value`.
    pub labels: &'a str,
}

/// A sample (`jdk.ExecutionSample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample<'a> {
    /// When, in ticks of the chunk's clock.
    pub ticks: u64,
    /// The sampled thread: the virtual one if one was mounted.
    pub thread: ThreadId,
    /// The platform thread below a virtual thread.
    pub carrier: Option<ThreadId>,
    /// The stack, or [`StackId::NONE`].
    pub stack: StackId,
    /// The state of the thread.
    pub state: ThreadState,
    /// The time that the sample stands for.
    pub weight_ns: u64,
    /// Why the stack is not complete; `None`: it is.
    pub failure: Option<&'static str>,
    /// The context of the thread.
    pub context: Option<&'a Context<'a>>,
}

/// Wall-clock samples of a thread that did not run (`dwell.WallSample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WallSample<'a> {
    /// The first look, in ticks of the chunk's clock.
    pub ticks: u64,
    /// Ticks until the last one.
    pub duration_ticks: u64,
    /// The thread: the virtual one if one is mounted.
    pub thread: ThreadId,
    /// The platform thread below a virtual thread.
    pub carrier: Option<ThreadId>,
    /// The stack, or [`StackId::NONE`].
    pub stack: StackId,
    /// The cause of the wait.
    pub cause: &'a str,
    /// More on that: a class, a kind of descriptor.
    pub detail: Option<&'a str>,
    /// The wall-clock time that the looks stand for.
    pub weight_ns: u64,
    /// How many looks there were.
    pub count: u64,
    /// As how many looks of one weight that is certain; 0: as many as there were.
    pub choices: u64,
    /// The thread that has what is waited for.
    pub owner: Option<ThreadId>,
    /// Where that was.
    pub owner_stack: StackId,
    /// Why the stack is not complete; `None`: it is.
    pub failure: Option<&'static str>,
    /// The context of the thread.
    pub context: Option<&'a Context<'a>>,
}

/// An object that was allocated (`jdk.ObjectAllocationSample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AllocationSample<'a> {
    /// When, in ticks of the chunk's clock.
    pub ticks: u64,
    /// The thread: the virtual one if one was mounted.
    pub thread: ThreadId,
    /// The platform thread below a virtual thread.
    pub carrier: Option<ThreadId>,
    /// The stack, or [`StackId::NONE`].
    pub stack: StackId,
    /// The object's class.
    pub class: ClassId,
    /// The bytes of allocated objects that the sample stands for.
    pub weight_bytes: u64,
    /// The object's own size in bytes.
    pub size_bytes: u64,
    /// Why the stack is not complete; `None`: it is.
    pub failure: Option<&'static str>,
    /// The context of the thread.
    pub context: Option<&'a Context<'a>>,
}

/// Points of the wall clock at which a thread was seen at one place (`profiler.WallClockSample`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WallClockSample {
    /// The first point, in ticks of the chunk's clock.
    pub ticks: u64,
    /// The thread.
    pub thread: ThreadId,
    /// The stack, or [`StackId::NONE`].
    pub stack: StackId,
    /// The state of the thread.
    pub state: ThreadState,
    /// How many points.
    pub count: u32,
}

/// An object that was sampled when it was allocated, and is still there (`dwell.LiveObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveObject<'a> {
    /// Its allocation; the weight is what it stands for among those that are still there. Its
    /// carrier is not written.
    pub allocated: AllocationSample<'a>,
    /// Its age in nanoseconds when it was checked.
    pub age_ns: u64,
    /// Collections that it has survived.
    pub collections: u64,
    /// The number of the look.
    pub snapshot: u64,
}

/// A chunk being written.
///
/// Ids it gives out hold until it is dropped. Flushing never invalidates them.
pub struct ChunkWriter {
    clock: ChunkClock,
    /// Whether only what other tools know is written.
    is_plain: bool,
    constants: Constants,
    told: Told,
    /// Events since the last flush.
    events: Vec<u8>,
    scratch: Vec<u8>,
    flushed_bytes: u64,
    metadata_offset: u64,
    checkpoint_offset: u64,
    last_ticks: u64,
}

impl ChunkWriter {
    /// Begins a chunk.
    pub fn new(clock: ChunkClock) -> Self {
        Self::above(clock, 0, false)
    }

    /// Begins a chunk with only the fields that other tools know: samples have no weights, and
    /// frames have async-profiler's types. Wall-clock time goes to [`Self::wall_clock_sample`].
    pub fn plain(clock: ChunkClock) -> Self {
        Self::above(clock, 0, true)
    }

    /// Begins the chunk that follows this one in a file. Its keys go on where this one's end:
    /// readers of the JDK hold on to constants across chunks that have the same metadata.
    pub fn following(&self, clock: ChunkClock) -> Self {
        Self::above(clock, self.constants.last_key(), self.is_plain)
    }

    fn above(clock: ChunkClock, base: u32, is_plain: bool) -> Self {
        Self {
            clock,
            is_plain,
            constants: Constants::new(base, is_plain),
            told: Told::default(),
            events: Vec::new(),
            scratch: Vec::new(),
            flushed_bytes: 0,
            metadata_offset: 0,
            checkpoint_offset: 0,
            last_ticks: clock.start_ticks,
        }
    }

    /// The thread that was interned for `key`, if any.
    pub fn thread_id(&self, key: u64) -> Option<ThreadId> {
        self.constants.thread_id(key)
    }

    /// The method that was interned for `key`, if any.
    pub fn method_id(&self, key: u64) -> Option<MethodId> {
        self.constants.method_id(key)
    }

    /// The thread of `key`. `info` counts only the first time; see [`Self::update_thread`].
    pub fn thread(&mut self, key: u64, info: &ThreadInfo<'_>) -> ThreadId {
        match self.constants.thread_id(key) {
            Some(thread) => thread,
            None => self.constants.set_thread(key, info),
        }
    }

    /// Lets `key` mean `info` from now on (a thread was renamed, or its id was given to another).
    /// Samples already written keep the thread they were written with.
    pub fn update_thread(&mut self, key: u64, info: &ThreadInfo<'_>) -> ThreadId {
        self.constants.set_thread(key, info)
    }

    /// The method of `key`. `info` counts only the first time. Keys with equal `info` share an id.
    pub fn method(&mut self, key: u64, info: &MethodInfo<'_>) -> MethodId {
        match self.constants.method_id(key) {
            Some(method) => method,
            None => self.constants.set_method(key, info),
        }
    }

    /// Lets `key` mean `info` from now on (the key was a reused address).
    pub fn update_method(&mut self, key: u64, info: &MethodInfo<'_>) -> MethodId {
        self.constants.set_method(key, info)
    }

    /// The stack with these frames, leaf first. Equal stacks share an id.
    pub fn stack(&mut self, frames: &[FrameRef], truncated: bool) -> StackId {
        self.constants.stack(frames, truncated)
    }

    /// The class of objects with this name: internal (`java/lang/String`), arrays as in class files
    /// (`[B`).
    pub fn object_class(&mut self, name: &str) -> ClassId {
        self.constants.object_class(name)
    }

    /// Adds a sample; before it what differs from the sample of its thread before.
    pub fn execution_sample(&mut self, sample: &Sample<'_>) {
        let detail = Detail {
            number: sample.weight_ns,
            failure: sample.failure,
            carrier: sample.carrier,
        };
        self.tell(id::SAMPLE_DETAIL, sample.ticks, sample.thread, detail);
        self.tell_context(sample.ticks, sample.thread, sample.context);
        self.scratch.clear();
        put_varint(&mut self.scratch, EXECUTION_SAMPLE_TYPE_ID);
        put_varint(&mut self.scratch, sample.ticks);
        put_varint(&mut self.scratch, u64::from(sample.thread.0));
        put_varint(&mut self.scratch, u64::from(sample.stack.0));
        put_varint(&mut self.scratch, u64::from(sample.state.pool_key()));
        put_framed(&mut self.events, &self.scratch);
        self.last_ticks = self.last_ticks.max(sample.ticks);
    }

    /// Adds wall-clock samples of a thread that did not run.
    pub fn wall_sample(&mut self, sample: &WallSample<'_>) {
        self.tell_context(sample.ticks, sample.thread, sample.context);
        let [cause, detail, failure] = [Some(sample.cause), sample.detail, sample.failure]
            .map(|text| text.map_or(0, |text| self.constants.string(text)));
        self.scratch.clear();
        put_varint(&mut self.scratch, WALL_SAMPLE_TYPE_ID);
        put_varint(&mut self.scratch, sample.ticks);
        put_varint(&mut self.scratch, sample.duration_ticks);
        put_varint(&mut self.scratch, u64::from(sample.thread.0));
        put_varint(&mut self.scratch, u64::from(sample.stack.0));
        put_pooled_text(&mut self.scratch, cause);
        put_pooled_text(&mut self.scratch, detail);
        put_varint(&mut self.scratch, sample.weight_ns);
        put_varint(&mut self.scratch, sample.count);
        put_varint(&mut self.scratch, sample.choices);
        let owner = sample.owner.unwrap_or_default();
        put_varint(&mut self.scratch, u64::from(owner.0));
        put_varint(&mut self.scratch, u64::from(sample.owner_stack.0));
        put_pooled_text(&mut self.scratch, failure);
        let carrier = sample.carrier.unwrap_or_default();
        put_varint(&mut self.scratch, u64::from(carrier.0));
        put_framed(&mut self.events, &self.scratch);
        let end = sample.ticks.saturating_add(sample.duration_ticks);
        self.last_ticks = self.last_ticks.max(end);
    }

    /// Adds an object that was allocated; before it what differs from the one of its thread before.
    pub fn allocation_sample(&mut self, sample: &AllocationSample<'_>) {
        let detail = Detail {
            number: sample.size_bytes,
            failure: sample.failure,
            carrier: sample.carrier,
        };
        self.tell(id::ALLOCATION_DETAIL, sample.ticks, sample.thread, detail);
        self.tell_context(sample.ticks, sample.thread, sample.context);
        self.begin_object(ALLOCATION_SAMPLE_TYPE_ID, sample);
        put_framed(&mut self.events, &self.scratch);
        self.last_ticks = self.last_ticks.max(sample.ticks);
    }

    /// Adds an object that is still there; to a plain chunk as async-profiler does, its size being
    /// what it stands for.
    pub fn live_object(&mut self, live: &LiveObject<'_>) {
        if self.is_plain {
            let it = &live.allocated;
            self.scratch.clear();
            put_varint(&mut self.scratch, u64::from(id::COMMON_LIVE_OBJECT));
            put_varint(&mut self.scratch, it.ticks);
            put_varint(&mut self.scratch, u64::from(it.thread.0));
            put_varint(&mut self.scratch, u64::from(it.stack.0));
            put_varint(&mut self.scratch, u64::from(it.class.0));
            put_varint(&mut self.scratch, it.weight_bytes);
            put_varint(&mut self.scratch, it.ticks);
            put_framed(&mut self.events, &self.scratch);
            self.last_ticks = self.last_ticks.max(it.ticks);
            return;
        }
        let it = &live.allocated;
        let failure = it.failure.map_or(0, |text| self.constants.string(text));
        self.begin_object(u64::from(id::LIVE_OBJECT), it);
        put_varint(&mut self.scratch, it.size_bytes);
        put_pooled_text(&mut self.scratch, failure);
        put_varint(&mut self.scratch, live.age_ns);
        put_varint(&mut self.scratch, live.collections);
        put_varint(&mut self.scratch, live.snapshot);
        self.put_context(it.context);
        put_framed(&mut self.events, &self.scratch);
        self.last_ticks = self.last_ticks.max(it.ticks);
    }

    /// Begins an event with what events of objects have in common.
    fn begin_object(&mut self, type_id: u64, sample: &AllocationSample<'_>) {
        self.scratch.clear();
        put_varint(&mut self.scratch, type_id);
        put_varint(&mut self.scratch, sample.ticks);
        put_varint(&mut self.scratch, u64::from(sample.thread.0));
        put_varint(&mut self.scratch, u64::from(sample.stack.0));
        put_varint(&mut self.scratch, u64::from(sample.class.0));
        put_varint(&mut self.scratch, sample.weight_bytes);
    }

    /// Adds points of the wall clock, as async-profiler writes them, to a plain chunk; other chunks
    /// have [`Self::wall_sample`], and leave this out.
    pub fn wall_clock_sample(&mut self, sample: &WallClockSample) {
        if !self.is_plain {
            return;
        }
        self.scratch.clear();
        put_varint(&mut self.scratch, u64::from(id::WALL_CLOCK_SAMPLE));
        put_varint(&mut self.scratch, sample.ticks);
        put_varint(&mut self.scratch, u64::from(sample.thread.0));
        put_varint(&mut self.scratch, u64::from(sample.stack.0));
        put_varint(&mut self.scratch, u64::from(sample.state.pool_key()));
        put_varint(&mut self.scratch, u64::from(sample.count));
        put_framed(&mut self.events, &self.scratch);
        self.last_ticks = self.last_ticks.max(sample.ticks);
    }

    /// Adds an event that is not a sample.
    pub fn event(&mut self, event: &Event<'_>) {
        self.scratch.clear();
        event.encode(&mut self.scratch);
        put_framed(&mut self.events, &self.scratch);
        self.last_ticks = self.last_ticks.max(event.end_ticks());
    }

    /// The bytes to append to the file. The first ones of a chunk begin with a header that is right
    /// already; after every later flush, [`Self::header`] has to be written over the chunk's start.
    pub fn flush(&mut self, now_ticks: u64) -> Vec<u8> {
        self.last_ticks = self.last_ticks.max(now_ticks);
        let first = self.flushed_bytes == 0;
        let mut out = Vec::with_capacity(self.events.len() + HEADER_BYTES);
        if first {
            out.extend_from_slice(&[0; HEADER_BYTES]);
            self.metadata_offset = HEADER_BYTES as u64;
            out.extend_from_slice(&metadata::metadata_event(
                self.clock.start_ticks,
                self.is_plain,
            ));
        }
        out.append(&mut self.events);
        self.checkpoint(&mut out, now_ticks);
        self.flushed_bytes += out.len() as u64;
        if first && let Some(header) = out.first_chunk_mut() {
            *header = self.header();
        }
        out
    }

    /// The header for a file that has everything flushed so far.
    pub fn header(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let words = [
            self.flushed_bytes,
            self.checkpoint_offset,
            self.metadata_offset,
            self.clock.epoch_ns,
            self.duration_ns(),
            self.clock.start_ticks,
            self.ticks_per_second(),
        ];
        let fields = b"FLR\0"
            .iter()
            .copied()
            .chain([0, 2, 0, 1]) // version 2.1
            .chain(words.into_iter().flat_map(u64::to_be_bytes))
            .chain([0, 0, 0, 1]); // state "finished", padding, flags: base-128 integers
        for (byte, value) in header.iter_mut().zip(fields) {
            *byte = value;
        }
        header
    }

    /// Bytes flushed so far: the size of the chunk in the file.
    pub fn len(&self) -> u64 {
        self.flushed_bytes
    }

    /// Whether nothing has been flushed yet.
    pub fn is_empty(&self) -> bool {
        self.flushed_bytes == 0
    }

    /// Bytes of events that wait for the next flush.
    pub fn pending_bytes(&self) -> usize {
        self.events.len()
    }

    /// Heap memory that the chunk holds, without the allocator's own.
    pub fn memory_bytes(&self) -> usize {
        self.constants.memory_bytes()
            + self.told.memory_bytes()
            + self.events.capacity()
            + self.scratch.capacity()
    }

    /// Checkpoints are chained backwards: each names its distance to the one before, the header
    /// names the last.
    fn checkpoint(&mut self, out: &mut Vec<u8>, now_ticks: u64) {
        let offset = self.flushed_bytes + out.len() as u64;
        let delta = match self.checkpoint_offset {
            0 => 0,
            previous => previous.wrapping_sub(offset).cast_signed(),
        };
        if self.constants.write_checkpoint(out, now_ticks, delta) {
            self.checkpoint_offset = offset;
        }
    }

    fn ticks_per_second(&self) -> u64 {
        match self.clock.ticks_per_second {
            0 => NANOS_PER_SECOND,
            rate => rate,
        }
    }

    fn duration_ns(&self) -> u64 {
        let ticks = u128::from(self.last_ticks.saturating_sub(self.clock.start_ticks));
        let ns = ticks * u128::from(NANOS_PER_SECOND);
        // Rounded up: the JDK's tools leave out what ends after the chunk.
        let ns = ns.div_ceil(u128::from(self.ticks_per_second()));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}
