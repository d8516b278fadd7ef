//! The wall-clock sampler: one thread that looks at some of the others in each tick.
//!
//! It signals nobody. A thread that waits is read from memory; of one that runs, its samples of CPU
//! time say where it is. So looking costs the same whatever the threads do, and interrupts no
//! system call. Which threads, and what a look stands for, is decided by crate `dwell-wall`.

pub mod focus;
pub mod look;
pub mod shelf;
pub mod unmounted;
pub mod virtuals;

use crate::drain::sample::VIRTUAL_KEY;
use crate::session::{Progress, Setup};
use crate::sys::memory::OwnThread;
use crate::sys::process;
use crate::sys::task::TaskFiles;
use crate::vantage;
use dwell_signal::{Live, ThreadRecord};
use dwell_walker::cache::{PcCache, Slot as CacheSlot};
use dwell_walker::hotspot::layout::present;
use dwell_walker::hotspot::monitors::{self, Owner};
use dwell_walker::{Frame, Memory};
use dwell_wall::budget::Budget;
use dwell_wall::grid::{self, Grid};
use dwell_wall::members::{Members, choose_of};
use dwell_wall::proc;
use dwell_wall::random::Random;
use dwell_wall::runs::{Pending, Run as SameRun};
use focus::Focus;
use look::{Before, Look, Looker};
use rustc_hash::FxHashMap;
use shelf::{Note, Notes, Run, Shelf, Tick};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use virtuals::{Found, Moment, Virtuals};

/// Return addresses remembered.
const CACHE_ENTRIES: usize = 4096;
/// Frames of a stack at most.
const FRAMES_MAX: usize = 2048;
/// Processors are scarce when this thread itself had to wait for one for so much of the time.
const CROWDED_NS: u64 = 2_000_000;
/// How long, and how often, a view of the process is waited for.
const VIEW_WAIT: Duration = Duration::from_millis(5);
const VIEW_WAITS_MAX: u32 = 400;
/// What virtual threads get of the budget at least, where there are any.
const VIRTUAL_PART: f64 = 0.4;
/// How fast what platform threads cost is forgotten: by half in some 40 ticks.
const SPENT_STEP: f64 = 1.0 / 64.0;
/// So often that is asked, in ticks.
const CROWDED_TICKS: u64 = 25;

/// Which threads are where: kept by their record's index.
#[derive(Default)]
struct Known {
    generation: u32,
    thread: u64,
    /// What it is found by as the owner of something.
    java_thread: u64,
    java_id: u64,
    before: Before,
    pending: Pending<()>,
}

/// Ends the sampler.
#[derive(Debug, Default)]
pub struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Asks it to end.
    pub fn ask(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until asked, at most `timeout`; whether asked.
    fn wait(&self, timeout: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = |asked: &mut bool| !*asked;
        match self.changed.wait_timeout_while(asked, timeout, waiting) {
            Ok((asked, _)) => *asked,
            Err(_) => true,
        }
    }
}

/// The thread.
pub struct WallSampler {
    stop: Arc<Stop>,
    thread: JoinHandle<()>,
}

impl WallSampler {
    /// Begins to sample, if that is asked for. A thread that cannot be had is told as trouble: the
    /// rest of the recording is as good without it.
    #[must_use]
    pub fn start(setup: &Arc<Setup>, progress: &Arc<Progress>) -> Option<WallSampler> {
        if setup.options.wall_interval.is_zero() {
            return None;
        }
        setup.agent.registry.watch();
        let stop = Arc::new(Stop::default());
        let (own_setup, own_stop) = (Arc::clone(setup), Arc::clone(&stop));
        let trouble = Arc::clone(progress);
        let thread = std::thread::Builder::new()
            .name("dwell-wall".into())
            .spawn(move || {
                // A panic here is a bug of ours; it must end the sampling, never the JVM.
                let work = std::panic::AssertUnwindSafe(|| {
                    run(&own_setup, &own_stop, &own_setup.shelf);
                });
                if std::panic::catch_unwind(work).is_err() {
                    let text = "internal error: the wall-clock sampler ended";
                    trouble.set_trouble(Some(text.into()));
                }
            });
        match thread {
            Ok(thread) => Some(WallSampler { stop, thread }),
            Err(error) => {
                setup.agent.registry.unwatch();
                let text = format!("no wall-clock samples: cannot start a thread: {error}");
                progress.set_trouble(Some(text));
                None
            }
        }
    }

