//! Which of the sampled objects are still alive, by weak global references. They are made in the
//! callback of the allocation. Threads that the JVM knows check them: allocating threads, the
//! thread that carries out a command, and the thread that ends the JVM. The agent's own threads
//! never do.

use crate::jvm::weak::Weak;
use dwell_inside::hotspot::{Agent, HotSpot};
use dwell_recorder::alive::{Looked, Put, Table, key};
use dwell_recorder::sys::process;
use dwell_signal::Followed;
use dwell_walker::Memory;
use dwell_walker::hotspot::flags;
use dwell_walker::hotspot::layout::present;
use jvm_sys::Env;
use jvm_sys::jni::Object;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Address of the JVM's count of collections; 0: unknown.
static COUNTED_AT: AtomicU64 = AtomicU64::new(0);
/// Collections that began after an object was allocated, but may not have examined it.
static UNSURE: AtomicU32 = AtomicU32::new(0);
/// Number of the next object to follow.
static OBJECTS: AtomicU64 = AtomicU64::new(0);

/// Begins to follow objects, for a new recording.
pub fn begin(agent: &'static Agent, env: Env) {
    find_count(&agent.runtime);
    // Each recording has other keys, so that two recordings are two independent experiments.
    OBJECTS.store(process::epoch_ns(), Ordering::Relaxed);
    let table = agent.alive.get_or_init(Table::default);
    table.open(&Weak::asking(env));
}

/// Ends it with the recording.
pub fn end(agent: &'static Agent, env: Env) {
    if let Some(table) = opened(agent) {
        table.close(&Weak::asking(env));
    }
}

/// The table, while a recording follows objects.
fn opened(agent: &'static Agent) -> Option<&'static Table> {
    agent.alive.get().filter(|table| table.is_open())
}

/// Checks which objects are still alive, on a thread that the JVM knows.
pub fn look(agent: &'static Agent, env: Env) {
    if let Some(table) = opened(agent) {
        let sure = collections(agent).saturating_sub(UNSURE.load(Ordering::Relaxed));
        let looked = Looked {
            at_ns: process::monotonic_ns(),
            collections: sure,
        };
        table.look(looked, &Weak::asking(env));
    }
}

/// Follows an object from its allocation on, in the callback of that allocation. `None`: it is not
/// followed.
pub fn follow(agent: &'static Agent, env: Env, object: Object) -> Option<Followed> {
    let table = opened(agent)?;
    let key = key(OBJECTS.fetch_add(1, Ordering::Relaxed));
    match table.put(key, &Weak { env, object }) {
        Put::Followed(place, serial) => Some(Followed {
            serial,
            place,
            collections: collections(agent),
        }),
        Put::Thinned | Put::Lost => None,
    }
}

/// Stops following an object whose snapshot found no room.
pub fn forget(agent: &'static Agent, env: Env, followed: &Followed) {
    if let Some(table) = opened(agent) {
        table.forget(followed, &Weak::asking(env));
    }
}

/// Finds the JVM's count of collections. The JVM counts a collection when it begins. A concurrent
/// collector examines objects later, and two collections (one per generation) may run at once.
fn find_count(jvm: &HotSpot) {
    let (live, layout) = (jvm.engine.live(), &jvm.vm().layout);
    let is_there = present(layout.collected_heap) && present(layout.heap_collections);
    let heap = is_there.then(|| live.word(layout.collected_heap).ok());
    let flag = |name| flags::boolean(&live, layout, name) == Ok(Some(true));
    // Shenandoah has no such count, and several pauses in a cycle.
    let shenandoah = flag("UseShenandoahGC");
    let (at, unsure) = match heap.flatten() {
        Some(heap) if heap != 0 && !shenandoah => {
            let unsure = if flag("UseZGC") { 2 } else { 0 };
            (heap.wrapping_add(layout.heap_collections), unsure)
        }
        _ => (0, if shenandoah { SHENANDOAH_PAUSES } else { 0 }),
    };
    COUNTED_AT.store(at, Ordering::Relaxed);
    UNSURE.store(unsure, Ordering::Relaxed);
}

/// Pauses of two cycles of Shenandoah: at most four in each.
const SHENANDOAH_PAUSES: u32 = 8;

/// Collections so far. If the JVM's count is unknown: pauses of its collector.
fn collections(agent: &'static Agent) -> u32 {
    match COUNTED_AT.load(Ordering::Relaxed) {
        0 => agent.stretches.pauses.ended(),
        at => agent.engine.live().u32(at).unwrap_or(0),
    }
}
