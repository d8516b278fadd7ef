//! The state that exists once per process and is never freed: callbacks may arrive during its
//! whole life. Begins and ends recordings, and takes the runtime's reports.

use crate::allocated::Classes;
use crate::blocked::Blocked;
use crate::callbacks::Callbacks;
use crate::chosen::{Events, Running};
use crate::context::hook::dwell_context_hook;
use crate::drain::census::Census;
use crate::ended::EndOfSampling;
use crate::looks::shelf::Shelf;
use crate::lost_objects::LostObjectsTable;
use crate::native::Kept;
use crate::options::{EngineChoice, Options};
use crate::record::file::RecordingFile;
use crate::registry::Registry;
use crate::runtime::Runtime;
use crate::runtime::process_wide::State;
use crate::runtime::setup::Setup;
use crate::session::{Session, target_path};
use crate::source::Source;
use crate::stops;
use crate::stretches::Stretches;
use crate::switched::Switched;
use crate::sys::process;
use crate::threads::{ThreadName, ThreadTable};
use dwell_signal::slots::Reason;
use dwell_signal::{EngineKind, Registration};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The recorder of a process.
pub struct Recorder<R: Runtime> {
    state: State<R>,
    /// The recording that runs, if one does.
    session: Mutex<Option<Session<R>>>,
    last: Mutex<Last>,
}

/// The last recording.
#[derive(Default)]
struct Last {
    /// The `status` of it.
    status: Option<String>,
    /// It has reached a limit, and no `stop` has followed yet.
    is_unstopped: bool,
}

impl<R: Runtime> Deref for Recorder<R> {
    type Target = State<R>;

    fn deref(&self) -> &State<R> {
        &self.state
    }
}

/// A thread that the runtime knows.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The thread's name and id.
    pub name: ThreadName,
    /// The runtime's own structure of it, not 0.
    pub managed: u64,
    /// Where its stack ends, 0 if that is not known.
    pub stack_high: u64,
    /// Whether it is just starting; it is the calling thread then.
    pub starts: bool,
}

/// The message for a process without a recording; `process` is its name.
#[must_use]
pub fn not_recording(process: &str) -> String {
    format!("nothing is being recorded in this {process}; use 'dwell start' or 'dwell record'")
}

impl<R: Runtime> Recorder<R> {
    /// A recorder without a recording.
    #[must_use]
    pub fn new(runtime: R, source: Source) -> Recorder<R> {
        source.engine.set_context(dwell_context_hook);
        Recorder {
            state: State {
                runtime,
                engine: source.engine,
                engine_reason: source.reason,
                threads: ThreadTable::new(),
                registry: Registry::default(),
                callbacks: Callbacks::default(),
                classes: Classes::default(),
                lost_objects: LostObjectsTable::default(),
                lost_methods: Classes::default(),
                alive: OnceLock::new(),
                blocked: Blocked::default(),
                adapted_bytes: AtomicU64::new(0),
                adapted_lock_ns: AtomicU64::new(0),
                stretches: Stretches::default(),
                libraries: Kept::default(),
            },
            session: Mutex::new(None),
            last: Mutex::default(),
        }
    }

    fn session(&self) -> MutexGuard<'_, Option<Session<R>>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a recording, requested by `text`. `begin` makes the runtime report its threads,
    /// shows the present ones ([`Recorder::saw`]), and finds all others
    /// ([`Recorder::find_threads`]). It is called when no step can fail any more. After an error
    /// all is unchanged, also a file of that name.
    ///
    /// # Errors
    /// One line for the user.
    pub fn start(
        &'static self,
        options: &Options,
        text: &str,
        begin: impl FnOnce(),
    ) -> Result<String, String> {
        let mut slot = self.session();
        if let Some(session) = slot.as_ref().filter(|session| !session.is_over()) {
            let path = session.path().display();
            return Err(match session.is_ending() {
                true => format!("the end of {path} is still being written; try again later"),
                false => format!("already recording to {path}; use 'dwell stop' first"),
            });
        }
        check_engine(self.engine.kind(), options.engine, R::PROCESS)?;
        if options.engine == EngineChoice::Kernel && !R::WALKS_COPIES {
            let process = R::PROCESS;
            return Err(format!(
                "engine=kernel: stacks of a {process} are walked in its handlers; leave it out"
            ));
        }
        if options.object_bytes() != 0 && !R::TELLS_ALLOCATIONS {
            let (asked, process) = (options.asked_objects(), R::PROCESS);
            return Err(format!(
                "{asked}: allocations of a {process} cannot be sampled; leave it out"
            ));
        }
        if !options.lock_interval.is_zero() && !R::TELLS_WAITS {
            let process = R::PROCESS;
            return Err(format!(
                "lock: waits for locks of a {process} cannot be recorded; leave it out"
            ));
        }
        check_freeze(options)?;
        let path = target_path(options);
        let file = RecordingFile::open(&path)
            .map_err(|e| format!("file={}: cannot create it: {e}", path.display()))?;
        let path = file.path().to_owned();
        let setup = self.setup(options, text, file);
        let session = Session::start(setup, path, || {
            self.blocked.begin();
            begin();
        })?;
        let status = session.status("running");
        *slot = Some(session);
        Ok(status)
    }

