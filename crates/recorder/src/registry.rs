//! The live threads by kernel id, so that each thread is registered only once, by the first part
//! that finds it. Also the CPU time that could be sampled.

use dwell_jfr::hash::Seeds;
use dwell_signal::ThreadRecord;
use dwell_signal::sys::{cpu_ns_of, own_cpu_ns};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

type Record = &'static ThreadRecord;

struct Entry {
    record: Record,
    /// CPU time of the thread from which on it can be sampled.
    base_ns: u64,
    /// Whether it is a native thread that attaches to the runtime and detaches again.
    attaches: bool,
}

#[derive(Default)]
struct Inner {
    /// Callbacks of the runtime read it, so its hashes are quick ones.
    by_tid: HashMap<i32, Entry, Seeds>,
    /// CPU time, within the sampled part of their lives, of threads that have ended.
    ended_ns: u64,
    /// Threads that ended as managed ones, with their CPU time. Some continue as native ones, and
    /// may come back (the first one may, to end the process).
    left: HashMap<i32, u64>,
    /// When the recording began, if one runs.
    began: Option<Instant>,
    /// Places of records that began or ended since the last read, if they are noted.
    changed: Option<Vec<u32>>,
}

impl Inner {
    fn note(&mut self, record: Record) {
        if let Some(changed) = &mut self.changed {
            changed.push(record.index());
        }
    }

    /// Whether a thread that has used `cpu_ns` may be younger than the recording. A list of
    /// threads may lack a live one if others end while the kernel makes it (`next_tid` in
    /// fs/proc/base.c). Found later, such a thread looks newborn, and its whole life would be the
    /// weight of its next sample.
    fn can_be_born_since(&self, cpu_ns: u64) -> bool {
        self.began
            .is_some_and(|began| u128::from(cpu_ns) <= began.elapsed().as_nanos())
    }
}

impl Entry {
    /// CPU time that the samples of a thread stand for. If the thread has exited without notice,
    /// no more can be known: the time it used after its clock was last read is lost.
    fn sampled_ns(&self) -> u64 {
        self.record.weight_ns()
    }

    /// The CPU time of a thread that samples stand for, if they do up to `cpu_ns`. Time can pass
    /// between the begin of a recording and a thread's first signal.
    fn sampled_to_ns(&self, cpu_ns: u64) -> u64 {
        cpu_ns.saturating_sub(self.base_ns.max(self.record.left_out_ns()))
    }
}

/// CPU time of a registered thread from which on it can be sampled.
fn base_ns(record: Record, newborn: bool, now_ns: u64) -> u64 {
    match newborn {
        true => record.left_out_ns(),
        false => now_ns,
    }
}

