//! Wall time. The state machine [`WallClock`] decides which Java threads to read in a tick, which
//! to sample, and the weight of each read; here they are read from outside. Virtual threads without
//! a carrier are read as well, from the same budget.

use super::chunk::{Chunk, Looks};
use super::fingerprints;
use super::mounted::{self, Virtual};
use super::owners::Owners;
use super::seats::Seats;
use super::threads::{Facts, Threads};
use super::unmounted::{Found, Unmounted};
use super::{cpu, cpu_ns};
use crate::clock::now_ns;
use crate::dump::for_cause;
use crate::look::{Looker, Seen};
use crate::memory::Pages;
use crate::names::Namer;
use crate::task::Tasks;
use crate::virtuals::Virtuals;
use dwell_host::Whose;
use dwell_host::cgroup::Group;
use dwell_host::throttled::Throttled;
use dwell_jfr::writer::{Event, StackId};
use dwell_walker::Failure;
use dwell_wall::cause::{self, Cause, Facts as CauseFacts, Known as Waits};
use dwell_wall::proc::Schedule;
use dwell_wall::random::Random;
use dwell_wallclock::grid::{Grid, Look};
use dwell_wallclock::labels::UNSAMPLED;
use dwell_wallclock::machine::Ended;
use dwell_wallclock::purse::Purse;
use dwell_wallclock::{Fingerprint, Label, Shown, Tick, WallClock};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::time::{Duration, Instant};

/// The innermost frames show the cause of a wait.
const CAUSE_FRAMES_MAX: usize = 64;
/// Time between two uses of the kernel's account of a thread, in ns.
const ACCOUNT_NS: u64 = 250_000_000;
/// One in so many permitted descriptors may be kept open for reads of threads.
const FILES_PART: usize = 2;

/// The inputs and outputs of a tick.
pub struct Context<'c, 'l, 'v> {
    /// Reads threads.
    pub looker: &'c Looker<'l, 'v>,
    /// Names frames.
    pub namer: &'c mut Namer,
    /// The list of threads.
    pub threads: &'c Threads,
    /// Receives the samples.
    pub chunk: &'c mut Chunk,
}

/// Where and why a thread waits.
#[derive(Clone, Hash)]
struct Place {
    stack: StackId,
    cause: Cause,
    detail: Option<String>,
    owner: Option<i32>,
    owner_stack: StackId,
    logical: Option<Virtual>,
    failure: Option<&'static str>,
}

impl Place {
    /// The place of time without a sample.
    const fn unknown(cause: Cause) -> Place {
        Place {
            stack: StackId::NONE,
            cause,
            detail: None,
            owner: None,
            owner_stack: StackId::NONE,
            logical: None,
            failure: None,
        }
    }

    fn label(&self) -> Label {
        let mut hasher = FxHasher::default();
        self.hash(&mut hasher);
        Label {
            shown: Shown::Wait,
            place: hasher.finish(),
            has_claim: self.owner.is_some(),
        }
    }
}

/// The time that a thread was ready before it ran.
struct Ready {
    who: Facts,
    at_ns: u64,
    waited_ns: u64,
    /// After a wake-up, the place of the wait before it.
    place: Place,
}

/// The result of a read of a thread.
#[derive(Default)]
struct Read {
    /// Its fingerprint, if it is to be sampled.
    wants: Option<Fingerprint>,
    /// The kernel's account, if it has run since the last read.
    ran: Option<Schedule>,
}

/// Numbers of one tick.
#[derive(Default)]
struct Counts {
    reads: u64,
    failed: u64,
    stayed: u64,
    by_fingerprint: u64,
}

/// Takes the wall-clock samples of a recording.
pub struct Wall {
    grid: Grid,
    interval_ns: u64,
    /// The number of the last tick's interval.
    number: u32,
    clock: WallClock<()>,
    seats: Seats<Place>,
    /// Descriptors of threads' files have numbers below this.
    files_max: usize,
    /// The version of the list of threads that they are from.
    version: Option<u32>,
    /// Part of a processor that samples may take.
    share: f64,
    unmounted: Option<Unmounted>,
    random: Random,
    waits: Waits,
    owners: Owners,
    /// Waits for a processor since the last flush, whose cause is decided at the next flush.
    ready: Vec<Ready>,
    throttled: Throttled,
    counts: Counts,
}

