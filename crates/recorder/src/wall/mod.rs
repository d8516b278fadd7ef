//! The wall-clock sampler: one thread that looks at some of the others in each tick.
//!
//! It signals nobody. A thread that waits is read from memory; of one that runs, its samples of CPU
//! time say where it is. So looking costs the same whatever the threads do, and interrupts no
//! system call. Which threads, and what a look stands for, is decided by crate `dwell-wall`.

mod ahead;
mod by_sign;
mod first_looks;
pub mod focus;
mod follow;
mod known;
pub mod look;
mod one_look;
mod passes;
pub mod unmounted;
pub mod who;

use crate::context::foreign;
use crate::looks::shelf::{Note, Shelf, Tick};
use crate::looks::threads::Threads;
use crate::looks::unmounted::{Found, Unmounted};
use crate::runtime::progress::Progress;
use crate::runtime::setup::Setup;
use crate::runtime::{Looks, Runtime};
use crate::sys::allocator::OwnThread;
use crate::sys::process;
use dwell_signal::{ThreadRecord, Turns};
use dwell_walker::Frame;
use dwell_wall::budget::{Budget, Debt, Price};
use dwell_wall::first::First;
use dwell_wall::fresh::Unlooked;
use dwell_wall::grid::{self, Grid};
use dwell_wall::members::{Chosen, choose_of};
use dwell_wall::quiet::Quiet;
use dwell_wall::random::Random;
use dwell_wall::roll_call::RollCall;
use dwell_wall::runs::Part;
use dwell_wall::strata::{self, Strata};
use focus::Focus;
use follow::ASKED_ACTIVE_MAX;
use known::Known;
use look::{Before, Kernel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use unmounted::{LeftOut, Teller};

/// Frames of a stack at most.
pub const FRAMES_MAX: usize = 2048;
/// Platform threads that are asked in one tick for logical ones that only they know, at most.
const ASKED_MAX: usize = 16;
/// How long, and how often, a view of the process is waited for.
const VIEW_WAIT: Duration = Duration::from_millis(5);
const VIEW_WAITS_MAX: u32 = 400;
/// What logical threads without a platform thread get of the budget at least, where there are any.
const UNMOUNTED_PART: f64 = 0.4;
/// The least part of that for platform threads that those who rest get.
const RESTING_PART: f64 = 0.2;
/// The part of the budget that others may take for what looks have seen: the rest is for looks.
const OTHERS_PART: f64 = 0.75;
/// So many logical threads that have run are noted between two looks at such.
const RAN_MAX: usize = 2048;
/// How fast what platform threads cost is forgotten: by half in some 40 ticks.
const SPENT_STEP: f64 = 1.0 / 64.0;
/// So often it is tried, in ticks, whether there is somebody again for whom pages can be mapped.
const MAPS_TICKS: u64 = 16;
/// While threads begin and first looks have no credit, at most so many ticks are one.
const TICKS_WHILE_MEETING: u64 = 3;
/// So often that is asked, in ticks.
const CROWDED_TICKS: u64 = 25;

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
                // A panic here is a bug of ours; it must end the sampling, never the
                // process.
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
                setup.recorder.registry.unwatch();
                let text = format!("no wall-clock samples: cannot start a thread: {error}");
                progress.set_trouble(Some(text));
                None
            }
        }
    }

    /// Ends it; what it has seen is on the shelf then.
    pub fn end<R: Runtime>(self, setup: &Setup<R>) {
        self.stop.ask();
        let _ = self.thread.join();
        setup.recorder.registry.unwatch();
    }
}

/// Samples until told to stop.
fn run<R: Runtime>(setup: &Setup<R>, stop: &Stop, shelf: &Shelf) {
    process::block_signals();
    process::unblock_signal(setup.engine.signal());
    let _own = OwnThread::begin();
    // Without a view of the process nobody can be walked; the drainer makes it when it begins.
    for _ in 0..VIEW_WAITS_MAX {
        if setup.recorder.runtime.can_walk() || stop.wait(VIEW_WAIT) {
            break;
        }
    }
    let mut sampler = Sampler::new(setup);
    loop {
        let now_ns = process::monotonic_ns();
        let due_ns = sampler.grid.due_ns(sampler.ticks_to_wait());
        let wait_ns = due_ns.saturating_sub(now_ns);
        sampler.looks.beside(&setup.shared, now_ns, wait_ns);
        let stopped = stop.wait(Duration::from_nanos(wait_ns));
        sampler.tick(shelf, stopped);
        if stopped {
            sampler.end(shelf);
            return;
        }
    }
}