    /// Ends it; what it has seen is on the shelf then.
    pub fn end(self, setup: &Setup) {
        self.stop.ask();
        let _ = self.thread.join();
        setup.agent.registry.unwatch();
    }
}

/// Samples until told to stop.
fn run(setup: &Setup, stop: &Stop, shelf: &Shelf) {
    process::block_signals();
    process::unblock_signal(setup.engine.signal());
    let _own = OwnThread::begin();
    // Without a view of the process nobody can be walked; the drainer makes it when it begins.
    for _ in 0..VIEW_WAITS_MAX {
        if vantage::is_ready() || stop.wait(VIEW_WAIT) {
            break;
        }
    }
    let mut sampler = Sampler::new(setup);
    loop {
        let now_ns = process::monotonic_ns();
        let due_ns = sampler.grid.due_ns(sampler.budget.ticks());
        let wait_ns = due_ns.saturating_sub(now_ns);
        let stopped = stop.wait(Duration::from_nanos(wait_ns));
        sampler.tick(shelf, stopped);
        if stopped {
            sampler.end(shelf);
            return;
        }
    }
}

struct Sampler<'s> {
    setup: &'s Setup,
    live: Live,
    grid: Grid,
    budget: Budget,
    members: Members,
    /// Set when the program has begun to use virtual threads.
    virtuals: Option<Virtuals>,
    /// CPU time of this thread when it was asked last.
    cpu_ns: u64,
    /// What platform threads have cost lately, in parts of a processor.
    spent: f64,
    focus: Focus,
    random: Random,
    known: Vec<Known>,
    files: TaskFiles,
    cache: Box<[CacheSlot]>,
    frames: Vec<Frame>,
    owner_frames: Vec<Frame>,
    /// Places of threads by `JavaThread*`, and by `Thread.threadId()`.
    by_java_thread: FxHashMap<u64, u32>,
    by_id: FxHashMap<u64, u32>,
    own_waited_ns: u64,
    is_crowded: bool,
    ticks: u64,
}

