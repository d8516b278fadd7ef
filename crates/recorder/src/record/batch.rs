//! Samples between two flushes: walked, managed names resolved, native names still addresses.
//!
//! Names of native functions are looked up for many addresses at once, so they wait for the flush.
//! Equal stacks are kept once.

use super::names::{NameId, Names};
use crate::looks::shelf::Tick;
use crate::record::outer::NamedStack;
use crate::stops::{LateThread, Stop};
use crate::threads::ThreadName;
use dwell_context::Context;
use dwell_jfr::{FrameKind, ThreadState};
use dwell_signal::{Allocation, Wait};
use dwell_wall::cause::{Monitor, Os};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// A name that is known.
    Named(NameId),
    /// An offset in a library, by its index in the resolver.
    Native {
        /// Index of the image.
        image: u32,
        /// Offset from its lowest address.
        offset: u32,
    },
    /// A kernel address.
    Kernel(u64),
}

/// A frame that waits for the flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PendingFrame {
    /// The code that it runs.
    pub code: Code,
    /// Kind of code.
    pub kind: FrameKind,
    /// Source line, -1 if unknown.
    pub line: i32,
    /// Bytecode index, -1 if unknown.
    pub bci: i32,
}

impl PendingFrame {
    /// The same frame with its name in another table.
    #[must_use]
    pub fn renamed(&self, old: &Names, new: &mut Names) -> PendingFrame {
        let code = match self.code {
            Code::Named(id) => Code::Named(new.add_known(old.get(id))),
            code @ (Code::Native { .. } | Code::Kernel(_)) => code,
        };
        PendingFrame { code, ..*self }
    }
}

/// A sample that waits for the flush.
#[derive(Clone, Copy, Debug)]
pub struct PendingSample {
    /// When, on the monotonic clock.
    pub time_ns: u64,
    /// Key of the thread.
    pub thread: u64,
    /// Key of the carrier, if the thread is virtual.
    pub carrier: Option<u64>,
    /// Index of the stack.
    pub stack: u32,
    /// State of the thread.
    pub state: ThreadState,
    /// CPU time the sample stands for.
    pub weight_ns: u64,
    /// Why the walk failed, if it did.
    pub failure: Option<&'static str>,
    /// The thread's context; see [`Batch::context`].
    pub context: ContextId,
}

/// A thread's context, in its batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ContextId(u32);

impl ContextId {
    /// No context.
    pub const NONE: ContextId = ContextId(0);

    /// Its place among [`Batch::contexts`], if there is one.
    #[must_use]
    pub fn place(self) -> Option<usize> {
        (self.0 as usize).checked_sub(1)
    }
}

/// Wall-clock samples of a thread that did not run, until the flush.
#[derive(Clone, Debug)]
pub struct PendingWall {
    /// The first sample, on the monotonic clock.
    pub time_ns: u64,
    /// From there to the last one.
    pub duration_ns: u64,
    /// Key of the thread.
    pub thread: u64,
    /// Key of the carrier, if the thread is virtual.
    pub carrier: Option<u64>,
    /// Index of the stack; `None` without a stack.
    pub stack: Option<u32>,
    /// The operating system's data.
    pub os: Os,
    /// The runtime's data about monitors.
    pub monitor: Monitor,
    /// Key of the thread that owns the awaited object.
    pub owner: Option<u64>,
    /// Index of that one's stack.
    pub owner_stack: Option<u32>,
    /// Whether another thread owns the lock that it is parked on.
    pub is_owned_lock: bool,
    /// The awaited object, in words.
    pub detail: Option<Arc<str>>,
    /// Wall-clock time that the samples stand for.
    pub weight_ns: u64,
    /// How many there were.
    pub count: u32,
    /// The number of choices that gives the same certainty: see `dwell_wall::sums::choices`.
    pub choices: u64,
    /// Why the walk failed, if it did.
    pub failure: Option<&'static str>,
    /// The thread's context; see [`Batch::context`].
    pub context: ContextId,
}

