//! Virtual threads that are not mounted: their list in the JDK, and a single read of each.
//!
//! During the read, a collector may move them, and they may be mounted. A result counts only if
//! their state and the place of their frames are the same afterwards.

use crate::look::{Looker, Seen, failure_of};
use crate::memory::Pages;
use crate::vm::Vm;
use dwell_walker::hotspot::classes;
use dwell_walker::hotspot::continuation::reference;
use dwell_walker::hotspot::layout::Layout;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::objects;
use dwell_walker::hotspot::sets::{Buckets, SetFields, Sets};
use dwell_walker::hotspot::virtual_threads::{
    States, VirtualThreadFields, Wait, monitor, unmounted,
};
use dwell_walker::{Failure, Fault, Frame, Memory};
use dwell_wall::cause::{Call, Monitor, Os};

const VIRTUAL: &str = "java/lang/VirtualThread";
const CONTAINERS: &str = "jdk/internal/vm/ThreadContainers";
const ROOT: &str = "jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer";
const SET: &str = "Ljava/util/Set;";
/// Maximum number of frames of a virtual thread.
const FRAMES_MAX: usize = 4096;
/// Maximum number of reads of a thread that keeps running.
const TRIES: usize = 3;
/// Maximum number of buckets read per set: tables do not shrink when threads end.
const BUCKETS_MAX: u32 = 1 << 22;
/// Maximum number of buckets read of the set of containers: each executor is a container.
const CONTAINERS_MAX: u32 = 1 << 16;
/// Maximum number of unreadable buckets: beyond this the object is not a set.
const FAILURES_MAX: u32 = 1 << 10;

/// A virtual thread without a carrier.
pub struct Unmounted {
    /// Its object at that moment.
    pub object: u64,
    /// Its state and stack.
    pub seen: Seen,
}

/// Data needed to read virtual threads.
pub struct Virtuals {
    fields: VirtualThreadFields,
    sets: SetFields,
    referent: u64,
    executor_threads: u64,
    shared_threads: u64,
}

/// The threads found.
#[derive(Default)]
pub struct Found {
    /// Their objects, at that moment.
    pub objects: Vec<u64>,
    /// Whether there were more than the limit.
    pub are_more: bool,
}

impl Virtuals {
    /// Finds these data; `None` if this JDK has no virtual threads, or keeps them in another way.
    #[must_use]
    pub fn find(vm: &Vm<'_>) -> Option<Virtuals> {
        let states = states(vm)?;
        let map = "java/util/concurrent/ConcurrentHashMap";
        let inner = |name: &str| format!("{map}${name}");
        let node = format!("L{map}$Node;");
        let table = format!("[{node}");
        let field = |class: &str, name: &str, kind: &str| vm.field(class, name, kind);
        // Without its class being loaded, no object of it exists.
        let rare = |name: &str, field_name: &str, kind: &str| match vm.classes.get(&*inner(name)) {
            Some(_) => vm.field(&inner(name), field_name, kind),
            None => 0,
        };
        let (length, elements) = (vm.strings.length, vm.strings.elements);
        // References of 8 bytes are aligned.
        let elements = match vm.layout.extra.chunk.narrow_oops {
            true => elements,
            false => elements.next_multiple_of(8),
        };
        let found = Virtuals {
            fields: VirtualThreadFields {
                state: field(VIRTUAL, "state", "I"),
                cont: field(VIRTUAL, "cont", "Ljdk/internal/vm/Continuation;"),
                carrier: field(VIRTUAL, "carrierThread", "Ljava/lang/Thread;"),
                states,
            },
            sets: SetFields {
                map: field(&inner("CollectionView"), "map", &format!("L{map};")),
                table: field(map, "table", &table),
                hash: field(&inner("Node"), "hash", "I"),
                key: field(&inner("Node"), "key", "Ljava/lang/Object;"),
                next: field(&inner("Node"), "next", &node),
                first: rare("TreeBin", "first", &format!("L{map}$TreeNode;")),
                next_table: rare("ForwardingNode", "nextTable", &table),
                length,
                elements,
            },
            referent: field("java/lang/ref/Reference", "referent", "Ljava/lang/Object;"),
            executor_threads: field("java/util/concurrent/ThreadPerTaskExecutor", "threads", SET),
            shared_threads: field(
                "jdk/internal/vm/SharedThreadContainer",
                "virtualThreads",
                SET,
            ),
        };
        (found.fields.is_known() && found.sets.is_known()).then_some(found)
    }

