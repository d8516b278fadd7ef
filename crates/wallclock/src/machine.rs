//! The state machine of all threads.

use crate::balance::Balance;
use crate::block_length::{Kind, Pace};
use crate::calendar::Calendar;
use crate::ended_run::{Run, held_ns};
use crate::fingerprint::{Fingerprint, mix};
use crate::grid::Tick;
use crate::hot::{Hot, NONE, RUNS};
use crate::labels::{Label, Labelled, Places, UNSAMPLED};
use crate::purse::Purse;
use crate::ready_reads::{Found, Here};
use dwell_wall::random::Random;
use std::collections::VecDeque;

/// Ticks without a change of place after which a thread is calm: about a second.
const CALM_TICKS: u16 = 50;
/// Ticks between two checks whether open runs are due.
const SWEEP_TICKS: u32 = 32;

/// A run that can be reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended<W> {
    /// The thread.
    pub id: u32,
    /// The class whose last sample shows the place; [`UNSAMPLED`] without a sample.
    pub class: u8,
    /// The run.
    pub run: Run<W>,
}

/// Data for changes of a thread's place.
#[derive(Clone, Debug)]
struct Cold<W> {
    places: Places<W>,
    /// The context that the thread works for.
    work: Option<W>,
    balance: Balance,
    found: Found,
    /// The class of the wait that it was last woken from, if it has not run since.
    woken: Option<u8>,
}

impl<W> Default for Cold<W> {
    fn default() -> Cold<W> {
        Cold {
            places: Places::default(),
            work: None,
            balance: Balance::default(),
            found: Found::default(),
            woken: None,
        }
    }
}

/// A read whose place a sample decides.
#[derive(Clone, Copy, Debug)]
struct Held {
    id: u32,
    weight_ns: u64,
    is_known: bool,
}

/// The state machine. `W`: the context that a thread works for.
#[derive(Clone, Debug)]
pub struct WallClock<W> {
    hot: Vec<Hot>,
    cold: Vec<Cold<W>>,
    calendar: Calendar,
    purse: Purse,
    pace: Pace,
    random: Random,
    tick: Tick,
    held: Option<Held>,
    /// Whether fingerprints are not usable, so that each read of a thread that has run needs a
    /// sample.
    samples_always: bool,
    /// Whether threads are read out of turn, so that time without reads is not accounted.
    reads_alone: bool,
    /// Threads that stay in a place that was never sampled.
    backlog: VecDeque<u32>,
    /// Numbers of lively and of calm threads.
    kinds: [usize; 2],
    here: Here,
    ended: Vec<Ended<W>>,
}

impl<W: Clone> WallClock<W> {
    /// A machine without threads. `purse`: the budget of samples.
    #[must_use]
    pub fn new(purse: Purse, random: Random) -> WallClock<W> {
        WallClock {
            hot: Vec::new(),
            cold: Vec::new(),
            calendar: Calendar::default(),
            purse,
            pace: Pace::default(),
            random,
            tick: Tick::default(),
            held: None,
            samples_always: false,
            reads_alone: false,
            backlog: VecDeque::new(),
            kinds: [0; 2],
            here: Here::default(),
            ended: Vec::new(),
        }
    }

    /// The budget of samples.
    pub fn purse(&mut self) -> &mut Purse {
        &mut self.purse
    }

    /// Samples each read of a thread that has run, regardless of its fingerprint.
    pub fn sample_always(&mut self) {
        self.samples_always = true;
    }

