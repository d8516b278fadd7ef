//! One recording: from `start` to `stop`.

use crate::drain::histogram;
use crate::events::{Events, Running};
use crate::options::{Options, expand};
use crate::patience::Patience;
use crate::record::file::RecordingFile;
use crate::recorder::Recorder;
use crate::runtime::{About, Runtime, Watch};
use crate::stops;
use crate::switched::Switched;
use crate::sys::process;
use crate::wall::WallSampler;
use crate::wall::shelf::{Shelf, Tick};
use dwell_signal::{Cause, CounterSnapshot, Engine, EngineKind, Vantage};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a recording works with; but for [`Switched`], nothing of it changes while it runs.
pub struct Setup<R: Runtime> {
    /// Who records.
    pub recorder: &'static Recorder<R>,
    /// Where signals come from.
    pub engine: &'static Engine,
    /// What was asked for when it began.
    pub options: Options,
    /// What is recorded now: the part of it that may change.
    pub switched: Switched,
    /// The file, until the drainer takes it.
    pub file: Mutex<Option<RecordingFile>>,
    /// Whether kernel frames can be had.
    pub kernel_frames: bool,
    /// The engine's counters when it began.
    pub counters_at_start: CounterSnapshot,
    /// User and system CPU time of the process when it began.
    pub cpu_at_start: (Duration, Duration),
    /// CPU time of the process, on its clock, when it began.
    pub process_cpu_at_start: Duration,
    /// What the file says of the runtime.
    pub about: About,
    /// When the process was started.
    pub start_epoch_ms: u64,
    /// What the wall-clock sampler has seen and the drainer has not.
    pub shelf: Shelf,
    /// Stops of all threads that were seen and are not written.
    pub stops: stops::Shelf,
    /// What parts of the runtime's side share.
    pub shared: R::Shared,
}

impl<R: Runtime> Setup<R> {
    /// The engine's name for users.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        match self.engine.kind() {
            EngineKind::Perf { kernel: true } => "perf cpu-clock, with kernel frames",
            EngineKind::Perf { kernel: false } => "perf cpu-clock, user only",
            EngineKind::Timer => "per-thread CPU timers",
        }
    }
}

impl<R: Runtime> Setup<R> {
    /// From where stacks are walked, for users.
    #[must_use]
    pub fn walk_name(&self) -> &'static str {
        match self.options.walk {
            Vantage::Handler => "walked in the handler",
            Vantage::Paused => "walked while paused",
            _ => "walked from snapshots",
        }
    }
}

