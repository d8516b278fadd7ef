//! One recording: from `start` to `stop`.

use crate::chosen::{Events, Running};
use crate::drain::histogram;
use crate::drain::inbox::Inbox;
use crate::helpers::Helpers;
use crate::limits::{End, Limits};
use crate::options::{EngineChoice, Options, expand};
use crate::orders::{Order, Orders};
use crate::record::file::RecordingFile;
use crate::runtime::Runtime;
use crate::runtime::progress::{DROPS, Progress};
use crate::runtime::setup::Setup;
use crate::sys::{allocator, joined, process};
use dwell_signal::{Cause, CounterSnapshot, EngineKind, ThreadRecord, Unreachable};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// A recording that runs.
pub struct Session<R: Runtime> {
    setup: Arc<Setup<R>>,
    helpers: Arc<Helpers<R>>,
    orders: Arc<Orders>,
    progress: Arc<Progress>,
    drainer: Option<JoinHandle<()>>,
    path: PathBuf,
    began_ns: u64,
    /// It was to end, and its drainer still writes the remaining data.
    is_ending: bool,
}

/// The drainer has this long to write the remaining samples.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the calling thread waits for that.
fn stop_timeout() -> Duration {
    #[cfg(test)]
    if let Some(timeout) = crate::testing::timeout() {
        return timeout;
    }
    STOP_TIMEOUT
}

/// The path of a recording.
#[must_use]
pub fn target_path(options: &Options) -> PathBuf {
    let file = expand(&options.file, std::process::id(), &process::timestamp());
    PathBuf::from(file)
}

/// A drainer's parts.
struct Work<R: Runtime> {
    setup: Arc<Setup<R>>,
    orders: Arc<Orders>,
    progress: Arc<Progress>,
    helpers: Arc<Helpers<R>>,
}

impl<R: Runtime> Work<R> {
    /// Drains until the recording ends.
    fn run(self) {
        let end_helpers = || self.helpers.end(&self.setup);
        // A panic here is a bug of ours. It must end the recording, never the process.
        let work = std::panic::AssertUnwindSafe(|| {
            #[cfg(test)]
            crate::testing::may_be_held();
            let inbox = Inbox {
                orders: &self.orders,
                limits: &self.progress.limits,
                stops: &self.setup.stops,
                end_helpers: &end_helpers,
            };
            crate::drain::run(&self.setup, &inbox, &self.progress);
        });
        if std::panic::catch_unwind(work).is_err() {
            self.setup.engine.stop();
            let text = "internal error: the drainer ended";
            self.progress.set_trouble(Some(text.into()));
            (self.progress.limits).close(End::Error, process::monotonic_ns());
            end_helpers();
        }
        self.orders.end();
    }
}

/// A drainer that waits for its work.
type Waiting<R> = (SyncSender<Work<R>>, JoinHandle<()>);

/// The steps of a beginning that can fail. Afterwards its drainer exists, and its file is empty.
fn prepare<R: Runtime>(setup: &Setup<R>, path: &Path) -> Result<Waiting<R>, String> {
    let waiting = drainer().map_err(|e| format!("cannot start the drainer thread: {e}"))?;
    let mut file = setup.file.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Err(error)) = file.as_mut().map(RecordingFile::begin) {
        let (give, thread) = waiting;
        drop(give);
        joined::join(thread);
        return Err(format!("file={}: cannot empty it: {error}", path.display()));
    }
    Ok(waiting)
}

/// Starts the drainer's thread. It waits for its work, or for the end of the thread that could
/// send it.
fn drainer<R: Runtime>() -> io::Result<Waiting<R>> {
    #[cfg(test)]
    crate::testing::may_fail(crate::testing::Step::Thread)?;
    let (give, work) = sync_channel::<Work<R>>(1);
    let (ready, is_ready) = sync_channel::<()>(1);
    let thread = std::thread::Builder::new().name("dwell-drainer".into());
    let thread = thread.spawn(move || {
        // The program's signals are for its own threads.
        process::block_signals();
        drop(ready);
        if let Ok(work) = work.recv() {
            work.run();
        }
    })?;
    // It has its name by then, by which the census recognises it.
    let _ = is_ready.recv();
    Ok((give, thread))
}

