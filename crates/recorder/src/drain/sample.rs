//! One snapshot: it is walked, its frames are named, and it is kept for the flush.

use super::alive::{self, AliveDrain, KeptStack};
use super::answers::Answers;
use super::in_kernel;
use super::named::NamedFrames;
use super::owners::Owners;
use super::stops::StopDrain;
use super::virtual_names::VirtualNames;
use super::wall::WallDrain;
use crate::asked::{QUESTIONS, Why};
use crate::native::Modules;
use crate::native::modules::Read;
use crate::record::batch::{
    Batch, Code, ContextId, OwnerAt, PendingAllocation, PendingFrame, PendingSample, PendingWait,
};
use crate::record::names::{Name, NameId, Names};
use crate::record::outer::Outer;
use crate::record::resolve::Images;
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::runtime::{Runtime, Walks};
use crate::sys::process;
use crate::threads::{NOBODY_KEY, VIRTUAL_KEY};
use dwell_jfr::{FrameKind as FileKind, ThreadState};
use dwell_signal::slots::Reason;
use dwell_signal::{Asked, Slot, Unreachable};
use dwell_walker::{Failure, Frame, FrameKind, Outcome, Walk};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Failed walks by cause: samples and the CPU time they stand for.
pub type FailureCounts = BTreeMap<&'static str, (u64, u64)>;

/// A batch this large is flushed before more is taken: memory is bounded for any depth of stacks.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

/// Cost of the recording so far, as the drainer sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Stacks walked, by whomever.
    pub walks: u64,
    /// How long that took.
    pub walk_ns: u64,
    /// Stacks copied.
    pub copies: u64,
    /// Bytes of them.
    pub copied_bytes: u64,
    /// CPU time spent on wall-clock samples.
    pub looks_cpu_ns: u64,
}

/// Walks snapshots, or takes stacks that are walked already, into a [`Batch`].
pub struct Sampler<'s, R: Runtime> {
    setup: &'s Setup<R>,
    /// The runtime's part.
    pub walks: R::Walks,
    /// The modules of the process.
    pub modules: Modules,
    /// Names of this chunk.
    pub names: Names,
    /// Libraries seen.
    pub images: Images,
    /// Samples since the last flush.
    pub batch: Batch,
    /// Failures since the recording began.
    pub failures: FailureCounts,
    /// Cost since the recording began.
    pub work: Work,
    /// The places of the records of threads that were sampled since the last account of them.
    pub sampled: FxHashSet<u32>,
    /// Names of virtual threads seen in this chunk, by key.
    pub virtual_names: VirtualNames,
    wall: WallDrain,
    stops: StopDrain,
    alive: AliveDrain,
    /// Frames of this drain that are named already.
    named: NamedFrames,
    frames: Vec<Frame>,
    /// Kernel frames of the sample at hand.
    kernel: Vec<PendingFrame>,
    outer: Outer,
    /// Owners of monitors.
    owners: Owners,
    /// Where they were.
    answers: Answers,
}

