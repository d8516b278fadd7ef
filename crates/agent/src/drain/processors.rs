//! Who had processors and who had none, by the second: the control group's limit and how often it
//! held the process back, and the kernel's account of the threads that were sampled.

use crate::session::Setup;
use crate::sys::cgroup::Group;
use crate::sys::process;
use crate::sys::task::TaskFiles;
use dwell_jfr::writer::Event;
use dwell_signal::ThreadRecord;
use dwell_wall::cgroup::Throttling;
use dwell_wall::proc::{self, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};

/// Time between two accounts.
const EVERY: Duration = Duration::from_millis(950);
/// Threads that are accounted for at once at most.
const THREADS_MAX: usize = 1024;

/// What a thread used of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTime {
    /// Its key.
    pub thread: u64,
    /// From when, on the monotonic clock.
    pub since_ns: u64,
    /// Until when.
    pub until_ns: u64,
    /// Time on a processor.
    pub cpu_ns: u64,
    /// Time it was ready and had none.
    pub waited_ns: u64,
    /// How often it got one.
    pub turns: u64,
}

/// What was told of a thread last.
#[derive(Clone, Copy, Debug)]
struct Told {
    samples: u64,
    at_ns: u64,
    schedule: Schedule,
}

/// The accounts.
pub struct Processors {
    files: TaskFiles,
    group: Option<Group>,
    throttling: Throttling,
    limit_ns: Option<u64>,
    threads: FxHashMap<u64, Told>,
    due: Instant,
}

impl Default for Processors {
    /// From now on.
    fn default() -> Processors {
        let group = Group::own();
        Processors {
            throttling: group.as_ref().map(Group::throttling).unwrap_or_default(),
            files: TaskFiles::open(),
            group,
            limit_ns: None,
            threads: FxHashMap::default(),
            due: Instant::now() + EVERY,
        }
    }
}

impl Processors {
    /// A new chunk: what is told only when it changes has to be in it as well.
    pub fn begin_chunk(&mut self) {
        self.limit_ns = None;
    }

    /// Whether another account is due; `last` is the end.
    pub fn is_due(&mut self, last: bool) -> bool {
        let now = Instant::now();
        let is_due = now >= self.due || last;
        if is_due {
            self.due = now + EVERY;
        }
        is_due
    }

    /// The threads that were sampled since the last account.
    pub fn threads(&mut self, setup: &Setup) -> Vec<ThreadTime> {
        let mut all = Vec::new();
        for record in setup.engine.live_records() {
            if all.len() == THREADS_MAX {
                break;
            }
            all.extend(self.account(record));
        }
        if self.threads.len() > 2 * THREADS_MAX {
            let live = setup.engine.live_records().map(ThreadRecord::user);
            let live: FxHashSet<u64> = live.collect();
            self.threads.retain(|key, _| live.contains(key));
        }
        all
    }

    /// What a thread used, if it was sampled since that was told last.
    fn account(&mut self, record: &ThreadRecord) -> Option<ThreadTime> {
        let (key, samples) = (record.user(), record.samples());
        let before = self.threads.get(&key).copied();
        if samples == before.map_or(0, |before| before.samples) {
            return None;
        }
        let mut buf = [0u8; 128];
        let text = self.files.read(record.tid(), "schedstat", &mut buf)?;
        let told = Told {
            samples,
            at_ns: process::monotonic_ns(),
            schedule: proc::schedule(text)?,
        };
        // What it used before it was seen first is not known to belong to the recording.
        let before = self.threads.insert(key, told)?;
        let (now, was) = (told.schedule, before.schedule);
        Some(ThreadTime {
            thread: key,
            since_ns: before.at_ns,
            until_ns: told.at_ns,
            cpu_ns: now.on_cpu_ns.saturating_sub(was.on_cpu_ns),
            waited_ns: now.waited_ns.saturating_sub(was.waited_ns),
            turns: now.turns.saturating_sub(was.turns),
        })
    }

    /// The limit, if there is something new about it.
    pub fn limit(&mut self) -> Option<Event<'static>> {
        let quota_ns = self.group.as_ref().map_or(0, Group::quota_ns);
        let now = match quota_ns {
            0 => Throttling::default(),
            _ => self
                .group
                .as_ref()
                .map(Group::throttling)
                .unwrap_or_default(),
        };
        let before = std::mem::replace(&mut self.throttling, now);
        if self.limit_ns == Some(quota_ns) && now == before {
            return None;
        }
        self.limit_ns = Some(quota_ns);
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        Some(Event::CpuLimit {
            ticks: process::monotonic_ns(),
            quota_ns,
            processors: processors as u64,
            periods: now.periods.saturating_sub(before.periods),
            throttled: now.throttled.saturating_sub(before.throttled),
            throttled_ns: now.throttled_ns.saturating_sub(before.throttled_ns),
        })
    }
}