    /// The objects of all virtual threads that the JDK tracks, including mounted ones, up to `max`.
    #[must_use]
    pub fn all(&self, vm: &Vm<'_>, max: usize) -> Found {
        let mut found = Found::default();
        for buckets in self.places(vm, vm.live) {
            self.take(vm, &buckets, max, &mut found);
        }
        found
    }

    /// The buckets of all sets in which the JDK keeps virtual threads, by the contents of `mem`.
    #[must_use]
    pub fn places<M: Memory>(&self, vm: &Vm<'_>, mem: &M) -> Vec<Buckets> {
        let set_at = |class: &str, name: &str| -> Option<u64> {
            let class = *vm.classes.get(class)?;
            let (name, kind) = (name.as_bytes(), SET.as_bytes());
            let at = classes::static_field(mem, &vm.layout, class, name, kind);
            reference(mem, &vm.layout, at.ok()??).ok()
        };
        let sets = self.sets(mem, &vm.layout);
        let mut all: Vec<u64> = set_at(ROOT, "VTHREADS").into_iter().collect();
        let containers = set_at(CONTAINERS, "CONTAINER_REGISTRY");
        if let Some(Ok(buckets)) = containers.map(|set| sets.buckets(set)) {
            let mut weak = Vec::new();
            for index in 0..buckets.len().min(CONTAINERS_MAX) {
                // An unreadable one is left out: it is being moved.
                let _ = sets.elements(&buckets, index, &mut |it| weak.push(it));
            }
            let found = weak.into_iter().map(|it| self.set_of(mem, vm, it));
            all.extend(found.filter_map(|set| set.ok().flatten()));
        }
        all.into_iter()
            .filter_map(|set| sets.buckets(set).ok())
            .collect()
    }

