//! The data of followed objects: where, and by which thread, each was allocated. It is kept until
//! the objects that still live are reported.
//!
//! Each stack is kept once, in memory of bounded size. Names are those of the chunk. When a new
//! chunk begins they are moved to its table.

use super::virtual_names::VirtualNames;
use crate::alive::Table;
use crate::record::batch::{Batch, PendingAlive, PendingAllocation, PendingFrame, Snapshot};
use crate::record::names::Names;
use crate::record::outer::NamedStack;
use crate::threads::VIRTUAL_KEY;
use crate::threads::{ThreadName, ThreadTable};
use dwell_context::Context;
use dwell_signal::Allocation;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum number of frames of all kept stacks together. Beyond it, only the innermost frames of
/// new stacks are kept.
const FRAMES_MAX: usize = 1 << 20;
/// Number of frames.
const FRAMES_THEN: usize = 64;
/// A snapshot is taken again, up to this often, if objects were thinned out during it.
const TRIES: usize = 4;

/// An object that is followed.
struct Kept {
    time_ns: u64,
    thread: u64,
    name: Option<Arc<ThreadName>>,
    stack: Option<Stack>,
    object: Allocation,
    failure: Option<&'static str>,
    context: Context,
}

#[derive(Clone)]
struct Stack {
    frames: Arc<[PendingFrame]>,
    hash: u64,
    truncated: bool,
}

/// An object as the drainer sees it.
pub struct Seen<'a> {
    /// When it was allocated, on the monotonic clock.
    pub time_ns: u64,
    /// Key of the thread.
    pub thread: u64,
    /// The object.
    pub object: Allocation,
    /// Why the walk failed, if it did.
    pub failure: Option<&'static str>,
    /// The thread's context.
    pub context: &'a Context,
}

/// Followed objects, by their places in the table.
#[derive(Default)]
pub struct AliveDrain {
    kept: Vec<Option<Box<Kept>>>,
    /// Stacks by the hash of their frames.
    stacks: FxHashMap<u64, Arc<[PendingFrame]>>,
    frames: usize,
    snapshots: u64,
}

impl AliveDrain {
    /// Remembers a stack, for [`AliveDrain::add`].
    pub fn stack(&mut self, named: &NamedStack, truncated: bool) -> KeptStack {
        let (all, hash) = (named.pending(), named.hash());
        if all.is_empty() {
            return KeptStack(None);
        }
        if let Some(frames) = self.stacks.get(&hash).filter(|frames| ***frames == *all) {
            let frames = Arc::clone(frames);
            return KeptStack(Some(Stack {
                frames,
                hash,
                truncated,
            }));
        }
        if self.frames >= FRAMES_MAX {
            self.tidy();
        }
        let is_cut = self.frames >= FRAMES_MAX && all.len() > FRAMES_THEN;
        let inner = match all.get(..FRAMES_THEN) {
            Some(inner) if is_cut => inner,
            _ => all,
        };
        let frames: Arc<[PendingFrame]> = inner.into();
        if !is_cut {
            self.frames += frames.len();
            self.stacks.insert(hash, Arc::clone(&frames));
        }
        KeptStack(Some(Stack {
            frames,
            // A part of a stack is not the same stack as the whole.
            hash: if is_cut { !hash } else { hash },
            truncated: truncated || is_cut,
        }))
    }

    /// Frees stacks that no followed object refers to.
    fn tidy(&mut self) {
        (self.stacks).retain(|_, frames| Arc::strong_count(frames) > 1);
        self.frames = self.stacks.values().map(|frames| frames.len()).sum();
    }

    /// Adds a followed object, at a place that another one may have had. Snapshots come in any
    /// order: the last number counts.
    pub fn add(
        &mut self,
        seen: &Seen<'_>,
        stack: KeptStack,
        threads: &ThreadTable,
        virtuals: &VirtualNames,
    ) {
        let followed = seen.object.followed;
        let place = followed.place as usize;
        if followed.serial == 0 || place >= crate::alive::PLACES {
            return;
        }
        if self.kept.len() <= place {
            self.kept.resize_with(place + 1, || None);
        }
        let Some(kept) = self.kept.get_mut(place) else {
            return;
        };
        let is_newer = |kept: &Kept| kept.object.followed.serial < followed.serial;
        if kept.as_deref().is_none_or(is_newer) {
            *kept = Some(Box::new(Kept {
                time_ns: seen.time_ns,
                thread: seen.thread,
                name: name_of(seen.thread, threads, virtuals),
                stack: stack.0,
                object: seen.object,
                failure: seen.failure,
                context: *seen.context,
            }));
        }
    }

