//! Finds the JDK's sets of virtual threads. One set has the threads that were started directly.
//! Each executor that starts a thread per task has its own set. A set of weak references has the
//! executors (java.base, jdk/internal/vm/ThreadContainers.java, 21 and later). Each scope in which
//! a thread forks others also has a set, which only that thread knows.
//!
//! Looking up a class initialises it. `VirtualThread` then reads its properties and makes its
//! scheduler. So the lookup waits until the program itself uses virtual threads: until the first
//! carrier has started.

use super::vm::Vm;
use dwell_signal::Live;
use dwell_walker::Fault;
use dwell_walker::hotspot::flocks::FlockFields;
use dwell_walker::hotspot::layout::{ABSENT, Layout, present};
use dwell_walker::hotspot::objects::{self, ClassWord};
use dwell_walker::hotspot::sets::SetFields;
use dwell_walker::hotspot::strings;
use dwell_walker::hotspot::virtual_threads::{States, VirtualThreadFields};
use jvm_sys::Env;
use jvm_sys::jni::Object;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

const CARRIER: &[u8] = b"jdk/internal/misc/CarrierThread";
const VIRTUAL: &CStr = c"java/lang/VirtualThread";
const ROOT: &CStr = c"jdk/internal/vm/ThreadContainers$RootContainer$TrackingRootContainer";
const CONTAINERS: &CStr = c"jdk/internal/vm/ThreadContainers";
const SET: &CStr = c"Ljava/util/Set;";

/// The JDK's sets of virtual threads; kept for the life of the process.
#[derive(Debug)]
pub struct VirtualThreads {
    /// Fields of the sets.
    pub sets: SetFields,
    /// Fields of the threads.
    pub fields: VirtualThreadFields,
    /// Offset of a thread's entry in a monitor's list; `ABSENT` if unknown.
    pub monitor_entry: u64,
    /// Handle of the set of threads that were started directly.
    pub started: u64,
    /// Handle of the set of (weak references to) containers; 0 if unknown.
    pub containers: u64,
    /// `Reference.referent`.
    pub referent: u64,
    /// `ThreadPerTaskExecutor.threads`.
    pub executor_threads: u64,
    /// `SharedThreadContainer.virtualThreads`.
    pub shared_threads: u64,
    /// Fields of a thread's scopes.
    pub flocks: FlockFields,
    /// Class of objects with frozen frames.
    pub chunk_class: KnownClass,
    /// Address of the next thread's id; 0 if unknown.
    pub next_id: u64,
}

/// A class that is recognised by its name once, and by its address from then on.
#[derive(Debug)]
pub struct KnownClass {
    name: &'static [u8],
    class: AtomicU64,
}

impl KnownClass {
    const fn named(name: &'static [u8]) -> KnownClass {
        KnownClass {
            name,
            class: AtomicU64::new(0),
        }
    }

    /// Its address; 0 if it is unknown and `met` is another class.
    ///
    /// # Errors
    /// [`Fault`] if `met` cannot be read.
    pub fn of(&self, live: &Live, layout: &Layout, met: u64) -> Result<u64, Fault> {
        let known = self.class.load(Ordering::Relaxed);
        if known == 0 && objects::is_kind_of(live, layout, met, self.name)? {
            self.class.store(met, Ordering::Relaxed);
            return Ok(met);
        }
        Ok(known)
    }
}

/// Whether the platform thread is a carrier of virtual threads.
#[must_use]
pub fn is_carrier(live: Live, vm: &Vm, java_thread: u64) -> bool {
    let (layout, objects) = (&vm.layout, &vm.layout.extra.objects);
    if java_thread == 0 || !present(layout.thread_vthread) {
        return false;
    }
    let object = objects::of_thread(&live, layout, objects, java_thread);
    let class = object.and_then(|it| objects::class_of(&live, layout, objects.class_word, it));
    class.is_ok_and(|class| objects::is_kind_of(&live, layout, class, CARRIER) == Ok(true))
}

impl VirtualThreads {
    /// Finds all fields; `None` if this JDK keeps its threads in another way. Call it once a
    /// carrier exists, on an attached thread in the live phase.
    #[must_use]
    pub fn find(vm: &Vm, live: Live, env: Env) -> Option<VirtualThreads> {
        let field = |class: &CStr, name: &CStr, kind: &CStr| {
            vm.fields.offset(env, class, name, kind).unwrap_or(ABSENT)
        };
        let fields = VirtualThreadFields {
            state: field(VIRTUAL, c"state", c"I"),
            cont: field(VIRTUAL, c"cont", c"Ljdk/internal/vm/Continuation;"),
            carrier: field(VIRTUAL, c"carrierThread", c"Ljava/lang/Thread;"),
            states: states(env)?,
        };
        let sets = sets(vm, env, &field)?;
        let known = VirtualThreads {
            sets,
            fields,
            monitor_entry: vm.monitor_entry(live),
            started: handle_of(env, ROOT, c"VTHREADS")?,
            containers: handle_of(env, CONTAINERS, c"CONTAINER_REGISTRY").unwrap_or(0),
            referent: field(
                c"java/lang/ref/Reference",
                c"referent",
                c"Ljava/lang/Object;",
            ),
            executor_threads: field(
                c"java/util/concurrent/ThreadPerTaskExecutor",
                c"threads",
                SET,
            ),
            shared_threads: field(
                c"jdk/internal/vm/SharedThreadContainer",
                c"virtualThreads",
                SET,
            ),
            flocks: flocks(&field),
            chunk_class: KnownClass::named(b"jdk/internal/vm/StackChunk"),
            next_id: next_id(env).unwrap_or(0),
        };
        (known.fields.is_known() && known.sets.is_known()).then_some(known)
    }
}