/// An allocated object that waits for the flush.
#[derive(Clone, Copy, Debug)]
pub struct PendingAllocation {
    /// When, on the monotonic clock.
    pub time_ns: u64,
    /// Key of the thread.
    pub thread: u64,
    /// Key of the carrier, if the thread is virtual.
    pub carrier: Option<u64>,
    /// Index of the stack; `None` without a stack.
    pub stack: Option<u32>,
    /// The object.
    pub object: Allocation,
    /// Why the walk failed, if it did.
    pub failure: Option<&'static str>,
    /// The thread's context; see [`Batch::context`].
    pub context: ContextId,
}

/// A surviving object, reported for a snapshot.
#[derive(Clone, Debug)]
pub struct PendingAlive {
    /// Its allocation; the weight is its present one.
    pub of: PendingAllocation,
    /// The name of the allocating thread.
    pub name: Option<Arc<ThreadName>>,
    /// Its age at the check.
    pub age_ns: u64,
    /// Collections that it is known to have survived.
    pub collections: u32,
    /// The snapshot's number.
    pub snapshot: u64,
}

/// One check of all objects that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Counted from 1 on in a recording.
    pub number: u64,
    /// When, on the monotonic clock.
    pub at_ns: u64,
    /// Since when objects are followed.
    pub since_ns: u64,
    /// Objects that are still there.
    pub objects: u64,
    /// Each stands for this many chosen ones.
    pub one_of: u64,
    /// Objects that were chosen.
    pub chosen: u64,
    /// Objects among them that were not followed for want of room.
    pub lost: u64,
}

/// A wait for a monitor that waits for the flush.
#[derive(Clone, Copy, Debug)]
pub struct PendingWait {
    /// Key of the thread.
    pub thread: u64,
    /// Key of the carrier, if the thread is virtual.
    pub carrier: Option<u64>,
    /// Index of the stack; `None` without a stack.
    pub stack: Option<u32>,
    /// The wait.
    pub wait: Wait,
    /// Key of the thread that owned the monitor when the wait began, if that is known.
    pub owner: Option<u64>,
    /// The owner's stack, if the wait has asked for it.
    pub owner_at: OwnerAt,
    /// Why the walk failed, if it did.
    pub failure: Option<&'static str>,
    /// The thread's context; see [`Batch::context`].
    pub context: ContextId,
}

/// Where the owner of a monitor was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerAt {
    /// The time, on the monotonic clock; 0: the stack is not known.
    pub time_ns: u64,
    /// Index of its stack, if that is known.
    pub stack: Option<u32>,
    /// Why it is not known, or not whole.
    pub failure: Option<&'static str>,
}

/// A stop of all threads that waits for the flush.
#[derive(Clone, Debug)]
pub struct PendingStop {
    /// Its data.
    pub stop: Stop,
    /// The threads that others waited for.
    pub late: Vec<PendingLate>,
}

/// A thread that others waited for.
#[derive(Clone, Debug)]
pub struct PendingLate {
    /// Its data.
    pub late: LateThread,
    /// Index of its stack; none if it was not recorded.
    pub stack: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
    truncated: bool,
}

/// The samples since the last flush.
#[derive(Default)]
pub struct Batch {
    frames: Vec<PendingFrame>,
    stacks: Vec<Span>,
    by_hash: FxHashMap<u64, u32>,
    samples: Vec<PendingSample>,
    walls: Vec<PendingWall>,
    allocations: Vec<PendingAllocation>,
    alive: Vec<PendingAlive>,
    snapshots: Vec<Snapshot>,
    waits: Vec<PendingWait>,
    ticks: Vec<Tick>,
    stops: Vec<PendingStop>,
    contexts: Vec<Context>,
    by_context: FxHashMap<Context, ContextId>,
}

impl Batch {
    /// The index of a stack, new or not: kernel frames, with the others below them.
    pub fn stack(&mut self, kernel: &[PendingFrame], named: &NamedStack, truncated: bool) -> u32 {
        self.add_stack(kernel, named.pending(), named.hash(), truncated)
    }