impl<R: Runtime> Session<R> {
    /// Begins a recording: first the steps that can fail, then `begin`, then the signals and the
    /// drainer.
    ///
    /// # Errors
    /// One line for the user; the recording has not begun then.
    pub fn start(
        mut setup: Setup<R>,
        path: PathBuf,
        begin: impl FnOnce(),
    ) -> Result<Session<R>, String> {
        allocator::prepare();
        let (give, drainer) = match prepare(&setup, &path) {
            Ok(prepared) => prepared,
            Err(error) => {
                let file = setup.file.lock().ok().and_then(|mut file| file.take());
                file.into_iter().for_each(RecordingFile::discard);
                return Err(error);
            }
        };
        begin();
        let interval_ns = setup.options.cpu_interval.as_nanos() as u64;
        setup.recorder.registry.rebase();
        setup.cpu_at_start = process::cpu_split();
        setup.process_cpu_at_start = process::process_cpu();
        let setup = Arc::new(setup);
        let orders = Arc::new(Orders::default());
        let began_ns = process::monotonic_ns();
        let progress = Arc::new(Progress::until(Limits::of(&setup.options, began_ns)));
        let helpers = Arc::new(Helpers::none());
        // Here and not on the drainer's thread, which first has to make tables. So a request that
        // ends as soon as the start is answered counts.
        crate::context::set_recording(true);
        if !R::WALKS_COPIES {
            let depth = u32::try_from(setup.options.depth).unwrap_or(u32::MAX);
            setup.engine.set_vantage(setup.options.walk, depth);
        }
        setup.engine.let_kernel_copy(0);
        // Refused: the recording reports it.
        let _ = dwell_signal::move_if_replaced(setup.engine);
        #[cfg(feature = "experiments")]
        if let Some(crate::experiments::Experiment::Kernel { kib }) = setup.options.experiment {
            setup.engine.let_kernel_copy_at_once(kib << 10);
        }
        setup.engine.start(interval_ns);
        // It waits for this.
        let _ = give.send(Work {
            setup: Arc::clone(&setup),
            orders: Arc::clone(&orders),
            progress: Arc::clone(&progress),
            helpers: Arc::clone(&helpers),
        });
        helpers.start(&setup, &progress);
        Ok(Session {
            setup,
            helpers,
            orders,
            progress,
            drainer: Some(drainer),
            path,
            began_ns,
            is_ending: false,
        })
    }

