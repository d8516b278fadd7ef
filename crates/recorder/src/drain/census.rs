//! The threads that exist. The runtime reports its own. All others are searched as soon as the
//! number of threads has changed, and once in a while: one may have begun as another one ended.

use crate::runtime::Runtime;
use crate::runtime::process_wide::State;
use crate::sys::process;
use crate::sys::task::TaskFiles;
use crate::threads::ThreadName;
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

    /// Registers the threads that were not reported: the runtime's helpers, native ones.
    pub fn find(&mut self, engine: &'static Engine) {
        let began = Instant::now();
        self.looked = began;
        self.count = self.files.count();
        let tids = process::thread_ids();
        for &tid in &tids {
            if !self.seen.contains(&tid) {
                self.recorder
                    .registry
                    .add_if_new(tid, self.born, |newborn| {
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
        self.recorder
            .registry
            .forget_left(|tid| self.seen.contains(&tid));
        self.took = began.elapsed();
        let pause = PAUSE_MIN.max(self.took * SHARE_MAX);
        self.not_before = Instant::now() + pause;
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