    /// The same for a stack that is kept elsewhere, with a hash of its frames.
    pub fn kept(&mut self, frames: &[PendingFrame], hash: u64, truncated: bool) -> u32 {
        self.add_stack(&[], frames, hash, truncated)
    }

    /// The same for a stack of few frames.
    pub fn few(&mut self, frames: &[PendingFrame]) -> u32 {
        self.add_stack(frames, &[], 0, false)
    }

    fn add_stack(
        &mut self,
        inner: &[PendingFrame],
        outer: &[PendingFrame],
        outer_hash: u64,
        truncated: bool,
    ) -> u32 {
        let mut hasher = FxHasher::default();
        outer_hash.hash(&mut hasher);
        inner.hash(&mut hasher);
        truncated.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(&index) = self.by_hash.get(&hash) {
            let (known, was_truncated) = self.frames(index);
            let parts = known.split_at_checked(inner.len());
            if parts == Some((inner, outer)) && was_truncated == truncated {
                return index;
            }
        }
        let index = self.stacks.len() as u32;
        let start = self.frames.len() as u32;
        let len = (inner.len() + outer.len()) as u32;
        self.frames.extend_from_slice(inner);
        self.frames.extend_from_slice(outer);
        self.stacks.push(Span {
            start,
            len,
            truncated,
        });
        self.by_hash.insert(hash, index);
        index
    }

    /// The id of a thread's context.
    pub fn context(&mut self, context: &Context) -> ContextId {
        if !context.is_active() {
            return ContextId::NONE;
        }
        let contexts = &mut self.contexts;
        *self.by_context.entry(*context).or_insert_with(|| {
            contexts.push(*context);
            ContextId(u32::try_from(contexts.len()).unwrap_or(0))
        })
    }

    /// The contexts of threads, in the order of their ids.
    #[must_use]
    pub fn contexts(&self) -> &[Context] {
        &self.contexts
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: PendingSample) {
        self.samples.push(sample);
    }

    /// Adds an allocated object.
    pub fn add_allocation(&mut self, allocation: PendingAllocation) {
        self.allocations.push(allocation);
    }

    /// The allocated objects, in the order of adding.
    #[must_use]
    pub fn allocations(&self) -> &[PendingAllocation] {
        &self.allocations
    }

    /// Adds an object that is still there.
    pub fn add_alive(&mut self, alive: PendingAlive) {
        self.alive.push(alive);
    }

    /// The surviving objects, in the order of adding.
    #[must_use]
    pub fn alive(&self) -> &[PendingAlive] {
        &self.alive
    }

    /// Adds the data of a snapshot.
    pub fn add_snapshot(&mut self, snapshot: Snapshot) {
        self.snapshots.push(snapshot);
    }

    /// The snapshots.
    #[must_use]
    pub fn snapshots(&self) -> &[Snapshot] {
        &self.snapshots
    }

    /// Adds a wait for a monitor.
    pub fn add_wait(&mut self, wait: PendingWait) {
        self.waits.push(wait);
    }

    /// The waits for monitors, in the order of adding.
    #[must_use]
    pub fn waits(&self) -> &[PendingWait] {
        &self.waits
    }

    /// Adds wall-clock samples of a thread.
    pub fn add_wall(&mut self, wall: PendingWall) {
        self.walls.push(wall);
    }

    /// Adds a tick of the wall-clock sampler.
    pub fn add_tick(&mut self, tick: Tick) {
        self.ticks.push(tick);
    }

    /// Adds a stop of all threads.
    pub fn add_stop(&mut self, stop: PendingStop) {
        self.stops.push(stop);
    }

    /// The stops, in the order of adding.
    #[must_use]
    pub fn stops(&self) -> &[PendingStop] {
        &self.stops
    }

    /// The wall-clock samples, in the order of adding.
    #[must_use]
    pub fn walls(&self) -> &[PendingWall] {
        &self.walls
    }