impl<'s> Sampler<'s> {
    fn new(setup: &'s Setup) -> Sampler<'s> {
        let now_ns = process::monotonic_ns();
        let interval_ns = setup.options.wall_interval.as_nanos() as u64;
        Sampler {
            setup,
            live: setup.engine.live(),
            grid: Grid::new(interval_ns, now_ns),
            budget: budget(setup, 1.0),
            members: Members::new(),
            virtuals: None,
            cpu_ns: process::own_cpu().as_nanos() as u64,
            spent: 0.0,
            focus: Focus::default(),
            random: Random::new(process::epoch_ns()),
            known: Vec::new(),
            files: TaskFiles::open(),
            cache: vec![CacheSlot::empty(); CACHE_ENTRIES].into_boxed_slice(),
            frames: vec![Frame::EMPTY; FRAMES_MAX],
            owner_frames: vec![Frame::EMPTY; FRAMES_MAX],
            by_java_thread: FxHashMap::default(),
            by_id: FxHashMap::default(),
            own_waited_ns: 0,
            is_crowded: false,
            ticks: 0,
        }
    }

    fn tick(&mut self, shelf: &Shelf, last: bool) {
        let now_ns = process::monotonic_ns();
        let look = match self.grid.look(now_ns) {
            Some(look) => look,
            None if last => self.grid.rest(now_ns),
            None => return,
        };
        self.members_now(shelf);
        self.mind_the_crowd();
        let (eligible, chosen) = self.choose();
        let count = chosen.len();
        let weight_ns = grid::weight_ns(&look, eligible, count);
        let mut failed = 0;
        for index in chosen {
            failed += usize::from(!self.look_at(index, now_ns, weight_ns, shelf));
        }
        let cpu_ns = self.cpu_since();
        self.budget.spent(count, look.span_ns, cpu_ns);
        let spent = cpu_ns as f64 / look.span_ns.max(1) as f64;
        self.spent += (spent - self.spent) * SPENT_STEP;
        let moment = Moment {
            at_ns: now_ns,
            span_ns: look.span_ns,
            only_context: self.setup.options.only_context,
        };
        let (found, virtual_cpu_ns) = self.look_at_virtual_threads(&moment, shelf);
        let cpu_ns = cpu_ns.saturating_add(virtual_cpu_ns);
        let tick = Tick {
            at_ns: now_ns,
            span_ns: look.span_ns,
            ticks: look.ticks,
            live: self.members.len(),
            eligible,
            looked: count,
            failed,
            cpu_ns,
            unmounted: found.estimated.round() as u64,
            unmounted_looked: found.looked,
            unmounted_failed: found.failed,
        };
        shelf.lock().add(Note::Tick(tick), 0);
    }

    /// Looks at virtual threads that no platform thread runs.
    fn look_at_virtual_threads(&mut self, moment: &Moment, shelf: &Shelf) -> (Found, u64) {
        let agent = self.setup.agent;
        let Some(Some(known)) = agent.virtual_threads.get() else {
            return (Found::default(), 0);
        };
        let whole = f64::from(self.setup.options.wall_budget_ppm) / 1e6;
        let mut virtuals = self.virtuals.take().unwrap_or_else(|| {
            self.budget.set_share((1.0 - VIRTUAL_PART) * whole);
            Virtuals::new(budget(self.setup, VIRTUAL_PART))
        });
        // What few platform threads leave is theirs, too.
        virtuals.may_take((whole - self.spent).max(VIRTUAL_PART * whole));
        let mut random = self.random.clone();
        let find_owner = |owner, frames: &mut [Frame]| {
            let place = self.place_of(owner);
            match (
                place.and_then(|place| self.setup.engine.record(place)),
                owner,
            ) {
                (Some(record), _) => Some(self.walk_owner(record, frames)),
                // A virtual thread without a carrier; where it is, is not looked for.
                (None, Owner::Id(id)) => Some((id | VIRTUAL_KEY, 0)),
                (None, _) => None,
            }
        };
        let looker = self.looker();
        let (found, looked) =
            virtuals.look(&looker, known, moment, &mut random, &find_owner, shelf);
        self.random = random;
        let cpu_ns = self.cpu_since();
        virtuals.spent(looked, moment.span_ns, cpu_ns);
        self.virtuals = Some(virtuals);
        (found, cpu_ns)
    }

    /// CPU time of this thread since this was asked last: waiting and waking up are part of it.
    fn cpu_since(&mut self) -> u64 {
        let now_ns = process::own_cpu().as_nanos() as u64;
        now_ns.saturating_sub(std::mem::replace(&mut self.cpu_ns, now_ns))
    }

    /// How many threads there are to choose from, and those chosen.
    fn choose(&mut self) -> (usize, Vec<u32>) {
        if !self.setup.options.only_context {
            let eligible = self.members.len();
            let count = self.budget.count(eligible);
            let chosen = self.members.choose(count, &mut self.random);
            return (eligible, chosen.to_vec());
        }
        let mut focus = std::mem::take(&mut self.focus);
        let of_id = |id| self.by_id.get(&id).copied();
        let working = focus.find(of_id, |show| self.mounted(show));
        let (eligible, count) = (working.len(), self.budget.count(working.len()));
        let chosen = choose_of(working, count, &mut self.random).to_vec();
        self.focus = focus;
        (eligible, chosen)
    }

    /// Shows which virtual thread is on which platform thread.
    fn mounted(&self, show: &mut dyn FnMut(u64, u32)) {
        let looker = self.looker();
        for (java_thread, place) in &self.by_java_thread {
            if let Ok(Some(id)) = looker.mounted(*java_thread) {
                show(id, *place);
            }
        }
    }

    /// Takes in threads that have begun since the last tick, and lets go those that have ended.
    fn members_now(&mut self, shelf: &Shelf) {
        for index in self.setup.agent.registry.take_changed() {
            let record = self.setup.engine.record(index);
            let is_one = record.is_some_and(|r| r.is_live() && r.java_thread() != 0);
            let generation = record.map_or(0, ThreadRecord::generation);
            let place = index as usize;
            if self.known.len() <= place {
                self.known.resize_with(place + 1, Known::default);
            }
            let Some(known) = self.known.get_mut(place) else {
                continue;
            };
            if self.members.contains(index) && (!is_one || known.generation != generation) {
                end_of(known, &mut shelf.lock());
                forget(known, index, &mut self.by_java_thread, &mut self.by_id);
                self.members.remove(index);
            }
            if is_one && self.members.insert(index) {
                let thread = record.map_or(0, ThreadRecord::user);
                let java_thread = record.map_or(0, ThreadRecord::java_thread);
                let name = self.setup.agent.threads.get(thread);
                let id = name.and_then(|name| u64::try_from(name.java_id).ok());
                *known = Known {
                    generation,
                    thread,
                    java_thread,
                    java_id: id.unwrap_or(0),
                    before: match self.ticks {
                        // Was there before us.
                        0 => Before::default(),
                        _ => Before::of_new_thread(),
                    },
                    ..Known::default()
                };
                self.by_java_thread.insert(java_thread, index);
                if let Some(id) = id {
                    self.by_id.insert(id, index);
                }
            }
        }
    }

    /// False if nothing could be seen.
    fn look_at(&mut self, index: u32, now_ns: u64, weight_ns: u64, shelf: &Shelf) -> bool {
        let Some(known) = self.known.get(index as usize) else {
            return false;
        };
        let Some(record) = self.setup.engine.record(index) else {
            return false;
        };
        let (mut before, thread) = (known.before, known.thread);
        let (seen, waited_ns) = self.see(record, &mut before);
        let has_it = match &seen {
            Look::Off(off) => self.see_owner(off.owner),
            _ => None,
        };
        let frames = &self.owner_frames;
        let owner = has_it.map(|(key, len)| (key, frames.get(..len).unwrap_or(&[])));
        let Some(known) = self.known.get_mut(index as usize) else {
            return false;
        };
        known.before = before;
        let mut notes = shelf.lock();
        if waited_ns > 0 {
            let note = Note::Ready {
                thread,
                at_ns: now_ns,
                weight_ns: waited_ns,
            };
            notes.add(note, waited_ns);
        }
        match seen {
            Look::Same => add(known, now_ns, weight_ns, &mut notes),
            Look::Off(off) => {
                let len = off.walk.map_or(0, |walk| walk.len);
                let stack = self.frames.get(..len).unwrap_or(&[]);
                flush(known, &mut notes);
                if !notes.add_stack(thread, off, stack, owner) {
                    known.before.forget_place();
                    notes.lost.1 += weight_ns;
                    return false;
                }
                add(known, now_ns, weight_ns, &mut notes);
            }
            // What it waits for a processor is told by the kernel's own account, when it has one.
            Look::Woken | Look::Ready | Look::Unclear => flush(known, &mut notes),
            Look::Gone => {
                end_of(known, &mut notes);
                forget(known, index, &mut self.by_java_thread, &mut self.by_id);
                self.members.remove(index);
                return false;
            }
        }
        true
    }

    /// What a look shows, and how long the thread waited for a processor since the last one.
    fn see(&mut self, record: &ThreadRecord, before: &mut Before) -> (Look, u64) {
        let mut frames = std::mem::take(&mut self.frames);
        let looker = self.looker();
        let mut seen = looker.look(record, before, &mut frames);
        if matches!(seen, Look::Unclear) {
            seen = looker.look(record, before, &mut frames);
        }
        if matches!(seen, Look::Unclear) {
            // It has begun to run while it was looked at, twice: it was ready to.
            seen = Look::Ready;
        }
        let waited_ns = match seen {
            Look::Same | Look::Woken | Look::Gone => 0,
            Look::Off(_) | Look::Ready | Look::Unclear => looker.waited_ns(record.tid(), before),
        };
        self.frames = frames;
        (seen, waited_ns)
    }

    /// The key of the thread that has what is waited for, and how long its stack is, in
    /// `owner_frames`.
    fn see_owner(&mut self, owner: Owner) -> Option<(u64, usize)> {
        let record = self.setup.engine.record(self.place_of(owner)?)?;
        let mut frames = std::mem::take(&mut self.owner_frames);
        let found = self.walk_owner(record, &mut frames);
        self.owner_frames = frames;
        Some(found)
    }

    fn walk_owner(&self, record: &ThreadRecord, frames: &mut [Frame]) -> (u64, usize) {
        let walk = self.looker().walk_owner(record, frames);
        (record.user(), walk.map_or(0, |walk| walk.len))
    }

    fn looker(&self) -> Looker<'_> {
        Looker {
            live: self.live,
            vm: self.setup.agent.vm(),
            files: &self.files,
            cache: Some(PcCache::new(&self.cache)),
            is_crowded: self.is_crowded,
        }
    }

