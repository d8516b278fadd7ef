//! The list of threads and their names. It is read now and then, and keeps threads that have
//! exited, because their samples arrive later.

use crate::look::Whom;
use crate::task::Tasks;
use crate::vm::Vm;
use dwell_walker::hotspot::continuation;
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::objects;
use dwell_walker::hotspot::threads as vm_threads;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Maximum length of a name.
const NAME_CHARS_MAX: u32 = 512;
/// Maximum number of threads kept.
const THREADS_MAX: usize = 1 << 18;

/// The data of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its kernel id.
    pub tid: i32,
    /// The kernel's name of the thread.
    pub os_name: String,
    /// Its `JavaThread*`; 0 for others.
    pub java_thread: u64,
    /// The addresses of its stack; empty if unknown.
    pub stack: Range<u64>,
    /// `Thread.getName()`.
    pub java_name: Option<String>,
    /// `Thread.threadId()`.
    pub java_id: u64,
}

/// All threads seen so far.
#[derive(Default)]
pub struct Threads {
    known: FxHashMap<i32, Facts>,
    /// Java threads that are alive, for wall-clock samples.
    java: Vec<i32>,
    /// Number of reads.
    version: u32,
}

impl Threads {
    /// Reads the present threads.
    pub fn look(&mut self, vm: &Vm<'_>, tasks: &Tasks) {
        if self.known.len() > THREADS_MAX {
            self.known.clear();
        }
        let mut java = FxHashMap::default();
        let _ = vm_threads::for_each(vm.live, &vm.layout, |thread| {
            let inner = vm_threads::kernel_id(vm.live, &vm.layout, thread).unwrap_or(0);
            java.insert(inner, thread);
        });
        self.java.clear();
        self.version = self.version.wrapping_add(1);
        for (tid, inner) in tasks.all() {
            let java_thread = java.get(&inner).copied().unwrap_or(0);
            if java_thread != 0 {
                self.java.push(tid);
            }
            let is_same = self
                .known
                .get(&tid)
                .is_some_and(|facts| facts.java_thread == java_thread && facts.is_named());
            if !is_same {
                self.known.insert(tid, facts(vm, tasks, tid, java_thread));
            }
        }
    }

    /// Whether the thread is in the list.
    #[must_use]
    pub fn knows(&self, tid: i32) -> bool {
        self.known.contains_key(&tid)
    }

    /// The data of a thread.
    #[must_use]
    pub fn facts(&self, tid: i32) -> Facts {
        let known = self.known.get(&tid).cloned();
        known.unwrap_or(Facts {
            tid,
            ..Facts::default()
        })
    }

    /// The thread in the form that [`Looker`](crate::look::Looker) needs.
    #[must_use]
    pub fn whom(&self, tid: i32) -> Whom {
        Whom {
            tid,
            java_thread: self.known.get(&tid).map_or(0, |facts| facts.java_thread),
        }
    }

    /// Changes with each read.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Java threads that were alive at the last read.
    #[must_use]
    pub fn java(&self) -> &[i32] {
        &self.java
    }

    /// The thread with this `JavaThread*`, or with this id.
    #[must_use]
    pub fn find(&self, is_it: impl Fn(&Facts) -> bool) -> Option<i32> {
        let mut alive = self.java.iter().filter_map(|tid| self.known.get(tid));
        alive.find(|facts| is_it(facts)).map(|facts| facts.tid)
    }
}

#[cfg(test)]
impl Threads {
    /// Live Java threads with these numbers in the kernel and these addresses.
    pub fn of_java(threads: impl IntoIterator<Item = (i32, u64)>) -> Threads {
        let mut all = Threads::default();
        for (tid, java_thread) in threads {
            let facts = Facts {
                tid,
                java_thread,
                ..Facts::default()
            };
            all.known.insert(tid, facts);
            all.java.push(tid);
        }
        all
    }
}

impl Facts {
    /// A Java thread has no object when it begins.
    fn is_named(&self) -> bool {
        self.java_thread == 0 || self.java_name.is_some()
    }
}

fn facts(vm: &Vm<'_>, tasks: &Tasks, tid: i32, java_thread: u64) -> Facts {
    let mut facts = Facts {
        tid,
        os_name: tasks.name(tid).unwrap_or_default(),
        java_thread,
        ..Facts::default()
    };
    let (live, layout) = (vm.live, &vm.layout);
    if java_thread != 0 {
        facts.stack = vm_threads::stack(live, layout, java_thread).unwrap_or_default();
    }
    if java_thread == 0 || !present(vm.thread.name) {
        return facts;
    }
    let objects = &layout.extra.objects;
    let Ok(object) = objects::of_thread(live, layout, objects, java_thread) else {
        return facts;
    };
    if object != 0 {
        let name = continuation::reference(live, layout, object.wrapping_add(vm.thread.name));
        let text = name
            .ok()
            .and_then(|name| vm.text(live, name, NAME_CHARS_MAX));
        facts.java_name = text;
        facts.java_id = objects::thread_id(live, objects, object).unwrap_or(0);
    }
    facts
}
