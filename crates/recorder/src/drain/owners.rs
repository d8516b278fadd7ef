//! Who the threads are that had monitors, by what the runtime said of them when others began to wait.

use super::sample::VIRTUAL_KEY;
use crate::runtime::Runtime;
use crate::session::Setup;
use dwell_signal::LockOwner;
use rustc_hash::FxHashMap;

/// Keys of threads. They hold for one drain: a thread may end, and its structure be another's.
#[derive(Debug, Default)]
pub struct Owners {
    by_managed: FxHashMap<u64, u64>,
    by_id: FxHashMap<u64, u64>,
    is_filled: bool,
}

impl Owners {
    /// A drain begins.
    pub fn clear(&mut self) {
        self.is_filled = false;
    }

    /// The key of the thread that had a monitor, if it lives or is a virtual one.
    pub fn key<R: Runtime>(&mut self, setup: &Setup<R>, owner: LockOwner) -> Option<u64> {
        if !self.is_filled {
            self.fill(setup);
        }
        match owner {
            LockOwner::Unknown => None,
            LockOwner::Managed(thread) => self.by_managed.get(&thread).copied(),
            LockOwner::Logical(id) => match self.by_id.get(&id) {
                Some(key) => Some(*key),
                None => Some(id | VIRTUAL_KEY),
            },
            LockOwner::User(key) => Some(key),
        }
    }

    fn fill<R: Runtime>(&mut self, setup: &Setup<R>) {
        self.by_managed.clear();
        self.by_id.clear();
        setup.recorder.registry.visit(|record| {
            if record.managed_thread() != 0 {
                self.by_managed.insert(record.managed_thread(), record.user());
                self.by_id.insert(record.managed_id(), record.user());
            }
        });
        self.is_filled = true;
    }
}
