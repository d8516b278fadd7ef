//! The drainer's part of the wall-clock sampler: names stacks, and keeps them for later samples
//! with the same stack.

use super::preempted::{Ready, ReadyWaits};
use super::sample::Sampler;
use crate::looks::off::Off;
use crate::looks::shelf::{Note, Notes, Run};
use crate::record::batch::{Batch, ContextId, PendingFrame, PendingSample, PendingWall};
use crate::record::names::Names;
use crate::runtime::Runtime;
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::threads::VIRTUAL_KEY;
use dwell_context::Context;
use dwell_walker::{Failure, Frame, Outcome};
use dwell_wall::cause::{Monitor, Os};
use dwell_wallclock::RUNS;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Maximum number of stacks of a moment that have names already.
const NAMED_MAX: usize = 1024;

/// A stack that is kept over flushes.
#[derive(Clone)]
struct Kept {
    frames: Arc<[PendingFrame]>,
    hash: u64,
}

impl Kept {
    fn place(&self, batch: &mut Batch, truncated: bool) -> u32 {
        batch.kept(&self.frames, self.hash, truncated)
    }
}

/// A stack in the walk's form, and with its names.
struct Walked {
    frames: Box<[Frame]>,
    kept: Kept,
    /// Whether it was used since the last cleanup.
    is_used: bool,
}

/// Where a thread waits.
struct Current {
    stack: Kept,
    /// The owner of the awaited object, and the owner's stack.
    owner: Option<(u64, Kept)>,
    truncated: bool,
    os: Os,
    monitor: Monitor,
    is_owned_lock: bool,
    mounted: Option<u64>,
    context: Option<Context>,
    detail: Option<Arc<str>>,
    failure: Option<&'static str>,
}

impl Current {
    /// The logical thread on this platform thread, and the platform thread if it is not the same.
    fn who(&self, platform: u64) -> (u64, Option<u64>) {
        match self.mounted {
            Some(id) => (id | VIRTUAL_KEY, Some(platform)),
            None => (platform, None),
        }
    }
}

/// Where a thread waits, by the class of its fingerprint.
#[derive(Default)]
struct Places(Vec<(u8, Current)>);

impl Places {
    fn set(&mut self, class: u8, current: Current) {
        self.0.retain(|(number, _)| *number != class);
        self.0.push((class, current));
    }

    fn of(&self, class: u8) -> Option<&Current> {
        let found = self.0.iter().rfind(|(number, _)| *number == class);
        found.map(|(_, current)| current)
    }
}

/// Stacks of waiting threads.
#[derive(Default)]
pub struct WallDrain {
    notes: Notes,
    current: FxHashMap<u64, Places>,
    /// Equal stacks are kept once.
    stacks: FxHashMap<u64, Arc<[PendingFrame]>>,
    /// The stacks of this moment in the walks' form, by their hash: these have names already.
    named: FxHashMap<u64, Walked>,
    /// Time in which threads were ready and had no processor, until their place is known.
    ready: ReadyWaits,
}

impl WallDrain {
    /// Takes all notes.
    pub fn drain<R: Runtime>(
        &mut self,
        setup: &Setup<R>,
        sampler: &mut Sampler<'_, R>,
        progress: &Progress,
    ) {
        let mut notes = std::mem::take(&mut self.notes);
        setup.shelf.take(&mut notes);
        for note in notes.notes.drain(..) {
            match note {
                Note::Stack {
                    thread,
                    class,
                    off,
                    frames,
                    owner,
                } => {
                    let frames = notes.frames.get(frames).unwrap_or(&[]);
                    let owner = owner.map(|owner| {
                        let frames = notes.frames.get(owner.frames).unwrap_or(&[]);
                        (owner.thread, self.kept(frames, sampler))
                    });
                    self.set((thread, class), &off, frames, owner, sampler);
                }
                Note::Run(run) => self.run(&run, &mut sampler.batch),
                Note::Ready {
                    thread,
                    since_ns,
                    at_ns,
                    weight_ns,
                    class,
                } => {
                    let ready = Ready {
                        since_ns,
                        at_ns,
                        weight_ns,
                        count: 1,
                        is_managed: class == Some(RUNS),
                    };
                    self.ready(thread, ready, class, &mut sampler.batch);
                }
                Note::Gone { thread } => self.gone(thread),
                Note::Name { thread, name } if thread & VIRTUAL_KEY == 0 => {
                    setup.recorder.threads.rename(thread, &name);
                }
                Note::Name { thread, name } => sampler.virtual_names.tell(thread, &name),
                Note::Tick(tick) => {
                    progress.add_tick(&tick);
                    sampler.batch.add_tick(tick);
                }
            }
        }
        progress.add_wall_lost(notes.lost);
        self.notes = notes;
    }

