//! The wall-clock sampler: one thread that reads and samples the others.
//!
//! It sends no signals. It reads a waiting thread from memory. The stacks of running threads come
//! from samples of CPU time. So it interrupts no system call, and costs the same whatever the
//! threads do. Crate `dwell-wallclock` decides which threads to read and sample, and the weight of
//! each read. This module gives it the data of the kernel and the runtime.

mod events;
pub mod focus;
mod logical;
pub mod look;
mod reads;
mod sample;
pub mod unmounted;
pub mod who;

use crate::context::foreign;
use crate::looks::shelf::{Note, Run, Shelf, Tick as TickNote};
use crate::looks::threads::Threads;
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::runtime::{Looks, Runtime};
use crate::sys::allocator::OwnThread;
use crate::sys::process;
use dwell_context::Context;
use dwell_walker::Frame;
use dwell_wall::budget::Debt;
use dwell_wall::members::Members;
use dwell_wall::proc::Schedule;
use dwell_wall::random::Random;
use dwell_wall::woken::{ReadyReads, Woken};
use dwell_wallclock::grid::{self, Grid};
use dwell_wallclock::labels::UNSAMPLED;
use dwell_wallclock::purse::Purse;
use dwell_wallclock::{Tick, WallClock};
use focus::Focus;
use logical::Logical;
use look::Kernel;
use reads::Seen;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Maximum frames of a stack.
pub const FRAMES_MAX: usize = 2048;
/// Time of one wait for a view of the process, and maximum number of waits.
const VIEW_WAIT: Duration = Duration::from_millis(5);
const VIEW_WAITS_MAX: u32 = 400;
/// Part of the budget that the drainer and the safepoint watcher may use. Reads and samples use
/// the remainder.
const OTHERS_PART: f64 = 0.75;
/// Weight of the last tick's cost in the moving average.
const SPENT_STEP: f64 = 1.0 / 64.0;
/// Part of the budget for checking which threads are ready.
const ASKING_PART: f64 = 0.5;
/// Ticks between two checks of what the budget allows.
const CHECK_TICKS: u32 = 25;

/// The context that a thread works for.
type Work = Option<Arc<Context>>;

/// Ends the sampler.
#[derive(Debug, Default)]
pub struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Asks the sampler to end.
    pub fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until asked, for a maximum of `timeout`. Returns whether it was asked.
    fn wait(&self, timeout: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |asked: &mut bool| !*asked;
        match self.changed.wait_timeout_while(asked, timeout, waiting) {
            Ok((asked, _)) => *asked,
            Err(_) => true,
        }
    }
}

/// The sampler's thread.
pub struct WallSampler {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

impl WallSampler {
    /// Starts sampling if the options ask for it. If the thread cannot start, that is reported as
    /// trouble, and the recording continues without wall-clock samples.
    #[must_use]
    pub fn start<R: Runtime>(
        setup: &Arc<Setup<R>>,
        progress: &Arc<Progress>,
    ) -> Option<WallSampler> {
        if setup.options.wall_interval.is_zero() {
            return None;
        }
        setup.recorder.registry.watch();
        let stop = Arc::new(Stop::default());
        let (own_setup, own_stop) = (Arc::clone(setup), Arc::clone(&stop));
        let trouble = Arc::clone(progress);
        let thread = std::thread::Builder::new()
            .name("dwell-wall".into())
            .spawn(move || {
                // A panic here is a bug of ours; it must end the sampling, never the process.
                let work = std::panic::AssertUnwindSafe(|| {
                    run(&own_setup, &own_stop, &own_setup.shelf);
                });
                if std::panic::catch_unwind(work).is_err() {
                    let text = "internal error: the wall clock ended";
                    trouble.set_trouble(Some(text.into()));
                }
            });
        match thread {
            Ok(thread) => Some(WallSampler { stop, thread }),
            Err(error) => {
                setup.recorder.registry.unwatch();
                let text = format!("no wall-clock samples: cannot start a thread: {error}");
                progress.set_trouble(Some(text));
                None
            }
        }
    }

