//! The threads that may be looked at, in two strata: those that have shown a sign of life lately,
//! and those that have not. Which stratum a thread is in depends on what was known before a tick,
//! and within a stratum each thread has the same chance: so sums stay unbiased while nearly all
//! looks go where something changes (stratified sampling: Cochran, "Sampling Techniques", chapter
//! 5; Horvitz and Thompson's estimator).
//!
//! Of those chosen, who has not run since its last look is where it was, which costs next to
//! nothing to find out. Of the others some are looked at, and stand for the rest of these: a second
//! choice at random within the first (two-phase sampling: Cochran, chapter 12). Who has run is
//! known before anybody is chosen to be looked at, so sums are unbiased, and have no error at all
//! where a thread waits.

use crate::members::Members;
use crate::random::Random;

/// Who has shown no sign of life for so long rests.
pub const QUIET_NS: u64 = 1_000_000_000;

/// A set of small numbers, each standing for a thread.
#[derive(Clone, Debug, Default)]
pub struct Strata {
    all: Members,
    active: Members,
    resting: Members,
    /// When each showed a sign of life last.
    alive_ns: Vec<u64>,
}

/// Those chosen for a tick.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Of how many.
    pub eligible: usize,
    /// Who.
    pub ids: Vec<u32>,
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

    /// Takes `id` in: a thread that begins is active, one that was there before rests until it
    /// shows otherwise. False if it was a member already.
    pub fn insert(&mut self, id: u32, begins_ns: Option<u64>) -> bool {
        if !self.all.insert(id) {
            return false;
        }
        match begins_ns {
            Some(now_ns) => self.lives(id, now_ns),
            None => {
                self.resting.insert(id);
            }
        }
        true
    }

    /// Lets `id` go; false if it was no member.
    pub fn remove(&mut self, id: u32) -> bool {
        self.active.remove(id);
        self.resting.remove(id);
        self.all.remove(id)
    }

    /// What a look, or asking, has found: a sign of life, or none.
    pub fn note(&mut self, id: u32, is_alive: bool, now_ns: u64) {
        if is_alive {
            self.lives(id, now_ns);
        } else {
            self.rests(id, now_ns);
        }
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
        self.resting.remove(id);
        self.active.insert(id);
    }

    /// It was asked, and has shown none: if that lasts, the thread rests from the next choice on.
    fn rests(&mut self, id: u32, now_ns: u64) {
        let alive_ns = self.alive_ns.get(id as usize).copied().unwrap_or(0);
        if now_ns.saturating_sub(alive_ns) >= QUIET_NS && self.active.remove(id) {
            self.resting.insert(id);
        }
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
    }

    /// Who was doing this when looked at was on a processor.
    const RUNNING: usize = 2;

    /// Asks so many of the active threads, and of those who rest, in each tick, and looks at so
    /// many of those that have run.
    fn sample(
        population: &mut impl Population,
        is_known: bool,
        (active, resting, looks): (usize, usize, usize),
        seed: u64,
    ) -> Told {
        let (mut strata, mut random) = (Strata::default(), Random::new(seed));
        let size = population.size();
        (0..size).for_each(|id| assert!(strata.insert(id, None)));
        let mut told = Told {
            looks: vec![0; size as usize],
            followed: vec![0; size as usize],
            last: vec![0; size as usize],
            ..Told::default()
        };
        let mut before = vec![0; size as usize];
        let mut seen = vec![false; size as usize];
        // Of nobody it is known at first where they are, or of all.
        let mut ran_since = vec![!is_known; size as usize];
        for tick in 0..TICKS {
            let now_ns = tick * TICK_NS;
            let mut states = Vec::new();
            for id in 0..size {
                let index = id as usize;
                let was_seen = std::mem::take(&mut seen[index]);
                let (state, ran) = population.state(id, tick, was_seen);
                // Nobody does anything else without running in between.
                ran_since[index] |= ran || state != before[index];
                before[index] = state;
                told.truth[state] += 1.0;
                states.push(state);
            }
            let chosen = [
                strata.choose_active(active, &mut random),
                strata.choose_resting(resting, &mut random),
            ];
            let mut sum = 0.0;
            for Chosen { eligible, ids } in chosen {
                let weight = eligible as f64 / ids.len().max(1) as f64;
                let mut moved = Vec::new();
                for id in ids {
                    let has_run = ran_since[id as usize];
                    strata.note(id, has_run, now_ns);
                    if has_run {
                        moved.push(id);
                    } else {
                        told.told[told.last[id as usize]] += weight;
                        told.followed[id as usize] += 1;
                        sum += weight;
                    }
                }
                let all = moved.len() as f64;
                let ids = choose_of(&mut moved, looks, &mut random);
                for id in ids {
                    let index = *id as usize;
                    let weight = weight * all / ids.len() as f64;
                    told.told[states[index]] += weight;
                    told.looks[index] += 1;
                    told.last[index] = states[index];
                    (seen[index], ran_since[index]) = (true, states[index] == RUNNING);
                    sum += weight;
                }
            }
            assert!((sum - f64::from(size)).abs() < 1e-6, "{sum}");
        }
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
    fn who_shows_no_sign_of_life_for_a_second_rests() {
        let mut strata = Strata::default();
        assert!(strata.insert(3, Some(0)) && !strata.insert(3, None));
        (4..8).for_each(|id| assert!(strata.insert(id, None)));
        assert_eq!((strata.len(), strata.active(), strata.resting()), (5, 1, 4));
        strata.rests(3, QUIET_NS - 1);
        assert_eq!(strata.active(), 1);
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
