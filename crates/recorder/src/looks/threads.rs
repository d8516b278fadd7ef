//! The platform threads that can be sampled, as the runtime knows them. The owner of a lock is
//! found here.

use dwell_signal::{Engine, ThreadRecord};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// The owner of an object that another thread waits for; a place is that of a platform thread's
/// record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The platform thread itself.
    Platform(u32),
    /// The thread that runs, or waits, on this platform thread.
    On(u32),
    /// A logical thread, by its id, without a platform thread.
    Unmounted(u64),
}

/// Number of threads that are asked first.
const FOUND_MAX: usize = 16;

/// Places of threads.
pub struct Threads {
    engine: &'static Engine,
    /// Places that were found last, the newest first. An owner mostly had a lock before, and
    /// asking thousands of threads costs more than a hundred samples.
    found: RefCell<Vec<u32>>,
    by_managed: FxHashMap<u64, u32>,
    by_id: FxHashMap<u64, u32>,
}

impl Threads {
    /// No threads yet.
    #[must_use]
    pub fn new(engine: &'static Engine) -> Threads {
        Threads {
            engine,
            found: RefCell::new(Vec::new()),
            by_managed: FxHashMap::default(),
            by_id: FxHashMap::default(),
        }
    }

    /// The place of the thread with this structure of the runtime.
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
        let is_at = |place: &u32| {
            let record = self.engine.record(*place);
            record.is_some_and(|record| record.managed_thread() != 0 && is_it(record))
        };
        let mut found = self.found.borrow_mut();
        let place = match found.iter().position(is_at) {
            Some(at) => found.remove(at),
            None => self.by_managed.values().copied().find(is_at)?,
        };
        found.truncate(FOUND_MAX - 1);
        found.insert(0, place);
        Some(place)
    }

    /// All of them: the runtime's structure, and the place.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.by_managed
            .iter()
            .map(|(thread, place)| (*thread, *place))
    }

    /// Adds a thread that has begun.
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

    /// Removes a thread that has ended: it owns nothing, and its place in the runtime may be
    /// another's by now.
    pub fn forget(&mut self, thread: u64, id: u64, place: u32) {
        if self.by_managed.get(&thread) == Some(&place) {
            self.by_managed.remove(&thread);
            self.found.get_mut().retain(|found| *found != place);
        }
        if self.by_id.get(&id) == Some(&place) {
            self.by_id.remove(&id);
        }
    }
}
