//! Which thread has what another one waits for, as the JVM tells it at that moment, and where that
//! one is.

use super::threads::{Facts, Threads};
use super::wall::Context;
use crate::vm::Vm;
use dwell_jfr::writer::StackId;
use dwell_walker::Failure;
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_walker::hotspot::threads::has_on_stack;
use dwell_wall::proc::Schedule;
use rustc_hash::FxHashMap;

/// Finds owners.
#[derive(Default)]
pub struct Owners {
    /// Who was found to have an object: most often that one still has it.
    holders: FxHashMap<u64, i32>,
    /// Where owners were, and what the scheduler had counted of them: those that have not run since
    /// are there still.
    stacks: FxHashMap<i32, (Schedule, StackId)>,
}

impl Owners {
    /// The kernel id of the platform thread that is meant; `None` if it is none, or gone.
    pub fn find(
        &mut self,
        vm: &Vm<'_>,
        threads: &Threads,
        (owner, object): (Owner, u64),
    ) -> Option<i32> {
        match owner {
            Owner::Nobody => None,
            Owner::Id(id) => threads.find(|it| it.java_id == id),
            // What looks like a thread may be a place on the stack of one.
            Owner::Thread(at) | Owner::Stack(at) => threads.find(|it| {
                let thread = it.java_thread;
                let has_it = || has_on_stack(vm.live, &vm.layout, thread, at) == Ok(true);
                thread != 0 && (thread == at || has_it())
            }),
            Owner::HolderOf(held) => {
                let held = if held == 0 { object } else { held };
                self.holder(vm, threads, held)
            }
        }
    }

    fn holder(&mut self, vm: &Vm<'_>, threads: &Threads, held: u64) -> Option<i32> {
        let has_it = |facts: &Facts| {
            let thread = facts.java_thread;
            thread != 0 && monitors::holds(vm.live, &vm.layout, thread, held) == Ok(true)
        };
        let before = self.holders.get(&held).copied();
        if let Some(tid) = before.filter(|tid| has_it(&threads.facts(*tid))) {
            return Some(tid);
        }
        let found = threads.find(has_it);
        if let Some(tid) = found {
            self.holders.insert(held, tid);
        }
        found
    }

    /// Where an owner is; no stack if it runs or is gone.
    pub fn stack(&mut self, tid: i32, context: &mut Context<'_, '_, '_>) -> StackId {
        let looker = context.looker;
        let Some(now) = looker.tasks.schedule(tid) else {
            return StackId::NONE;
        };
        if let Some((then, stack)) = self.stacks.get(&tid)
            && *then == now
        {
            return *stack;
        }
        let Some((seen, pages)) = looker.look(context.threads.whom(tid)) else {
            return StackId::NONE;
        };
        let is_whole = matches!(seen.failure, None | Some(Failure::Truncated));
        if seen.is_ready || seen.is_blurred || !is_whole {
            return StackId::NONE;
        }
        let frames = seen.trail.frames.iter();
        let named: Vec<_> = frames
            .map(|frame| (context.namer.name(&pages, looker.vm, frame), frame))
            .collect();
        let stack = context.chunk.stack(&named, seen.failure.is_some());
        if let Some(then) = seen.ran {
            self.stacks.insert(tid, (then, stack));
        }
        stack
    }

    /// What is remembered is forgotten: a collector may have moved the objects, and stacks belong
    /// to a chunk.
    pub fn forget(&mut self) {
        self.holders.clear();
        self.stacks.clear();
    }
}