/// A handle, which the collector updates. JNI references have tags in their lowest bits
/// (src/hotspot/share/runtime/jniHandles.hpp).
fn handle_of(env: Env, class: &CStr, name: &CStr) -> Option<u64> {
    const TAG: u64 = 7;
    // SAFETY: `env` belongs to this thread, attached and in the live phase; the reference to the
    // class is given back, the global one is kept permanently.
    let object = unsafe {
        let class = env.find_class(class)?;
        let object = env.global_of_static(class, name, SET);
        env.delete_local(class);
        object?
    };
    Some(object as u64 & !TAG)
}

fn states(env: Env) -> Option<States> {
    // SAFETY: `env` belongs to this thread, attached and in the live phase.
    let class = unsafe { env.find_class(VIRTUAL) }?;
    // SAFETY: the class is a live local reference until it is given back below.
    let state = |name: &CStr| unsafe { env.static_int(class, name) };
    let states = States {
        started: state(c"STARTED"),
        parked: [state(c"PARKED"), state(c"TIMED_PARKED")],
        blocked: state(c"BLOCKED"),
        waits: [state(c"WAIT"), state(c"TIMED_WAIT")],
        ready: [
            state(c"UNPARKED").or(state(c"RUNNABLE")),
            state(c"YIELDED"),
            state(c"UNBLOCKED"),
            None,
        ],
        suspended: state(c"SUSPENDED"),
    };
    // SAFETY: a local reference of this frame.
    unsafe { env.delete_local(class) };
    Some(states)
}

/// `Thread$ThreadIdentifiers` counts in the VM, without an object. So its counter's "offset" is an
/// address (src/hotspot/share/services/threadIdentifier.cpp).
fn next_id(env: Env) -> Option<u64> {
    // SAFETY: `env` belongs to this thread, attached and in the live phase; the class is a live
    // local reference until it is given back.
    let address = unsafe {
        let class = env.find_class(c"java/lang/Thread$ThreadIdentifiers")?;
        let address = env.static_long(class, c"NEXT_TID_OFFSET");
        env.delete_local(class);
        address?
    };
    u64::try_from(address).ok().filter(|at| at % 8 == 0)
}

fn flocks(field: &dyn Fn(&CStr, &CStr, &CStr) -> u64) -> FlockFields {
    let scope = c"jdk/internal/vm/StackableScope";
    let scope_kind = c"Ljdk/internal/vm/StackableScope;";
    FlockFields {
        head: field(c"java/lang/Thread", c"headStackableScopes", scope_kind),
        previous: field(scope, c"previous", scope_kind),
        flock: field(
            c"jdk/internal/misc/ThreadFlock$ThreadContainerImpl",
            c"flock",
            c"Ljdk/internal/misc/ThreadFlock;",
        ),
        threads: field(c"jdk/internal/misc/ThreadFlock", c"threads", SET),
    }
}

fn sets(vm: &Vm, env: Env, field: &dyn Fn(&CStr, &CStr, &CStr) -> u64) -> Option<SetFields> {
    let node = c"java/util/concurrent/ConcurrentHashMap$Node";
    let (length, _) = match vm.layout.extra.objects.class_word {
        ClassWord::Wide => return None,
        class_word => strings::array(class_word, false),
    };
    Some(SetFields {
        map: field(
            c"java/util/concurrent/ConcurrentHashMap$CollectionView",
            c"map",
            c"Ljava/util/concurrent/ConcurrentHashMap;",
        ),
        table: field(
            c"java/util/concurrent/ConcurrentHashMap",
            c"table",
            c"[Ljava/util/concurrent/ConcurrentHashMap$Node;",
        ),
        hash: field(node, c"hash", c"I"),
        key: field(node, c"key", c"Ljava/lang/Object;"),
        next: field(
            node,
            c"next",
            c"Ljava/util/concurrent/ConcurrentHashMap$Node;",
        ),
        first: field(
            c"java/util/concurrent/ConcurrentHashMap$TreeBin",
            c"first",
            c"Ljava/util/concurrent/ConcurrentHashMap$TreeNode;",
        ),
        next_table: field(
            c"java/util/concurrent/ConcurrentHashMap$ForwardingNode",
            c"nextTable",
            c"[Ljava/util/concurrent/ConcurrentHashMap$Node;",
        ),
        length,
        elements: first_reference(env)?,
    })
}

/// Offset of the first element of an array of references.
fn first_reference(env: Env) -> Option<u64> {
    let name = c"ARRAY_OBJECT_BASE_OFFSET";
    // SAFETY: `env` belongs to this thread, attached and in the live phase; the class is given
    // back.
    let offset = unsafe {
        let class: Object = env.find_class(c"jdk/internal/misc/Unsafe")?;
        // An int until 24.
        let short = env.static_int(class, name).map(i64::from);
        let offset = short.or_else(|| env.static_long(class, name));
        env.delete_local(class);
        offset?
    };
    u64::try_from(offset).ok()
}

#[cfg(test)]
mod tests;
