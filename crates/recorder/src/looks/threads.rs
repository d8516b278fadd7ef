//! The platform threads that can be looked at, as the runtime knows them: who has a lock is found
//! here.

use dwell_signal::{Engine, ThreadRecord};
use rustc_hash::FxHashMap;

/// Who has what another thread waits for; a place is that of a platform thread's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The platform thread itself.
    Platform(u32),
    /// Whoever runs, or waits, on this platform thread.
    On(u32),
    /// A logical thread, by its id, that is on none.
    Unmounted(u64),
}

/// Places of threads.
pub struct Threads {
    engine: &'static Engine,
    by_managed: FxHashMap<u64, u32>,
    by_id: FxHashMap<u64, u32>,
}

impl Threads {
    /// None yet.
    #[must_use]
    pub fn new(engine: &'static Engine) -> Threads {
        Threads {
            engine,
            by_managed: FxHashMap::default(),
            by_id: FxHashMap::default(),
        }
    }

    /// The place of the thread that the runtime knows by this structure of its own.
    #[must_use]
    pub fn of_managed(&self, thread: u64) -> Option<u32> {
        self.by_managed.get(&thread).copied()
    }

    /// The place of the thread with this id.
    #[must_use]
    pub fn of_id(&self, id: u64) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// The record at a place.
    #[must_use]
    pub fn record(&self, place: u32) -> Option<&'static ThreadRecord> {
        self.engine.record(place)
    }

    /// The place of a thread for which `is_it` holds.
    pub fn find(&self, is_it: impl Fn(&ThreadRecord) -> bool) -> Option<u32> {
        let mut places = self.by_managed.values().copied();
        places.find(|place| {
            let record = self.engine.record(*place);
            record.is_some_and(|record| record.managed_thread() != 0 && is_it(record))
        })
    }

    /// All of them: the runtime's structure, and the place.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.by_managed
            .iter()
            .map(|(thread, place)| (*thread, *place))
    }

    /// A thread has come.
    pub fn add(&mut self, thread: u64, place: u32) {
        self.by_managed.insert(thread, place);
    }

    /// The thread at `place` has another id than it had `before`.
    pub fn set_id(&mut self, before: u64, id: u64, place: u32) {
        if self.by_id.get(&before) == Some(&place) {
            self.by_id.remove(&before);
        }
        self.by_id.insert(id, place);
    }

    /// A thread that has ended owns nothing; its place in the runtime may be another's by now.
    pub fn forget(&mut self, thread: u64, id: u64, place: u32) {
        if self.by_managed.get(&thread) == Some(&place) {
            self.by_managed.remove(&thread);
        }
        if self.by_id.get(&id) == Some(&place) {
            self.by_id.remove(&id);
        }
    }
}