struct Sampler<'s, R: Runtime> {
    setup: &'s Setup<R>,
    looks: R::Looks,
    grid: Grid,
    /// For platform threads that have shown a sign of life lately, and for those that have not.
    budget: Budget,
    resting: Budget,
    /// For first looks, and the time since old threads had some.
    first: First,
    unlooked: Unlooked,
    /// The time since those who rest were asked.
    rested_ns: u64,
    /// Whether pages were mapped for some of them lately.
    maps_more: bool,
    /// What asking a thread that rests whether it has run costs.
    asking: Price,
    /// Those of them who are asked in one go, what one of these costs, and whether there may be
    /// any.
    roll_call: RollCall<Turns>,
    counting: Price,
    may_count: bool,
    is_pass_due: bool,
    /// Whether this is the last tick: what the time since the last one has shown is told now.
    ends: bool,
    /// Whether ticks of active threads count by their signs.
    by_sign: bool,
    strata: Strata,
    /// For logical threads without a platform thread, once there are some.
    unmounted: Option<Budget>,
    left_out: LeftOut,
    /// CPU time of this thread when it was asked last.
    cpu_ns: u64,
    /// What was spent in this tick before anybody was asked.
    woken_cpu_ns: u64,
    /// What platform threads have cost lately, in parts of a processor; and the active ones alone.
    spent: f64,
    spent_active: f64,
    /// What others have spent, and the part of the last looks that was at logical threads.
    debt: Debt,
    /// Looks since others told what they spent, and the first looks among them.
    looked: [usize; 2],
    unmounted_part: f64,
    stops_cpu_ns: u64,
    focus: Focus,
    random: Random,
    known: Vec<Known<Claim<R>>>,
    kernel: Kernel,
    frames: Vec<Frame>,
    owner_frames: Vec<Frame>,
    threads: Threads,
    ticks: u64,
    /// Threads that were known to be where they were, in this tick.
    followed: usize,
    /// Threads that have run, and were told where they are by their signs, in this tick.
    told_by_sign: usize,
    quiet: Quiet,
    /// Whether a thread was seen at a new place in this tick, or one has come or gone.
    news: bool,
    /// Whether a thread was seen that ran.
    ran: bool,
    /// Logical threads that have run.
    ran_logical: Vec<u64>,
}

/// One tick's looks.
struct At<'a> {
    now_ns: u64,
    /// The end of the interval of these looks.
    until_ns: u64,
    look: grid::Look,
    shelf: &'a Shelf,
}

impl At<'_> {
    /// The same looks, but each stands for another time.
    fn over(&self, span_ns: u64) -> Self {
        let look = grid::Look {
            span_ns,
            ..self.look
        };
        At { look, ..*self }
    }

    /// What a look stands for, or a tick of a thread that is known to have been where it was.
    fn part(&self, weight_ns: u64, is_known: bool) -> Part {
        Part {
            weight_ns,
            span_ns: self.look.span_ns,
            at_ns: self.now_ns,
            interval: self.look.interval(self.until_ns),
            is_known,
        }
    }
}

/// What looks at some threads have come to.
#[derive(Clone, Copy, Debug, Default)]
struct Looked {
    /// Threads that were asked in one go.
    asked: usize,
    /// Threads that had to be looked at again, and were.
    count: usize,
    failed: usize,
    /// What that, and asking all, has cost.
    cpu_ns: u64,
    /// What first looks have cost.
    first_cpu_ns: u64,
}

impl Looked {
    /// These and others.
    fn and(&self, others: &Looked) -> Looked {
        Looked {
            asked: self.asked + others.asked,
            count: self.count + others.count,
            failed: self.failed + others.failed,
            cpu_ns: self.cpu_ns + others.cpu_ns,
            first_cpu_ns: self.first_cpu_ns + others.first_cpu_ns,
        }
    }
}