/// How far a recording is; written by the drainer, read by `status`.
#[derive(Default)]
pub struct Progress {
    /// Samples taken.
    pub samples: AtomicU64,
    /// Samples whose walk failed.
    pub failed: AtomicU64,
    /// Intervals of CPU time that no sample carries.
    pub lost: AtomicU64,
    /// Sum of weights.
    pub weight_ns: AtomicU64,
    /// Bytes written.
    pub bytes: AtomicU64,
    /// CPU time of the agent's threads and handlers, when last written.
    pub agent_cpu_ns: AtomicU64,
    /// Its memory.
    pub agent_memory: AtomicU64,
    /// Time that walks took.
    pub walk_ns: AtomicU64,
    /// Bytes of stacks copied.
    pub copied_bytes: AtomicU64,
    /// How long collections wait for the drainer.
    pub patience: Patience,
    /// Looks at threads that could not be kept, and the wall time they stood for.
    wall_lost: Mutex<(u64, u64)>,
    /// Sum over all ticks of the wall-clock sampler, but that of threads: the last one's.
    wall: Mutex<Tick>,
    first_sample_ns: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Progress {
    /// Notes the time of a sample, if it is the first.
    pub fn saw_first_sample(&self, time_ns: u64) {
        let first = &self.first_sample_ns;
        let _ = first.compare_exchange(0, time_ns, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Looks at threads were not kept: how many, and the time they stood for.
    pub fn add_wall_lost(&self, lost: (u64, u64)) {
        if let Ok(mut sum) = self.wall_lost.lock() {
            *sum = (sum.0 + lost.0, sum.1 + lost.1);
        }
    }

    /// A tick of the wall-clock sampler.
    pub fn add_tick(&self, tick: &Tick) {
        if let Ok(mut sum) = self.wall.lock() {
            let before = *sum;
            *sum = Tick {
                span_ns: before.span_ns + tick.span_ns,
                ticks: before.ticks + tick.ticks,
                looked: before.looked + tick.looked,
                failed: before.failed + tick.failed,
                cpu_ns: before.cpu_ns + tick.cpu_ns,
                unmounted_looked: before.unmounted_looked + tick.unmounted_looked,
                unmounted_failed: before.unmounted_failed + tick.unmounted_failed,
                followed: before.followed + tick.followed,
                by_page: before.by_page.saturating_add(tick.by_page),
                ..*tick
            };
        }
    }

    /// Sets or clears what `status` says of the file.
    pub fn set_trouble(&self, trouble: Option<String>) {
        if let Ok(mut slot) = self.trouble.lock() {
            *slot = trouble;
        }
    }
}

/// What the drainer is asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// Flush now.
    pub flush: bool,
    /// Flush and end.
    pub stop: bool,
    /// Flush, and begin a new chunk.
    pub renew: bool,
    serial: u64,
}

impl Order {
    const NONE: Order = Order {
        flush: false,
        stop: false,
        renew: false,
        serial: 0,
    };
    const FLUSH: Order = Order {
        flush: true,
        ..Order::NONE
    };
    const STOP: Order = Order {
        stop: true,
        ..Order::FLUSH
    };
    const RENEW: Order = Order {
        renew: true,
        ..Order::NONE
    };
}

#[derive(Default)]
struct OrderState {
    order: Order,
    done: u64,
    /// How often the drainer was asked to hurry ...
    asked: u64,
    /// ... which of these it has begun to look, ...
    seen: u64,
    /// ... and which it has finished.
    answered: u64,
}

/// Passes orders to the drainer and their completion back.
#[derive(Default)]
pub struct Orders {
    state: Mutex<OrderState>,
    changed: Condvar,
}

impl Orders {
    /// Waits for an order, at most `timeout`. What is looked at after this answers those who were
    /// in a hurry; see [`Orders::looked`].
    pub fn wait(&self, timeout: Duration) -> Order {
        let Ok(state) = self.state.lock() else {
            return Order {
                stop: true,
                ..Order::default()
            };
        };
        let waiting = |s: &mut OrderState| s.order.serial == s.done && s.asked == s.seen;
        match self.changed.wait_timeout_while(state, timeout, waiting) {
            Ok((mut state, _)) => {
                state.seen = state.asked;
                if state.order.serial == state.done {
                    Order::default()
                } else {
                    state.order
                }
            }
            Err(_) => Order::default(),
        }
    }

    /// Ends a wait early, and waits until the drainer has looked, at most `patience`.
    pub fn hurry(&self, patience: Duration) {
        let Ok(mut state) = self.state.try_lock() else {
            return;
        };
        state.asked += 1;
        let mine = state.asked;
        self.changed.notify_all();
        if !patience.is_zero() {
            let waiting = |s: &mut OrderState| s.answered < mine;
            let _ = self.changed.wait_timeout_while(state, patience, waiting);
        }
    }

    /// Says that everything has been looked at since the last wait.
    pub fn looked(&self) {
        if let Ok(mut state) = self.state.lock()
            && state.answered != state.seen
        {
            state.answered = state.seen;
            self.changed.notify_all();
        }
    }

    /// Says that an order was carried out.
    pub fn done(&self, order: &Order) {
        if order.serial != 0
            && let Ok(mut state) = self.state.lock()
        {
            state.done = order.serial;
            self.changed.notify_all();
        }
    }

    /// Gives an order and waits until it is carried out; false if it was not in time.
    pub fn give(&self, order: Order, timeout: Duration) -> bool {
        let Ok(mut state) = self.state.lock() else {
            return false;
        };
        let serial = state.order.serial + 1;
        state.order = Order { serial, ..order };
        self.changed.notify_all();
        match self
            .changed
            .wait_timeout_while(state, timeout, |s| s.done < serial)
        {
            Ok((state, _)) => state.done >= serial,
            Err(_) => false,
        }
    }
}

/// A recording that runs.
pub struct Session<R: Runtime> {
    setup: Arc<Setup<R>>,
    wall: Option<WallSampler>,
    watch: Option<R::Watch>,
    orders: Arc<Orders>,
    progress: Arc<Progress>,
    drainer: Option<JoinHandle<()>>,
    path: PathBuf,
    began: Instant,
    began_ns: u64,
}

/// The drainer has this long to write the rest.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a recording goes.
#[must_use]
pub fn target_path(options: &Options) -> PathBuf {
    let file = expand(&options.file, std::process::id(), &process::timestamp());
    PathBuf::from(file)
}

impl<R: Runtime> Session<R> {
    /// Begins a recording: the drainer first, then the signals.
    ///
    /// # Errors
    /// One line for the user.
    pub fn start(mut setup: Setup<R>, path: PathBuf) -> Result<Session<R>, String> {
        let interval_ns = setup.options.cpu_interval.as_nanos() as u64;
        setup.recorder.registry.rebase();
        setup.cpu_at_start = process::cpu_split();
        setup.process_cpu_at_start = process::process_cpu();
        let setup = Arc::new(setup);
        let orders = Arc::new(Orders::default());
        let progress = Arc::new(Progress::default());
        let (began, began_ns) = (Instant::now(), process::monotonic_ns());
        // Here and not on the drainer's thread, which has tables to make first: a request that ends
        // as soon as the start is answered counts.
        crate::context::set_recording(true);
        if !R::WALKS_COPIES {
            let depth = u32::try_from(setup.options.depth).unwrap_or(u32::MAX);
            setup.engine.set_vantage(setup.options.walk, depth);
        }
        setup.engine.start(interval_ns);
        let drainer = {
            let (setup, orders) = (Arc::clone(&setup), Arc::clone(&orders));
            let progress = Arc::clone(&progress);
            std::thread::Builder::new()
                .name("dwell-drainer".into())
                .spawn(move || {
                    // A panic here is a bug of ours; it must end the recording, never the
                    // process.
                    let work = std::panic::AssertUnwindSafe(|| {
                        crate::drain::run(&setup, &orders, &progress);
                    });
                    if std::panic::catch_unwind(work).is_err() {
                        setup.engine.stop();
                        progress.set_trouble(Some("internal error: the drainer ended".into()));
                    }
                })
        };
        match drainer {
            Ok(drainer) => {
                let drainer = Some(drainer);
                let wall = WallSampler::start(&setup, &progress);
                let watch = R::Watch::start(&setup, &progress);
                Ok(Session {
                    setup,
                    wall,
                    watch,
                    orders,
                    progress,
                    drainer,
                    path,
                    began,
                    began_ns,
                })
            }
            Err(error) => {
                setup.engine.stop();
                crate::context::set_recording(false);
                Err(format!("cannot start the drainer thread: {error}"))
            }
        }
    }

    /// Where the recording is written.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes everything so far readable; false if that took too long.
    #[must_use]
    pub fn dump(&self) -> bool {
        self.orders.give(Order::FLUSH, STOP_TIMEOUT)
    }

    /// What it records, and with what it was begun.
    #[must_use]
    pub fn running(&self) -> Running {
        Running {
            events: self.setup.switched.events(),
            options: self.setup.options.clone(),
            path: self.path.clone(),
        }
    }

    /// Records other events from now on, asked for by `text`, in a new chunk; false if what came
    /// before could not be written in time.
    #[must_use]
    pub fn change(&self, events: Events, text: &str) -> bool {
        (self.setup.switched).set(events, text, process::monotonic_ns());
        self.orders.give(Order::RENEW, STOP_TIMEOUT)
    }

    /// Lets the drainer look at the samples taken so far at once: a collection begins. Waits for it
    /// only where collections have cost samples; see [`Patience`].
    pub fn hurry(&self) {
        let now_ns = process::monotonic_ns();
        let patience = &self.progress.patience;
        let wait = patience.allowed(now_ns, now_ns.saturating_sub(self.began_ns));
        self.orders.hurry(wait);
        if !wait.is_zero() {
            patience.waited(process::monotonic_ns().saturating_sub(now_ns));
        }
    }

    /// Ends the recording; false if the rest could not be written in time.
    pub fn stop(&mut self) -> bool {
        // Before the drainer, which takes the rest.
        if let Some(wall) = self.wall.take() {
            wall.end(&self.setup);
        }
        if let Some(watch) = self.watch.take() {
            watch.end();
        }
        let finished = self.drainer.as_ref().is_none_or(JoinHandle::is_finished);
        let in_time = finished || self.orders.give(Order::STOP, STOP_TIMEOUT);
        self.setup.engine.stop();
        if in_time && let Some(drainer) = self.drainer.take() {
            let _ = drainer.join();
        }
        in_time
    }

    /// `key=value` lines for `status`.
    #[must_use]
    pub fn status(&self, state: &str) -> String {
        let progress = &self.progress;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let first = get(&progress.first_sample_ns);
        let first_ms = if first == 0 {
            -1.0
        } else {
            first.saturating_sub(self.began_ns) as f64 / 1e6
        };
        let trouble = progress
            .trouble
            .lock()
            .ok()
            .and_then(|t| t.clone())
            .unwrap_or_default();
        format!(
            "state={state}\nevents={}\nengine={}\nwalk={}\nengine_reason={}\ninterval_ns={}\n\
             samples={}\nfailed={}\nlost={}\nweight_ns={}\nfile={}\nbytes={}\nelapsed_ms={}\n\
             first_sample_ms={first_ms:.1}\n\
             trouble={trouble}\n{}",
            self.setup.switched.events().text(),
            self.setup.engine_name(),
            self.setup.walk_name(),
            self.setup.recorder.engine_reason,
            self.setup.options.cpu_interval.as_nanos(),
            get(&progress.samples),
            get(&progress.failed),
            get(&progress.lost),
            get(&progress.weight_ns),
            self.path.display(),
            get(&progress.bytes),
            self.began.elapsed().as_millis(),
            self.own_cost(),
        )
    }

    /// What the recording costs, as `key=value` lines.
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
        text += &self.wall();
        text += &self.allocations();
        text += &self.alive();
        text += &self.waits();
        for (name, cause) in DROPS {
            let dropped = now.get(cause).saturating_sub(before.get(cause));
            if dropped > 0 {
                text += &format!("lost.{name}={dropped}\n");
            }
        }
        text
    }
}

impl<R: Runtime> Session<R> {
    /// What was allocated, as `key=value` lines; none if that was never sampled.
    fn allocations(&self) -> String {
        let interval = self.setup.switched.get().alloc.interval;
        if interval == 0 {
            return String::new();
        }
        let (now, before) = (self.setup.engine.counters(), self.setup.counters_at_start);
        let since = |cause| now.get(cause).saturating_sub(before.get(cause));
        format!(
            "alloc_interval={interval}\nalloc_samples={}\nalloc_bytes={}\nalloc_lost={}\n\
             alloc_lost_bytes={}\n",
            since(Cause::Allocation),
            now.allocated_bytes.saturating_sub(before.allocated_bytes),
            since(Cause::AllocationLost),
            (now.allocated_lost_bytes).saturating_sub(before.allocated_lost_bytes),
        )
    }