impl Wall {
    /// Samples threads of a process at this interval; this may take `budget` percent of a
    /// processor.
    #[must_use]
    pub fn new(interval: Duration, budget: f64, tasks: &Tasks) -> Wall {
        let share = budget / 100.0;
        let interval_ns = interval.as_nanos().max(1) as u64;
        let mut random = Random::new(now_ns());
        Wall {
            grid: Grid::new(interval_ns, now_ns(), Random::new(random.word())),
            interval_ns,
            number: 0,
            clock: WallClock::new(Purse::of_share(share), Random::new(random.word())),
            seats: Seats::default(),
            files_max: cpu::descriptors() / FILES_PART,
            version: None,
            share,
            unmounted: None,
            random,
            waits: Waits::new(&dwell_jdk::WAITS),
            owners: Owners::default(),
            ready: Vec::new(),
            throttled: {
                let whose = Whose::Of(tasks.pid);
                Throttled::begin(whose, Group::of(whose), now_ns(), || ran_ns(tasks))
            },
            counts: Counts::default(),
        }
    }

    /// Also samples virtual threads that wait without a carrier from now on, with half of the
    /// budget.
    pub fn know(&mut self, virtuals: Option<Virtuals>) {
        let half = self.share / 2.0;
        match (virtuals, &mut self.unmounted) {
            (None, _) => {}
            (Some(virtuals), Some(unmounted)) => unmounted.learn(virtuals),
            (Some(virtuals), none) => {
                *none = Some(Unmounted::new(virtuals, half));
                self.clock.purse().set_share(half);
            }
        }
    }

    /// Part of a processor that samples of platform threads may take.
    fn platform_share(&self) -> f64 {
        match self.unmounted {
            Some(_) => self.share / 2.0,
            None => self.share,
        }
    }

    /// Time of the next tick.
    #[must_use]
    pub fn next(&mut self) -> Instant {
        let wait_ns = self.grid.due_ns().saturating_sub(now_ns());
        Instant::now() + Duration::from_nanos(wait_ns)
    }

    /// Reads threads if a tick is due; returns the number of reads. `is_over`: the recording ends,
    /// and all time until now is accounted.
    pub fn tick(&mut self, mut context: Context<'_, '_, '_>, is_over: bool) -> u64 {
        let at_ns = now_ns();
        let look = match self.grid.look(at_ns) {
            Some(look) => look,
            None if is_over => self.grid.rest(at_ns),
            None => return 0,
        };
        let began_ns = cpu_ns();
        self.number += u32::try_from(look.ticks).unwrap_or(u32::MAX);
        let tick = Tick {
            number: self.number,
            at_ns,
            interval_ns: self.interval_ns,
            until_ns: self.grid.until_ns(),
        };
        self.counts = Counts::default();
        if self.version.is_none() {
            // These threads live since the beginning, also if the first tick is late.
            self.clock.begin_tick(Tick { number: 0, ..tick }, 0);
            self.update_threads(&mut context);
        }
        self.clock.begin_tick(tick, look.span_ns);
        self.update_threads(&mut context);
        self.read_due(began_ns, &mut context);
        if is_over {
            let early_ns = self.grid.until_ns().saturating_sub(at_ns);
            self.clock.finish(early_ns);
            self.write_ended(&mut context);
        }
        let spent_ns = cpu_ns().saturating_sub(began_ns);
        self.clock.purse().spend(spent_ns);
        let found = self.look_unmounted(&look, &mut context);
        let live = self.seats.len() as u64;
        context.chunk.event(&Event::WallTick {
            ticks: now_ns(),
            span_ns: look.span_ns,
            ticks_passed: look.ticks,
            live,
            eligible: live,
            sampled: self.counts.reads,
            failed: self.counts.failed,
            cpu_ns: cpu_ns().saturating_sub(began_ns),
            unmounted: found.estimated.round() as u64,
            unmounted_sampled: found.looked,
            unmounted_failed: found.failed,
            followed: self.counts.stayed,
            by_page: 0,
            by_fingerprint: self.counts.by_fingerprint,
        });
        self.counts.reads + found.looked
    }

