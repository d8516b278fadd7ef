//! The threads that may be looked at, in strata: those that have shown a sign of life lately, those
//! that have not, and those that nobody has looked at yet ([`Fresh`], which has strata of its own).
//! Which stratum a thread is in depends on what was known before a tick, and within a stratum each
//! thread has the same chance: so sums stay unbiased while nearly all looks go where something
//! changes (stratified sampling: Cochran, "Sampling Techniques", chapter 5; Horvitz and Thompson's
//! estimator).
//!
//! Of those chosen, who has not run since its last look is where it was, which costs next to
//! nothing to find out. Of the others some are looked at, and stand for the rest of these: a second
//! choice at random within the first (two-phase sampling: Cochran, chapter 12). Who has run is
//! known before anybody is chosen to be looked at, so sums are unbiased, and have no error at all
//! where a thread waits.

use crate::fresh::Fresh;
use crate::members::{Chosen, Members};
use crate::random::Random;

/// Who has shown no sign of life for so long rests.
pub const QUIET_NS: u64 = 1_000_000_000;
/// Who has shown none for so long after the first look rests: of thousands that begin at once, most
/// go on to do nothing.
pub const TRIAL_NS: u64 = 200_000_000;

/// A set of small numbers, each standing for a thread.
#[derive(Clone, Debug, Default)]
pub struct Strata {
    all: Members,
    active: Members,
    resting: Members,
    fresh: Fresh,
    /// Of the active ones, those that have shown no sign of life since their first look.
    trial: Members,
    /// When each showed a sign of life last.
    alive_ns: Vec<u64>,
    /// Whether nobody becomes one of those who rest now.
    holds: bool,
}

impl Strata {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Of these, those that have shown a sign of life lately.
    #[must_use]
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Of these, those that have not.
    #[must_use]
    pub fn resting(&self) -> usize {
        self.resting.len()
    }

    /// Whether `id` is one of them.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.all.contains(id)
    }

    /// Of the active ones, how many have shown no sign of life since their first look.
    #[must_use]
    pub fn on_trial(&self) -> usize {
        self.trial.len()
    }

    /// Those that nobody has looked at yet.
    #[must_use]
    pub fn fresh(&self) -> &Fresh {
        &self.fresh
    }

    /// The same, to choose of them.
    pub fn fresh_mut(&mut self) -> &mut Fresh {
        &mut self.fresh
    }

    /// Takes `id` in, a thread that begins or that was there before. False if it was a member
    /// already.
    pub fn insert(&mut self, id: u32, begins: bool) -> bool {
        if !self.all.insert(id) {
            return false;
        }
        self.fresh.insert(id, begins);
        true
    }

    /// Lets `id` go; false if it was no member.
    pub fn remove(&mut self, id: u32) -> bool {
        self.active.remove(id);
        self.resting.remove(id);
        self.trial.remove(id);
        self.fresh.remove(id);
        self.all.remove(id)
    }

    /// What a look, or asking, has found: a sign of life, or none.
    pub fn note(&mut self, id: u32, is_alive: bool, now_ns: u64) {
        let is_first = self.fresh.remove(id);
        if is_first && !is_alive {
            self.lives(id, now_ns.saturating_sub(QUIET_NS - TRIAL_NS));
            self.trial.insert(id);
        } else if is_alive {
            self.lives(id, now_ns);
        } else {
            self.rests(id, now_ns);
        }
    }

    /// Whether active threads may become ones that rest from now on. Where these are not asked in
    /// each tick, one in which they are stands for those before it, so nobody joins them between.
    pub fn let_rest(&mut self, may: bool) {
        self.holds = !may;
    }

    /// A sign of life: from the next choice on the thread is active.
    fn lives(&mut self, id: u32, now_ns: u64) {
        if !self.all.contains(id) {
            return;
        }
        let index = id as usize;
        if self.alive_ns.len() <= index {
            self.alive_ns.resize(index + 1, 0);
        }
        if let Some(alive_ns) = self.alive_ns.get_mut(index) {
            *alive_ns = now_ns;
        }
        self.trial.remove(id);
        self.resting.remove(id);
        self.active.insert(id);
    }

    /// It was asked, and has shown none: if that lasts, the thread rests from the next choice on.
    fn rests(&mut self, id: u32, now_ns: u64) {
        let alive_ns = self.alive_ns.get(id as usize).copied().unwrap_or(0);
        let is_quiet = now_ns.saturating_sub(alive_ns) >= QUIET_NS;
        if is_quiet && !self.holds && self.active.remove(id) {
            self.trial.remove(id);
            self.resting.insert(id);
        }
    }

    /// Whether `id` is one of those who rest.
    #[must_use]
    pub fn rests_now(&self, id: u32) -> bool {
        self.resting.contains(id)
    }

    /// One of those who rest is not chosen of them any more, until it shows a sign of life.
    pub fn set_apart(&mut self, id: u32) {
        self.resting.remove(id);
    }

    /// As if it had been looked at long ago.
    #[cfg(test)]
    pub(crate) fn rest_at_once(&mut self, id: u32) {
        self.fresh.remove(id);
        self.resting.insert(id);
    }

    /// Chooses so many of all, or all if there are fewer.
    pub fn choose_of_all(&mut self, count: usize, random: &mut Random) -> &[u32] {
        self.all.choose(count, random)
    }

    /// Chooses so many of the active ones, or all of them.
    pub fn choose_active(&mut self, count: usize, random: &mut Random) -> Chosen {
        choose(&mut self.active, count, random)
    }

    /// Chooses so many of those who rest, or all of them.
    pub fn choose_resting(&mut self, count: usize, random: &mut Random) -> Chosen {
        choose(&mut self.resting, count, random)
    }
}

