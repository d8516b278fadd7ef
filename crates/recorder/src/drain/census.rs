//! The threads that exist. The runtime reports its own. All others are searched as soon as the
//! number of threads has changed, and once in a while: one may have begun as another one ended.

use crate::runtime::Runtime;
use crate::runtime::process_wide::State;
use crate::sys::process;
use crate::sys::task::TaskFiles;
use crate::threads::ThreadName;
use dwell_signal::sys::cpu_ns_of;
use dwell_signal::{Engine, Registration};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// The search for threads may take this part of the time.
const SHARE_MAX: u32 = 200;
/// The interval of searches while the number has not changed, and the part of the time that they
/// may take then.
const REGULARLY: Duration = Duration::from_millis(900);
const REGULAR_SHARE_MAX: u32 = 5000;
const REGULARLY_AT_LEAST: Duration = Duration::from_secs(60);
/// Minimum time between two.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Finds threads that come and go.
pub struct Census<R: Runtime> {
    recorder: &'static State<R>,
    files: TaskFiles,
    seen: HashSet<i32>,
    /// Number of threads at the last search.
    count: u64,
    /// The earliest time of the next search.
    not_before: Instant,
    /// The time of the last search.
    looked: Instant,
    /// How long that took.
    took: Duration,
    /// Whether unknown threads are born since the recording began.
    born: bool,
    /// Checks for CPU time without samples since the last search.
    checks: u32,
    /// Keys of threads whose last sample has been drained.
    pub gone: Vec<u64>,
}

impl<R: Runtime> Census<R> {
    /// No thread is known yet. A thread that is found later existed `before` the recording, or is
    /// born since.
    #[must_use]
    pub fn new(recorder: &'static State<R>, before: bool) -> Census<R> {
        Census {
            recorder,
            files: TaskFiles::open(),
            seen: HashSet::new(),
            count: 0,
            not_before: Instant::now(),
            looked: Instant::now(),
            took: Duration::ZERO,
            born: !before,
            checks: 0,
            gone: Vec::new(),
        }
    }

    /// Searches for new threads if there may be some, and not too often: the directory of a
    /// thousand threads takes a millisecond to read.
    pub fn find_if_changed(&mut self, engine: &'static Engine) {
        if self.files.count() != self.count && Instant::now() >= self.not_before {
            self.find(engine);
        }
    }

    /// Searches for threads if the last search was long ago, or as [`Census::find_if_changed`]
    /// does.
    pub fn find_in_time(&mut self, engine: &'static Engine) {
        let seldom = (self.took * REGULAR_SHARE_MAX).min(REGULARLY_AT_LEAST);
        let regularly = REGULARLY.max(seldom);
        if self.looked.elapsed() >= regularly {
            self.find(engine);
        } else {
            self.find_if_changed(engine);
        }
    }

    /// The CPU time without samples is being checked. Time that two checks find is reported.
    pub fn note_check(&mut self) {
        self.checks += 1;
    }

    /// Registers the threads that were not reported: the runtime's helpers, native ones.
    pub fn find(&mut self, engine: &'static Engine) {
        // On a busy machine, a search can stand still for longer than it works.
        let began = process::own_cpu();
        self.looked = Instant::now();
        self.count = self.files.count();
        self.add(process::thread_ids(), engine);
        self.took = process::own_cpu().saturating_sub(began);
        let pause = PAUSE_MIN.max(self.took * SHARE_MAX);
        self.not_before = Instant::now() + pause;
    }

    fn add(&mut self, tids: Vec<i32>, engine: &'static Engine) {
        // The time of an unknown thread that two checks have found was reported.
        let born = self.born && self.checks < 2;
        self.checks = 0;
        for &tid in &tids {
            if !self.seen.contains(&tid) {
                self.recorder.registry.add_if_new(tid, born, |newborn| {
                    let comm = process::thread_comm(tid);
                    let name = ThreadName {
                        tid,
                        comm,
                        ..ThreadName::default()
                    };
                    let user = self.recorder.threads.add(name);
                    let seed = self.recorder.threads.seed(user);
                    engine
                        .register(&Registration {
                            tid,
                            seed,
                            user,
                            newborn,
                            ..Registration::default()
                        })
                        .ok()
                });
            }
        }
        self.seen = tids.into_iter().collect();
        // The list may lack a thread that has left since, but still runs.
        self.recorder
            .registry
            .forget_left(|tid| cpu_ns_of(tid).is_ok());
    }

    /// Opens the sources of signals of young threads that live on. Recycles
    /// the records of threads that have ended and whose samples are all drained. Shows
    /// the threads whose last samples found no free slot, and the CPU time in ns of these samples.
    pub fn retire(&mut self, engine: &'static Engine, mut debt: impl FnMut(u64, u64)) {
        engine.open_deferred();
        engine.reap(|record| {
            let owed_ns = record.take_carried_ns();
            if owed_ns != 0 {
                debt(record.user(), owed_ns);
            }
            let registry = &self.recorder.registry;
            registry.forget(record.tid(), record, owed_ns);
            self.gone.push(record.user());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Alone, Mock, alone};
    use std::sync::mpsc;

    const USED: Duration = Duration::from_millis(20);

    /// Calls `test` while a thread lives that has used [`USED`] since the recording began.
    fn beside_a_thread(test: impl FnOnce(&Alone, &mut Census<Mock>, i32)) {
        let alone = alone();
        let recorder: &'static State<Mock> = alone.agent();
        recorder.registry.rebase();
        let mut census = Census::new(recorder, false);
        let (tell, told) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while process::own_cpu() < USED {
                std::hint::spin_loop();
            }
            tell.send(process::own_tid()).unwrap();
            let _ = ends.recv();
        });
        test(&alone, &mut census, told.recv().unwrap());
        drop(end);
        thread.join().unwrap();
    }

    /// Whether the samples of the found threads stand for their whole life.
    fn is_whole_life(census: &Census<Mock>) -> bool {
        census.recorder.registry.sampled_cpu_ns() >= USED.as_nanos() as u64
    }

    /// Otherwise its time would be counted twice: as time without samples, and by its samples.
    #[test]
    fn thread_that_two_checks_found_is_no_newborn() {
        for (checks, expected) in [(0, true), (1, true), (2, false), (9, false)] {
            beside_a_thread(|alone, census, tid| {
                (0..checks).for_each(|_| census.note_check());
                census.add(vec![tid], alone.engine());
                assert_eq!(is_whole_life(census), expected, "{checks} checks");
            });
        }
    }

    /// It began after the list of threads was read, and left before the search was over.
    #[test]
    fn thread_that_left_during_a_search_is_no_newborn() {
        beside_a_thread(|alone, census, tid| {
            census.add(vec![tid], alone.engine());
            let cpu_ns = cpu_ns_of(tid).unwrap();
            let record = census.recorder.registry.end(tid, cpu_ns, None).unwrap();
            alone.engine().end(record);
            census.add(vec![], alone.engine());
            census.add(vec![tid], alone.engine());
            assert!(!is_whole_life(census));
        });
    }
}