    fn update_threads(&mut self, context: &mut Context<'_, '_, '_>) {
        let version = Some(context.threads.version());
        if std::mem::replace(&mut self.version, version) == version {
            return;
        }
        let (new, gone) = self.seats.compare(context.threads);
        gone.into_iter().for_each(|id| self.remove(id, context));
        for whom in new {
            let id = self.seats.add(whom);
            self.clock.begin(id);
        }
    }

    fn remove(&mut self, id: u32, context: &mut Context<'_, '_, '_>) {
        self.clock.end(id);
        self.write_ended(context);
        self.seats.remove(id);
    }

    /// Reads the threads whose turn it is, and samples those that need it.
    fn read_due(&mut self, began_ns: u64, context: &mut Context<'_, '_, '_>) {
        let ids = self.clock.due();
        let mut sampled_ns = 0;
        for id in &ids {
            let read = self.read(*id, context);
            if let Some(before) = read.wants {
                sampled_ns += self.sample(*id, Some(before), context);
            }
            if let Some(now) = read.ran {
                self.account(*id, now, context);
            }
        }
        let census_ns = cpu_ns().saturating_sub(began_ns + sampled_ns);
        let share = self.platform_share();
        self.clock.census_done(ids.len(), census_ns, share);
        let mut is_first = true;
        while let Some(id) = self.clock.next_of_backlog(is_first) {
            is_first = false;
            self.sample(id, None, context);
        }
        self.write_ended(context);
    }

    /// Reads a thread.
    fn read(&mut self, id: u32, context: &mut Context<'_, '_, '_>) -> Read {
        let Some(seat) = self.seats.get_mut(id) else {
            return Read::default();
        };
        self.counts.reads += 1;
        let whom = seat.whom;
        let files = seat.files.take();
        let files = files.or_else(|| context.looker.tasks.files(whom.tid));
        let read = files.and_then(|files| Some((files.schedule()?, files)));
        let Some((now, files)) = read else {
            self.remove(id, context);
            return Read::default();
        };
        let has_run = seat.read.replace(now) != Some(now);
        // The awaited object may have passed to another thread.
        let stays = !has_run && self.clock.can_stay(id, |_| false);
        let fingerprint = (!stays).then(|| fingerprints::of(context.looker, whom, &files, has_run));
        let is_kept = has_run && files.is_below(self.files_max);
        seat.files = Some(files).filter(|_| is_kept);
        let Some(fingerprint) = fingerprint else {
            self.counts.stayed += 1;
            self.clock.stays(id);
            return Read::default();
        };
        if !has_run {
            self.clock.unlabel(id);
        }
        let work = (0, || ());
        let wants = self.clock.read(id, fingerprint, work, has_run, |_| false);
        self.counts.by_fingerprint += u64::from(!wants);
        Read {
            wants: wants.then_some(fingerprint),
            ran: has_run.then_some(now),
        }
    }

    /// Uses the kernel's account of a thread, if it is time.
    fn account(&mut self, id: u32, now: Schedule, context: &mut Context<'_, '_, '_>) {
        let at_ns = self.clock.now_ns();
        let Some(seat) = self.seats.get_mut(id) else {
            return;
        };
        let Some((then, then_ns)) = seat.account else {
            seat.account = Some((now, at_ns));
            self.clock.take_found(id);
            return;
        };
        let passed_ns = at_ns.saturating_sub(then_ns);
        if passed_ns < ACCOUNT_NS {
            return;
        }
        seat.account = Some((now, at_ns));
        let found = self.clock.take_found(id);
        self.clock.account(id, now.off_since(&then, passed_ns));
        let waited_ns = now.waited_since(&then);
        let woken_ns = seat
            .woken
            .of(waited_ns, now.ran_since(&then), found.running_ns);
        let unknown = Place::unknown(Cause::Runnable);
        let left = found.left().and_then(|class| seat.place(class));
        let left = left.map(|place| Place {
            cause: Cause::Runnable,
            detail: None,
            owner: None,
            owner_stack: StackId::NONE,
            ..place.clone()
        });
        let parts = [
            (woken_ns, left.unwrap_or_else(|| unknown.clone())),
            (waited_ns - woken_ns, unknown),
        ];
        for (waited_ns, place) in parts {
            if waited_ns > 0 {
                self.ready.push(Ready {
                    who: context.threads.facts(seat.whom.tid),
                    at_ns,
                    waited_ns,
                    place,
                });
            }
        }
    }

