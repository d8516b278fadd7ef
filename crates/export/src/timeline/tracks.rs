//! The threads of the file: one for the process, one for each platform thread, and one for all
//! virtual threads with similar names. A program has thousands of those, and viewers draw each
//! thread of a file.

use std::collections::{BTreeMap, HashSet};

use dwell_profile::{Profile, Thread, ThreadId, group_of};

/// The most platform threads that are shown one by one. Above it they are grouped as well.
const THREADS_MAX: usize = 1000;
/// Ids of threads without one, above those of any Linux kernel. Perfetto reads 32 bits.
const FREE_TIDS: u64 = 2_000_000_000;

/// A thread of the file.
pub struct Track {
    pub name: String,
    /// Unique in the file.
    pub tid: u64,
}

/// All threads of the file.
pub struct Tracks {
    pub list: Vec<Track>,
    by_thread: Vec<usize>,
    tids: HashSet<u64>,
}

/// The place of the process, which has the events of no thread.
pub const PROCESS: usize = 0;

impl Tracks {
    /// The threads that have anything in a profile.
    pub fn new(profile: &Profile) -> Tracks {
        let is_active = active(profile);
        let threads = profile.threads().iter().zip(&is_active);
        let platform = threads.filter(|(thread, is_active)| **is_active && !thread.is_virtual);
        let are_grouped = platform.count() > THREADS_MAX;
        let mut tracks = Tracks {
            list: Vec::new(),
            by_thread: vec![PROCESS; profile.threads().len()],
            tids: HashSet::new(),
        };
        tracks.add("process".to_owned(), 0);
        let mut groups: BTreeMap<(bool, String), usize> = BTreeMap::new();
        let threads = profile.threads().iter().zip(is_active);
        for (id, (thread, is_active)) in threads.enumerate() {
            if !is_active {
                continue;
            }
            let name = profile.names().text(thread.name);
            let place = if thread.is_virtual || are_grouped {
                let group = (thread.is_virtual, group_of(name));
                let known = groups.get(&group).copied();
                known.unwrap_or_else(|| {
                    let place = tracks.add(group_name(&group), 0);
                    groups.insert(group, place);
                    place
                })
            } else {
                tracks.add(thread_name(name, thread), thread.os_tid)
            };
            if let Some(track) = tracks.by_thread.get_mut(id) {
                *track = place;
            }
        }
        tracks
    }

    fn add(&mut self, name: String, os_tid: i64) -> usize {
        let place = self.list.len();
        let known = u64::try_from(os_tid).ok();
        let known = known.filter(|tid| *tid > 0 && *tid < FREE_TIDS);
        // The kernel gives the id of a thread that has ended to another one.
        let tid = known
            .filter(|tid| self.tids.insert(*tid))
            .unwrap_or(FREE_TIDS + place as u64);
        self.list.push(Track { name, tid });
        place
    }

    /// The place of a thread.
    pub fn of(&self, thread: ThreadId) -> usize {
        let place = self.by_thread.get(thread as usize);
        place.copied().unwrap_or(PROCESS)
    }

    /// The id of a thread in the file.
    pub fn tid(&self, thread: ThreadId) -> u64 {
        self.list.get(self.of(thread)).map_or(0, |track| track.tid)
    }
}

/// Which threads have samples or events.
fn active(profile: &Profile) -> Vec<bool> {
    let mut is_active = vec![false; profile.threads().len()];
    let samples = profile.samples().iter().map(|it| it.thread);
    let looks = profile.looks().iter().map(|it| it.thread);
    let allocations = profile.allocations().iter().map(|it| it.thread);
    let waits = profile.monitor_waits().iter().map(|it| it.thread);
    let late = profile.late().iter().map(|it| it.thread);
    let all = samples.chain(looks).chain(allocations);
    for thread in all.chain(waits).chain(late) {
        if let Some(is_active) = is_active.get_mut(thread as usize) {
            *is_active = true;
        }
    }
    is_active
}

fn thread_name(name: &str, thread: &Thread) -> String {
    match name {
        "" => format!("Thread {}", thread.os_tid.max(thread.java_tid)),
        name => name.to_owned(),
    }
}

fn group_name((is_virtual, group): &(bool, String)) -> String {
    match (is_virtual, group.as_str()) {
        (true, "") => "virtual threads".to_owned(),
        (true, group) => format!("{group} (virtual threads)"),
        (false, "") => "threads without a name".to_owned(),
        (false, group) => format!("{group} (threads)"),
    }
}