    fn kept<R: Runtime>(&mut self, frames: &[Frame], sampler: &mut Sampler<'_, R>) -> Kept {
        let mut hasher = FxHasher::default();
        frames.hash(&mut hasher);
        let hash = hasher.finish();
        if let Some(known) = self.named.get_mut(&hash)
            && *known.frames == *frames
        {
            known.is_used = true;
            return known.kept.clone();
        }
        let (named, lasting) = sampler.name_all(frames);
        let kept = self.shared(&named);
        if lasting {
            if self.named.len() >= NAMED_MAX {
                self.named.clear();
            }
            let walked = Walked {
                frames: frames.into(),
                kept: kept.clone(),
                is_used: true,
            };
            self.named.insert(hash, walked);
        }
        kept
    }

    /// Earlier names may not hold any more.
    pub fn forget_names(&mut self) {
        self.named.clear();
    }

    fn set<R: Runtime>(
        &mut self,
        (thread, class): (u64, u8),
        off: &Off,
        frames: &[Frame],
        owner: Option<(u64, Kept)>,
        sampler: &mut Sampler<'_, R>,
    ) {
        let outcome = off.walk.map(|walk| walk.outcome);
        let truncated = outcome == Some(Outcome::Failed(Failure::Truncated));
        let failure = match outcome {
            Some(Outcome::Failed(failure)) if !truncated => Some(failure.name()),
            _ => None,
        };
        let whole = frames.len() - usize::from(truncated && !frames.is_empty());
        let stack = self.kept(frames.get(..whole).unwrap_or(&[]), sampler);
        let current = Current {
            stack,
            owner,
            truncated,
            os: off.os,
            monitor: off.monitor,
            is_owned_lock: off.is_owned_lock,
            mounted: off.mounted,
            context: off.context,
            detail: off.detail.as_deref().map(Arc::from),
            failure,
        };
        self.current.entry(thread).or_default().set(class, current);
    }

    fn shared(&mut self, frames: &[PendingFrame]) -> Kept {
        let hash = hash_of(frames);
        let frames = match self.stacks.get(&hash) {
            Some(known) if **known == *frames => Arc::clone(known),
            _ => {
                let new: Arc<[PendingFrame]> = frames.into();
                self.stacks.insert(hash, Arc::clone(&new));
                new
            }
        };
        Kept { frames, hash }
    }

    /// A thread waited for a processor at the place of this class. If that is unknown, it is that
    /// of a sample of CPU time.
    fn ready(&mut self, thread: u64, ready: Ready, class: Option<u8>, batch: &mut Batch) {
        let places = self.current.get(&thread);
        let Some(current) = places.and_then(|places| places.of(class?)) else {
            self.ready.add(thread, ready);
            return;
        };
        let stack = current.stack.place(batch, current.truncated);
        let context = current.context.as_ref();
        let context = context.map_or(ContextId::NONE, |context| batch.context(context));
        let (thread, carrier) = current.who(thread);
        batch.add_wall(PendingWall {
            context,
            failure: current.failure,
            ..runnable(thread, carrier, Some(stack), &ready)
        });
    }

    /// A thread has ended: its last place is forgotten.
    fn gone(&mut self, thread: u64) {
        self.current.remove(&thread);
        self.ready.gone(thread);
    }