    /// Samples a thread with this fingerprint, if it is known. Returns the cost in ns.
    fn sample(
        &mut self,
        id: u32,
        before: Option<Fingerprint>,
        context: &mut Context<'_, '_, '_>,
    ) -> u64 {
        let before_ns = cpu_ns();
        let is_new = !self.clock.is_labelled(id);
        let class = self.look(id, before, context);
        self.counts.failed += u64::from(class.is_none());
        self.clock.settle(id, class);
        self.write_ended(context);
        let cost_ns = cpu_ns().saturating_sub(before_ns);
        self.clock.purse().sampled(cost_ns, is_new);
        cost_ns
    }

    /// Reads the stack of a thread. Returns the class whose place it shows, if it shows one.
    fn look(
        &mut self,
        id: u32,
        before: Option<Fingerprint>,
        context: &mut Context<'_, '_, '_>,
    ) -> Option<u8> {
        let whom = self.seats.get_mut(id)?.whom;
        let Some((seen, pages)) = context.looker.look(whom) else {
            self.remove(id, context);
            return None;
        };
        let files = context.looker.tasks.files(whom.tid)?;
        let fingerprint = fingerprints::of(context.looker, whom, &files, true);
        // If the wait ended since, the sample shows nothing. Reads count how often the thread
        // waits.
        let after = seen.clock.as_ref().and_then(crate::task::Clock::schedule);
        if seen.is_blurred || after.is_none() || after != seen.ran {
            return None;
        }
        if seen.is_ready {
            if before != Some(fingerprint) {
                return None;
            }
            return self.found_running(id, fingerprint);
        }
        let place = self.place(&seen, &pages, context);
        let labelled = self.clock.label(id, fingerprint, place.label());
        // Runs of the place before are written before the new one is known.
        self.write_ended(context);
        let seat = self.seats.get_mut(id)?;
        if labelled.is_new {
            seat.set_place(labelled.class, place);
        }
        // If the thread has come to another place since the read, the next read must read it again.
        if self.clock.is_in(id, labelled.class) {
            seat.read = after;
        }
        Some(labelled.class)
    }

    /// A thread that runs, although its fingerprint may be that of a wait.
    fn found_running(&mut self, id: u32, fingerprint: Fingerprint) -> Option<u8> {
        if fingerprint.runs() || !self.clock.found_running(id, fingerprint) {
            return None;
        }
        let label = Label {
            shown: Shown::Run,
            place: 0,
            has_claim: false,
        };
        Some(self.clock.label(id, fingerprint, label).class)
    }

    fn place(
        &mut self,
        seen: &Seen,
        pages: &Pages<'_>,
        context: &mut Context<'_, '_, '_>,
    ) -> Place {
        let vm = context.looker.vm;
        let frames = seen.trail.frames.iter();
        let named: Vec<_> = frames
            .map(|frame| (context.namer.name(pages, vm, frame), frame))
            .collect();
        let top = named.iter().take(CAUSE_FRAMES_MAX);
        let names: Vec<cause::Named<'_>> = top.filter_map(|(named, _)| for_cause(named)).collect();
        let facts = CauseFacts {
            os: seen.os,
            monitor: seen.monitor,
            is_owned_lock: seen.is_owned_lock,
            frames: &names,
        };
        let wanted = seen.wanted.as_ref();
        let owned = wanted.and_then(|wanted| Some((wanted.owner?, wanted.object)));
        let owner = owned.and_then(|owned| self.owners.find(vm, context.threads, owned));
        let owner_stack = owner.map_or(StackId::NONE, |tid| self.owners.stack(tid, context));
        let class = wanted.and_then(|wanted| wanted.class.clone());
        let truncated = seen.failure == Some(Failure::Truncated);
        Place {
            cause: self.waits.cause(&facts),
            stack: context.chunk.stack(&named, truncated),
            detail: class.or_else(|| seen.on.clone()),
            owner,
            owner_stack,
            logical: match seen.mounted {
                0 => None,
                object => mounted::of_object(vm, vm.live, object),
            },
            failure: seen.failure.filter(|_| !truncated).map(Failure::name),
        }
    }

