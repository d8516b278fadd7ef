//! Thread names: from the runtime for its own threads, from the kernel for all others.

use crate::sys::process;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The key of a virtual thread is its id with this bit, which no counter reaches.
pub const VIRTUAL_KEY: u64 = 1 << 63;

/// The key of threads that have ended or were never seen.
pub const NOBODY_KEY: u64 = 0;

/// A thread's identity in the recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadName {
    /// Kernel id.
    pub tid: i32,
    /// The kernel's name for it, at most 15 bytes.
    pub comm: String,
    /// The runtime's name for it, if it has one.
    pub name: Option<String>,
    /// The runtime's id; 0 if it is not a thread of the runtime.
    pub id: i64,
    /// Name of its group.
    pub group: Option<String>,
}

/// Maximum number of renamed threads; further ones are written with their earlier names.
const RENAMED_MAX: usize = 1 << 16;

/// All threads seen, by a key that is never used again.
pub struct ThreadTable {
    next: AtomicU64,
    salt: u64,
    names: Mutex<Names>,
}

#[derive(Default)]
struct Names {
    by_key: HashMap<u64, Arc<ThreadName>>,
    /// Threads that were renamed since these were last taken.
    renamed: Vec<u64>,
}

impl Default for ThreadTable {
    fn default() -> Self {
        Self::new()
    }
}

impl ThreadTable {
    /// An empty table.
    #[must_use]
    pub fn new() -> ThreadTable {
        ThreadTable {
            next: AtomicU64::new(1),
            // Other points in each process, so that two recordings are two experiments.
            salt: process::epoch_ns().wrapping_mul(u64::from(std::process::id()) | 1),
            names: Mutex::default(),
        }
    }

    /// Adds a thread and answers its key.
    pub fn add(&self, name: ThreadName) -> u64 {
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        self.set(key, name);
        key
    }

    /// The seed of a thread's sampling points. Consecutive threads have consecutive seeds.
    #[must_use]
    pub fn seed(&self, key: u64) -> u64 {
        key.wrapping_add(self.salt)
    }

    /// Replaces the data of a thread.
    pub fn set(&self, key: u64, name: ThreadName) {
        if let Ok(mut names) = self.names.lock() {
            names.by_key.insert(key, Arc::new(name));
        }
    }

    /// The data of a thread.
    #[must_use]
    pub fn get(&self, key: u64) -> Option<Arc<ThreadName>> {
        self.names.lock().ok()?.by_key.get(&key).cloned()
    }

    /// Shows all known threads, including those that have just ended, in no order.
    pub fn visit(&self, mut show: impl FnMut(u64, &ThreadName)) {
        if let Ok(names) = self.names.lock() {
            for (key, name) in &names.by_key {
                show(*key, name);
            }
        }
    }

    /// Renames a managed thread.
    pub fn rename(&self, key: u64, name: &str) {
        let Ok(mut names) = self.names.lock() else {
            return;
        };
        let Some(known) = names.by_key.get_mut(&key) else {
            return;
        };
        if known.id == 0 || known.name.as_deref() == Some(name) {
            return;
        }
        Arc::make_mut(known).name = Some(name.to_owned());
        if names.renamed.len() < RENAMED_MAX {
            names.renamed.push(key);
        }
    }

    /// Threads that were renamed since the last call.
    #[must_use]
    pub fn take_renamed(&self) -> Vec<u64> {
        let names = self.names.lock();
        names.map_or_else(|_| Vec::new(), |mut it| std::mem::take(&mut it.renamed))
    }

    /// Forgets threads that have ended and whose samples are written.
    pub fn forget(&self, keys: &[u64]) {
        if let Ok(mut names) = self.names.lock() {
            for key in keys {
                names.by_key.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_never_reused() {
        let table = ThreadTable::new();
        let a = table.add(ThreadName {
            tid: 1,
            ..ThreadName::default()
        });
        table.forget(&[a]);
        let b = table.add(ThreadName {
            tid: 1,
            ..ThreadName::default()
        });
        assert_ne!(a, b);
        assert!(table.get(a).is_none());
        assert_eq!(table.get(b).unwrap().tid, 1);
    }

    #[test]
    fn renamed_thread_is_reported_once() {
        let table = ThreadTable::new();
        let named = |id, name: &str| ThreadName {
            id,
            name: (id != 0).then(|| name.to_owned()),
            ..ThreadName::default()
        };
        let (managed, native) = (table.add(named(5, "Thread-0")), table.add(named(0, "")));
        table.rename(managed, "Thread-0");
        table.rename(native, "worker");
        table.rename(1 << 40, "nobody");
        assert_eq!(table.take_renamed(), []);
        table.rename(managed, "worker");
        table.rename(managed, "worker");
        assert_eq!(table.take_renamed(), [managed]);
        assert_eq!(table.take_renamed(), []);
        assert_eq!(table.get(managed).unwrap().name.as_deref(), Some("worker"));
        assert_eq!(table.get(native).unwrap().name, None);
    }
}