    fn run(&self, run: &Run, batch: &mut Batch) {
        let places = self.current.get(&run.thread);
        let Some(current) = places.and_then(|places| places.of(run.class)) else {
            return;
        };
        let stack = current.stack.place(batch, current.truncated);
        let owner = current.owner.as_ref();
        // A stack without frames: the owner ran.
        let owner_stack = owner
            .filter(|(_, stack)| !stack.frames.is_empty())
            .map(|(_, stack)| stack.place(batch, false));
        let context = run.work.as_deref();
        let context = context.map_or(ContextId::NONE, |context| batch.context(context));
        let (thread, carrier) = current.who(run.thread);
        batch.add_wall(PendingWall {
            time_ns: run.since_ns,
            duration_ns: run.until_ns.saturating_sub(run.since_ns),
            thread,
            carrier,
            stack: Some(stack),
            os: current.os,
            monitor: current.monitor,
            owner: owner.map(|(thread, _)| *thread),
            owner_stack,
            is_owned_lock: current.is_owned_lock,
            detail: current.detail.clone(),
            weight_ns: run.weight_ns,
            count: run.count,
            choices: run.choices,
            failure: current.failure,
            context,
        });
    }

    /// Records waits for a processor at the places of the batch's samples of CPU time. At the end,
    /// the others are recorded without a place.
    pub fn place_ready(&mut self, batch: &mut Batch, is_end: bool) {
        let is_managed = |sample: &PendingSample| batch.is_managed(sample.stack);
        let placed = self.ready.take(batch.samples(), is_managed, is_end);
        let walls = placed.into_iter().map(|(platform, ready, sample)| {
            let Some(sample) = sample else {
                return runnable(platform, None, None, &ready);
            };
            let stack = Some(sample.stack);
            PendingWall {
                context: sample.context,
                failure: sample.failure,
                ..runnable(sample.thread, sample.carrier, stack, &ready)
            }
        });
        let walls: Vec<_> = walls.collect();
        walls.into_iter().for_each(|wall| batch.add_wall(wall));
    }

    /// Frees unused stacks. `old` has the names of the last chunk; each gets a place in `new`.
    pub fn rename(&mut self, old: &Names, new: &mut Names) {
        self.stacks.clear();
        self.named.clear();
        let mut renamed: FxHashMap<*const PendingFrame, Arc<[PendingFrame]>> = FxHashMap::default();
        let places = self.current.values_mut().flat_map(|places| &mut places.0);
        for (_, current) in places {
            let owner = current.owner.as_mut().map(|(_, stack)| stack);
            for kept in std::iter::once(&mut current.stack).chain(owner) {
                let frames = renamed.entry(kept.frames.as_ptr()).or_insert_with(|| {
                    let frames = kept.frames.iter();
                    frames.map(|frame| frame.renamed(old, new)).collect()
                });
                kept.hash = hash_of(frames);
                kept.frames = Arc::clone(frames);
            }
        }
        for frames in renamed.into_values() {
            self.stacks.insert(hash_of(&frames), frames);
        }
    }

    /// Frees stacks at which no thread waits any more.
    pub fn tidy(&mut self) {
        self.named
            .retain(|_, walked| std::mem::take(&mut walked.is_used));
        self.stacks
            .retain(|_, frames| Arc::strong_count(frames) > 1);
    }
}

fn hash_of(frames: &[PendingFrame]) -> u64 {
    let mut hasher = FxHasher::default();
    frames.hash(&mut hasher);
    hasher.finish()
}