    /// Puts the surviving objects into the batch. Objects are followed since the first time of
    /// `between`; the second is the present.
    pub fn tell(&mut self, table: &Table, between: (u64, u64), batch: &mut Batch) {
        let (since_ns, now_ns) = between;
        let mut level = table.level();
        let mut there = Vec::new();
        for _ in 0..TRIES {
            there.clear();
            let all = self.kept.iter().flatten();
            there.extend(all.filter(|kept| table.has(&kept.object.followed, level)));
            let now = table.level();
            if now == level {
                break;
            }
            level = now;
        }
        self.snapshots += 1;
        let looked = table.looked();
        let until_ns = if looked.at_ns == 0 {
            now_ns
        } else {
            looked.at_ns
        };
        for kept in &there {
            let stack = kept.stack.as_ref();
            let stack = stack.map(|it| batch.kept(&it.frames, it.hash, it.truncated));
            let mut object = kept.object;
            object.weight = object.weight.saturating_mul(1 << level);
            let context = batch.context(&kept.context);
            let collections = looked.collections;
            batch.add_alive(PendingAlive {
                of: PendingAllocation {
                    time_ns: kept.time_ns,
                    thread: kept.thread,
                    carrier: None,
                    stack,
                    object,
                    failure: kept.failure,
                    context,
                },
                name: kept.name.clone(),
                age_ns: until_ns.saturating_sub(kept.time_ns),
                collections: collections.saturating_sub(object.followed.collections),
                snapshot: self.snapshots,
            });
        }
        let objects = there.len() as u64;
        let state = table.state();
        batch.add_snapshot(Snapshot {
            number: self.snapshots,
            at_ns: until_ns.max(1),
            since_ns,
            objects,
            one_of: 1 << level,
            chosen: state.chosen,
            lost: state.lost,
        });
        // Dead objects need no room any more.
        for kept in &mut self.kept {
            kept.take_if(|kept| !table.has(&kept.object.followed, 0));
        }
    }

    /// Names are in another table from now on.
    pub fn rename(&mut self, old: &Names, new: &mut Names) {
        self.tidy();
        let mut renamed: FxHashMap<*const PendingFrame, Arc<[PendingFrame]>> = FxHashMap::default();
        self.stacks.clear();
        for kept in self.kept.iter_mut().flatten() {
            let Some(stack) = &mut kept.stack else {
                continue;
            };
            let frames = renamed.entry(stack.frames.as_ptr()).or_insert_with(|| {
                let frames = stack.frames.iter();
                frames.map(|frame| frame.renamed(old, new)).collect()
            });
            stack.frames = Arc::clone(frames);
            // The hash is of the earlier names: a new stack may be kept a second time.
            self.stacks.insert(stack.hash, Arc::clone(frames));
        }
        self.frames = self.stacks.values().map(|frames| frames.len()).sum();
    }

    /// Bytes held for stacks and objects.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let kept = self.kept.iter().flatten().count();
        self.frames * size_of::<PendingFrame>() + kept * size_of::<Kept>()
    }
}

/// A stack that is remembered.
pub struct KeptStack(Option<Stack>);

/// A thread's name: it may have exited when its objects are reported.
fn name_of(key: u64, threads: &ThreadTable, virtuals: &VirtualNames) -> Option<Arc<ThreadName>> {
    if key & VIRTUAL_KEY == 0 {
        return threads.get(key);
    }
    Some(Arc::new(ThreadName {
        name: Some(virtuals.get(key).to_owned()),
        ..ThreadName::default()
    }))
}

#[cfg(test)]
#[path = "alive_tests.rs"]
mod tests;