    /// The place of the thread that has a monitor.
    fn place_of(&self, owner: Owner) -> Option<u32> {
        let layout = &self.setup.agent.vm().layout;
        match owner {
            Owner::Nobody => None,
            Owner::Thread(java_thread) => self.by_java_thread.get(&java_thread).copied(),
            Owner::Id(id) => self.by_id.get(&id).copied().or_else(|| self.carrier_of(id)),
            Owner::Stack(address) => self.find(|record| {
                let (low, high) = (record.stack_low(), record.stack_high());
                low != 0 && low < address && address < high
            }),
            Owner::HolderOf(object) => self.find(|record| {
                let thread = record.java_thread();
                monitors::holds(&self.live, layout, thread, object) == Ok(true)
            }),
        }
    }

    /// The thread on which the virtual one with this id runs.
    fn carrier_of(&self, id: u64) -> Option<u32> {
        let offset = self.setup.agent.vm().layout.thread_owner_id;
        if !present(offset) {
            return None;
        }
        self.find(|record| {
            let at = record.java_thread().wrapping_add(offset);
            self.live.word(at) == Ok(id)
        })
    }

    fn find(&self, is_it: impl Fn(&ThreadRecord) -> bool) -> Option<u32> {
        let mut places = self.by_java_thread.values().copied();
        places.find(|place| {
            let record = self.setup.engine.record(*place);
            record.is_some_and(|record| record.java_thread() != 0 && is_it(record))
        })
    }