    /// Reads the sets of [`Virtuals::places`].
    #[must_use]
    pub fn sets<'m, M: Memory>(&'m self, mem: &'m M, layout: &'m Layout) -> Sets<'m, M> {
        Sets {
            mem,
            layout,
            fields: &self.sets,
        }
    }

    fn take(&self, vm: &Vm<'_>, buckets: &Buckets, max: usize, found: &mut Found) {
        let sets = self.sets(vm.live, &vm.layout);
        let mut failures = 0;
        for index in 0..buckets.len() {
            let room = max.saturating_sub(found.objects.len());
            let objects = &mut found.objects;
            let mut left = room;
            let result = sets.elements(buckets, index, &mut |object| {
                if left > 0 {
                    objects.push(object);
                    left -= 1;
                }
            });
            failures += u32::from(result.is_err());
            if result.is_ok() && room == 0 || index >= BUCKETS_MAX || failures > FAILURES_MAX {
                found.are_more = true;
                return;
            }
        }
    }

    /// The set of threads of a container, found through a weak reference.
    fn set_of<M: Memory>(&self, mem: &M, vm: &Vm<'_>, weak: u64) -> Result<Option<u64>, Fault> {
        let layout = &vm.layout;
        let at = |object: u64, at: u64| reference(mem, layout, object.wrapping_add(at));
        if !present(self.referent) {
            return Ok(None);
        }
        let container = at(weak, self.referent)?;
        let class = objects::class_of(mem, layout, layout.extra.objects.class_word, container)?;
        for (name, offset) in [
            (
                "java/util/concurrent/ThreadPerTaskExecutor",
                self.executor_threads,
            ),
            ("jdk/internal/vm/SharedThreadContainer", self.shared_threads),
        ] {
            if present(offset) && objects::is_kind_of(mem, layout, class, name.as_bytes())? {
                return Ok(Some(at(container, offset)?).filter(|set| *set != 0));
            }
        }
        Ok(None)
    }

    /// Reads one thread; `None` if it is mounted, or not alive, or kept running.
    #[must_use]
    pub fn look<'t>(&self, looker: &Looker<'_, 't>, object: u64) -> Option<(Unmounted, Pages<'t>)> {
        let seen = (0..TRIES).find_map(|_| self.glance(looker, object).ok().flatten());
        seen.map(|(seen, pages)| (Unmounted { object, seen }, pages))
    }

    /// Reads one thread once; `None` if it is mounted or not alive.
    ///
    /// # Errors
    /// [`Fault`] if it cannot be read, or ran during the read.
    pub fn glance<'t>(
        &self,
        looker: &Looker<'_, 't>,
        object: u64,
    ) -> Result<Option<(Seen, Pages<'t>)>, Fault> {
        let (live, layout) = (looker.vm.live, &looker.vm.layout);
        let word = layout.extra.objects.class_word;
        let is_chunk = |object| {
            let class = objects::class_of(live, layout, word, object)?;
            objects::is_kind_of(live, layout, class, b"jdk/internal/vm/StackChunk")
        };
        let Some(before) = unmounted(live, layout, &self.fields, object, is_chunk)? else {
            return Ok(None);
        };
        // Code and its metadata may be shared with other reads; frames may not.
        let pages = Pages::with_common(live, looker.common.clone());
        let mut seen = seen_of(before.wait);
        if let Some(chunk) = &before.chunk {
            let len = chunk.end.saturating_sub(chunk.object);
            let mut bytes = vec![0; usize::try_from(len.min(1 << 20)).unwrap_or(0)];
            live.read(chunk.object, &mut bytes)?;
            pages.shares_all_but(chunk.object, chunk.end);
            pages.keep(chunk.object, &bytes);
            let mut frames = vec![Frame::EMPTY; FRAMES_MAX];
            let walk = looker
                .walker(&pages)
                .walk_unmounted(chunk, frames.as_mut_slice());
            frames.truncate(walk.len);
            seen.trail.frames = frames;
            seen.failure = failure_of(&walk);
        }
        if before.wait == Wait::Park {
            looker.parked_object(looker.vm.live, object, 0, &mut seen);
        }
        if matches!(before.wait, Wait::Monitor | Wait::Notification) {
            let is_entered = before.wait == Wait::Monitor;
            let found = monitor(live, layout, looker.vm.monitor_entry(), object)?;
            seen.wanted = found.and_then(|found| looker.monitor(live, found, is_entered));
        }
        let is_whole = matches!(seen.failure, None | Some(Failure::Truncated));
        let after = unmounted(live, layout, &self.fields, object, is_chunk)?;
        if after != Some(before) || !is_whole {
            return Err(Fault { addr: object });
        }
        Ok(Some((seen, pages)))
    }
}

fn seen_of(wait: Wait) -> Seen {
    let (os, monitor) = match wait {
        Wait::Carrier => (Os::Runnable, Monitor::None),
        Wait::Park => (Os::Call(Call::Futex), Monitor::None),
        Wait::Monitor => (Os::Call(Call::Futex), Monitor::Entering),
        Wait::Notification => (Os::Call(Call::Futex), Monitor::Waiting),
    };
    Seen {
        os,
        monitor,
        on: (wait == Wait::Carrier).then(|| "a carrier thread".to_owned()),
        ..Seen::of_nothing(false)
    }
}

/// Values of `VirtualThread.state`, which differ between versions, from the class itself.
fn states(vm: &Vm<'_>) -> Option<States> {
    let class = *vm.classes.get(VIRTUAL)?;
    let state = |name: &str| -> Option<i32> {
        let at = classes::static_field(vm.live, &vm.layout, class, name.as_bytes(), b"I");
        vm.live.i32(at.ok()??).ok()
    };
    Some(States {
        started: state("STARTED"),
        parked: [state("PARKED"), state("TIMED_PARKED")],
        blocked: state("BLOCKED"),
        waits: [state("WAIT"), state("TIMED_WAIT")],
        ready: [
            state("UNPARKED").or(state("RUNNABLE")),
            state("YIELDED"),
            state("UNBLOCKED"),
            None,
        ],
        suspended: state("SUSPENDED"),
    })
}

/// Whether `object`, which was found a moment ago, is still a virtual thread.
#[must_use]
pub fn is_one(vm: &Vm<'_>, object: u64) -> bool {
    let (live, layout) = (vm.live, &vm.layout);
    let word = layout.extra.objects.class_word;
    let class = objects::class_of(live, layout, word, object);
    class
        .is_ok_and(|class| objects::is_kind_of(live, layout, class, VIRTUAL.as_bytes()) == Ok(true))
}
