//! The threads that had monitors, identified by the runtime's data from when others began to wait.

use crate::threads::ThreadTable;
use crate::threads::VIRTUAL_KEY;
use dwell_signal::LockOwner;
use rustc_hash::FxHashMap;

/// Keys of threads. They hold for one drain.
#[derive(Debug, Default)]
pub struct Owners {
    by_tid: FxHashMap<i32, u64>,
    by_id: FxHashMap<u64, u64>,
    is_filled: bool,
}

impl Owners {
    /// A drain begins.
    pub fn clear(&mut self) {
        self.is_filled = false;
    }

    /// The key of the thread that had a monitor. It may have ended since.
    pub fn key(&mut self, threads: &ThreadTable, owner: LockOwner) -> Option<u64> {
        if !self.is_filled {
            self.fill(threads);
        }
        match owner {
            LockOwner::Unknown => None,
            LockOwner::Kernel(tid) => self.by_tid.get(&tid).copied(),
            LockOwner::Logical(id) => match self.by_id.get(&id) {
                Some(key) => Some(*key),
                None => Some(id | VIRTUAL_KEY),
            },
            LockOwner::User(key) => Some(key),
        }
    }

    fn fill(&mut self, threads: &ThreadTable) {
        self.by_tid.clear();
        self.by_id.clear();
        threads.visit(|key, thread| {
            if thread.id != 0 {
                self.by_id.insert(thread.id as u64, key);
            }
            // The kernel reuses an id: the last thread has the highest key.
            let last = self.by_tid.entry(thread.tid).or_default();
            *last = key.max(*last);
        });
        self.is_filled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::ThreadName;

    #[test]
    fn owners_are_threads_that_are_known_or_virtual_ones() {
        let threads = ThreadTable::new();
        let add = |tid, id| {
            threads.add(ThreadName {
                tid,
                id,
                ..ThreadName::default()
            })
        };
        let (_, second, native) = (add(7, 1), add(7, 2), add(8, 0));
        let mut owners = Owners::default();
        let mut key = |owner| owners.key(&threads, owner);
        assert_eq!(key(LockOwner::Unknown), None);
        assert_eq!(key(LockOwner::Kernel(7)), Some(second));
        assert_eq!(key(LockOwner::Kernel(8)), Some(native));
        assert_eq!(key(LockOwner::Kernel(9)), None);
        assert_eq!(key(LockOwner::Logical(2)), Some(second));
        assert_eq!(key(LockOwner::Logical(33)), Some(33 | VIRTUAL_KEY));
        assert_eq!(key(LockOwner::User(99)), Some(99));
        let third = add(9, 3);
        assert_eq!(
            owners.key(&threads, LockOwner::Kernel(9)),
            None,
            "as it was"
        );
        owners.clear();
        assert_eq!(owners.key(&threads, LockOwner::Kernel(9)), Some(third));
    }
}