    /// The ticks, in the order of adding.
    #[must_use]
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
            && self.walls.is_empty()
            && self.allocations.is_empty()
            && self.snapshots.is_empty()
            && self.waits.is_empty()
            && self.ticks.is_empty()
            && self.stops.is_empty()
    }

    /// The frames of a stack, and whether its root is missing.
    #[must_use]
    pub fn frames(&self, stack: u32) -> (&[PendingFrame], bool) {
        let Some(span) = self.stacks.get(stack as usize) else {
            return (&[], false);
        };
        let range = span.start as usize..(span.start + span.len) as usize;
        (self.frames.get(range).unwrap_or(&[]), span.truncated)
    }

    /// Whether a stack ends in managed code. The kernel's frames above it do not count.
    #[must_use]
    pub fn is_managed(&self, stack: u32) -> bool {
        use FrameKind::{Failed, Kernel, Native, Other, Vm};
        let mut frames = self.frames(stack).0.iter().map(|frame| frame.kind);
        let innermost = frames.find(|kind| *kind != Kernel);
        innermost.is_some_and(|kind| !matches!(kind, Native | Vm | Failed | Other))
    }

    /// All frames of all stacks.
    #[must_use]
    pub fn all_frames(&self) -> &[PendingFrame] {
        &self.frames
    }

    /// Number of stacks.
    #[must_use]
    pub fn stacks_len(&self) -> u32 {
        self.stacks.len() as u32
    }

    /// The samples, in the order of adding.
    #[must_use]
    pub fn samples(&self) -> &[PendingSample] {
        &self.samples
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.frames)
            + size_of_val(&*self.samples)
            + size_of_val(&*self.walls)
            + size_of_val(&*self.allocations)
            + size_of_val(&*self.alive)
            + size_of_val(&*self.waits)
            + 2 * size_of_val(&*self.contexts)
            + self.stacks.len() * 32
    }

    /// Forgets all data, and frees the memory of an exceptionally large batch.
    pub fn clear(&mut self) {
        const KEPT: usize = 64 << 10;
        self.frames.clear();
        self.frames.shrink_to(KEPT);
        self.stacks.clear();
        self.stacks.shrink_to(KEPT);
        self.by_hash.clear();
        self.samples.clear();
        self.samples.shrink_to(KEPT);
        self.walls.clear();
        self.walls.shrink_to(KEPT);
        self.allocations.clear();
        self.allocations.shrink_to(KEPT);
        self.alive = Vec::new();
        self.snapshots.clear();
        self.waits.clear();
        self.waits.shrink_to(KEPT);
        self.ticks.clear();
        self.stops.clear();
        self.contexts.clear();
        self.by_context.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(id: u32, line: i32) -> PendingFrame {
        let code = Code::Named(NameId(id));
        PendingFrame {
            code,
            kind: FrameKind::C2,
            line,
            bci: 0,
        }
    }

    #[test]
    fn equal_stacks_are_one() {
        let mut batch = Batch::default();
        let a = batch.few(&[frame(1, 1), frame(2, 2)]);
        assert_eq!(batch.few(&[frame(1, 1), frame(2, 2)]), a);
        let mut stack = |frames: &[PendingFrame], truncated| {
            let (inner, outer) = frames.split_at(1);
            batch.add_stack(inner, outer, 7, truncated)
        };
        let b = stack(&[frame(1, 1), frame(2, 3)], false);
        assert_ne!(a, b);
        assert_eq!(stack(&[frame(1, 1), frame(2, 3)], false), b);
        assert_ne!(stack(&[frame(1, 1), frame(2, 3)], true), b);
        // Stacks with the same hash may still differ.
        assert_ne!(stack(&[frame(1, 1), frame(2, 9)], false), b);
        assert_eq!(batch.frames(b).0.len(), 2);
        assert_eq!(batch.stacks_len(), 4);
        batch.clear();
        assert_eq!(batch.stacks_len(), 0);
        assert_eq!(batch.bytes(), 0);
    }
}