    /// Samples virtual threads without a carrier, if it is time.
    fn look_unmounted(&mut self, look: &Look, context: &mut Context<'_, '_, '_>) -> Found {
        let Some(mut unmounted) = self.unmounted.take() else {
            return Found::default();
        };
        let mut found = Found::default();
        if unmounted.is_due(look.ticks, look.span_ns) {
            let (began_ns, mut all) = (cpu_ns(), Vec::new());
            found = unmounted.look(context.looker, &mut self.random, |it| all.push(it));
            for it in all {
                let mut place = self.place(&it.seen, &it.pages, context);
                place.logical = Some(it.whom);
                let run = Time {
                    since_ns: now_ns(),
                    until_ns: now_ns(),
                    weight_ns: it.weight_ns,
                    count: 1,
                    choices: 1,
                };
                let looks = looks_of(&place, &run, context.threads);
                context.chunk.looks(None, looks);
            }
            unmounted.spent(&found, cpu_ns().saturating_sub(began_ns));
        }
        self.unmounted = Some(unmounted);
        found
    }

    /// Writes the runs that have ended.
    fn write_ended(&mut self, context: &mut Context<'_, '_, '_>) {
        let unsampled = Place::unknown(Cause::Unknown);
        for Ended { id, class, run } in self.clock.take_ended() {
            let Some(seat) = self.seats.get_mut(id) else {
                continue;
            };
            let place = match class {
                UNSAMPLED => &unsampled,
                class => seat.place(class).unwrap_or(&unsampled),
            };
            let time = Time {
                since_ns: run.since_ns,
                until_ns: run.until_ns,
                weight_ns: run.weight_ns,
                count: u64::from(run.count),
                choices: run.choices(),
            };
            let looks = looks_of(place, &time, context.threads);
            let facts = context.threads.facts(seat.whom.tid);
            context.chunk.looks(Some(facts), looks);
        }
    }

    /// Writes what is decided once a second.
    pub fn flush(&mut self, threads: &Threads, tasks: &Tasks, chunk: &mut Chunk) {
        self.owners.forget();
        let waited_ns = self.ready.iter().map(|ready| ready.waited_ns).sum();
        self.throttled.look(waited_ns, now_ns(), || ran_ns(tasks));
        for mut ready in self.ready.drain(..) {
            if self.throttled.is_next() {
                ready.place.cause = Cause::Throttled;
            }
            let time = Time {
                since_ns: ready.at_ns,
                until_ns: ready.at_ns,
                weight_ns: ready.waited_ns,
                count: 1,
                choices: 1,
            };
            chunk.looks(Some(ready.who), looks_of(&ready.place, &time, threads));
        }
    }

    /// Stacks belong to a chunk, so they are found again after its end.
    pub fn forget_stacks(&mut self) {
        self.owners.forget();
        for (id, seat) in self.seats.iter_mut() {
            for (class, _) in seat.places.drain(..) {
                self.clock.unreported(id, class);
            }
        }
    }
}

/// CPU time of the process.
fn ran_ns(tasks: &Tasks) -> u64 {
    let (user, system) = tasks.cpu_time();
    user.saturating_add(system)
}

/// When a thread was in a place, and the time that this stands for.
struct Time {
    since_ns: u64,
    until_ns: u64,
    weight_ns: u64,
    count: u64,
    choices: u64,
}

fn looks_of<'k>(place: &'k Place, time: &Time, threads: &Threads) -> Looks<'k> {
    Looks {
        since_ns: time.since_ns,
        until_ns: time.until_ns,
        stack: place.stack,
        cause: place.cause.name(),
        detail: place.detail.as_deref(),
        weight_ns: time.weight_ns,
        count: time.count,
        choices: time.choices,
        logical: place.logical.clone(),
        owner: place.owner.map(|tid| threads.facts(tid)),
        owner_stack: place.owner_stack,
        failure: place.failure,
    }
}