    /// Where the recording is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has reached a limit, or its drainer has failed: its file does not change any
    /// more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.orders.is_over()
    }

    /// The command that asked for it still runs.
    pub fn renew(&self) {
        self.progress.limits.renew();
    }

    /// Makes the recording so far readable; false if that took too long.
    #[must_use]
    pub fn dump(&self) -> bool {
        let order = match self.is_ending {
            // Another order would take the place of this one.
            true => Order::STOP,
            false => Order::FLUSH,
        };
        self.orders.give(order, stop_timeout())
    }

    /// Whether it was to end, and its drainer still writes the remaining data.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Its present events, and the options at its start.
    #[must_use]
    pub fn running(&self) -> Running {
        Running {
            events: self.setup.switched.events(),
            options: self.setup.options.clone(),
            path: self.path.clone(),
        }
    }

    /// Records other events from now on, requested by `text`, in a new chunk; false if earlier
    /// data could not be written in time.
    #[must_use]
    pub fn change(&self, events: Events, text: &str) -> bool {
        (self.setup.switched).set(events, text, process::monotonic_ns());
        self.orders.give(Order::RENEW, stop_timeout())
    }

    /// Makes the drainer drain the samples so far at once: a collection begins. Waits for it only
    /// if collections have cost samples; see [`Patience`].
    pub fn hurry(&self) {
        let now_ns = process::monotonic_ns();
        let patience = &self.progress.patience;
        let wait = patience.allowed(now_ns, now_ns.saturating_sub(self.began_ns));
        self.orders.hurry(wait);
        if !wait.is_zero() {
            patience.waited(process::monotonic_ns().saturating_sub(now_ns));
        }
    }

    /// Ends the recording; false if the remaining samples could not be written in time. Then its
    /// drainer is at work, and the caller calls this again: no other recording may begin before the
    /// drainer has ended.
    pub fn stop(&mut self) -> bool {
        let now_ns = process::monotonic_ns();
        // Before the drainer, which takes their last results.
        self.helpers.end(&self.setup);
        // The drainer may handle this late; further samples would make it later still.
        self.setup.end_sampling();
        let in_time = self.drainer.is_none() || self.orders.give(Order::STOP, stop_timeout());
        if in_time && let Some(drainer) = self.drainer.take() {
            joined::join(drainer);
        }
        self.is_ending = !in_time;
        if in_time {
            self.progress.limits.close(End::Stop, now_ns);
        }
        in_time
    }

    /// `key=value` lines for `status`.
    #[must_use]
    pub fn status(&self, state: &str) -> String {
        let progress = &self.progress;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let first = get(&progress.first_sample_ns);
        let first_ms = match first {
            0 => "-1.0".to_owned(),
            _ => {
                let tenths = (first.saturating_sub(self.began_ns) + 50_000) / 100_000;
                format!("{}.{}", tenths / 10, tenths % 10)
            }
        };
        let limits = &progress.limits;
        let ended = limits.end();
        let mut trouble = progress.trouble();
        if trouble.is_empty() && matches!(ended, Some((End::Memory, _))) {
            trouble = "out of memory: the recording ended early".into();
        }
        let now_ns = process::monotonic_ns();
        let end_ns = ended.map_or(now_ns, |(_, at_ns)| at_ns);
        let elapsed_ms = end_ns.saturating_sub(self.began_ns) / 1_000_000;
        format!(
            "state={state}\nevents={}\nengine={}\nwalk={}\nengine_reason={}\ninterval_ns={}\n\
             samples={}\nfailed={}\nlost={}\nweight_ns={}\nfile={}\nbytes={}\n\
             elapsed_ms={elapsed_ms}\n\
             first_sample_ms={first_ms}\n\
             trouble={trouble}\n{}{}",
            self.setup.switched.events().text(),
            self.setup.engine_name(),
            self.setup.walk_name(),
            self.setup.engine_reason(),
            self.setup.options.cpu_interval.as_nanos(),
            get(&progress.samples),
            get(&progress.failed),
            get(&progress.lost),
            get(&progress.weight_ns),
            self.path.display(),
            get(&progress.bytes),
            limits.status(now_ns, process::epoch_ns()),
            self.own_cost(),
        )
    }

    /// The number of threads and samples that the kernel took without a signal, where that was
    /// requested.
    fn unsignalled(&self, samples: u64, before: &CounterSnapshot) -> String {
        if self.setup.options.engine != EngineChoice::Kernel {
            return String::new();
        }
        let engine = self.setup.engine;
        let (rings, most) = match engine.kind() {
            EngineKind::Timer => (0, 0),
            EngineKind::Perf { .. } => engine.rings(),
        };
        let samples = samples.saturating_sub(before.get(Cause::Unsignalled));
        let mut text = format!("unsignalled={samples}\nrings={rings}\nrings_most={most}\n");
        if let Some(error) = engine.rings_refused() {
            text += &format!("rings_refused={error}\n");
        }
        text
    }

    /// Number of threads that no signal reaches, and the `samples` that the kernel has copied
    /// instead.
    fn unreachable(&self, samples: u64) -> String {
        let (mut blocked, mut queue_full) = (0, 0);
        for record in self.setup.engine.live_records() {
            match record.unreachable() {
                Some(Unreachable::Blocked) => blocked += 1,
                Some(Unreachable::QueueFull) => queue_full += 1,
                None => {}
            }
        }
        match blocked + queue_full {
            0 => String::new(),
            _ => format!(
                "signal={}\nsignal_blocked={blocked}\nsignal_queue_full={queue_full}\n\
                 signal_copied={samples}\n",
                self.setup.engine.signal(),
            ),
        }
    }

    /// Number of threads that have timers instead of their perf events because they are switched
    /// often.
    fn timers(&self) -> String {
        let engine = self.setup.engine;
        let has_timer = |record: &&ThreadRecord| engine.has_timer(record);
        match engine.live_records().filter(has_timer).count() {
            0 => String::new(),
            timers => format!("timers={timers}\n"),
        }
    }

    /// The cost of the recording, as `key=value` lines.
    fn own_cost(&self) -> String {
        let (now, before) = (self.setup.engine.counters(), self.setup.counters_at_start);
        let handler = histogram::since(&now.handler_ns, &before.handler_ns);
        let quantile = |share| histogram::quantile(&handler, share);
        let mut text = format!(
            "handlers={}\nhandler_p50_ns={}\nhandler_p99_ns={}\nhandler_max_ns={}\n\
             waited_ns={}\ncollections_waited_ns={}\n\
             agent_cpu_ns={}\nagent_memory={}\nwalk_ns={}\ncopied={}\n",
            handler.iter().sum::<u64>(),
            quantile(0.5),
            quantile(0.99),
            quantile(1.0),
            now.waited_ns.saturating_sub(before.waited_ns),
            self.progress.patience.waited_ns(),
            self.progress.agent_cpu_ns.load(Ordering::Relaxed),
            self.progress.agent_memory.load(Ordering::Relaxed),
            self.progress.walk_ns.load(Ordering::Relaxed),
            self.progress.copied_bytes.load(Ordering::Relaxed),
        );
        text += &self.unsignalled(now.get(Cause::Unsignalled), &before);
        text += &self.timers();
        let copied = now.get(Cause::Unsignalled);
        text += &self.unreachable(copied.saturating_sub(before.get(Cause::Unsignalled)));
        text += &self.wall();
        text += &self.allocations();
        text += &self.alive();
        text += &self.waits();
        text += &dropped(|cause| now.get(cause).saturating_sub(before.get(cause)));
        text
    }
}