    /// The moment of the present tick, in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.tick.at_ns
    }

    /// Whether the place of a thread has not changed for a second.
    #[must_use]
    pub fn is_calm(&self, id: u32) -> bool {
        let hot = self.hot.get(id as usize);
        hot.is_some_and(|hot| hot.calm >= CALM_TICKS)
    }

    /// Whether the last read of a thread found it running.
    #[must_use]
    pub fn runs(&self, id: u32) -> bool {
        self.hot
            .get(id as usize)
            .is_some_and(|hot| hot.class == RUNS)
    }

    /// Numbers of lively and of calm threads, in this order.
    #[must_use]
    pub fn kinds(&self) -> [usize; 2] {
        self.kinds
    }

    /// Begins a tick that stands for `span_ns`. The caller reports threads that begin or end after
    /// this.
    pub fn begin_tick(&mut self, tick: Tick, span_ns: u64) {
        self.tick = tick;
        self.here = Here::default();
        self.purse.earn(span_ns);
        if tick.number.is_multiple_of(SWEEP_TICKS) {
            self.sweep();
        }
    }

    /// Adds a thread that begins or was found.
    pub fn begin(&mut self, id: u32) {
        let place = id as usize;
        if self.hot.len() <= place {
            self.hot.resize_with(place + 1, Hot::default);
            self.cold.resize_with(place + 1, Cold::default);
        }
        self.end(id);
        let before = self.tick.number.saturating_sub(1);
        let read_at = self.calendar.put(self.tick.number, id);
        if let (Some(hot), Some(cold)) = (self.hot.get_mut(place), self.cold.get_mut(place)) {
            *cold = Cold::default();
            *hot = Hot {
                is_live: true,
                accounted: before,
                block_end: read_at,
                read_at,
                ..Hot::default()
            };
            self.kinds[0] += 1;
        }
    }

    /// Removes a thread that ends.
    pub fn end(&mut self, id: u32) {
        let Some(hot) = self.hot.get(id as usize).filter(|hot| hot.is_live) else {
            return;
        };
        let kind = hot.kind();
        let (tick, is_whole) = (self.tick, !self.reads_alone);
        if let Some(hot) = self.hot.get_mut(id as usize) {
            // It ended during the last interval.
            hot.cut(&tick, tick.number.saturating_sub(1), 0, is_whole);
        }
        self.close(id);
        self.release(id);
        if let Some(hot) = self.hot.get_mut(id as usize) {
            *hot = Hot::default();
        }
        self.count_kind(kind, false);
    }

    fn count_kind(&mut self, kind: Kind, joins: bool) {
        let count = match kind {
            Kind::Lively => &mut self.kinds[0],
            Kind::Calm => &mut self.kinds[1],
        };
        *count = match joins {
            true => *count + 1,
            false => count.saturating_sub(1),
        };
    }

    /// The threads to read in this tick, from a random first one. If the budget does not allow all
    /// samples of new fingerprints, each has the same chance.
    pub fn due(&mut self) -> Vec<u32> {
        let mut ids = Vec::new();
        self.calendar.take(self.tick.number, &mut ids);
        let is_due = |(id, tick): &(u32, u32)| {
            let hot = self.hot.get_mut(*id as usize);
            let hot = hot.filter(|hot| hot.is_live && hot.read_at == *tick);
            // A thread that ended may have left an entry with its number.
            hot.map(|hot| hot.read_at = 0).is_some()
        };
        let mut ids: Vec<u32> = ids.into_iter().filter(is_due).map(|(id, _)| id).collect();
        let middle = self.random.below(ids.len() as u64) as usize;
        ids.rotate_left(middle);
        ids
    }

    /// The addresses that a read of the thread will access, for prefetching.
    #[must_use]
    pub fn addresses(&self, id: u32) -> [usize; 2] {
        let (hot, cold) = (self.hot.get(id as usize), self.cold.get(id as usize));
        [
            hot.map_or(0, |hot| std::ptr::from_ref(hot).addr()),
            cold.map_or(0, |cold| std::ptr::from_ref(cold).addr()),
        ]
    }

    /// The further addresses that a change of its place will access, if these are in the cache.
    #[must_use]
    pub fn addresses_of_place(&self, id: u32) -> [usize; 2] {
        let (hot, cold) = (self.hot.get(id as usize), self.cold.get(id as usize));
        match (hot, cold) {
            (Some(hot), Some(cold)) => cold.places.addresses(hot.class),
            _ => [0; 2],
        }
    }

    /// Whether a thread that has not run is still in the place of its last read. There must be such
    /// a read. If its claim may pass to another thread, `claim_holds` must return true.
    #[must_use]
    pub fn can_stay(&self, id: u32, claim_holds: impl FnOnce(u8) -> bool) -> bool {
        let hot = self.hot.get(id as usize);
        hot.is_some_and(|hot| hot.class != NONE && (!hot.has_claim || claim_holds(hot.class)))
    }

    /// Whether the last read found the thread in this class.
    #[must_use]
    pub fn is_in(&self, id: u32, class: u8) -> bool {
        self.hot
            .get(id as usize)
            .is_some_and(|hot| hot.class == class)
    }

    /// Whether a sample has shown the place of the last read.
    #[must_use]
    pub fn is_labelled(&self, id: u32) -> bool {
        self.hot.get(id as usize).is_some_and(|hot| hot.is_labelled)
    }

    /// Records that the thread has not run since its last read.
    pub fn stays(&mut self, id: u32) {
        // The thread waits, even if the last sample of its fingerprint found it running.
        if self.hot.get(id as usize).is_some_and(|hot| hot.shows_run) {
            self.unlabel(id);
        }
        let Some((weight_ns, ticks)) = self.next_block(id) else {
            return;
        };
        if self.runs(id) {
            self.stays_running(id, weight_ns);
            return;
        }
        let Some(hot) = self.hot.get_mut(id as usize) else {
            return;
        };
        if !hot.is_labelled && !hot.is_queued {
            hot.is_queued = true;
            self.backlog.push_back(id);
        }
        self.count(id, weight_ns, true);
        self.grow_calm(id, ticks);
    }

    /// Records a read of a thread that may have run since its last read; `has_run`: it has. `key`
    /// is a hash of `work`. `claim_holds` returns whether the claim of this class still has the
    /// owner of its last sample. Returns whether to sample the thread now. Then [`Self::label`] may
    /// follow and [`Self::settle`] must.
    pub fn read(
        &mut self,
        id: u32,
        fingerprint: Fingerprint,
        (key, work): (u64, impl FnOnce() -> W),
        has_run: bool,
        claim_holds: impl FnOnce(u8) -> bool,
    ) -> bool {
        let Some((weight_ns, ticks)) = self.next_block(id) else {
            return false;
        };
        if has_run {
            self.leave(id);
        }
        let word = mix(fingerprint.word(), key);
        let is_same = |hot: &Hot| hot.class != NONE && hot.word == word;
        let stays = self.hot.get(id as usize).is_some_and(is_same);
        if stays {
            self.grow_calm(id, ticks);
        } else {
            self.enter(id, fingerprint, (word, key), Some(work()));
        }
        let passes = |hot: &&Hot| hot.has_claim && has_run && !claim_holds(hot.class);
        if self.hot.get(id as usize).is_some_and(|hot| passes(&hot)) {
            self.unlabel(id);
        }
        let Some(hot) = self.hot.get_mut(id as usize) else {
            return false;
        };
        if fingerprint.runs() {
            self.add_running(id, weight_ns);
            return false;
        }
        let is_known = stays && !has_run;
        let is_labelled = hot.is_labelled;
        let chance = match is_labelled {
            false => 1.0,
            true if is_known => 0.0,
            true if self.samples_always => self.purse.fill().max(0.1),
            true => self.purse.fill() * self.level(id),
        };
        let can_pay = self.purse.can_pay(!is_labelled);
        if chance > 0.0 && can_pay && self.random.part() < chance {
            self.held = Some(Held {
                id,
                weight_ns,
                is_known,
            });
            return true;
        }
        self.count(id, weight_ns, is_known);
        false
    }

    /// The thread was woken from the wait that its last read found, if it found one.
    fn leave(&mut self, id: u32) {
        let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) else {
            return;
        };
        cold.woken = (hot.is_labelled && hot.waits()).then_some(hot.class);
        if let Some(class) = cold.woken {
            cold.found.leave(class, &mut self.random);
        }
    }

    /// Records a read of a thread that is ready and has not run since its last read: it still waits
    /// after a preemption, or was woken from its wait. Returns true for the former, where
    /// [`Self::preempted`] may follow.
    pub fn stays_ready(&mut self, id: u32) -> bool {
        let Some((weight_ns, ticks)) = self.next_block(id) else {
            return false;
        };
        if self.runs(id) {
            self.grow_calm(id, ticks);
        } else {
            self.leave(id);
            let woken = Fingerprint::woken();
            self.enter(id, woken, (woken.word(), 0), None);
        }
        self.stays_running(id, weight_ns);
        self.hot.get(id as usize).is_some_and(|hot| !hot.is_woken)
    }

    /// A read found the thread still running, or ready to.
    fn stays_running(&mut self, id: u32, weight_ns: u64) {
        self.add_running(id, weight_ns);
        if let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id)
            && hot.is_woken
        {
            cold.found.wake(cold.woken, &mut self.random);
        }
    }

    /// Records that the last read found a thread woken from a wait with this fingerprint. Returns
    /// whether to sample where it waited. Then [`Self::label`] may follow, with
    /// [`Fingerprint::after_wake_up`], and [`Self::wake`] must.
    pub fn woken_from(&mut self, id: u32, wait: Fingerprint) -> bool {
        let Some(cold) = self.cold.get(id as usize) else {
            return false;
        };
        let class = cold.places.left_wait(wait);
        let level = class.map_or(1.0, |class| self.purse.fill() * cold.places.level(class));
        let wants_sample = self.purse.can_pay(class.is_none()) && self.random.part() < level;
        if !wants_sample {
            self.wake(id, wait);
        }
        wants_sample
    }

    /// The same for a thread that the last read found running, and that is ready: in code of this
    /// fingerprint, or in code whose place only samples of CPU time show. `ready`: whether the
    /// caller may have just taken its processor from it, and how many reads this one stands for.
    pub fn preempted(&mut self, id: u32, place: Option<Fingerprint>, ready: (bool, u32)) -> bool {
        (self.here.is_here, self.here.reads) = ready;
        if let Some(place) = place {
            return self.woken_from(id, place);
        }
        self.preempt(id, Some(RUNS));
        false
    }

    /// Records where a thread is ready that was found so, if its place is known.
    pub fn wake(&mut self, id: u32, place: Fingerprint) {
        if let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) {
            let class = cold.places.left_wait(place);
            if hot.is_woken {
                cold.woken = class;
                cold.found.wake(class, &mut self.random);
            } else {
                self.preempt(id, class);
            }
        }
    }

    fn preempt(&mut self, id: u32, class: Option<u8>) {
        if let Some(read) = self.here.pass(id, class, &mut self.random)
            && let Some(cold) = self.cold.get_mut(read.id as usize)
        {
            cold.found.preempt(read, &mut self.random);
        }
    }

    /// A read found the thread running, or ready to.
    fn add_running(&mut self, id: u32, weight_ns: u64) {
        if let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) {
            hot.until_ns = self.tick.at_ns;
            cold.found.woken_reads += u32::from(hot.is_woken);
            *match hot.is_woken {
                true => &mut cold.found.woken_ns,
                false => &mut cold.found.running_ns,
            } += weight_ns;
        }
    }

    fn level(&self, id: u32) -> f64 {
        let (hot, cold) = (self.hot.get(id as usize), self.cold.get(id as usize));
        let (Some(hot), Some(cold)) = (hot, cold) else {
            return 0.0;
        };
        cold.places.level(hot.class)
    }

    /// Records that the thread has changed its place or its work.
    fn enter(
        &mut self,
        id: u32,
        fingerprint: Fingerprint,
        (word, key): (u64, u64),
        work: Option<W>,
    ) {
        self.close(id);
        let number = self.tick.number;
        let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) else {
            return;
        };
        cold.work = work;
        let kind = hot.kind();
        if fingerprint.runs() {
            hot.class = RUNS;
            (hot.is_labelled, hot.shows_run, hot.has_claim) = (true, false, false);
            hot.is_woken = fingerprint == Fingerprint::woken();
            hot.calm /= 2;
        } else {
            hot.class = cold.places.enter(fingerprint, number);
            let label = cold.places.label(hot.class);
            hot.set_label(label);
            let here = (hot.class, (key >> 56) as u8);
            if here != (hot.place, hot.key) {
                (hot.place, hot.key) = here;
                hot.calm = 0;
            }
        }
        let (rest, class) = (cold.places.take_rest(), UNSAMPLED);
        self.ended
            .extend(rest.into_iter().map(|run| Ended { id, class, run }));
        hot.word = word;
        hot.stage = 0;
        let now = hot.kind();
        if now != kind {
            self.count_kind(kind, false);
            self.count_kind(now, true);
        }
    }

    fn count(&mut self, id: u32, weight_ns: u64, is_known: bool) {
        let now_ns = self.tick.at_ns;
        let hot = self.hot.get(id as usize);
        if hot.is_some_and(|hot| hot.is_due(now_ns, held_ns(hot.stage))) {
            self.report(id);
        }
        if let Some(hot) = self.hot.get_mut(id as usize) {
            hot.add(weight_ns, is_known, &self.tick);
        }
    }

    fn grow_calm(&mut self, id: u32, ticks: u32) {
        let Some(hot) = self.hot.get_mut(id as usize) else {
            return;
        };
        let kind = hot.kind();
        hot.calm = hot.calm.saturating_add(ticks.min(CALM_TICKS.into()) as u16);
        let now = hot.kind();
        if now != kind {
            self.count_kind(kind, false);
            self.count_kind(now, true);
        }
    }

    /// The weight of a read, in ns and in ticks. Draws the tick of the next read.
    fn next_block(&mut self, id: u32) -> Option<(u64, u32)> {
        let hot = self.hot.get_mut(id as usize).filter(|hot| hot.is_live)?;
        let end = hot.block_end.max(self.tick.number);
        let ticks = end.saturating_sub(hot.accounted);
        hot.accounted = end;
        let length = self.pace.ticks(hot.calm);
        let read_at = end + 1 + self.random.below(u64::from(length)) as u32;
        hot.block_end = end + length;
        hot.read_at = self.calendar.put(read_at, id);
        Some((u64::from(ticks) * self.tick.interval_ns, ticks))
    }

    /// Announces a read out of turn that stands for `ticks` ticks. Earlier time without a read is
    /// not accounted.
    pub fn read_alone(&mut self, id: u32, ticks: u32) {
        self.reads_alone = true;
        let now = self.tick.number;
        let from = now.saturating_sub(ticks);
        let is_gap = match self.hot.get_mut(id as usize) {
            Some(hot) => {
                let is_gap = hot.accounted < from;
                hot.accounted = from;
                hot.block_end = now;
                is_gap
            }
            None => false,
        };
        if is_gap {
            self.close(id);
        }
    }

    /// Drops the result of the last sample of the present place, which is no longer valid.
    pub fn unlabel(&mut self, id: u32) {
        self.close(id);
        if let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) {
            cold.places.forget(hot.class);
            hot.set_label(None);
        }
    }

    /// Records the result of a sample of a thread with this fingerprint. The caller must take the
    /// runs that have ended before it reports the place.
    pub fn label(&mut self, id: u32, fingerprint: Fingerprint, label: Label) -> Labelled {
        let number = self.tick.number;
        let mut here = NONE;
        let is_open = self.cold.get_mut(id as usize).is_some_and(|cold| {
            here = cold.places.enter(fingerprint, number);
            let before = cold.places.label(here);
            let is_other = before.is_none_or(|it| it.place != label.place);
            // Its place is the result of the sample before.
            if is_other {
                cold.found.forget(here);
            }
            before.is_some() && (is_other || cold.places.is_uncertain(here))
        });
        // This sample also shows an open run without one, whose block may not be over.
        if is_open && self.is_in(id, here) {
            self.close(id);
        }
        let Some(cold) = self.cold.get_mut(id as usize) else {
            return Labelled {
                class: NONE,
                is_new: false,
            };
        };
        let labelled = cold.places.sampled(fingerprint, label, number);
        if let Some(hot) = self.hot.get_mut(id as usize)
            && hot.class == labelled.class
        {
            hot.set_label(Some(label));
        }
        labelled
    }

    /// Records that a sample found a thread running, although its fingerprint is that of a wait.
    /// Returns true if the fingerprint is that of a thread that is ready to run. The caller then
    /// labels it so.
    pub fn found_running(&mut self, id: u32, fingerprint: Fingerprint) -> bool {
        let number = self.tick.number;
        let cold = self.cold.get_mut(id as usize);
        cold.is_some_and(|cold| cold.places.found_running(fingerprint, number))
    }

    /// Drops the result of a sample that could not be reported. The place is sampled again.
    pub fn unreported(&mut self, id: u32, class: u8) {
        if let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) {
            cold.places.forget(class);
            if hot.class == class {
                hot.set_label(None);
            }
        }
    }

    /// Ends the sample of a thread, with or without a result; `class`: the class that it labelled.
    /// The caller pays its cost.
    pub fn settle(&mut self, id: u32, class: Option<u8>) {
        let debts = class.and_then(|class| {
            let cold = self.cold.get_mut(id as usize)?;
            let debts = cold.places.take_debts(class);
            if cold.places.shows_run(class) {
                let weight_ns = debts.iter().map(|debt| debt.weight_ns).sum();
                cold.balance.take_back(weight_ns);
                return None;
            }
            Some((class, debts))
        });
        if let Some((class, debts)) = debts {
            let ended = debts.into_iter().map(|run| Ended { id, class, run });
            self.ended.extend(ended);
        }
        if let Some(held) = self.held.take_if(|held| held.id == id) {
            self.count(id, held.weight_ns, held.is_known);
        }
    }

    /// Takes the kernel's account of a thread: how long it was neither on a processor nor ready for
    /// one since the last account. Called after the thread's read in this tick and its sample.
    pub fn account(&mut self, id: u32, off_ns: u64) {
        let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) else {
            return;
        };
        let (mut open_ns, mut loose_ns) = (0, 0);
        if hot.count > 0 && hot.waits() {
            // The last read also stands for the time from this moment to the end of its block.
            // In a late tick, it does not reach this moment.
            let ahead_ns = hot.block_end_ns(&self.tick) as i64 - self.tick.at_ns as i64;
            open_ns = hot.weight_ns as i64 - ahead_ns;
            loose_ns = hot.loose_ns();
        }
        cold.balance.account(off_ns, open_ns, loose_ns);
    }

    /// Takes the result of reads of a thread that could run, since the last call.
    pub fn take_found(&mut self, id: u32) -> Found {
        let cold = self.cold.get_mut(id as usize);
        cold.map_or_else(Found::default, |cold| std::mem::take(&mut cold.found))
    }

    /// A thread to sample that stays in a place without a sample, if the budget allows one.
    /// `is_first`: the first of this tick, which is always allowed.
    pub fn next_of_backlog(&mut self, is_first: bool) -> Option<u32> {
        while is_first || self.can_pay_backlog() {
            let id = self.backlog.pop_front()?;
            if let Some(hot) = self.hot.get_mut(id as usize).filter(|hot| hot.is_live) {
                hot.is_queued = false;
                if !hot.is_labelled {
                    return Some(id);
                }
            }
        }
        None
    }

    /// Keeps a reserve for threads that move: their places are visible for a shorter time.
    fn can_pay_backlog(&self) -> bool {
        const RESERVE: f64 = 0.1;
        self.purse.can_pay(true) && self.purse.fill() > RESERVE
    }

    /// Records the cost of this tick's census for `reads` reads. Sampling may take `share` of a
    /// processor.
    pub fn census_done(&mut self, reads: usize, cpu_ns: u64, share: f64) {
        self.pace.spent(reads, cpu_ns);
        let [lively, calm] = self.kinds;
        let fill = self.purse.fill();
        self.pace
            .steer((lively, calm), self.tick.interval_ns, share, fill);
    }

    /// Takes the runs that have ended, in order.
    pub fn take_ended(&mut self) -> Vec<Ended<W>> {
        std::mem::take(&mut self.ended)
    }

    /// Returns the memory of [`Self::take_ended`] for the next runs.
    pub fn reuse(&mut self, mut taken: Vec<Ended<W>>) {
        taken.clear();
        if self.ended.is_empty() {
            self.ended = taken;
        }
    }

    /// Reports a piece of the open run, which continues.
    fn report(&mut self, id: u32) {
        let Some(hot) = self.hot.get_mut(id as usize).filter(|hot| hot.is_labelled) else {
            return;
        };
        let stage = hot.stage.saturating_add(1);
        self.close(id);
        if let Some(hot) = self.hot.get_mut(id as usize) {
            hot.stage = stage;
        }
    }

    /// Ends the open run.
    fn close(&mut self, id: u32) {
        let Some((hot, cold)) = both(&mut self.hot, &mut self.cold, id) else {
            return;
        };
        let Some(work) = cold.work.clone().filter(|_| hot.count > 0) else {
            return;
        };
        let loose_ns = hot.loose_ns();
        let mut run = Run {
            work,
            since_ns: hot.since_ns,
            until_ns: hot.until_ns.min(self.tick.until_ns),
            count: std::mem::take(&mut hot.count),
            weight_ns: std::mem::take(&mut hot.weight_ns),
            square: f64::from(std::mem::take(&mut hot.square)),
        };
        if hot.waits() {
            run.weight_ns = cold.balance.report(run.weight_ns, loose_ns);
        }
        if run.weight_ns == 0 {
            return;
        }
        // Reads are at random moments of their ticks. No event may be longer than its weight.
        run.since_ns = run.since_ns.max(run.until_ns.saturating_sub(run.weight_ns));
        let class = hot.class;
        let ended = cold.places.end_run(class, run);
        self.ended.extend(ended.map(|run| Ended { id, class, run }));
    }

    /// Reports the debts of a thread that ends.
    fn release(&mut self, id: u32) {
        let Some(cold) = self.cold.get_mut(id as usize) else {
            return;
        };
        let debts = cold.places.take_all_debts().into_iter();
        let class = UNSAMPLED;
        self.ended.extend(debts.map(|run| Ended { id, class, run }));
    }

    fn sweep(&mut self) {
        let now_ns = self.tick.at_ns;
        for place in 0..self.hot.len() {
            let is_due = |hot: &Hot| hot.is_due(now_ns, held_ns(hot.stage));
            if self.hot.get(place).is_some_and(is_due) {
                self.report(place as u32);
            }
        }
    }

    /// Ends the recording in this tick, `early_ns` before the end of its interval. All runs are
    /// reported, and blocks end now.
    pub fn finish(&mut self, early_ns: u64) {
        let number = self.tick.number;
        for place in 0..self.hot.len() {
            let Some(hot) = self.hot.get_mut(place).filter(|hot| hot.is_live) else {
                continue;
            };
            hot.cut(&self.tick, number, early_ns, !self.reads_alone);
            self.close(place as u32);
            self.release(place as u32);
        }
    }
}

/// Both parts of the data of a thread.
fn both<'a, W>(
    hot: &'a mut [Hot],
    cold: &'a mut [Cold<W>],
    id: u32,
) -> Option<(&'a mut Hot, &'a mut Cold<W>)> {
    Some((hot.get_mut(id as usize)?, cold.get_mut(id as usize)?))
}

#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