/// Registered threads.
#[derive(Default)]
pub struct Registry(Mutex<Inner>);

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // The data is consistent after every statement, so a panic elsewhere does no harm.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Registers a thread unless it is registered. A thread `born` since the recording began is
    /// sampled from its first instruction on, unless it is a managed thread that has just left.
    pub fn add_if_new(&self, tid: i32, born: bool, register: impl FnOnce(bool) -> Option<Record>) {
        let mut inner = self.lock();
        if inner.by_tid.contains_key(&tid) {
            return;
        }
        let now_ns = cpu_ns_of(tid).unwrap_or(0);
        // A reused id: the new thread has used less.
        let has_left = inner
            .left
            .get(&tid)
            .is_some_and(|then_ns| *then_ns <= now_ns);
        let newborn = born && !has_left && inner.can_be_born_since(now_ns);
        if let Some(record) = register(newborn) {
            let base_ns = base_ns(record, newborn, now_ns);
            let entry = Entry {
                record,
                base_ns,
                attaches: has_left,
            };
            inner.by_tid.insert(tid, entry);
            inner.note(record);
        }
    }

    /// Registers a thread, or shows the record it already has to `known`. A thread that `starts`
    /// just now is a newborn and the calling one, and is sampled from its first instruction on,
    /// unless it is already
    /// known.
    pub fn add_or_update(
        &self,
        tid: i32,
        starts: bool,
        register: impl FnOnce(bool) -> Option<Record>,
        known: impl FnOnce(Record),
    ) {
        let mut inner = self.lock();
        match inner.by_tid.get(&tid) {
            Some(entry) if entry.record.is_live() => {
                let record = entry.record;
                known(record);
                inner.note(record);
            }
            _ => {
                // The clock of another thread takes longer to read.
                let now_ns = match starts {
                    true => own_cpu_ns(),
                    false => cpu_ns_of(tid).unwrap_or(0),
                };
                // A reused id: the new thread has used less.
                let is_back = inner
                    .left
                    .remove(&tid)
                    .is_some_and(|then_ns| then_ns <= now_ns);
                let newborn = starts && !is_back && inner.can_be_born_since(now_ns);
                if let Some(record) = register(newborn) {
                    let base_ns = base_ns(record, newborn, now_ns);
                    let entry = Entry {
                        record,
                        base_ns,
                        attaches: is_back,
                    };
                    inner.by_tid.insert(tid, entry);
                    inner.note(record);
                }
            }
        }
    }

    /// Changes the record of a native thread that attaches to the runtime again. Returns whether it
    /// is such a thread. Some threads do that for each call, so the lock is taken only once.
    pub fn returns(&self, tid: i32, change: impl FnOnce(Record)) -> bool {
        let mut inner = self.lock();
        let Some(entry) = inner.by_tid.get(&tid) else {
            return false;
        };
        let record = entry.record;
        if !entry.attaches || record.managed_thread() != 0 {
            return false;
        }
        change(record);
        inner.note(record);
        true
    }

    /// A managed thread ends as such. Returns its record if the kernel's thread has come back from
    /// that before. Then it is sampled as a native thread. Opening its event again each time costs
    /// more than such threads mostly do between two calls.
    pub fn detach(&self, tid: i32) -> Option<Record> {
        let mut inner = self.lock();
        let record = inner
            .by_tid
            .get(&tid)
            .filter(|entry| entry.attaches)?
            .record;
        inner.note(record);
        Some(record)
    }

    /// The record of a thread.
    #[must_use]
    pub fn get(&self, tid: i32) -> Option<Record> {
        self.lock().by_tid.get(&tid).map(|entry| entry.record)
    }

    /// The record of a thread for which `is_it` holds; asks at most `most` threads.
    pub fn find(&self, most: usize, is_it: impl Fn(&ThreadRecord) -> bool) -> Option<Record> {
        let inner = self.lock();
        let mut records = inner.by_tid.values().take(most).map(|entry| entry.record);
        records.find(|record| is_it(record))
    }

    /// Removes a thread that ends after `cpu_ns` of CPU time. Its samples stand for the time used
    /// up to `sampled_to`, or for no time.
    pub fn end(&self, tid: i32, cpu_ns: u64, sampled_to: Option<u64>) -> Option<Record> {
        let mut inner = self.lock();
        let entry = inner.by_tid.remove(&tid)?;
        inner.note(entry.record);
        inner.ended_ns += sampled_to.map_or(0, |ns| entry.sampled_to_ns(ns));
        inner.left.insert(tid, cpu_ns);
        Some(entry.record)
    }

    /// Forgets threads that have left and no longer exist.
    pub fn forget_left(&self, exists: impl Fn(i32) -> bool) {
        self.lock().left.retain(|tid, _| exists(*tid));
    }

    /// Forgets a thread that exited without notice, if `record` is still its record. Its CPU-time
    /// debt of `owed_ns` is reported in addition to its samples.
    pub fn forget(&self, tid: i32, record: &ThreadRecord, owed_ns: u64) {
        let mut inner = self.lock();
        if inner
            .by_tid
            .get(&tid)
            .is_some_and(|known| std::ptr::eq(known.record, record))
            && let Some(entry) = inner.by_tid.remove(&tid)
        {
            inner.note(entry.record);
            inner.ended_ns += entry.sampled_ns() + owed_ns;
        }
    }

    /// Starts counting for a recording: CPU time used so far was not sampled.
    pub fn rebase(&self) {
        let mut inner = self.lock();
        inner.ended_ns = 0;
        inner.began = Some(Instant::now());
        for (tid, entry) in &mut inner.by_tid {
            entry.base_ns = cpu_ns_of(*tid).unwrap_or(entry.base_ns);
        }
    }

    /// Starts noting which threads begin and end; the present ones are noted first.
    pub fn watch(&self) {
        let mut inner = self.lock();
        let all = inner.by_tid.values().map(|entry| entry.record.index());
        inner.changed = Some(all.collect());
    }

    /// Ends that.
    pub fn unwatch(&self) {
        self.lock().changed = None;
    }

    /// Takes the places of records that began or ended since the last call.
    #[must_use]
    pub fn take_changed(&self) -> Vec<u32> {
        let mut inner = self.lock();
        inner
            .changed
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// How many threads there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().by_tid.len()
    }

    /// Whether the registry is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// CPU time used by threads while they could be sampled, since [`Registry::rebase`].
    #[must_use]
    pub fn sampled_cpu_ns(&self) -> u64 {
        let inner = self.lock();
        let mut sum = inner.ended_ns;
        for (tid, entry) in &inner.by_tid {
            sum += match cpu_ns_of(*tid) {
                Ok(now_ns) => entry.sampled_to_ns(now_ns),
                Err(_) => entry.sampled_ns(),
            };
        }
        sum
    }

    /// The same at the end of sampling. `end` ends sampling, and shows each thread with its CPU
    /// time up to which it was sampled. No thread begins or ends during this call.
    pub fn sampled_cpu_ns_to(&self, end: impl FnOnce(&mut dyn FnMut(&ThreadRecord, u64))) -> u64 {
        let inner = self.lock();
        let mut sampled_to = HashMap::with_capacity(inner.by_tid.len());
        end(&mut |record, cpu_ns| {
            sampled_to.insert(record.index(), cpu_ns);
        });
        let of = |entry: &Entry| match sampled_to.get(&entry.record.index()) {
            Some(cpu_ns) => entry.sampled_to_ns(*cpu_ns),
            None => entry.sampled_ns(),
        };
        inner.ended_ns + inner.by_tid.values().map(of).sum::<u64>()
    }

    /// Forgets all; shows each first.
    pub fn clear(&self, mut last_sight: impl FnMut(Record)) {
        let mut inner = self.lock();
        inner.ended_ns = 0;
        inner.left.clear();
        inner.began = None;
        for (_, entry) in inner.by_tid.drain() {
            last_sight(entry.record);
        }
    }
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
