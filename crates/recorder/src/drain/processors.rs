//! Use of processors, by the second: the control group's limit and how often it throttled the
//! process, and the kernel's account of the sampled threads.

use super::switching::{Did, Switching};
use crate::runtime::Runtime;
use crate::runtime::setup::Setup;
use crate::sys::process;
use crate::sys::task::TaskFiles;
use dwell_host::Whose;
use dwell_host::cgroup::Group;
use dwell_host::limit::Limits;
use dwell_jfr::writer::Event;
use dwell_signal::ThreadRecord;
use dwell_wall::proc::{self, Schedule};
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};

/// Time between two accounts.
const EVERY: Duration = Duration::from_millis(950);
/// Maximum number of threads that are accounted for at once.
const THREADS_MAX: usize = 1024;

/// A thread's use of a stretch of time.
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
    /// Time that it was ready and had no processor.
    pub waited_ns: u64,
    /// How often it got one.
    pub turns: u64,
}

/// The last report of a thread.
#[derive(Clone, Copy, Debug)]
struct Told {
    samples: u64,
    /// Distinguishes the thread's names.
    name_mark: u64,
    at_ns: u64,
    schedule: Schedule,
}

/// The accounts.
pub struct Processors {
    files: TaskFiles,
    limits: Limits,
    threads: FxHashMap<u64, Told>,
    switching: Switching,
    due: Instant,
    /// When the last account was.
    accounted_ns: u64,
}

impl Processors {
    /// From now on; `group` is the process's.
    #[must_use]
    pub fn begin<R: Runtime>(setup: &Setup<R>, group: Option<Group>) -> Processors {
        Processors {
            files: TaskFiles::open(),
            limits: Limits::begin(Whose::Own, group),
            threads: FxHashMap::default(),
            switching: Switching::new(setup),
            due: Instant::now() + EVERY,
            accounted_ns: process::monotonic_ns(),
        }
    }

    /// A new chunk: values that are written only when they change have to be in it as well.
    pub fn begin_chunk(&mut self) {
        self.limits.begin_chunk();
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

    /// The threads that were sampled since the last account, whose records are at these places:
    /// few out of thousands.
    pub fn threads<R: Runtime>(
        &mut self,
        setup: &Setup<R>,
        sampled: &FxHashSet<u32>,
    ) -> Vec<ThreadTime> {
        let mut all = Vec::new();
        let before_ns = self.accounted_ns;
        self.accounted_ns = process::monotonic_ns();
        for index in sampled {
            if all.len() == THREADS_MAX {
                break;
            }
            let record = setup.engine.record(*index);
            let record = record.filter(|record| record.is_live());
            all.extend(record.and_then(|record| self.account(setup, record, before_ns)));
        }
        if self.threads.len() > 2 * THREADS_MAX {
            let live = setup.engine.live_records().map(ThreadRecord::user);
            let live: FxHashSet<u64> = live.collect();
            self.threads.retain(|key, _| live.contains(key));
        }
        all
    }

    /// CPU time of a thread, if it was sampled since its last report.
    fn account<R: Runtime>(
        &mut self,
        setup: &Setup<R>,
        record: &'static ThreadRecord,
        last_ns: u64,
    ) -> Option<ThreadTime> {
        let (key, samples) = (record.user(), record.samples());
        let before = self.threads.get(&key).copied();
        if samples == before.map_or(0, |before| before.samples) {
            return None;
        }
        let mut buf = [0u8; 128];
        let text = self.files.read(record.tid(), "schedstat", &mut buf)?;
        let mut name_mark = before.map_or(0, |before| before.name_mark);
        update_name(setup, record, &mut name_mark);
        let told = Told {
            samples,
            name_mark,
            at_ns: process::monotonic_ns(),
            schedule: proc::schedule(text)?,
        };
        let before = self.threads.insert(key, told);
        let now = told.schedule;
        let was = before.map(|before| before.schedule).unwrap_or_default();
        let did = Did {
            passed_ns: before.map_or_else(
                || lived_ns(&now, record.weight_ns(), told.at_ns.saturating_sub(last_ns)),
                |before| told.at_ns.saturating_sub(before.at_ns),
            ),
            cpu_ns: now.on_cpu_ns.saturating_sub(was.on_cpu_ns),
            turns: now.turns.saturating_sub(was.turns),
        };
        self.switching.update(setup.engine, record, &did);
        // CPU time from before it was first seen may not belong to the recording.
        let before = before?;
        Some(ThreadTime {
            thread: key,
            since_ns: before.at_ns,
            until_ns: told.at_ns,
            cpu_ns: did.cpu_ns,
            waited_ns: now.waited_ns.saturating_sub(was.waited_ns),
            turns: did.turns,
        })
    }

    /// The limit, if it has changed.
    pub fn limit(&mut self) -> Option<Event<'static>> {
        let told = self.limits.told()?;
        Some(Event::CpuLimit {
            ticks: process::monotonic_ns(),
            quota_ns: told.quota_ns,
            processors: told.processors,
            periods: told.since.periods,
            throttled: told.since.throttled,
            throttled_ns: told.since.throttled_ns,
        })
    }
}

/// How long a newly found thread has lived, if it has always used as large a part of its time as
/// since the last account, `passed_ns` ago. All its samples, which stand for `sampled_ns`, are of
/// that time.
fn lived_ns(all: &Schedule, sampled_ns: u64, passed_ns: u64) -> u64 {
    let lived_ns = u128::from(all.on_cpu_ns) * u128::from(passed_ns);
    let lived_ns = lived_ns.checked_div(u128::from(sampled_ns));
    lived_ns.map_or(u64::MAX, |ns| u64::try_from(ns).unwrap_or(u64::MAX))
}

/// A thread that has run may have been renamed.
fn update_name<R: Runtime>(setup: &Setup<R>, record: &ThreadRecord, name_mark: &mut u64) {
    if let Some(name) = setup.recorder.runtime.renamed(record, name_mark) {
        setup.recorder.threads.rename(record.user(), &name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_thread_is_assumed_to_have_run_at_present_rate() {
        let all = Schedule {
            on_cpu_ns: 3_000_000_000,
            ..Schedule::default()
        };
        assert_eq!(lived_ns(&all, 250_000_000, 1_000_000_000), 12_000_000_000);
        assert_eq!(lived_ns(&all, 0, 1_000_000_000), u64::MAX, "it rests");
        assert_eq!(lived_ns(&Schedule::default(), 1, 1), 0);
    }
}
