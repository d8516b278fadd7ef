//! Which threads there are: Java threads announce themselves, all others are found once a second.

use crate::agent::Agent;
use crate::jvm::threads::ThreadName;
use crate::sys::process;
use dwell_signal::{Engine, Registration};
use std::collections::HashSet;

/// Finds threads that come and go.
pub struct Census {
    agent: &'static Agent,
    seen: HashSet<i32>,
    /// Keys of threads whose last sample has been drained.
    pub gone: Vec<u64>,
}

impl Census {
    /// Nobody found yet.
    #[must_use]
    pub fn new(agent: &'static Agent) -> Census {
        Census {
            agent,
            seen: HashSet::new(),
            gone: Vec::new(),
        }
    }

    /// Registers the threads nobody announced: GC, compilers, VM, native ones.
    pub fn find(&mut self, engine: &'static Engine) {
        let tids = process::thread_ids();
        for &tid in &tids {
            if !self.seen.contains(&tid) {
                self.agent.registry.add_if_new(tid, || {
                    let comm = process::thread_comm(tid);
                    let name = ThreadName {
                        tid,
                        comm,
                        ..ThreadName::default()
                    };
                    let user = self.agent.threads.add(name);
                    // Seen before the recording or born since: in both cases what it used before
                    // now is unknown territory, so its plan begins now.
                    let seed = self.agent.threads.seed(user);
                    engine
                        .register(&Registration {
                            tid,
                            seed,
                            user,
                            ..Registration::default()
                        })
                        .ok()
                });
            }
        }
        self.seen = tids.into_iter().collect();
        self.agent
            .registry
            .forget_left(|tid| self.seen.contains(&tid));
    }

    /// Recycles the records of threads that have ended and whose samples are all drained.
    pub fn bury(&mut self, engine: &'static Engine) {
        engine.reap(|record| {
            self.agent.registry.forget(record.tid(), record);
            self.gone.push(record.user());
        });
    }
}