    /// Ends the sampler. All its samples are then in the `Shelf`.
    pub fn end<R: Runtime>(self, setup: &Setup<R>) {
        self.stop.ask();
        crate::sys::joined::join(self.thread);
        setup.recorder.registry.unwatch();
    }
}

/// Samples until asked to stop.
fn run<R: Runtime>(setup: &Setup<R>, stop: &Stop, shelf: &Shelf) {
    process::block_signals();
    process::unblock_signal(setup.engine.signal());
    let _own = OwnThread::begin();
    // Walking a thread needs a view of the process, which the drainer creates when it starts.
    for _ in 0..VIEW_WAITS_MAX {
        if setup.recorder.runtime.can_walk() || stop.wait(VIEW_WAIT) {
            break;
        }
    }
    let mut sampler = Sampler::new(setup);
    loop {
        let now_ns = process::monotonic_ns();
        let due_ns = sampler.grid.due_ns();
        let wait_ns = due_ns.saturating_sub(now_ns);
        sampler.looks.beside(&setup.shared, now_ns, wait_ns);
        let stopped = stop.wait(Duration::from_nanos(wait_ns));
        sampler.tick(shelf, stopped);
        sampler.kernel.end_tick();
        if stopped {
            return;
        }
    }
}

/// Identifies what a thread of this runtime waits for.
type Claim<R> = <<R as Runtime>::Looks as Looks<R>>::Claim;

/// State of a thread that its samples need.
struct Known<C> {
    generation: u32,
    /// Its key in the recording.
    thread: u64,
    /// Its id in the runtime.
    id: u64,
    /// Changes with its name.
    name_mark: u64,
    /// Claim of the last sample that showed one, with its class.
    claim: Option<(u8, C)>,
    /// The kernel's last account of it.
    schedule: Option<Schedule>,
    /// The part of its waits for a processor after wake-ups.
    woken: Woken,
    ready_reads: ReadyReads,
    /// The part of its runnable time without a processor, as last read.
    ready_part: f32,
    /// Switches per second, from the last two accounts.
    switches: f32,
    /// For how long it ran on average, in ns, from the last two accounts; 0 if it hardly ran.
    turn_ns: u64,
    /// Whether a place for its unsampled time was reported.
    has_unsampled: bool,
}

impl<C> Default for Known<C> {
    fn default() -> Known<C> {
        Known {
            generation: 0,
            thread: 0,
            id: 0,
            name_mark: 0,
            claim: None,
            schedule: None,
            woken: Woken::default(),
            ready_reads: ReadyReads::default(),
            ready_part: 0.0,
            switches: 0.0,
            turn_ns: 0,
            has_unsampled: false,
        }
    }
}

/// Counts of one tick.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Threads that were read. `stayed`: those that have not run since their last read. `by_page`:
    /// reads answered by a page.
    reads: usize,
    stayed: usize,
    by_page: u32,
    /// Threads that may have run, whose fingerprints give their places.
    by_fingerprint: usize,
    /// Samples. `failed`: those that showed nothing.
    sampled: usize,
    failed: usize,
}

/// Cost of sampling.
#[derive(Debug, Default)]
struct Costs {
    /// CPU time of this thread at its last read.
    cpu_ns: u64,
    stops_cpu_ns: u64,
    /// Cost on other threads that is not paid yet.
    debt: Debt,
    /// Recent cost of platform threads, as a part of a processor.
    spent: f64,
}

struct Sampler<'s, R: Runtime> {
    setup: &'s Setup<R>,
    looks: R::Looks,
    kernel: Kernel,
    grid: Grid,
    /// The number of the last tick's interval.
    number: u32,
    clock: WallClock<Work>,
    members: Members,
    seen: Vec<Seen>,
    known: Vec<Known<Claim<R>>>,
    /// Reads of all threads that were ready.
    ready_reads: ReadyReads,
    threads: Threads,
    frames: Vec<Frame>,
    owner_frames: Vec<Frame>,
    logical: Logical,
    focus: Focus,
    random: Random,
    costs: Costs,
    counts: Counts,
}