impl<R: Runtime> Session<R> {
    /// Allocation sums, as `key=value` lines; empty if allocations were never sampled.
    fn allocations(&self) -> String {
        let state = self.setup.switched.get();
        if !state.alloc.was_on() {
            return String::new();
        }
        let interval = self.setup.recorder.object_bytes(state.alloc.interval);
        let (asked, rate) = (state.alloc.interval, state.events.alloc_rate);
        let (now, before) = (self.setup.engine.counters(), self.setup.counters_at_start);
        let since = |cause| now.get(cause).saturating_sub(before.get(cause));
        format!(
            "alloc_interval={interval}\nalloc_asked={asked}\nalloc_rate={rate}\n\
             alloc_samples={}\nalloc_bytes={}\n\
             alloc_lost={}\nalloc_lost_bytes={}\n",
            since(Cause::Allocation),
            now.allocated_bytes.saturating_sub(before.allocated_bytes),
            since(Cause::AllocationLost),
            (now.allocated_lost_bytes).saturating_sub(before.allocated_lost_bytes),
        )
    }

    /// Followed objects, as `key=value` lines; empty if no object is followed.
    fn alive(&self) -> String {
        let interval = self.setup.switched.events().alive_bytes;
        match self.setup.recorder.alive.get() {
            Some(table) if interval != 0 => {
                let interval = self.setup.recorder.object_bytes(interval);
                let state = table.state();
                format!(
                    "live_interval={interval}\nlive_objects={}\nlive_one_of={}\nlive_lost={}\n",
                    state.followed, state.one_of, state.lost
                )
            }
            _ => String::new(),
        }
    }

    /// Waits for monitors, as `key=value` lines; empty if the runtime never reported them.
    fn waits(&self) -> String {
        let asked = self.setup.switched.get().lock.interval;
        if asked == 0 {
            return String::new();
        }
        let interval = self.setup.recorder.lock_ns(asked);
        let (now, before) = (self.setup.engine.counters(), self.setup.counters_at_start);
        let since = |cause| now.get(cause).saturating_sub(before.get(cause));
        let (waits, blocked_ns) = self.setup.recorder.blocked.sums();
        format!(
            "lock_interval_ns={interval}\nlock_asked_ns={asked}\n\
             lock_waits={waits}\nlock_blocked_ns={blocked_ns}\n\
             lock_samples={}\nlock_sampled_ns={}\nlock_lost={}\nlock_lost_ns={}\n\
             lock_untold={}\n",
            since(Cause::Wait),
            now.blocked_ns.saturating_sub(before.blocked_ns),
            since(Cause::WaitLost),
            (now.blocked_lost_ns).saturating_sub(before.blocked_lost_ns),
            self.setup.recorder.blocked.untold(),
        )
    }

    /// State of the wall-clock sampler, as `key=value` lines; empty without one.
    fn wall(&self) -> String {
        let sum = self.progress.ticks();
        if sum.ticks == 0 {
            return String::new();
        }
        format!(
            "wall_interval_ns={}\nwall_ns={}\nwall_threads={}\nwall_looks={}\nwall_failed={}\n\
             wall_cpu_ns={}\nwall_unmounted={}\nwall_unmounted_looks={}\n\
             wall_followed={}\nwall_by_page={}\n",
            self.setup.options.wall_interval.as_nanos(),
            sum.span_ns,
            sum.live,
            sum.looked,
            sum.failed,
            sum.cpu_ns,
            sum.unmounted,
            sum.unmounted_looked,
            sum.followed,
            sum.by_page,
        )
    }
}

/// Why samples are missing or not as requested, as `key=value` lines of the causes seen.
fn dropped(count: impl Fn(Cause) -> u64) -> String {
    let all = DROPS.iter().map(|(name, cause)| (name, count(*cause)));
    let lines = all.filter(|(_, dropped)| *dropped > 0);
    lines
        .map(|(name, dropped)| format!("lost.{name}={dropped}\n"))
        .collect()
}

#[cfg(test)]
mod tests;