    /// Looks at what this thread itself had to wait for a processor.
    fn mind_the_crowd(&mut self) {
        self.ticks += 1;
        if self.ticks % CROWDED_TICKS != 1 {
            return;
        }
        let mut buf = [0u8; 128];
        let text = self.files.read(process::own_tid(), "schedstat", &mut buf);
        if let Some(schedule) = text.and_then(proc::schedule) {
            let waited_ns = schedule.waited_ns.saturating_sub(self.own_waited_ns);
            self.own_waited_ns = schedule.waited_ns;
            self.is_crowded = waited_ns >= CROWDED_NS;
        }
    }

    /// What has not been told yet.
    fn end(&mut self, shelf: &Shelf) {
        let mut notes = shelf.lock();
        for known in &mut self.known {
            flush(known, &mut notes);
        }
    }
}

/// A part of what looking may cost; or the number of threads that was asked for.
fn budget(setup: &Setup, part: f64) -> Budget {
    match setup.options.wall_threads {
        Some(threads) => Budget::fixed(threads),
        None => Budget::of_share(part * f64::from(setup.options.wall_budget_ppm) / 1e6),
    }
}

/// A look at a thread that is where the last stack says.
fn add(known: &mut Known, now_ns: u64, weight_ns: u64, notes: &mut Notes) {
    let ended = known.pending.add((), now_ns, weight_ns);
    let due = known.pending.due(now_ns);
    for run in [ended, due].into_iter().flatten() {
        tell(known.thread, &run, notes);
    }
}

fn flush(known: &mut Known, notes: &mut Notes) {
    if let Some(run) = known.pending.rest() {
        tell(known.thread, &run, notes);
    }
}

/// A thread that has ended owns nothing; its place in the VM may be another's by now.
fn forget(
    known: &Known,
    index: u32,
    by_java_thread: &mut FxHashMap<u64, u32>,
    by_id: &mut FxHashMap<u64, u32>,
) {
    if by_java_thread.get(&known.java_thread) == Some(&index) {
        by_java_thread.remove(&known.java_thread);
    }
    if by_id.get(&known.java_id) == Some(&index) {
        by_id.remove(&known.java_id);
    }
}

fn end_of(known: &mut Known, notes: &mut Notes) {
    flush(known, notes);
    let thread = known.thread;
    notes.add(Note::Gone { thread }, 0);
}

fn tell(thread: u64, run: &SameRun<()>, notes: &mut Notes) {
    let told = Run {
        thread,
        since_ns: run.since_ns,
        until_ns: run.until_ns,
        count: run.count,
        weight_ns: run.weight_ns,
    };
    notes.add(Note::Run(told), run.weight_ns);
}
