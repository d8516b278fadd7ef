//! Wall time: each tick reads some Java threads, all with the same probability. A thread that has
//! not run since its last sample still has the same stack and is not read again. Virtual threads
//! without a carrier are read as well, from the same budget.

use super::chunk::{Chunk, Looks};
use super::cpu_ns;
use super::mounted::{self, Virtual};
use super::owners::Owners;
use super::threads::{Facts, Threads};
use super::unmounted::{Found, Unmounted};
use crate::clock::now_ns;
use crate::dump::for_cause;
use crate::look::{Looker, Seen};
use crate::names::Namer;
use crate::task::Tasks;
use crate::virtuals::Virtuals;
use dwell_host::Whose;
use dwell_host::cgroup::Group;
use dwell_host::throttled::Throttled;
use dwell_jfr::writer::{Event, StackId};
use dwell_walker::Failure;
use dwell_wall::budget::Budget;
use dwell_wall::cause::{self, Cause, Facts as CauseFacts, Known as Waits};
use dwell_wall::proc::Schedule;
use dwell_wall::random::Random;
use dwell_wall::spread::Spread;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// The innermost frames show the cause of a wait.
const CAUSE_FRAMES_MAX: usize = 64;
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

/// The stack and cause of a waiting thread, with its samples that are not written yet.
struct Kept {
    stack: StackId,
    cause: Cause,
    detail: Option<String>,
    owner: Option<i32>,
    owner_stack: StackId,
    logical: Option<Virtual>,
    failure: Option<&'static str>,
    since_ns: u64,
    until_ns: u64,
    weight_ns: u64,
    count: u64,
}

/// The state kept for a thread.
#[derive(Default)]
struct Known {
    schedule: Option<Schedule>,
    kept: Option<Kept>,
}

/// The time that a thread was ready before it ran.
struct Ready {
    who: Facts,
    at_ns: u64,
    waited_ns: u64,
}

/// Takes the wall-clock samples of a recording.
pub struct Wall {
    interval: Duration,
    next: Instant,
    /// Ticks from the last sampling to the next one.
    wait: u64,
    /// Part of a processor that samples may take.
    share: f64,
    budget: Budget,
    unmounted: Option<Unmounted>,
    known: FxHashMap<i32, Known>,
    random: Random,
    waits: Waits,
    owners: Owners,
    /// Waits for a processor since the last flush, whose cause is decided at the next flush.
    ready: Vec<Ready>,
    throttled: Throttled,
}

