//! Mono's threads: each reports its own begin and end, and any thread may report a name.

use crate::mono::{Agent, agent};
use dwell_recorder::recorder::Seen;
use dwell_recorder::sys::process;
use dwell_recorder::threads::ThreadName;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread by Mono's id for it (the C library's `pthread_t`).
#[derive(Clone, Debug, Default)]
struct Known {
    /// The kernel's id; 0 if it has a name and has not begun.
    tid: i32,
    name: Option<String>,
}

#[derive(Default)]
struct Threads {
    known: HashMap<usize, Known>,
    /// Whether threads are reported when they begin; before that, they are kept here.
    is_reporting: bool,
}

static THREADS: Mutex<Option<Threads>> = Mutex::new(None);

fn threads() -> MutexGuard<'static, Option<Threads>> {
    THREADS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread begins.
pub fn begins(id: usize) {
    let tid = process::own_tid();
    let name = {
        let mut guard = threads();
        let all = guard.get_or_insert_default();
        let known = all.known.entry(id).or_default();
        known.tid = tid;
        let name = known.name.clone();
        if !all.is_reporting {
            return;
        }
        name
    };
    if let Some(agent) = agent() {
        agent.callbacks.run(|| agent.saw(seen(id, tid, name, true)));
    }
}

/// The calling thread ends.
pub fn ends(id: usize) {
    if let Some(all) = threads().as_mut() {
        all.known.remove(&id);
    }
    if let Some(agent) = agent() {
        agent.callbacks.run(|| agent.own_thread_ends());
    }
}

/// A thread has a new name.
pub fn set_name(id: usize, name: String) {
    let tid = {
        let mut guard = threads();
        let known = guard.get_or_insert_default().known.entry(id).or_default();
        known.name = Some(name.clone());
        known.tid
    };
    if let Some(agent) = agent()
        && let Some(record) = agent.registry.get(tid)
    {
        agent.threads.rename(record.user(), &name);
    }
}

/// Reports the present threads; from now on each reports itself.
pub fn report_all(agent: &Agent) {
    let all: Vec<(usize, Known)> = {
        let mut guard = threads();
        let threads = guard.get_or_insert_default();
        threads.is_reporting = true;
        let known = threads.known.iter().filter(|(_, known)| known.tid != 0);
        known.map(|(id, known)| (*id, known.clone())).collect()
    };
    for (id, known) in all {
        agent.saw(seen(id, known.tid, known.name, false));
    }
}

fn seen(id: usize, tid: i32, name: Option<String>, starts: bool) -> Seen {
    let comm = process::thread_comm(tid);
    // Mono has no name for the program's first thread.
    let is_main = tid.unsigned_abs() == std::process::id();
    let name = name.or_else(|| is_main.then(|| "Main".to_owned()));
    Seen {
        name: ThreadName {
            tid,
            name: name.or_else(|| Some(comm.clone())),
            comm,
            id: i64::from(tid),
            group: None,
        },
        managed: id as u64,
        stack_high: 0,
        starts,
    }
}