impl<'s, R: Runtime> Sampler<'s, R> {
    /// A sampler for a recording.
    #[must_use]
    pub fn new(setup: &'s Setup<R>) -> Sampler<'s, R> {
        Sampler {
            setup,
            walks: R::Walks::new(setup),
            modules: Modules::new(
                R::is_own_library,
                super::paused::tables(setup),
                setup.recorder.libraries.take(),
            ),
            names: Names::default(),
            images: Images::default(),
            batch: Batch::default(),
            failures: FailureCounts::new(),
            work: Work::default(),
            sampled: FxHashSet::default(),
            virtual_names: VirtualNames::default(),
            wall: WallDrain::default(),
            stops: StopDrain::default(),
            alive: AliveDrain::default(),
            named: NamedFrames::default(),
            frames: Vec::new(),
            kernel: Vec::new(),
            outer: Outer::default(),
            owners: Owners::default(),
            answers: Answers::default(),
        }
    }

    /// Takes the published samples, until the batch is full. Returns whether all were taken.
    pub fn drain(&mut self, progress: &Progress) -> bool {
        dwell_signal::fault::reinstall_if_replaced();
        let moved = self.modules.refresh();
        let changes = self.walks.begin(moved);
        if moved || changes.has_new {
            self.publish();
        }
        let has_changed = moved || changes.is_another_moment;
        self.named.begin(has_changed);
        self.owners.clear();
        if has_changed {
            self.outer.clear();
            self.wall.forget_names();
        }
        self.drain_looks(progress);
        self.answers.begin(|question| QUESTIONS.is_open(question));
        let engine = self.setup.engine;
        let is_all = engine.drain_while(|slot| {
            self.take(slot, progress);
            if slot.weight_ns() == 0 {
                // It shows where a thread was, and stands for no time.
                return self.batch.bytes() < BATCH_BYTES_MAX;
            }
            let failed = self.failures.values().map(|(count, _)| count).sum();
            progress.failed.store(failed, Ordering::Relaxed);
            progress.samples.fetch_add(1, Ordering::Relaxed);
            progress
                .weight_ns
                .fetch_add(slot.weight_ns(), Ordering::Relaxed);
            progress.saw_first_sample(slot.header().time_ns);
            self.batch.bytes() < BATCH_BYTES_MAX
        });
        if is_all {
            self.answers.end();
        }
        is_all
    }

    fn drain_looks(&mut self, progress: &Progress) {
        if self.setup.options.wall_interval.is_zero() {
            return;
        }
        let before = process::own_cpu();
        let mut wall = std::mem::take(&mut self.wall);
        wall.drain(self.setup, self, progress);
        self.wall = wall;
        let took = process::own_cpu().saturating_sub(before);
        self.work.looks_cpu_ns += took.as_nanos() as u64;
    }

    /// Publishes the present libraries for walks of threads that stand still.
    pub fn publish(&self) {
        self.walks.publish(&self.modules);
        crate::context::foreign::find(&self.modules);
    }

    /// Forgets names; the next flush begins a new chunk.
    pub fn clear_names(&mut self) {
        self.virtual_names.clear();
        self.named.clear();
        self.outer.clear();
        let old = std::mem::take(&mut self.names);
        self.wall.rename(&old, &mut self.names);
        self.stops.rename(&old, &mut self.names);
        self.alive.rename(&old, &mut self.names);
        self.answers.rename(&old, &mut self.names);
        self.walks.forget_names();
    }

    /// Names all frames of a stack; returns whether these names may be remembered.
    pub fn name_all(&mut self, frames: &[Frame]) -> (Vec<PendingFrame>, bool) {
        let mut lasting = true;
        let named = frames.iter().map(|frame| {
            let (pending, lasts) = self.named(frame);
            lasting &= lasts;
            pending
        });
        (named.collect(), lasting)
    }

    /// Puts stops that are over into the batch; all of them at the end.
    pub fn settle_stops(&mut self, is_over: bool) {
        let now_ns = process::monotonic_ns();
        let shelf = &self.setup.stops;
        self.stops.settle(shelf, &mut self.batch, now_ns, is_over);
    }

    /// Gives waits for a processor the places of samples of CPU time. Call it before the batch is
    /// written; `is_end`: no samples follow.
    pub fn place_ready(&mut self, is_end: bool) {
        self.wall.place_ready(&mut self.batch, is_end);
    }

    /// Frees data of threads that wait no more.
    pub fn tidy(&mut self) {
        self.wall.tidy();
    }

    fn take(&mut self, slot: &Slot<'_>, progress: &Progress) {
        let header = slot.header();
        let mut frames = std::mem::take(&mut self.frames);
        // A library may have put a handler in front of ours a moment ago that ends the process at
        // a load that fails.
        dwell_signal::fault::reinstall_if_replaced();
        let walk = self.walked(slot, &mut frames);
        self.work.walks += 1;
        self.sampled.insert(header.record_index);
        if self.setup.engine.kernel_copies() != 0 {
            self.request_signals_if_needed(slot, &walk);
        }
        self.kernel_frames(slot);
        let truncated = walk.outcome == Outcome::Failed(Failure::Truncated);
        let walked = frames
            .get(..walk.len.saturating_sub(usize::from(truncated)))
            .unwrap_or(&[]);
        let walked = match header.reason {
            Reason::Allocation | Reason::Wait => from_managed(walked),
            _ => walked,
        };
        let mut failure = match walk.outcome {
            Outcome::Failed(failure) if !truncated => Some(failure),
            Outcome::Failed(_) | Outcome::Complete => walk.flaw,
        };
        let mut outer = std::mem::take(&mut self.outer);
        let named = outer.name(header.user, walked, |frame| {
            let (pending, lasting) = self.named(frame);
            if !lasting {
                failure = failure.or(Some(Failure::StaleMethod));
            }
            (pending, lasting)
        });
        if matches!(header.reason, Reason::Stop | Reason::Owner) {
            self.add_place(slot, named.pending(), (truncated, failure));
            if slot.weight_ns() == 0 {
                self.outer = outer;
                self.frames = frames;
                return;
            }
        }
        if matches!(header.reason, Reason::Allocation | Reason::Wait) {
            let is_wait = header.reason == Reason::Wait;
            let is_told = is_wait || header.allocation.is_told;
            let has_frames = is_told && !named.pending().is_empty();
            let stack = has_frames.then(|| self.batch.stack(&[], named, truncated));
            let is_followed = header.allocation.followed.serial != 0;
            let kept = is_followed.then(|| self.alive.stack(named, truncated));
            self.outer = outer;
            self.frames = frames;
            self.report_freed_code(slot, failure, progress);
            if let Some(kept) = kept {
                self.keep(slot, kept, failure);
            }
            match header.reason {
                Reason::Wait => self.add_wait(slot, stack, failure),
                _ if is_told => self.add_allocation(slot, stack, failure),
                _ => {}
            }
            return;
        }
        let stack = self.batch.stack(&self.kernel, named, truncated);
        self.outer = outer;
        self.frames = frames;
        self.report_freed_code(slot, failure, progress);
        self.add_sample(slot, stack, failure);
    }

    /// From now on a thread with a context is signalled, as it has to note that itself. So is a
    /// thread whose stack could not be walked without its anchor, which is then copied.
    fn request_signals_if_needed(&self, slot: &Slot<'_>, walk: &Walk) {
        let engine = self.setup.engine;
        if let Some(record) = engine.record_of(slot)
            && (super::copies::needs_more(walk) || crate::context::knows(record.managed_id()))
        {
            engine.must_signal(record);
        }
    }

    /// The walk of a sample, in `frames`: made in the handler, or now.
    fn walked(&mut self, slot: &Slot<'_>, frames: &mut Vec<Frame>) -> Walk {
        let header = slot.header();
        let most = self.setup.options.depth + 1;
        match header.walk.walk() {
            Some(walk) if header.stack_len == 0 => {
                self.work.walk_ns += header.walk.walk_ns();
                let walked = slot.frames();
                make_room(frames, walked.len().min(most));
                copy_frames(walked, frames);
                walk
            }
            _ => {
                make_room(frames, most);
                self.walk(slot, frames)
            }
        }
    }

    /// A thread has recorded its stack on request.
    fn add_place(
        &mut self,
        slot: &Slot<'_>,
        named: &[PendingFrame],
        (truncated, failure): (bool, Option<Failure>),
    ) {
        let header = slot.header();
        let (all, at_ns) = (self.kernel.iter().chain(named).copied(), header.time_ns);
        match header.reason {
            Reason::Stop => self.stops.add_place(header.user, at_ns, all, truncated),
            _ => {
                if header.logical_id != 0 {
                    // A thread that sleeps with a monitor may never be sampled.
                    let key = header.logical_id | VIRTUAL_KEY;
                    self.virtual_names.tell_latin1(key, slot.logical_name());
                }
                let how = (truncated, failure.map(Failure::name));
                self.answers.add(header.request, at_ns, all, how);
            }
        }
    }

    /// Reports code that was freed before its walk, so that the next collections wait.
    fn report_freed_code(&self, slot: &Slot<'_>, failure: Option<Failure>, progress: &Progress) {
        if matches!(failure, Some(Failure::StaleMethod | Failure::NoBlob)) {
            let now_ns = process::monotonic_ns();
            progress.patience.lost(slot.header().time_ns, now_ns);
        }
    }

    fn add_sample(&mut self, slot: &Slot<'_>, stack: u32, failure: Option<Failure>) {
        let header = slot.header();
        if let Some(failure) = failure {
            let entry = self.failures.entry(failure.name()).or_default();
            entry.0 += 1;
            entry.1 += slot.weight_ns();
        }
        let (thread, carrier) = self.thread_of(slot);
        let sample = PendingSample {
            time_ns: header.time_ns,
            thread,
            carrier,
            stack,
            state: ThreadState::Runnable,
            weight_ns: slot.weight_ns(),
            failure: failure.map(Failure::name),
            context: self.batch.context(&header.context),
        };
        self.batch.add(sample);
    }

    fn add_allocation(&mut self, slot: &Slot<'_>, stack: Option<u32>, failure: Option<Failure>) {
        let header = slot.header();
        let (thread, carrier) = self.thread_of(slot);
        let context = self.batch.context(&header.context);
        self.batch.add_allocation(PendingAllocation {
            time_ns: header.time_ns,
            thread,
            carrier,
            stack,
            object: header.allocation,
            failure: failure.map(Failure::name),
            context,
        });
    }

    /// Remembers an object that is followed.
    fn keep(&mut self, slot: &Slot<'_>, stack: KeptStack, failure: Option<Failure>) {
        let header = slot.header();
        let (thread, _) = self.thread_of(slot);
        let seen = alive::Seen {
            time_ns: header.time_ns,
            thread,
            object: header.allocation,
            failure: failure.map(Failure::name),
            context: &header.context,
        };
        let threads = &self.setup.recorder.threads;
        self.alive.add(&seen, stack, threads, &self.virtual_names);
    }

    /// Puts the surviving objects into the batch, if objects are followed.
    pub fn tell_alive(&mut self) {
        let table = self.setup.recorder.alive.get();
        let stretch = self.setup.switched.get().alive;
        let now_ns = process::monotonic_ns();
        let followed_ns = stretch.present_ns(now_ns);
        if let Some(table) = table.filter(|_| followed_ns != 0) {
            let since_ns = now_ns - followed_ns;
            self.alive.tell(table, (since_ns, now_ns), &mut self.batch);
        }
    }

    /// Bytes of the data kept for followed objects.
    pub fn alive_bytes(&self) -> usize {
        self.alive.bytes()
    }

    fn add_wait(&mut self, slot: &Slot<'_>, stack: Option<u32>, failure: Option<Failure>) {
        let header = slot.header();
        let (thread, carrier) = self.thread_of(slot);
        let context = self.batch.context(&header.context);
        let owner = self
            .owners
            .key(&self.setup.recorder.threads, header.wait.owner);
        let owner_at = self.owner_at(&header.wait.asked);
        self.batch.add_wait(PendingWait {
            thread,
            carrier,
            stack,
            wait: header.wait,
            owner,
            owner_at,
            failure: failure.map(Failure::name),
            context,
        });
    }

    /// The owner's stack, for a wait that has asked for it.
    fn owner_at(&mut self, asked: &Asked) -> OwnerAt {
        let answer = self.answers.take(asked.request);
        match answer.filter(|answer| !answer.frames.is_empty()) {
            Some(answer) => OwnerAt {
                time_ns: answer.time_ns,
                stack: Some(
                    self.batch
                        .kept(&answer.frames, answer.hash(), answer.truncated),
                ),
                failure: answer.failure,
            },
            None => OwnerAt {
                time_ns: 0,
                stack: None,
                failure: Some(Why::name_of(asked.why)),
            },
        }
    }

    /// Walks the copy of a stack.
    fn walk(&mut self, slot: &Slot<'_>, frames: &mut [Frame]) -> Walk {
        let header = slot.header();
        let began_ns = process::monotonic_ns();
        let map = self.modules.map();
        let walk = self.walks.walk(slot, &Read(&map), frames);
        if is_copied(&self.setup.options) {
            self.work.copies += 1;
            self.work.copied_bytes += u64::from(header.stack_len);
            self.work.walk_ns += process::monotonic_ns().saturating_sub(began_ns);
        }
        walk
    }

    /// Adds CPU time that belongs to no known thread.
    pub fn add_unsampled(&mut self, time_ns: u64, weight_ns: Option<u64>, progress: &Progress) {
        let Some(weight_ns) = weight_ns else { return };
        let whose = (NOBODY_KEY, ThreadState::Terminated);
        self.add_without_stack(time_ns, whose, Failure::ShortThread, weight_ns, progress);
    }

    /// Adds CPU time of a thread that has ended before there was a free slot for its samples.
    pub fn add_ended(&mut self, time_ns: u64, thread: u64, weight_ns: u64, progress: &Progress) {
        let whose = (thread, ThreadState::Terminated);
        self.add_without_stack(time_ns, whose, Failure::ShortThread, weight_ns, progress);
    }

    /// Adds CPU time of a thread whose next signal did not arrive before the recording ended.
    pub fn add_owed(&mut self, time_ns: u64, thread: u64, weight_ns: u64, progress: &Progress) {
        let whose = (thread, ThreadState::Runnable);
        self.add_without_stack(time_ns, whose, Failure::RecordingEnded, weight_ns, progress);
    }

    /// Adds CPU time of a thread that no signal reaches.
    pub fn add_unreached(
        &mut self,
        time_ns: u64,
        thread: u64,
        why: Unreachable,
        weight_ns: u64,
        progress: &Progress,
    ) {
        let failure = match why {
            Unreachable::Blocked => Failure::SignalBlocked,
            Unreachable::QueueFull => Failure::SignalQueueFull,
        };
        let whose = (thread, ThreadState::Runnable);
        self.add_without_stack(time_ns, whose, failure, weight_ns, progress);
    }

    fn add_without_stack(
        &mut self,
        time_ns: u64,
        (thread, state): (u64, ThreadState),
        failure: Failure,
        weight_ns: u64,
        progress: &Progress,
    ) {
        let code = self.failed(failure);
        let frame = PendingFrame {
            code,
            kind: FileKind::Failed,
            line: -1,
            bci: -1,
        };
        let stack = self.batch.few(&[frame]);
        let entry = self.failures.entry(failure.name()).or_default();
        entry.0 += 1;
        entry.1 += weight_ns;
        self.batch.add(PendingSample {
            time_ns,
            thread,
            carrier: None,
            stack,
            state,
            weight_ns,
            failure: Some(failure.name()),
            context: ContextId::NONE,
        });
        progress.samples.fetch_add(1, Ordering::Relaxed);
        progress.weight_ns.fetch_add(weight_ns, Ordering::Relaxed);
    }

    fn thread_of(&mut self, slot: &Slot<'_>) -> (u64, Option<u64>) {
        let header = slot.header();
        if header.logical_id == 0 {
            return (header.user, None);
        }
        let key = header.logical_id | VIRTUAL_KEY;
        self.setup.shelf.add_ran(header.logical_id);
        self.virtual_names.tell_latin1(key, slot.logical_name());
        (key, Some(header.user))
    }

    fn kernel_frames(&mut self, slot: &Slot<'_>) {
        self.kernel.clear();
        for &pc in slot.kernel_frames() {
            let code = Code::Kernel(pc);
            self.kernel.push(PendingFrame {
                code,
                kind: FileKind::Kernel,
                line: -1,
                bci: -1,
            });
        }
        if self.kernel.is_empty() && in_kernel::is_unseen(self.setup.engine.live(), slot.header()) {
            let name = self.names.add(Name::native("[kernel]", "[system call]"));
            self.kernel.push(PendingFrame {
                code: Code::Named(name),
                kind: FileKind::Kernel,
                line: -1,
                bci: -1,
            });
        }
    }

    /// Names one frame; also returns whether its method could be named.
    fn named(&mut self, frame: &Frame) -> (PendingFrame, bool) {
        if let Some(pending) = self.named.get(frame) {
            return (pending, true);
        }
        let mut pending = PendingFrame {
            code: Code::Named(NameId(0)),
            kind: file_kind(frame.kind),
            line: -1,
            bci: -1,
        };
        let mut found = true;
        pending.code = match frame.kind {
            kind if kind.is_managed() => match self.walks.name(frame, &mut self.names) {
                Some(named) => {
                    (pending.line, pending.bci) = (named.line, named.bci);
                    Code::Named(named.name)
                }
                None => {
                    found = false;
                    pending.kind = FileKind::Failed;
                    self.failed(Failure::StaleMethod)
                }
            },
            FrameKind::Stub => Code::Named(self.walks.stub(frame.id, &mut self.names)),
            FrameKind::Kernel => Code::Kernel(frame.id),
            FrameKind::Failed => {
                self.failed(Failure::from_id(frame.id).unwrap_or(Failure::UnknownPc))
            }
            _ => self.native(frame.id),
        };
        // A library that was just loaded may be known in the next drain.
        let lasts = frame.kind.is_managed() || frame.kind == FrameKind::Stub;
        if found && lasts {
            self.named.put(*frame, pending);
        }
        (pending, found)
    }

    fn failed(&mut self, failure: Failure) -> Code {
        Code::Named(self.names.add(Name::native("[failed]", failure.name())))
    }

    fn native(&mut self, pc: u64) -> Code {
        if let Some(place) = self.modules.place(pc) {
            let image = self.images.index(&place.image);
            return Code::Native {
                image,
                offset: place.offset,
            };
        }
        let what = if self.modules.is_ambiguous(pc) {
            "library_changed"
        } else {
            "unknown_code"
        };
        Code::Named(self.names.add(Name::native("[unknown]", what)))
    }
}

/// Whether stacks are copied before they are walked.
#[cfg(not(feature = "experiments"))]
fn is_copied(_: &crate::options::Options) -> bool {
    true
}

#[cfg(feature = "experiments")]
fn is_copied(options: &crate::options::Options) -> bool {
    options.experiment != Some(crate::experiments::Experiment::NoCopy)
}

/// The frames from the first managed one on: an allocation or a wait for a monitor goes through
/// the runtime's stubs, which are of no interest. A failure stays.
fn from_managed(frames: &[Frame]) -> &[Frame] {
    let is_told = |frame: &Frame| frame.kind.is_managed() || frame.kind == FrameKind::Failed;
    let first = frames.iter().position(is_told);
    frames.get(first.unwrap_or(frames.len())..).unwrap_or(&[])
}

/// Makes room for this many frames. Memory for walks is allocated only here.
fn make_room(frames: &mut Vec<Frame>, len: usize) {
    if frames.len() < len {
        frames.resize(len, Frame::EMPTY);
    }
}

fn copy_frames(from: &[Frame], to: &mut [Frame]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

const fn file_kind(kind: FrameKind) -> FileKind {
    match kind {
        FrameKind::Interpreted => FileKind::Interpreted,
        FrameKind::C1 => FileKind::C1,
        FrameKind::C2 => FileKind::C2,
        FrameKind::Ahead => FileKind::Ahead,
        FrameKind::Inlined => FileKind::Inlined,
        FrameKind::ManagedNative | FrameKind::Native => FileKind::Native,
        FrameKind::Vm => FileKind::Vm,
        FrameKind::Kernel => FileKind::Kernel,
        FrameKind::Stub => FileKind::Stub,
        FrameKind::Failed => FileKind::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: FrameKind, id: u64) -> Frame {
        Frame { kind, bci: 0, id }
    }

    #[test]
    fn stacks_of_objects_and_waits_begin_where_the_program_is() {
        let stub = frame(FrameKind::Stub, 1);
        let native = frame(FrameKind::Vm, 2);
        let method = frame(FrameKind::C2, 3);
        let below = frame(FrameKind::Native, 4);
        assert_eq!(
            from_managed(&[native, stub, method, below]),
            [method, below]
        );
        // A walk that failed above all methods is reported as such; native frames alone are not
        // shown.
        let failed = Frame::failed(Failure::NoBlob);
        assert_eq!(from_managed(&[native, failed]), [failed]);
        assert_eq!(from_managed(&[native, below]), []);
    }

    #[test]
    fn frames_that_find_no_room_are_left_out() {
        let [first, second] = [1, 2].map(|id| frame(FrameKind::Native, id));
        let mut room = [Frame::EMPTY; 3];
        copy_frames(&[first, second], &mut room);
        assert_eq!(room, [first, second, Frame::EMPTY]);
        copy_frames(&[second; 4], &mut room);
        assert_eq!(room, [second; 3]);
    }
}
