//! The owner of an object that a thread waits for, by the JVM's data at that moment, and the
//! owner's stack.

use super::threads::{Facts, Threads};
use super::wall::Context;
use crate::vm::Vm;
use dwell_jfr::writer::StackId;
use dwell_walker::Failure;
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_wall::proc::Schedule;
use rustc_hash::FxHashMap;

/// Finds owners.
#[derive(Default)]
pub struct Owners {
    /// The last owner found for an object: most often it is still the owner.
    holders: FxHashMap<u64, i32>,
    /// Stacks of owners, with the scheduler's counters: a thread that has not run since still has
    /// the same stack.
    stacks: FxHashMap<i32, (Schedule, StackId)>,
}

impl Owners {
    /// The kernel id of the owner; `None` if it is not a platform thread, or has exited.
    pub fn find(
        &mut self,
        vm: &Vm<'_>,
        threads: &Threads,
        (owner, object): (Owner, u64),
    ) -> Option<i32> {
        match owner {
            Owner::Nobody => None,
            Owner::Id(id) => threads.find(|it| it.java_id == id),
            // An address in a thread's stack also identifies the thread.
            Owner::Thread(at) | Owner::Stack(at) => {
                threads.find(|it| it.java_thread == at || it.stack.contains(&at))
            }
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

    /// The stack of an owner; none if it runs or has exited.
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

    /// Drops the cached data: a collector may have moved the objects, and stacks belong to a chunk.
    pub fn forget(&mut self) {
        self.holders.clear();
        self.stacks.clear();
    }
}