fn runnable(thread: u64, carrier: Option<u64>, stack: Option<u32>, ready: &Ready) -> PendingWall {
    PendingWall {
        // It ended then, at the latest.
        time_ns: ready.at_ns.saturating_sub(ready.weight_ns),
        duration_ns: ready.weight_ns,
        thread,
        carrier,
        stack,
        os: Os::Runnable,
        monitor: Monitor::None,
        owner: None,
        owner_stack: None,
        is_owned_lock: false,
        detail: None,
        weight_ns: ready.weight_ns,
        count: ready.count,
        choices: u64::from(ready.count),
        failure: None,
        context: ContextId::NONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::batch::Code;
    use crate::record::names::Name;
    use dwell_jfr::{FrameKind, ThreadState};
    use dwell_wall::cause::Call;

    const THREAD: u64 = 7;

    fn frame(offset: u32) -> PendingFrame {
        PendingFrame {
            code: Code::Native { image: 0, offset },
            kind: FrameKind::Native,
            line: -1,
            bci: -1,
        }
    }

    impl WallDrain {
        fn waits_in(&mut self, thread: u64, frames: &[PendingFrame], mounted: Option<u64>) {
            let current = Current {
                stack: self.shared(frames),
                owner: None,
                truncated: false,
                os: Os::Call(Call::Futex),
                monitor: Monitor::None,
                is_owned_lock: false,
                mounted,
                context: None,
                detail: None,
                failure: None,
            };
            self.current.entry(thread).or_default().set(0, current);
        }
    }

    fn run(thread: u64, weight_ns: u64) -> Run {
        Run {
            thread,
            class: 0,
            work: None,
            since_ns: 100,
            until_ns: 300,
            count: 3,
            weight_ns,
            choices: 2,
        }
    }

    fn sample(batch: &mut Batch) -> PendingSample {
        PendingSample {
            time_ns: 500,
            thread: THREAD,
            carrier: None,
            stack: batch.few(&[frame(5)]),
            state: ThreadState::Runnable,
            weight_ns: 1000,
            failure: None,
            context: ContextId::NONE,
        }
    }

    #[test]
    fn repeated_samples_use_the_threads_last_stack() {
        let (mut drain, mut batch) = (WallDrain::default(), Batch::default());
        drain.run(&run(THREAD, 60), &mut batch);
        assert!(batch.walls().is_empty(), "nobody knows where");
        drain.waits_in(THREAD, &[frame(1)], None);
        drain.run(&run(THREAD, 60), &mut batch);
        drain.waits_in(THREAD, &[frame(2)], Some(33));
        drain.run(&run(THREAD, 40), &mut batch);
        let told = |wall: &PendingWall| {
            let (frames, _) = batch.frames(wall.stack.unwrap());
            (wall.thread, wall.carrier, frames.to_vec(), wall.weight_ns)
        };
        let expected = [
            (THREAD, None, vec![frame(1)], 60),
            (33 | VIRTUAL_KEY, Some(THREAD), vec![frame(2)], 40),
        ];
        let walls: Vec<_> = batch.walls().iter().map(told).collect();
        assert_eq!(walls, expected);
        assert_eq!(batch.walls()[0].duration_ns, 200);
    }

    #[test]
    fn thread_has_a_place_for_each_fingerprint_class() {
        let (mut drain, mut batch) = (WallDrain::default(), Batch::default());
        drain.waits_in(THREAD, &[frame(1)], None);
        let mut places = drain.current.remove(&THREAD).unwrap();
        let (_, first) = places.0.pop().unwrap();
        drain.waits_in(THREAD, &[frame(2)], None);
        drain.current.get_mut(&THREAD).unwrap().set(3, first);
        for (class, weight_ns) in [(0, 60), (3, 40), (0, 20), (5, 10)] {
            let of_class = Run {
                class,
                ..run(THREAD, weight_ns)
            };
            drain.run(&of_class, &mut batch);
        }
        let of_frame = |offset: u32| {
            let walls = batch.walls().iter();
            let at = |wall: &&PendingWall| batch.frames(wall.stack.unwrap()).0 == [frame(offset)];
            walls.filter(at).map(|wall| wall.weight_ns).sum::<u64>()
        };
        assert_eq!((of_frame(1), of_frame(2)), (40, 80));
        assert_eq!(batch.walls().len(), 3, "the last one's stack is unknown");
        for class in [3, 5] {
            drain.ready(THREAD, ready(5), Some(class), &mut batch);
        }
        let [_, _, _, woken] = batch.walls() else {
            panic!("the place of one is unknown");
        };
        assert_eq!(batch.frames(woken.stack.unwrap()).0, [frame(1)]);
    }

    fn ready(weight_ns: u64) -> Ready {
        Ready {
            since_ns: 300,
            at_ns: 400,
            weight_ns,
            count: 1,
            is_managed: false,
        }
    }

    #[test]
    fn ready_time_belongs_to_samples_of_the_thread() {
        let (mut drain, mut batch) = (WallDrain::default(), Batch::default());
        drain.ready(THREAD, ready(30), None, &mut batch);
        let sample = sample(&mut batch);
        batch.add(PendingSample {
            thread: THREAD + 1,
            ..sample
        });
        drain.place_ready(&mut batch, false);
        assert!(batch.walls().is_empty());
        batch.add(sample);
        drain.place_ready(&mut batch, false);
        drain.place_ready(&mut batch, true);
        let [wall] = batch.walls() else {
            panic!("{:?}", batch.walls());
        };
        assert_eq!((wall.os, wall.stack), (Os::Runnable, Some(sample.stack)));
        assert_eq!((wall.thread, wall.weight_ns, wall.count), (THREAD, 30, 1));
    }

    #[test]
    fn woken_thread_is_runnable_where_it_waited() {
        let (mut drain, mut batch) = (WallDrain::default(), Batch::default());
        drain.waits_in(THREAD, &[frame(1)], None);
        drain.ready(THREAD, ready(20), Some(0), &mut batch);
        drain.ready(THREAD, ready(10), Some(9), &mut batch);
        let [woken] = batch.walls() else {
            panic!("{:?}", batch.walls());
        };
        assert_eq!((woken.os, woken.weight_ns), (Os::Runnable, 20));
        assert_eq!(batch.frames(woken.stack.unwrap()).0, [frame(1)]);
        drain.place_ready(&mut batch, true);
        let rest = &batch.walls()[1];
        assert_eq!((rest.stack, rest.weight_ns), (None, 10));
    }

    #[test]
    fn no_time_is_lost_with_a_thread_that_ends() {
        let (mut drain, mut batch) = (WallDrain::default(), Batch::default());
        drain.waits_in(THREAD, &[frame(1)], None);
        drain.ready(THREAD, ready(30), None, &mut batch);
        drain.gone(THREAD);
        drain.place_ready(&mut batch, false);
        // A late note belongs to no known thread.
        drain.run(&run(THREAD, 60), &mut batch);
        drain.place_ready(&mut batch, true);
        let weights: Vec<_> = batch.walls().iter().map(|wall| wall.weight_ns).collect();
        assert_eq!(weights, [30]);
    }

    #[test]
    fn equal_stacks_are_kept_once_and_freed() {
        let mut drain = WallDrain::default();
        for thread in 0..100 {
            drain.waits_in(thread, &[frame(1), frame(2)], None);
        }
        assert_eq!(drain.stacks.len(), 1);
        drain.waits_in(0, &[frame(3)], None);
        drain.tidy();
        assert_eq!(drain.stacks.len(), 2);
        drain.waits_in(0, &[frame(1), frame(2)], None);
        drain.tidy();
        assert_eq!(drain.stacks.len(), 1);
    }

    #[test]
    fn stacks_have_their_names_in_the_next_chunk() {
        let (mut old, mut new) = (Names::default(), Names::default());
        let _ = old.add(Name::native("a", "only in the old one"));
        let id = old.add(Name::native("b", "waits"));
        let named = PendingFrame {
            code: Code::Named(id),
            ..frame(0)
        };
        let (mut drain, mut batch) = (WallDrain::default(), Batch::default());
        drain.waits_in(1, &[named, frame(9)], None);
        drain.waits_in(2, &[named, frame(9)], None);
        drain.rename(&old, &mut new);
        assert_eq!(drain.stacks.len(), 1);
        drain.run(&run(2, 60), &mut batch);
        let (frames, _) = batch.frames(batch.walls()[0].stack.unwrap());
        let Code::Named(id) = frames[0].code else {
            panic!("{frames:?}");
        };
        assert_eq!(new.get(id), Some(&Name::native("b", "waits")));
        assert_eq!(frames[1], frame(9));
    }
}