    /// What is followed, as `key=value` lines; none if nothing is.
    fn alive(&self) -> String {
        let interval = self.setup.switched.events().alive_bytes;
        match self.setup.recorder.alive.get() {
            Some(table) if interval != 0 => {
                let state = table.state();
                format!(
                    "live_interval={interval}\nlive_objects={}\nlive_one_of={}\nlive_lost={}\n",
                    state.followed, state.one_of, state.lost
                )
            }
            _ => String::new(),
        }
    }

    /// Waits for monitors, as `key=value` lines; none if these were never told.
    fn waits(&self) -> String {
        let interval = self.setup.switched.get().lock.interval;
        if interval == 0 {
            return String::new();
        }
        let (now, before) = (self.setup.engine.counters(), self.setup.counters_at_start);
        let since = |cause| now.get(cause).saturating_sub(before.get(cause));
        let (waits, blocked_ns) = self.setup.recorder.blocked.sums();
        format!(
            "lock_interval_ns={interval}\nlock_waits={waits}\nlock_blocked_ns={blocked_ns}\n\
             lock_samples={}\nlock_sampled_ns={}\nlock_lost={}\nlock_lost_ns={}\n\
             lock_untold={}\n",
            since(Cause::Wait),
            now.blocked_ns.saturating_sub(before.blocked_ns),
            since(Cause::WaitLost),
            (now.blocked_lost_ns).saturating_sub(before.blocked_lost_ns),
            self.setup.recorder.blocked.untold(),
        )
    }