impl<'s, R: Runtime> Sampler<'s, R> {
    fn new(setup: &'s Setup<R>) -> Sampler<'s, R> {
        let now_ns = process::monotonic_ns();
        let interval_ns = setup.options.wall_interval.as_nanos() as u64;
        let purse = match setup.options.wall_threads {
            Some(threads) => Purse::fixed(threads),
            None => Purse::of_share(aim(setup)),
        };
        let random = || Random::new(process::epoch_ns() ^ process::monotonic_ns());
        let mut clock = WallClock::new(purse, random());
        if !R::Looks::HAS_FINGERPRINTS || setup.options.wall_threads.is_some() {
            clock.sample_always();
        }
        Sampler {
            setup,
            looks: R::Looks::new(setup),
            kernel: Kernel::open(setup.engine, R::MAPS_TURNS),
            grid: Grid::new(interval_ns, now_ns, random()),
            number: 0,
            clock,
            members: Members::new(),
            seen: Vec::new(),
            known: Vec::new(),
            ready_reads: ReadyReads::default(),
            threads: Threads::new(setup.engine),
            frames: vec![Frame::EMPTY; FRAMES_MAX],
            owner_frames: vec![Frame::EMPTY; FRAMES_MAX],
            logical: Logical::default(),
            focus: Focus::default(),
            random: random(),
            costs: Costs {
                cpu_ns: process::own_cpu().as_nanos() as u64,
                stops_cpu_ns: setup.stops.cpu_ns(),
                ..Costs::default()
            },
            counts: Counts::default(),
        }
    }

    fn tick(&mut self, shelf: &Shelf, last: bool) {
        let now_ns = process::monotonic_ns();
        let look = match self.grid.look(now_ns) {
            Some(look) => look,
            None if last => self.grid.rest(now_ns),
            None => return,
        };
        let interval_ns = self.setup.options.wall_interval.as_nanos() as u64;
        self.number += look.ticks as u32;
        let tick = Tick {
            number: self.number,
            at_ns: now_ns,
            interval_ns,
            until_ns: self.grid.until_ns(),
        };
        self.counts = Counts::default();
        self.clock.begin_tick(tick, look.span_ns);
        self.kernel.begin_tick();
        self.update_members(shelf);
        if self.number % CHECK_TICKS == 1 {
            let [lively, _] = self.clock.kinds();
            let may_ns = ASKING_PART * self.share() * interval_ns as f64;
            self.kernel.set_asks(lively, may_ns);
            self.check_events(now_ns);
        }
        let debt_ns = self.debt(&look);
        let logical_debt_ns = self.logical.part_of(debt_ns);
        let ids = self.choose(&look);
        let begun_ns = self.cpu_since();
        let sampled_ns = self.census(&ids, shelf);
        let census_ns = self.cpu_since().saturating_sub(sampled_ns);
        // A fixed number of samples is made regardless of cost.
        let is_fixed = self.setup.options.wall_threads.is_some();
        let share = if is_fixed { 1.0 } else { self.share() };
        self.clock.census_done(ids.len(), census_ns, share);
        let backlog_ns = self.sample_backlog(shelf);
        if last {
            let all = (0..self.members.end()).filter(|id| self.members.contains(*id));
            let all: Vec<u32> = all.collect();
            all.into_iter().for_each(|id| self.account(id, true, shelf));
            let early_ns = self.grid.until_ns().saturating_sub(now_ns);
            self.clock.finish(early_ns);
            self.report_ended(shelf);
        }
        let own_ns = begun_ns + census_ns + sampled_ns + backlog_ns;
        let cpu_ns = own_ns + debt_ns - logical_debt_ns;
        self.pay(cpu_ns, look.span_ns);
        self.logical
            .add(&look, logical_debt_ns, self.counts.sampled);
        self.note_running(&ids, shelf);
        let (found, logical_ns) = self.look_at_logical(now_ns, last, shelf);
        shelf.set_own_cpu_ns(self.costs.cpu_ns);
        let note = TickNote {
            at_ns: now_ns,
            span_ns: look.span_ns,
            ticks: look.ticks,
            live: self.members.len(),
            eligible: self.eligible(ids.len()),
            looked: self.counts.reads,
            failed: self.counts.failed,
            cpu_ns: cpu_ns + logical_ns,
            unmounted: found.estimated.round() as u64,
            unmounted_looked: found.looked,
            unmounted_failed: found.failed,
            followed: self.counts.stayed,
            by_page: self.counts.by_page,
            by_fingerprint: self.counts.by_fingerprint,
        };
        shelf.lock().add(Note::Tick(note), 0);
    }

    /// Number of threads that a read may stand for.
    fn eligible(&self, read: usize) -> usize {
        match self.setup.options.only_context {
            true => read,
            false => self.members.len(),
        }
    }

    /// The threads to read in this tick.
    fn choose(&mut self, look: &grid::Look) -> Vec<u32> {
        if !self.setup.options.only_context {
            return self.clock.due();
        }
        // The threads of the census are not read.
        let _ = self.clock.due();
        let ids = self.working();
        for id in &ids {
            self.clock.read_alone(*id, look.ticks as u32);
        }
        ids
    }

    /// Part of a processor that sampling platform threads may use.
    fn share(&self) -> f64 {
        match self.logical.is_on() {
            true => (1.0 - logical::PART) * aim(self.setup),
            false => aim(self.setup),
        }
    }

    fn pay(&mut self, cpu_ns: u64, span_ns: u64) {
        let share = self.share();
        let purse = self.clock.purse();
        purse.set_share(share);
        purse.spend(cpu_ns);
        let part = cpu_ns as f64 / span_ns.max(1) as f64;
        self.costs.spent += (part - self.costs.spent) * SPENT_STEP;
    }

    /// Cost that this tick pays for the drainer and for the safepoint watcher, in ns.
    fn debt(&mut self, look: &grid::Look) -> u64 {
        let stops_cpu_ns = self.setup.stops.cpu_ns();
        let before_ns = std::mem::replace(&mut self.costs.stops_cpu_ns, stops_cpu_ns);
        let new_ns = self.setup.shelf.take_drain_cpu_ns();
        let new_ns = new_ns + stops_cpu_ns.saturating_sub(before_ns);
        let most_ns = OTHERS_PART * aim(self.setup) * look.span_ns as f64;
        self.costs.debt.pay(new_ns, look.ticks, most_ns as u64)
    }

    /// CPU time of this thread since the last call, including the time to wake up.
    fn cpu_since(&mut self) -> u64 {
        let now_ns = process::own_cpu().as_nanos() as u64;
        now_ns.saturating_sub(std::mem::replace(&mut self.costs.cpu_ns, now_ns))
    }

    /// Threads that work for a request.
    fn working(&mut self) -> Vec<u32> {
        let mut focus = std::mem::take(&mut self.focus);
        let of_id = |id| self.threads.of_id(id);
        let mut working = focus.find(of_id, |show| self.mounted(show));
        if foreign::is_known() {
            let is_published = |thread| self.looks.published(thread).is_some();
            working = focus.add_published(self.threads.iter(), is_published);
        }
        let ids = working.clone();
        self.focus = focus;
        ids
    }

    /// Shows which logical thread is on which platform thread.
    fn mounted(&self, show: &mut dyn FnMut(u64, u32)) {
        for (thread, place) in self.threads.iter() {
            if let Some(id) = self.looks.mounted(thread) {
                show(id, place);
            }
        }
    }

    /// Adds threads that have started since the last tick, and removes those that have ended.
    fn update_members(&mut self, shelf: &Shelf) {
        for index in self.setup.recorder.registry.take_changed() {
            let Some(record) = self.setup.engine.record(index) else {
                continue;
            };
            let is_one = record.is_live() && record.managed_thread() != 0;
            let (generation, managed) = (record.generation(), record.managed_thread());
            let place = index as usize;
            if self.known.len() <= place {
                self.known.resize_with(place + 1, Known::default);
                self.seen.resize_with(place + 1, Seen::default);
            }
            let goes_on = self.known.get(place).map(|it| it.generation) == Some(generation);
            let before = self.seen.get(place).map_or(0, |seen| seen.managed);
            // A native thread that attaches again has another structure in the runtime.
            let is_known = is_one && goes_on && before == managed;
            if self.members.contains(index) && !is_known {
                self.remove(index, shelf);
            }
            // Threads of the first tick started before the sampler.
            let begins = self.number > 1;
            if is_one && self.members.insert(index) {
                self.clock.begin(index);
                if let (Some(known), Some(seen)) =
                    (self.known.get_mut(place), self.seen.get_mut(place))
                {
                    *known = Known {
                        generation,
                        thread: record.user(),
                        // It has not waited for a processor yet.
                        schedule: (begins && !goes_on).then(Schedule::default),
                        ..Known::default()
                    };
                    *seen = Seen::of(record, managed, self.number);
                    if known.schedule.is_some() {
                        seen.accounted_ns = self.clock.now_ns();
                    }
                }
                self.threads.add(managed, index);
            }
            if is_one {
                self.update_id(index);
            }
        }
    }

    /// Updates the id of a thread, which may become known only after the thread was added.
    fn update_id(&mut self, index: u32) {
        let Some(known) = self.known.get_mut(index as usize) else {
            return;
        };
        let name = self.setup.recorder.threads.get(known.thread);
        let id = name.and_then(|name| u64::try_from(name.id).ok());
        if let Some(id @ 1..) = id.filter(|id| *id != known.id) {
            self.threads.set_id(known.id, id, index);
            known.id = id;
        }
    }

    /// Removes a thread that has ended. Its waits for a processor since the last account are those
    /// that reads found.
    fn remove(&mut self, index: u32, shelf: &Shelf) {
        let found = self.clock.take_found(index);
        self.clock.end(index);
        self.report_ended(shelf);
        self.members.remove(index);
        let (known, seen) = (
            self.known.get(index as usize),
            self.seen.get(index as usize),
        );
        if let (Some(known), Some(seen)) = (known, seen) {
            self.threads.forget(seen.managed, known.id, index);
            let thread = known.thread;
            let could_run_ns = found.running_ns + found.woken_ns;
            let ready_ns = (could_run_ns as f32 * known.ready_part) as u64;
            let woken_ns = found.woken_ns.min(ready_ns);
            let period = || seen.accounted_ns..self.clock.now_ns();
            let mut shelf = shelf.lock();
            shelf.add_ready(thread, period(), woken_ns, found.left());
            shelf.add_ready(thread, period(), ready_ns - woken_ns, found.preempted());
            shelf.add(Note::Gone { thread }, 0);
        }
    }

    /// Reports the runs that have ended.
    fn report_ended(&mut self, shelf: &Shelf) {
        let mut taken = self.clock.take_ended();
        if taken.is_empty() {
            self.clock.reuse(taken);
            return;
        }
        let mut notes = shelf.lock();
        for ended in taken.drain(..) {
            let Some(known) = self.known.get_mut(ended.id as usize) else {
                continue;
            };
            let thread = known.thread;
            if ended.class == UNSAMPLED && !std::mem::replace(&mut known.has_unsampled, true) {
                notes.add_stack((thread, UNSAMPLED), sample::unsampled(), &[], None);
            }
            let run = Run {
                thread,
                class: ended.class,
                choices: ended.run.choices(),
                work: ended.run.work,
                since_ns: ended.run.since_ns,
                until_ns: ended.run.until_ns,
                count: ended.run.count,
                weight_ns: ended.run.weight_ns,
            };
            let weight_ns = run.weight_ns;
            notes.add(Note::Run(run), weight_ns);
        }
        self.clock.reuse(taken);
    }
}

/// Target of sampling as a part of a processor. It is below the budget, because costs vary.
fn aim<R: Runtime>(setup: &Setup<R>) -> f64 {
    const AIM: f64 = 0.9;
    AIM * f64::from(setup.options.wall_budget_ppm) / 1e6
}

#[cfg(test)]
mod tests;