    pub(crate) fn setup(
        &'static self,
        options: &Options,
        text: &str,
        file: RecordingFile,
    ) -> Setup<R> {
        let engine = self.engine;
        let mut options = options.clone();
        options.walk = self.runtime.vantage(options.walk);
        Setup {
            recorder: &self.state,
            engine,
            switched: Switched::new(Events::of(&options), text, process::monotonic_ns()),
            options,
            file: Mutex::new(Some(file)),
            kernel_frames: matches!(engine.kind(), EngineKind::Perf { kernel: true }),
            counters_at_start: engine.counters(),
            callbacks_at_start_ns: self.callbacks.cpu_ns(),
            cpu_at_start: process::cpu_split(),
            process_cpu_at_start: process::process_cpu(),
            about: self.runtime.about(),
            start_epoch_ms: process::start_epoch_ms(),
            shelf: Shelf::default(),
            stops: stops::Shelf::default(),
            end: EndOfSampling::default(),
            shared: R::Shared::default(),
        }
    }

    /// Ends the recording. `end` stops the runtime's reports of threads.
    ///
    /// # Errors
    /// One line for the user.
    pub fn stop(&self, end: impl FnOnce()) -> Result<String, String> {
        let mut slot = self.session();
        let Some(session) = slot.take() else {
            let mut last = self.last();
            // A `stop` need not know that the recording ended a moment ago.
            return match std::mem::take(&mut last.is_unstopped) {
                true => Ok(last.status.clone().unwrap_or_default()),
                false => Err(not_recording(R::PROCESS)),
            };
        };
        match self.over(session, end) {
            Ok(status) => Ok(status),
            Err(session) => {
                *slot = Some(session);
                Err(
                    "the remaining data was not written within 10 s; to try again: dwell stop"
                        .into(),
                )
            }
        }
    }

    /// Like [`Recorder::stop`] for a recording that has reached a limit, if there is one, without
    /// a command. A later `stop` is answered as well.
    pub fn take_leave(&self, end: impl FnOnce()) {
        let mut slot = self.session();
        if let Some(session) = slot.take_if(|session| session.is_over()) {
            let is_unstopped = !session.is_ending();
            match self.over(session, end) {
                Ok(_) => self.last().is_unstopped = is_unstopped,
                Err(session) => *slot = Some(session),
            }
        }
    }

    /// Ends the recording, if it has not reached a limit, and the reports of the runtime. Gives it
    /// back if its drainer is still at work: it uses threads and samples.
    fn over(&self, mut session: Session<R>, end: impl FnOnce()) -> Result<String, Session<R>> {
        if !session.stop() {
            return Err(session);
        }
        let status = session.status("stopped");
        end();
        self.forget_threads();
        *self.last() = Last {
            status: Some(status.clone()),
            is_unstopped: false,
        };
        Ok(status)
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a recording runs.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.session().as_ref().is_some_and(|it| !it.is_over())
    }