    /// What the wall-clock sampler does, as `key=value` lines; none if there is none.
    fn wall(&self) -> String {
        let sum = self
            .progress
            .wall
            .lock()
            .map(|sum| *sum)
            .unwrap_or_default();
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

/// Why samples are missing or other than asked for, as the file and `status` call it.
pub const DROPS: [(&str, Cause); 7] = [
    ("no_free_slot_weight_moved_on", Cause::NoSlot),
    ("thread_ended_without_slot", Cause::PointsLost),
    ("thread_without_timer", Cause::ArmFailed),
    ("signal_queue_full", Cause::QueueFull),
    ("walker_late_copied_instead", Cause::PauseTimeout),
    ("not_copied_walked_in_handler", Cause::WalkedInstead),
    ("walker_behind_walked_in_handler", Cause::WalkedBehind),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_carried_out_once() {
        let orders = Arc::new(Orders::default());
        assert_eq!(orders.wait(Duration::ZERO), Order::default());
        let worker = Arc::clone(&orders);
        let thread = std::thread::spawn(move || {
            let mut stops = 0;
            for _ in 0..1000 {
                let order = worker.wait(Duration::from_millis(10));
                worker.done(&order);
                if order.stop {
                    stops += 1;
                    break;
                }
            }
            stops
        });
        assert!(orders.give(Order::FLUSH, Duration::from_secs(5)));
        assert!(orders.give(Order::STOP, Duration::from_secs(5)));
        assert_eq!(thread.join().unwrap(), 1);
        assert!(!orders.give(Order::RENEW, Duration::from_millis(20)));
    }
}