/// How a given number of looks is split: a quarter is for those who rest, and what one stratum does
/// not need is the other's. Nobody is left without any look.
#[must_use]
pub fn split(looked: usize, active: usize, resting: usize) -> (usize, usize) {
    let least = |of: usize, count: usize| count.max(1).min(of);
    let for_resting = least(resting, looked / 4);
    let for_active = least(active, looked.saturating_sub(for_resting));
    let left = looked.saturating_sub(for_active);
    (for_active, for_resting.max(left.min(resting)))
}

fn choose(of: &mut Members, count: usize, random: &mut Random) -> Chosen {
    Chosen {
        eligible: of.len(),
        ids: of.choose(count, random).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::choose_of;
    use crate::roll_call::{Owed, RollCall};

    const TICK_NS: u64 = 20_000_000;
    const TICKS: u64 = 500;

    /// A population, tick by tick: what a thread does, and whether it has run since the tick
    /// before. Both may depend on whether it was looked at then: the worst there is.
    trait Population {
        fn size(&self) -> u32;
        fn state(&mut self, id: u32, tick: u64, was_seen: bool) -> (usize, bool);
    }

    /// What threads did and what looks told, in ticks of threads, by state.
    #[derive(Debug, Default)]
    struct Told {
        truth: [f64; 3],
        told: [f64; 3],
        /// Looks at each thread, and ticks in which it was known to be where it was.
        looks: Vec<u64>,
        followed: Vec<u64>,
        /// What the last look at each saw.
        last: Vec<usize>,
        /// What each does in this tick, whether it has run since the last one, and since its last
        /// look; and who was looked at in the last tick.
        states: Vec<usize>,
        runs: Vec<bool>,
        ran_since: Vec<bool>,
        seen: Vec<bool>,
        /// How often each has run.
        turns: Vec<u32>,
    }

    impl Told {
        /// Of nobody it is known at first where they are, or of all.
        fn new(size: usize, is_known: bool) -> Told {
            Told {
                looks: vec![0; size],
                followed: vec![0; size],
                last: vec![0; size],
                states: vec![0; size],
                runs: vec![false; size],
                ran_since: vec![!is_known; size],
                seen: vec![false; size],
                turns: vec![0; size],
                ..Told::default()
            }
        }

        /// All do what they do in this tick.
        fn step(&mut self, population: &mut impl Population, tick: u64) {
            for (index, now) in self.states.iter_mut().enumerate() {
                let was_seen = std::mem::take(&mut self.seen[index]);
                let (state, ran) = population.state(index as u32, tick, was_seen);
                self.runs[index] = ran;
                // Nobody does anything else without running in between.
                let has_run = ran || state != *now;
                self.ran_since[index] |= has_run;
                self.turns[index] += u32::from(has_run);
                *now = state;
                self.truth[state] += 1.0;
            }
        }

        /// What is owed of a thread that is asked in one go with others.
        fn owed(&mut self, id: u32, owed: Owed) -> f64 {
            let ticks = owed.span_ns as f64 / TICK_NS as f64;
            self.told[self.last[id as usize]] += ticks;
            self.followed[id as usize] += ticks as u64;
            ticks
        }

        /// A look at a thread, which stands for so many; whether it runs.
        fn look(&mut self, id: u32, weight: f64) -> bool {
            let index = id as usize;
            let state = self.states[index];
            self.told[state] += weight;
            self.looks[index] += 1;
            self.last[index] = state;
            (self.seen[index], self.ran_since[index]) = (true, state == RUNNING);
            state == RUNNING
        }
    }

    /// Who was doing this when looked at was on a processor.
    const RUNNING: usize = 2;

    /// Whom to look at of those at whom nobody has looked, and what each stands for. Of the old
    /// ones some are asked first: those who have run are looked at in whole.
    fn first_looks(
        strata: &mut Strata,
        runs: &[bool],
        looks: usize,
        random: &mut Random,
    ) -> Vec<(f64, Vec<u32>)> {
        let mut first: Vec<(f64, Vec<u32>)> = Vec::new();
        for of in strata.fresh_mut().choose_young(looks, random) {
            first.push((of.eligible as f64 / of.ids.len() as f64, of.ids));
        }
        let old = strata.fresh_mut().choose_old(2 * looks, random);
        let weight = old.eligible as f64 / old.ids.len().max(1) as f64;
        let has_run = |id: &u32| runs[*id as usize];
        let (ran, mut still): (Vec<u32>, Vec<u32>) = old.ids.into_iter().partition(has_run);
        let looked = choose_of(&mut still, looks, random).to_vec();
        let factor = still.len() as f64 / looked.len().max(1) as f64;
        first.extend([(weight, ran), (weight * factor, looked)]);
        first
    }

    /// Looks at so many of those who have run of those who are asked in one go, in some ticks and
    /// in the last one. For how many ticks of threads that stands.
    fn pass(
        (strata, roll_call): (&mut Strata, &mut RollCall<u32>),
        told: &mut Told,
        tick: u64,
        looks: usize,
        random: &mut Random,
    ) -> f64 {
        let ticks = roll_call.wait(TICK_NS) as f64 / TICK_NS as f64;
        if random.below(2) == 0 && tick + 1 < TICKS {
            return 0.0;
        }
        let found = roll_call.pass(
            tick * TICK_NS,
            |_, _| (),
            |id| Some(told.turns[id as usize]),
        );
        let mut sum = 0.0;
        let mut moved = Vec::new();
        for (id, owed) in found.ran {
            sum += owed.map_or(0.0, |owed| told.owed(id, owed));
            strata.note(id, true, tick * TICK_NS);
            moved.push(id);
        }
        for (id, owed) in found.due {
            sum += told.owed(id, owed);
        }
        let all = moved.len() as f64;
        let ids = choose_of(&mut moved, looks, random);
        for id in ids {
            let weight = ticks * all / ids.len() as f64;
            told.look(*id, weight);
            sum += weight;
        }
        sum
    }

    /// Asks so many of the active threads, and of those who rest, in each tick, and looks at so
    /// many of those that have run, and of those that nobody has looked at yet.
    fn sample(
        population: &mut impl Population,
        is_known: bool,
        (active, resting, looks): (usize, usize, usize),
        seed: u64,
    ) -> Told {
        let (mut strata, mut random) = (Strata::default(), Random::new(seed));
        let size = population.size();
        (0..size).for_each(|id| assert!(strata.insert(id, id % 2 == 0)));
        if is_known {
            (0..size).for_each(|id| strata.rest_at_once(id));
        }
        let mut told = Told::new(size as usize, is_known);
        let (mut roll_call, mut sum) = (RollCall::default(), 0.0);
        for tick in 0..TICKS {
            let now_ns = tick * TICK_NS;
            told.step(population, tick);
            strata.fresh_mut().turn();
            for id in strata.fresh().to_ask() {
                if told.runs[id as usize] {
                    strata.note(id, true, now_ns);
                }
            }
            let chosen = [
                strata.choose_active(active, &mut random),
                strata.choose_resting(resting, &mut random),
            ];
            let first = first_looks(&mut strata, &told.runs, looks, &mut random);
            let all = (&mut strata, &mut roll_call);
            sum += pass(all, &mut told, tick, looks, &mut random);
            for (weight, ids) in first {
                for id in ids {
                    let runs = told.look(id, weight);
                    strata.note(id, runs, now_ns);
                    sum += weight;
                }
            }
            for (rest, Chosen { eligible, ids }) in chosen.into_iter().enumerate() {
                let weight = eligible as f64 / ids.len().max(1) as f64;
                let mut moved = Vec::new();
                for id in ids {
                    let has_run = told.ran_since[id as usize];
                    strata.note(id, has_run, now_ns);
                    if has_run {
                        moved.push(id);
                    } else {
                        told.told[told.last[id as usize]] += weight;
                        told.followed[id as usize] += 1;
                        sum += weight;
                        if rest == 1 && roll_call.join(id, told.turns[id as usize]) {
                            strata.set_apart(id);
                        }
                    }
                }
                let all = moved.len() as f64;
                let ids = choose_of(&mut moved, looks, &mut random);
                for id in ids {
                    let weight = weight * all / ids.len() as f64;
                    told.look(*id, weight);
                    sum += weight;
                }
            }
        }
        for (id, owed) in roll_call.take_all() {
            sum += told.owed(id, owed);
        }
        let truth = TICKS as f64 * f64::from(size);
        assert!((sum / truth - 1.0).abs() < 1e-9, "{sum} {truth}");
        told
    }

    /// The sums of many runs against the truth of each: the mean of the differences within five of
    /// its standard errors, which are those of the runs themselves (seeds are fixed).
    fn assert_unbiased(make: impl Fn(u64) -> Box<dyn FnMut(u32, u64, bool) -> (usize, bool)>) {
        const RUNS: u64 = 300;
        let mut off: [Vec<f64>; 3] = Default::default();
        for seed in 0..RUNS {
            let mut population = Made(60, make(seed));
            let told = sample(&mut population, false, (9, 7, 3), seed);
            for (state, off) in off.iter_mut().enumerate() {
                off.push(told.told[state] - told.truth[state]);
            }
        }
        for (state, off) in off.iter().enumerate() {
            let mean = off.iter().sum::<f64>() / RUNS as f64;
            let variance = off.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (RUNS - 1) as f64;
            let error = (variance / RUNS as f64).sqrt();
            assert!(
                mean.abs() <= 5.0 * error + 1e-6,
                "state {state}: {mean} +- {error}"
            );
        }
    }

    struct Made<F>(u32, F);

    impl<F: FnMut(u32, u64, bool) -> (usize, bool)> Population for Made<F> {
        fn size(&self) -> u32 {
            self.0
        }

        fn state(&mut self, id: u32, tick: u64, was_seen: bool) -> (usize, bool) {
            (self.1)(id, tick, was_seen)
        }
    }

    #[test]
    fn whatever_threads_do_sums_are_unbiased() {
        // Threads that run whenever they were not just looked at, and wait when they were.
        assert_unbiased(|_| Box::new(|id, _, seen| ((id % 2) as usize + usize::from(seen), !seen)));
        // The other way round: they begin to run when they are looked at, and change then.
        assert_unbiased(|_| {
            let mut rest = vec![0u32; 60];
            Box::new(move |id, _, seen| {
                let rest = &mut rest[id as usize];
                *rest = if seen { 5 } else { rest.saturating_sub(1) };
                (usize::from(*rest > 0), *rest > 0)
            })
        });
        // Bursts after rests that are as long as it takes to be taken for one who rests.
        assert_unbiased(|seed| {
            Box::new(move |id, tick, _| {
                let phase = (tick + 7 * u64::from(id) + seed) % 61;
                (
                    usize::from(phase >= 51) + usize::from(phase == 60),
                    phase >= 51,
                )
            })
        });
        // Waits shorter than a tick beside ones that last: nobody's are favoured.
        assert_unbiased(|seed| {
            let mut random = Random::new(1000 + seed);
            Box::new(move |id, tick, _| match id % 3 {
                0 => (random.below(3) as usize, true),
                1 => ((random.below(9) / 8) as usize, true),
                _ => (((tick + seed) / 40 % 2) as usize, (tick + seed) % 40 == 0),
            })
        });
        // Long waits of some, short ones of others, of two ticks to two seconds.
        assert_unbiased(|seed| {
            Box::new(move |id, tick, _| {
                let length = 2 + u64::from(id) % 7 * 16;
                let at = tick + 31 * seed + u64::from(id);
                (((at / length) % 3) as usize, at % length == 0)
            })
        });
    }

    #[test]
    fn those_who_work_are_looked_at_in_each_tick_however_many_rest() {
        for resting in [50, 500, 2000, 10_000] {
            let work = |id, tick, _| ((tick % 3) as usize * usize::from(id < 5), id < 5);
            let told = sample(&mut Made(resting, work), true, (16, 400, 16), 1);
            // Each is asked with a chance of 400 in so many; it takes longer once in 10^6 times.
            let asked = (400.0 / f64::from(resting)).min(1.0);
            let first = (5e6f64.ln() / -(1.0 - asked).max(1e-9).ln()).ceil() as u64 + 1;
            assert!(
                told.looks[..5].iter().all(|looks| *looks >= TICKS - first),
                "{resting}: {:?}",
                &told.looks[..5]
            );
            // And of the others nobody.
            assert!(told.looks[5..].iter().all(|looks| *looks == 0));
            let followed: u64 = told.followed[5..].iter().sum();
            assert!(followed >= TICKS * 50 / 2);
        }
    }

    #[test]
    fn a_given_number_is_split_without_leaving_anybody_out() {
        assert_eq!(split(16, 100, 1000), (12, 4));
        assert_eq!(split(16, 5, 1000), (5, 11));
        assert_eq!(split(16, 100, 2), (14, 2));
        assert_eq!(split(16, 3, 4), (3, 4));
        assert_eq!(split(16, 0, 100), (0, 16));
        assert_eq!(split(1, 7, 7), (1, 1));
    }

    #[test]
    fn who_was_looked_at_once_is_on_trial_for_a_short_while() {
        let mut strata = Strata::default();
        assert!(strata.insert(1, true) && strata.insert(2, false) && strata.insert(3, true));
        assert_eq!(
            (strata.fresh().len(), strata.active(), strata.resting()),
            (3, 0, 0)
        );
        let now_ns = 5 * QUIET_NS;
        (1..3).for_each(|id| strata.note(id, false, now_ns));
        // One that ran when it was looked at is no doubtful case.
        strata.note(3, true, now_ns);
        assert_eq!(
            (strata.fresh().len(), strata.active(), strata.on_trial()),
            (0, 3, 2)
        );
        (1..4).for_each(|id| strata.note(id, false, now_ns + TRIAL_NS - 1));
        strata.note(2, true, now_ns + TRIAL_NS - 1);
        assert_eq!((strata.active(), strata.on_trial()), (3, 1));
        (1..4).for_each(|id| strata.note(id, false, now_ns + TRIAL_NS));
        assert_eq!(
            (strata.active(), strata.on_trial(), strata.resting()),
            (2, 0, 1)
        );
        assert!(strata.insert(4, true) && strata.remove(4) && !strata.remove(4));
        assert_eq!((strata.len(), strata.fresh().len()), (3, 0));
    }

    #[test]
    fn who_shows_no_sign_of_life_for_a_second_rests() {
        let mut strata = Strata::default();
        assert!(strata.insert(3, true) && !strata.insert(3, false));
        strata.note(3, true, 0);
        (4..8).for_each(|id| assert!(strata.insert(id, false)));
        (4..8).for_each(|id| strata.rest_at_once(id));
        assert_eq!((strata.len(), strata.active(), strata.resting()), (5, 1, 4));
        strata.rests(3, QUIET_NS - 1);
        assert_eq!(strata.active(), 1);
        strata.let_rest(false);
        strata.rests(3, QUIET_NS);
        assert_eq!(strata.active(), 1);
        strata.let_rest(true);
        strata.rests(3, QUIET_NS);
        assert_eq!((strata.active(), strata.resting()), (0, 5));
        assert!(strata.remove(7));
        strata.lives(5, 0);
        // Somebody who is gone shows no sign of life any more.
        strata.lives(7, 0);
        strata.rests(7, QUIET_NS);
        assert_eq!((strata.len(), strata.active(), strata.resting()), (4, 1, 3));
        assert!(!strata.remove(7) && strata.contains(5) && !strata.is_empty());
        let mut random = Random::new(1);
        assert_eq!(strata.choose_of_all(9, &mut random).len(), 4);
        let resting = strata.choose_resting(2, &mut random);
        assert_eq!((resting.eligible, resting.ids.len()), (3, 2));
    }
}