/// What a thread of this runtime waits for.
type Claim<R> = <<R as Runtime>::Looks as Looks<R>>::Claim;

impl<'s, R: Runtime> Sampler<'s, R> {
    fn new(setup: &'s Setup<R>) -> Sampler<'s, R> {
        let now_ns = process::monotonic_ns();
        let interval_ns = setup.options.wall_interval.as_nanos() as u64;
        Sampler {
            setup,
            looks: R::Looks::new(setup),
            grid: Grid::new(
                interval_ns,
                now_ns,
                Random::new(process::epoch_ns() ^ now_ns),
            ),
            budget: budget(setup, 1.0),
            resting: budget(setup, RESTING_PART),
            first: match setup.options.wall_threads {
                Some(threads) => First::fixed(threads),
                None => First::default(),
            },
            unlooked: Unlooked::default(),
            rested_ns: 0,
            maps_more: true,
            asking: Price::of(follow::ASKED_NS),
            roll_call: RollCall::default(),
            counting: Price::of(passes::EACH_NS),
            is_pass_due: false,
            ends: false,
            may_count: setup.options.wall_threads.is_none() && !setup.options.only_context,
            by_sign: R::Looks::HAS_SIGNS
                && setup.options.wall_threads.is_none()
                && !setup.options.only_context,
            strata: Strata::default(),
            unmounted: None,
            left_out: LeftOut::default(),
            cpu_ns: process::own_cpu().as_nanos() as u64,
            woken_cpu_ns: 0,
            spent: 0.0,
            spent_active: 0.0,
            debt: Debt::default(),
            looked: [0; 2],
            unmounted_part: 0.0,
            stops_cpu_ns: setup.stops.cpu_ns(),
            focus: Focus::default(),
            random: Random::new(process::epoch_ns()),
            known: Vec::new(),
            kernel: Kernel::open(setup.engine, R::MAPS_TURNS),
            frames: vec![Frame::EMPTY; FRAMES_MAX],
            owner_frames: vec![Frame::EMPTY; FRAMES_MAX],
            threads: Threads::new(setup.engine),
            ticks: 0,
            followed: 0,
            told_by_sign: 0,
            quiet: Quiet::default(),
            news: false,
            ran: false,
            ran_logical: Vec::new(),
        }
    }

    /// For how many ticks the next look stands.
    fn ticks_to_wait(&self) -> u64 {
        let options = &self.setup.options;
        // Where the number of threads is given, so is that of looks; and who works for requests is
        // not known between them.
        let quiet = match options.wall_threads.is_some() || options.only_context {
            true => 1,
            false => self.quiet.ticks(),
        };
        let affordable = match self.by_sign {
            // Who is new has to be found while it is.
            true if self.meets_some() && self.first.has_credit() => 1,
            true => {
                let ticks = self
                    .budget
                    .ticks_by_sign(options.wall_interval.as_nanos() as u64);
                match self.meets_some() {
                    true => ticks.min(TICKS_WHILE_MEETING),
                    false => ticks,
                }
            }
            false => self.budget.ticks(),
        };
        affordable.max(quiet)
    }

    /// Whether there are threads that have just begun, or at whom nobody has looked yet while first
    /// looks are paid.
    fn meets_some(&self) -> bool {
        let fresh = self.strata.fresh();
        fresh.len() > fresh.old() || fresh.old() > 0 && self.first.has_credit()
    }

    fn tick(&mut self, shelf: &Shelf, last: bool) {
        let now_ns = process::monotonic_ns();
        let look = match self.grid.look(now_ns) {
            Some(look) => look,
            None if last => self.grid.rest(now_ns),
            None => return,
        };
        self.strata.fresh_mut().turn();
        self.members_now(shelf);
        self.mind_the_crowd();
        let asked_cpu_ns = self.ask_young(now_ns, shelf);
        self.begin_pass(look.span_ns, last);
        let [active, resting] = self.choose();
        let rested_ns = self.rested_ns_of(&resting);
        let fresh = self.strata.fresh().len();
        let at = At {
            now_ns,
            until_ns: self.grid.until_ns(),
            look,
            shelf,
        };
        let (debt_ns, counted) = (self.debt(&look), self.roll_call.len());
        let unmounted_debt_ns = (debt_ns as f64 * self.unmounted_part) as u64;
        let looked @ [at_active, at_resting, at_fresh] =
            self.look_at_platform([&active, &resting], rested_ns, &at);
        let first_cpu_ns = looked.iter().map(|at| at.first_cpu_ns).sum::<u64>() + asked_cpu_ns;
        let unpaid_ns = self.first.pay(first_cpu_ns, look.span_ns);
        let active_cpu_ns = at_active.cpu_ns + debt_ns - unmounted_debt_ns + unpaid_ns;
        self.budget
            .spent_in(look.ticks, at_active.count, look.span_ns, active_cpu_ns);
        self.resting
            .spent(at_resting.count, look.span_ns, at_resting.cpu_ns);
        let failed = at_active.failed + at_resting.failed + at_fresh.failed;
        let asked = active.ids.len() + resting.ids.len() + at_resting.asked;
        let count = asked + at_fresh.count;
        self.looked[0] += at_active.count + at_resting.count + at_fresh.count;
        self.looked[1] += at_fresh.count;
        let cpu_ns = active_cpu_ns + at_resting.cpu_ns;
        self.share_out(active_cpu_ns, cpu_ns, look.span_ns);
        let cpu_ns = cpu_ns + first_cpu_ns - unpaid_ns;
        self.note_running(&active.ids, shelf);
        self.left_out
            .add(look.ticks, look.span_ns, unmounted_debt_ns);
        let (found, unmounted_cpu_ns) = self.look_at_unmounted(now_ns, last, shelf);
        self.left_out.looked += count;
        if found.looked > 0 {
            let looked = std::mem::take(&mut self.left_out.looked) + found.looked;
            self.unmounted_part = found.looked as f64 / looked as f64;
        }
        shelf.set_own_cpu_ns(self.cpu_ns);
        let cpu_ns = cpu_ns.saturating_add(unmounted_cpu_ns);
        let tick = Tick {
            at_ns: now_ns,
            span_ns: look.span_ns,
            ticks: look.ticks,
            live: self.strata.len(),
            eligible: active.eligible + resting.eligible + counted + fresh,
            looked: count,
            failed,
            cpu_ns,
            unmounted: found.estimated.round() as u64,
            unmounted_looked: found.looked,
            unmounted_failed: found.failed,
            followed: std::mem::take(&mut self.followed),
            by_page: self.kernel.take_told(),
            by_sign: std::mem::take(&mut self.told_by_sign),
        };
        shelf.lock().add(Note::Tick(tick), 0);
        self.mind_the_quiet(found.estimated > 0.0);
    }

    /// Looks at platform threads: active ones, those who rest, and those at whom nobody has looked.
    fn look_at_platform(
        &mut self,
        [active, resting]: [&Chosen; 2],
        rested_ns: u64,
        at: &At<'_>,
    ) -> [Looked; 3] {
        self.woken_cpu_ns += self.cpu_since();
        // Before the others: who rests from now on may join those who are asked in one go.
        let at_counted = self.look_at_counted(at);
        let at_active = self.look_at_all(active, at, true);
        let at_resting = self.look_at_all(resting, &at.over(rested_ns), false);
        let at_fresh = self.look_at_fresh(at);
        [at_active, at_resting.and(&at_counted), at_fresh]
    }

    /// What this tick has shown says how soon the next one may be.
    fn mind_the_quiet(&mut self, has_unmounted: bool) {
        let (news, ran) = (&mut self.news, &mut self.ran);
        let (news, ran) = (std::mem::take(news), std::mem::take(ran));
        self.quiet.add(news || has_unmounted, ran);
    }

    /// The time that those chosen among who rests stand for. Where asking them costs too much that
    /// is not done in each tick: then one stands for those before it.
    fn rested_ns_of(&mut self, resting: &Chosen) -> u64 {
        let is_due = !resting.ids.is_empty() || self.strata.resting() == 0;
        self.strata.let_rest(is_due);
        match is_due {
            true => std::mem::take(&mut self.rested_ns),
            false => 0,
        }
    }

    /// Looks at those of `chosen` that are not where they were.
    fn look_at_all(&mut self, chosen: &Chosen, at: &At<'_>, is_active: bool) -> Looked {
        if !is_active && chosen.ids.is_empty() {
            return Looked::default();
        }
        self.kernel.keep_files(is_active);
        let on_trial = self.strata.on_trial();
        let pages = match (is_active, self.first.has_credit()) {
            (true, true) if on_trial > 0 => follow::PAGES_ON_TRIAL,
            (true, _) => follow::PAGES_ACTIVE,
            (false, true) => follow::PAGES_RESTING,
            (false, false) => follow::PAGES_WITHOUT_CREDIT,
        };
        let affordable = follow::PAGES_PART * at.look.span_ns as f64;
        let pages = pages.min(self.kernel.pages_for(affordable).max(1));
        self.kernel.allow_pages(pages);
        let _ = self.kernel.take_pages_cpu_ns();
        let mut moved = self.follow(chosen, at, is_active);
        let asked_ns = self.cpu_since();
        let mut looked = Looked::default();
        if is_active {
            // What it takes to follow those who have just been looked at first is part of that.
            let on_trial = on_trial.min(chosen.ids.len()) as u64;
            looked.first_cpu_ns = asked_ns * on_trial / (chosen.ids.len().max(1) as u64);
            looked.cpu_ns = std::mem::take(&mut self.woken_cpu_ns);
        } else {
            // A page is mapped once, and says nothing of what asking costs later.
            let has_mapped = self.kernel.pages_allowed() < pages;
            self.maps_more = has_mapped || self.ticks.is_multiple_of(MAPS_TICKS);
            looked.first_cpu_ns = self.kernel.take_pages_cpu_ns().min(asked_ns);
            self.asking
                .spent(chosen.ids.len(), asked_ns - looked.first_cpu_ns);
        }
        looked.cpu_ns += asked_ns - looked.first_cpu_ns;
        let of = (chosen.eligible, chosen.ids.len());
        if is_active && self.by_sign {
            self.look_by_sign(of, &moved, at, &mut looked);
        } else {
            let wanted = moved.len();
            let count = match is_active {
                true => self.budget.count_of_wanted(wanted, at.look.ticks),
                false => self.resting.count(wanted),
            };
            (looked.count, looked.failed) = self.look_at_some(of, &mut moved, count, at);
        }
        self.kernel.keep_files(false);
        self.kernel.allow_pages(0);
        looked.cpu_ns += self.cpu_since();
        looked
    }

    /// What the active threads leave of the budget is for those who rest.
    fn share_out(&mut self, active_cpu_ns: u64, cpu_ns: u64, span_ns: u64) {
        let part = |cpu_ns: u64| cpu_ns as f64 / span_ns.max(1) as f64;
        self.spent += (part(cpu_ns) - self.spent) * SPENT_STEP;
        self.spent_active += (part(active_cpu_ns) - self.spent_active) * SPENT_STEP;
        let whole = match self.unmounted {
            Some(_) => (1.0 - UNMOUNTED_PART) * aim(self.setup),
            None => aim(self.setup),
        };
        if self.setup.options.only_context {
            self.budget.set_share(whole);
            return;
        }
        let least = RESTING_PART * whole;
        self.budget.set_share(whole - least);
        self.resting
            .set_share((whole - self.spent_active).max(least));
    }

    /// Notes which logical threads have run: those of samples, and those that are on one of these
    /// platform threads now.
    fn note_running(&mut self, active: &[u32], shelf: &Shelf) {
        if !self.looks.has_unmounted() || self.ran_logical.len() >= RAN_MAX {
            return;
        }
        shelf.take_ran(&mut self.ran_logical);
        for id in active {
            let record = self.setup.engine.record(*id);
            let mounted = record.and_then(|it| self.looks.mounted(it.managed_thread()));
            self.ran_logical.extend(mounted);
        }
    }

    /// Looks at logical threads that no platform thread runs, unless that is left out in this tick:
    /// then the next look stands for it.
    fn look_at_unmounted(&mut self, now_ns: u64, last: bool, shelf: &Shelf) -> (Found, u64) {
        if !self.looks.has_unmounted() {
            return (Found::default(), 0);
        }
        let whole = aim(self.setup);
        let first = || budget(self.setup, UNMOUNTED_PART);
        let mut own = self.unmounted.take().unwrap_or_else(first);
        if self.left_out.ticks < own.ticks() && !last {
            self.unmounted = Some(own);
            return (self.left_out.as_before(), 0);
        }
        // What few platform threads leave is theirs, too.
        own.set_share((whole - self.spent).max(UNMOUNTED_PART * whole));
        let (moment, ticks) = self.left_out.take(now_ns, self.setup.options.only_context);
        let allowed = own.after(self.left_out.wanted(), ticks);
        let (chosen, factor) = self.choose_to_ask();
        let ran = std::mem::take(&mut self.ran_logical);
        let teller = Teller {
            moment,
            threads: &self.threads,
            kernel: &self.kernel,
            shelf,
        };
        let at = Unmounted {
            chosen: &chosen,
            factor,
            threads: &self.threads,
            at_ns: moment.at_ns,
            ran: &ran,
            tell: &|looks, seen, each, buffers, found| {
                teller.tell::<R, _>(looks, seen, each, buffers, found);
            },
        };
        let (found, looked) = self
            .looks
            .look_at_unmounted(&at, &allowed, &mut self.random);
        let are_all = looked < allowed.count(usize::MAX);
        self.left_out.found(&found, looked, are_all);
        let cpu_ns = self.cpu_since() + moment.debt_ns;
        own.spent_in(ticks, looked, moment.span_ns, cpu_ns);
        self.unmounted = Some(own);
        (found, cpu_ns)
    }

    /// Platform threads that are asked whether they know of logical ones, and for how many each
    /// stands.
    fn choose_to_ask(&mut self) -> (Vec<u64>, f64) {
        let all = self.strata.len();
        let chosen = self.strata.choose_of_all(ASKED_MAX, &mut self.random);
        let chosen = chosen.to_vec();
        let factor = all as f64 / chosen.len().max(1) as f64;
        let records = chosen
            .into_iter()
            .filter_map(|index| self.setup.engine.record(index));
        (records.map(ThreadRecord::managed_thread).collect(), factor)
    }

    /// What a look has to pay for what others do with looks, and for the watch that is kept beside.
    fn debt(&mut self, look: &grid::Look) -> u64 {
        let stops_cpu_ns = self.setup.stops.cpu_ns();
        let before_ns = std::mem::replace(&mut self.stops_cpu_ns, stops_cpu_ns);
        let mut new_ns = self.setup.shelf.take_drain_cpu_ns();
        if new_ns > 0 {
            // What first looks make others do is part of what they cost.
            let [all, first] = std::mem::take(&mut self.looked);
            let for_first_ns = (new_ns as f64 * first as f64 / all.max(1) as f64) as u64;
            new_ns = new_ns - for_first_ns + self.first.pay(for_first_ns, 0);
        }
        let new_ns = new_ns + stops_cpu_ns.saturating_sub(before_ns);
        let most_ns = OTHERS_PART * aim(self.setup) * look.span_ns as f64;
        self.debt.pay(new_ns, look.ticks, most_ns as u64)
    }

    /// CPU time of this thread since this was asked last: waiting and waking up are part of it.
    fn cpu_since(&mut self) -> u64 {
        let now_ns = process::own_cpu().as_nanos() as u64;
        now_ns.saturating_sub(std::mem::replace(&mut self.cpu_ns, now_ns))
    }

    /// Those chosen among active threads, and among those who rest.
    fn choose(&mut self) -> [Chosen; 2] {
        if self.setup.options.only_context {
            return [self.choose_working(), Chosen::default()];
        }
        let (active, resting) = (self.strata.active(), self.strata.resting());
        let (for_active, for_resting) = match self.setup.options.wall_threads {
            Some(threads) => strata::split(threads, active, resting),
            None => (
                active.min(ASKED_ACTIVE_MAX),
                self.asked_of(resting, self.roll_call.len()),
            ),
        };
        [
            self.strata.choose_active(for_active, &mut self.random),
            self.strata.choose_resting(for_resting, &mut self.random),
        ]
    }

    /// Those chosen among threads that work for a request.
    fn choose_working(&mut self) -> Chosen {
        let mut focus = std::mem::take(&mut self.focus);
        let of_id = |id| self.threads.of_id(id);
        let mut working = focus.find(of_id, |show| self.mounted(show));
        if foreign::is_known() {
            let is_published = |thread| self.looks.published(thread).is_some();
            working = focus.add_published(self.threads.iter(), is_published);
        }
        let eligible = working.len();
        let ids = choose_of(working, ASKED_ACTIVE_MAX, &mut self.random).to_vec();
        self.focus = focus;
        Chosen { eligible, ids }
    }

    /// Shows which logical thread is on which platform thread.
    fn mounted(&self, show: &mut dyn FnMut(u64, u32)) {
        for (thread, place) in self.threads.iter() {
            if let Some(id) = self.looks.mounted(thread) {
                show(id, place);
            }
        }
    }

    /// Takes in threads that have begun since the last tick, and lets go those that have ended.
    fn members_now(&mut self, shelf: &Shelf) {
        for index in self.setup.recorder.registry.take_changed() {
            self.news = true;
            let record = self.setup.engine.record(index);
            let is_one = record.is_some_and(|r| r.is_live() && r.managed_thread() != 0);
            let generation = record.map_or(0, ThreadRecord::generation);
            let place = index as usize;
            if self.known.len() <= place {
                self.known.resize_with(place + 1, Known::default);
            }
            let Some(known) = self.known.get_mut(place) else {
                continue;
            };
            let managed = record.map_or(0, ThreadRecord::managed_thread);
            let goes_on = known.generation == generation;
            // A native thread that has attached again has another structure of the runtime's.
            let is_known = is_one && goes_on && known.managed == managed;
            if self.strata.contains(index) && !is_known {
                let mut notes = shelf.lock();
                if let Some(owed) = self.roll_call.leave(index) {
                    known.add_owed(&owed, &mut notes);
                }
                known.end(&mut notes);
                self.threads.forget(known.managed, known.id, index);
                self.strata.remove(index);
            }
            // Those of the first tick were there before us.
            let begins = self.ticks > 0;
            if is_one && self.strata.insert(index, begins) {
                let thread = record.map_or(0, ThreadRecord::user);
                *known = Known {
                    generation,
                    thread,
                    managed,
                    before: match begins && !goes_on {
                        false => Before::default(),
                        true => Before::of_new_thread(),
                    },
                    ..Known::default()
                };
                self.threads.add(managed, index);
            }
            if is_one {
                // Also of one that was taken in when its id was not known yet.
                let name = self.setup.recorder.threads.get(known.thread);
                let id = name.and_then(|name| u64::try_from(name.id).ok());
                if let Some(id @ 1..) = id.filter(|id| *id != known.id) {
                    self.threads.set_id(known.id, id, index);
                    known.id = id;
                }
            }
        }
    }

    /// Looks now and then how scarce processors are.
    fn mind_the_crowd(&mut self) {
        self.ticks += 1;
        if self.ticks % CROWDED_TICKS == 1 {
            self.kernel.mind_the_crowd();
        }
    }

    /// What has not been told yet.
    fn end(&mut self, shelf: &Shelf) {
        let mut notes = shelf.lock();
        for (index, owed) in self.roll_call.take_all() {
            if let Some(known) = self.known.get_mut(index as usize) {
                known.add_owed(&owed, &mut notes);
            }
        }
        for known in &mut self.known {
            known.flush_all(&mut notes);
        }
    }
}

/// A part of what looking may cost; or the number of threads that was asked for.
fn budget<R: Runtime>(setup: &Setup<R>, part: f64) -> Budget {
    match setup.options.wall_threads {
        Some(threads) => Budget::fixed(threads),
        None => Budget::of_share(part * aim(setup)),
    }
}

/// The part of a processor that is aimed at: what is spent scatters about that, and the budget is
/// what may be spent.
fn aim<R: Runtime>(setup: &Setup<R>) -> f64 {
    const AIM: f64 = 0.9;
    AIM * f64::from(setup.options.wall_budget_ppm) / 1e6
}

#[cfg(test)]
mod tests;