    /// Whether a recording has reached a limit, and [`Recorder::stop`] is still to be called for
    /// it. Does not wait: returns false while a command is carried out.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let session = self.session.try_lock();
        session.is_ok_and(|it| it.as_ref().is_some_and(Session::is_over))
    }

    /// The recording that runs, if one does.
    #[must_use]
    pub fn running(&self) -> Option<Running> {
        let session = self.session();
        let running = session.as_ref().filter(|session| !session.is_over());
        running.map(Session::running)
    }

    /// Renews the lease of the running recording, if it has one.
    pub fn renew(&self) {
        if let Some(session) = &*self.session() {
            session.renew();
        }
    }

    /// Changes the events of the running recording, requested by `text`. When this returns, the
    /// runtime reports no event that is switched off, and none yet that is switched on. The file's
    /// chunks separate before and after.
    ///
    /// # Errors
    /// One line for the user.
    pub fn change(&self, events: Events, text: &str) -> Result<(), String> {
        match &*self.session() {
            Some(session) if session.is_over() || session.is_ending() => {
                Err(not_recording(R::PROCESS))
            }
            Some(session) if session.change(events, text) => Ok(()),
            Some(_) => Err("changed, but what came before was not written within 10 s".into()),
            None => Err(not_recording(R::PROCESS)),
        }
    }

    /// Makes the recording so far readable.
    ///
    /// # Errors
    /// One line for the user.
    pub fn dump(&self) -> Result<String, String> {
        match &*self.session() {
            Some(session) if session.is_over() => Ok(session.status("stopped")),
            Some(session) if session.dump() => Ok(session.status("running")),
            Some(_) => Err("the recording was not written within 10 s".into()),
            None => Err(not_recording(R::PROCESS)),
        }
    }

    /// State of the running recording, or of the last one.
    #[must_use]
    pub fn status(&self) -> String {
        match &*self.session() {
            Some(session) if session.is_over() => session.status("stopped"),
            Some(session) => session.status("running"),
            None => {
                let status = self.last().status.clone();
                status.unwrap_or_else(|| "state=stopped\n".into())
            }
        }
    }

    /// The process ends: writes the recording.
    pub fn finish(&self) {
        let session = self.session().take();
        // One wait is enough for a session that cannot write its remaining data.
        if let Some(mut session) = session.filter(|session| !session.is_ending()) {
            session.stop();
        }
    }

    /// Finds the threads that the runtime does not report.
    pub fn find_threads(&'static self) {
        Census::new(&self.state, true).find(self.engine);
    }

    /// Until the next start, no code of ours runs for these threads.
    fn forget_threads(&self) {
        self.registry.clear(|record| {
            record.set_managed_thread(0);
            self.engine.end(record);
        });
        self.engine.drain(|_| ());
        self.engine.give_back_memory();
        let mut gone = Vec::new();
        self.engine.reap(|record| gone.push(record.user()));
        self.threads.forget(&gone);
    }

    /// Registers a thread of the runtime's.
    pub fn saw(&self, seen: Seen) {
        let (managed, tid, id) = (seen.managed, seen.name.tid, seen.name.id as u64);
        // One of the two functions takes it: threads that begin have no time for copies.
        let name = Cell::new(seen.name);
        self.registry.add_or_update(
            tid,
            seen.starts,
            |newborn| {
                let user = self.threads.add(name.take());
                let record = self
                    .engine
                    .register(&Registration {
                        tid,
                        managed_thread: managed,
                        stack_lo: 0,
                        stack_hi: seen.stack_high,
                        seed: self.threads.seed(user),
                        newborn,
                        user,
                    })
                    .ok()?;
                record.set_managed_id(id);
                Some(record)
            },
            |record| {
                // The census found it before as a native thread. Its managed structure is set
                // last: a thread that samples it just now must not see a managed thread without
                // name and id.
                self.threads.set(record.user(), name.take());
                record.set_managed_id(id);
                record.set_managed_thread(managed);
            },
        );
    }

    /// The calling thread, with this kernel id, attaches to the runtime again and again. It keeps
    /// its name, which the drainer renews: callbacks of a few microseconds have no time for it.
    /// Returns whether it is such a thread.
    pub fn returns(&self, tid: i32, managed: u64, id: u64) -> bool {
        self.registry.returns(tid, |record| {
            record.set_managed_id(id);
            record.set_managed_thread(managed);
        })
    }

    /// The calling thread ends as a managed one.
    pub fn own_thread_ends(&self) {
        let tid = process::own_tid();
        if let Some(record) = self.registry.detach(tid) {
            record.set_managed_thread(0);
            record.set_managed_id(0);
            return;
        }
        let Some(record) = self.registry.get(tid) else {
            return;
        };
        if let Some(name) = self.runtime.renamed(record, &mut 0) {
            self.threads.rename(record.user(), &name);
        }
        // From here on the thread cannot be sampled; CPU time that it still uses is reported
        // without a stack.
        let sampled_to = self.engine.sample_here(record, Reason::ThreadEnd);
        let now_ns = process::own_cpu().as_nanos() as u64;
        self.engine.note_end(record, now_ns);
        self.registry.end(tid, now_ns, sampled_to);
        record.set_managed_thread(0);
        record.set_managed_id(0);
        self.engine.end(record);
    }

    /// A pause of the collector begins. Code and methods may be freed in it: the samples taken in
    /// them are walked now.
    pub fn pause_begins(&self) {
        self.stretches.pauses.begin(process::monotonic_ns());
        if let Ok(session) = self.session.try_lock()
            && let Some(session) = session.as_ref()
        {
            session.hurry();
        }
    }

    /// It is over.
    pub fn pause_ends(&self) {
        self.stretches.pauses.end(process::monotonic_ns());
    }
}

/// The engine is made once per process. A later recording cannot have another one.
fn check_engine(made: EngineKind, asked: EngineChoice, process: &str) -> Result<(), String> {
    let is_timer = made == EngineKind::Timer;
    match asked {
        EngineChoice::Timer if !is_timer => Err(format!(
            "engine=timer: this {process} was recorded with perf events before; restart it"
        )),
        EngineChoice::Perf if is_timer => Err(format!(
            "engine=perf: this {process} was recorded with timers before; restart it"
        )),
        _ => Ok(()),
    }
}

/// Walks are written into an existing folder, as recordings are: none is made for a misspelt path.
fn check_freeze(options: &Options) -> Result<(), String> {
    let Some(dir) = &options.freeze else {
        return Ok(());
    };
    let why = match std::fs::metadata(dir) {
        Ok(is) if is.is_dir() => return Ok(()),
        Ok(_) => "it is no folder".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!(
        "freeze={dir}: cannot write there: {why}; name a folder that exists"
    ))
}

#[cfg(test)]
mod tests;