impl Wall {
    /// Samples threads of a process at this interval; this may take `budget` percent of a
    /// processor.
    #[must_use]
    pub fn new(interval: Duration, budget: f64, tasks: &Tasks) -> Wall {
        Wall {
            interval,
            next: Instant::now() + interval,
            wait: 1,
            share: budget / 100.0,
            budget: Budget::of_share(budget / 100.0),
            unmounted: None,
            known: FxHashMap::default(),
            random: Random::new(now_ns()),
            waits: Waits::new(&dwell_jdk::WAITS),
            owners: Owners::default(),
            ready: Vec::new(),
            throttled: {
                let whose = Whose::Of(tasks.pid);
                Throttled::begin(whose, Group::of(whose), now_ns(), || ran_ns(tasks))
            },
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
                self.budget.set_share(half);
            }
        }
    }

    /// Time of the next tick.
    #[must_use]
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Samples threads if a tick is due; returns the number of samples. The weight includes missed
    /// ticks.
    pub fn tick(&mut self, mut context: Context<'_, '_, '_>) -> u64 {
        let now = Instant::now();
        if now < self.next {
            return 0;
        }
        let interval_ns = self.interval.as_nanos().max(1) as u64;
        // The grid of ticks does not shift; missed ticks are included in the weight.
        let late = now.duration_since(self.next).as_nanos() as u64 / interval_ns;
        let passed = self.wait + late;
        let began_ns = cpu_ns();
        let live = context.threads.java().len();
        let count = self.budget.count(live) as u64;
        let (live, span_ns) = (live as u64, passed * interval_ns);
        let weight_ns = match count {
            0 => 0,
            count => (u128::from(span_ns) * u128::from(live) / u128::from(count)) as u64,
        };
        let chosen: Vec<u64> = Spread::new(live, count, &mut self.random).collect();
        let mut failed = 0;
        for place in chosen {
            let tid = usize::try_from(place).ok();
            let tid = tid.and_then(|place| context.threads.java().get(place));
            if let Some(tid) = tid
                && !self.look(*tid, weight_ns, &mut context)
            {
                failed += 1;
            }
        }
        let looked_ns = cpu_ns().saturating_sub(began_ns);
        self.budget.spent(count as usize, span_ns, looked_ns);
        let found = self.look_unmounted((passed, span_ns), &mut context);
        let cpu_ns = cpu_ns().saturating_sub(began_ns);
        context.chunk.event(&Event::WallTick {
            ticks: now_ns(),
            span_ns,
            ticks_passed: passed,
            live,
            eligible: live,
            sampled: count,
            failed,
            cpu_ns,
            unmounted: found.estimated.round() as u64,
            unmounted_sampled: found.looked,
            unmounted_failed: found.failed,
            followed: 0,
            by_page: 0,
            by_fingerprint: 0,
        });
        // If the budget is too small for one sample per tick, ticks are skipped.
        self.wait = self.budget.ticks();
        self.next += self.interval * u32::try_from(late + self.wait).unwrap_or(u32::MAX);
        count + found.looked
    }

    /// Samples virtual threads without a carrier, if it is time.
    fn look_unmounted(
        &mut self,
        (ticks, span_ns): (u64, u64),
        context: &mut Context<'_, '_, '_>,
    ) -> Found {
        let Some(mut unmounted) = self.unmounted.take() else {
            return Found::default();
        };
        let mut found = Found::default();
        if unmounted.is_due(ticks, span_ns) {
            let (began_ns, mut all) = (cpu_ns(), Vec::new());
            found = unmounted.look(context.looker, &mut self.random, |it| all.push(it));
            for it in all {
                let mut kept = self.kept(&it.seen, &it.pages, (now_ns(), it.weight_ns), context);
                kept.logical = Some(it.whom);
                let looks = looks_of(&kept, context.threads);
                context.chunk.looks(None, looks);
            }
            unmounted.spent(&found, cpu_ns().saturating_sub(began_ns));
        }
        self.unmounted = Some(unmounted);
        found
    }

    /// Samples one thread; false if it has exited.
    fn look(&mut self, tid: i32, weight_ns: u64, context: &mut Context<'_, '_, '_>) -> bool {
        let now_ns = now_ns();
        let Some(schedule) = context.looker.tasks.schedule(tid) else {
            self.end(tid, context);
            return false;
        };
        let known = self.known.entry(tid).or_default();
        let before = known.schedule.replace(schedule);
        // The owner of the awaited object may change, or run, while the thread waits.
        if before == Some(schedule)
            && let Some(kept) = known.kept.as_mut().filter(|kept| kept.owner.is_none())
        {
            (kept.until_ns, kept.count) = (now_ns, kept.count + 1);
            kept.weight_ns += weight_ns;
            return true;
        }
        // The kernel has the exact time that the thread waited for a processor since its last
        // sample.
        let waited_ns = before.map_or(0, |before| {
            schedule.waited_ns.saturating_sub(before.waited_ns)
        });
        if let Some(kept) = known.kept.take() {
            tell(tid, kept, context);
        }
        if waited_ns > 0 {
            self.ready.push(Ready {
                who: context.threads.facts(tid),
                at_ns: now_ns,
                waited_ns,
            });
        }
        let whom = context.threads.whom(tid);
        let Some((seen, pages)) = context.looker.look(whom) else {
            self.end(tid, context);
            return false;
        };
        // CPU samples represent running threads.
        if seen.is_ready || seen.is_blurred {
            return true;
        }
        let kept = self.kept(&seen, &pages, (now_ns, weight_ns), context);
        if let Some(known) = self.known.get_mut(&tid) {
            // The thread may have run between the two reads; the next sample must notice that.
            known.schedule = context
                .looker
                .tasks
                .schedule(tid)
                .filter(|now| *now == schedule);
            known.kept = Some(kept);
        }
        true
    }

    fn kept(
        &mut self,
        seen: &Seen,
        pages: &crate::memory::Pages<'_>,
        (now_ns, weight_ns): (u64, u64),
        context: &mut Context<'_, '_, '_>,
    ) -> Kept {
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
        Kept {
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
            since_ns: now_ns,
            until_ns: now_ns,
            weight_ns,
            count: 1,
        }
    }

    fn end(&mut self, tid: i32, context: &mut Context<'_, '_, '_>) {
        let known = self.known.remove(&tid);
        if let Some(kept) = known.and_then(|known| known.kept) {
            tell(tid, kept, context);
        }
    }

    /// Writes the samples so far. Threads that wait keep their stacks.
    pub fn flush(&mut self, threads: &Threads, tasks: &Tasks, chunk: &mut Chunk) {
        self.owners.forget();
        self.write_ready(tasks, chunk);
        for (tid, known) in &mut self.known {
            let Some(kept) = &mut known.kept else {
                continue;
            };
            if kept.count > 0 {
                write(*tid, kept, threads, chunk);
                (kept.since_ns, kept.weight_ns, kept.count) = (kept.until_ns, 0, 0);
            }
        }
        // Drops threads that have exited.
        self.known.retain(|tid, _| threads.java().contains(tid));
    }

    /// Writes waits for a processor, or for the control group's next period.
    fn write_ready(&mut self, tasks: &Tasks, chunk: &mut Chunk) {
        let waited_ns = self.ready.iter().map(|ready| ready.waited_ns).sum();
        self.throttled.look(waited_ns, now_ns(), || ran_ns(tasks));
        for ready in self.ready.drain(..) {
            let cause = match self.throttled.is_next() {
                true => Cause::Throttled,
                false => Cause::Runnable,
            };
            let looks = Looks {
                since_ns: ready.at_ns,
                until_ns: ready.at_ns,
                stack: StackId::NONE,
                cause: cause.name(),
                detail: None,
                weight_ns: ready.waited_ns,
                count: 1,
                logical: None,
                owner: None,
                owner_stack: StackId::NONE,
                failure: None,
            };
            chunk.looks(Some(ready.who), looks);
        }
    }

    /// Stacks belong to a chunk, so they are found again after its end.
    pub fn forget_stacks(&mut self) {
        self.owners.forget();
        for known in self.known.values_mut() {
            *known = Known {
                schedule: known.schedule,
                kept: None,
            };
        }
    }
}

/// CPU time of the process.
fn ran_ns(tasks: &Tasks) -> u64 {
    let (user, system) = tasks.cpu_time();
    user.saturating_add(system)
}

fn tell(tid: i32, kept: Kept, context: &mut Context<'_, '_, '_>) {
    if kept.count > 0 {
        write(tid, &kept, context.threads, context.chunk);
    }
}

fn write(tid: i32, kept: &Kept, threads: &Threads, chunk: &mut Chunk) {
    chunk.looks(Some(threads.facts(tid)), looks_of(kept, threads));
}

fn looks_of<'k>(kept: &'k Kept, threads: &Threads) -> Looks<'k> {
    Looks {
        since_ns: kept.since_ns,
        until_ns: kept.until_ns,
        stack: kept.stack,
        cause: kept.cause.name(),
        detail: kept.detail.as_deref(),
        weight_ns: kept.weight_ns,
        count: kept.count,
        logical: kept.logical.clone(),
        owner: kept.owner.map(|owner| threads.facts(owner)),
        owner_stack: kept.owner_stack,
        failure: kept.failure,
    }
}
