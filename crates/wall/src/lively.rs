//! Logical threads that have shown a sign of life lately: a stratum of their own.
//!
//! Of thousands of threads without a platform thread few do anything, and uniform looks find each
//! of these once in a thousand times. So a thread that is known to have run, or was seen at
//! another place than before, is sampled more often for a while. Membership of this stratum is
//! settled before each tick, from earlier looks. Threads are chosen from it by chance alone. So
//! the weight of a look is known for any behaviour of the threads (W. G. Cochran, "Sampling
//! Techniques", chapter 5).

use crate::random::Random;
use std::collections::{HashMap, VecDeque};

/// So long a sign of life lasts, ...
const LASTS_NS: u64 = 2_000_000_000;
/// ... and that a thread has begun.
const TRIAL_NS: u64 = 1_000_000_000;
/// Maximum number of threads of which only their beginning is known: the last ones.
const TRIALS_MAX: usize = 256;
/// Maximum number of lively threads: if there are more, the first ones stay.
pub const LIVELY_MAX: usize = 1024;

/// The data of one thread.
#[derive(Clone, Copy, Debug)]
struct Life {
    /// Its last sign of life.
    at_ns: u64,
    /// Its place in the last sample, if it was sampled since it ran.
    place: Option<u64>,
    /// Whether only its beginning is known.
    is_trial: bool,
}

/// The stratum, by the ids of threads.
#[derive(Clone, Debug, Default)]
pub struct Lively {
    of: HashMap<u64, Life>,
    ids: Vec<u64>,
    /// New threads, the last one at the end.
    begun: VecDeque<u64>,
}

impl Lively {
    /// A tick begins: threads without a recent sign of life are dropped.
    pub fn turn(&mut self, now_ns: u64) {
        let lives = |life: &Life| now_ns.saturating_sub(life.at_ns) < LASTS_NS;
        self.of.retain(|_, life| lives(life));
        self.ids.clear();
        self.ids.extend(self.of.keys());
    }

    /// How many there are in this tick.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no thread is lively in this tick.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Whether a thread is lively. Call it before [`Lively::ran`] and the like change that.
    #[must_use]
    pub fn contains(&self, id: u64) -> bool {
        self.of.contains_key(&id)
    }

    /// Chooses `count` of them, or all if there are fewer; each is as likely as any other.
    pub fn choose(&mut self, count: usize, random: &mut Random) -> &[u64] {
        let count = count.min(self.ids.len());
        for at in 0..count {
            let left = (self.ids.len() - at) as u64;
            let other = at + usize::try_from(random.below(left)).unwrap_or(0);
            self.ids.swap(at, other);
        }
        self.ids.get(..count).unwrap_or(&[])
    }

    /// A thread has run. True if it is not lively yet and may become so: see [`Lively::add`].
    pub fn ran(&mut self, id: u64, now_ns: u64) -> bool {
        match self.of.get_mut(&id) {
            Some(life) => {
                *life = Life {
                    at_ns: now_ns,
                    place: None,
                    is_trial: false,
                };
                false
            }
            None => self.of.len() < LIVELY_MAX,
        }
    }

    /// Adds a thread that has run, from the next tick on.
    pub fn add(&mut self, id: u64, now_ns: u64) {
        let life = Life {
            at_ns: now_ns,
            place: None,
            is_trial: false,
        };
        if self.of.len() < LIVELY_MAX {
            self.of.insert(id, life);
        }
    }

    /// Adds a thread that has begun since the last tick. Call it before [`Lively::turn`], so that
    /// it counts for this tick: a new thread may be lively. If many begin, earlier ones are
    /// dropped.
    pub fn began(&mut self, id: u64, now_ns: u64) {
        if self.begun.len() >= TRIALS_MAX
            && let Some(first) = self.begun.pop_front()
            && self.of.get(&first).is_some_and(|life| life.is_trial)
        {
            self.of.remove(&first);
        }
        let life = Life {
            at_ns: now_ns.saturating_sub(LASTS_NS - TRIAL_NS),
            place: None,
            is_trial: true,
        };
        if self.of.len() < LIVELY_MAX {
            self.of.insert(id, life);
            self.begun.push_back(id);
        }
    }

    /// A sample has seen a lively thread at `place`: another place than before is a sign of life.
    pub fn seen(&mut self, id: u64, place: u64, now_ns: u64) {
        if let Some(life) = self.of.get_mut(&id) {
            if life.place.is_some_and(|before| before != place) {
                life.at_ns = now_ns;
                life.is_trial = false;
            }
            life.place = Some(place);
        }
    }

    /// One of them is not there any more.
    pub fn forget(&mut self, id: u64) {
        self.of.remove(&id);
    }
}

/// How many of `looks` go to the `lively` threads: most, but the others get some, too.
#[must_use]
pub fn part_of(looks: usize, lively: usize) -> usize {
    const PART: f64 = 0.75;
    match lively {
        0 => 0,
        _ => ((looks as f64 * PART) as usize).clamp(1, lively),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn thread_without_signs_of_life_is_dropped() {
        let mut lively = Lively::default();
        assert!(lively.ran(7, SECOND), "it may become one");
        assert!(!lively.contains(7), "but is none yet");
        lively.add(7, SECOND);
        lively.add(8, SECOND);
        assert!(lively.is_empty(), "none in this tick");
        lively.turn(2 * SECOND);
        assert_eq!(lively.len(), 2);
        // A thread that is seen twice at the same place: that is no sign of life.
        lively.seen(7, 1, 2 * SECOND);
        lively.seen(7, 1, 2 * SECOND + 20);
        lively.seen(8, 1, 2 * SECOND);
        lively.seen(8, 2, 2 * SECOND + 20);
        lively.turn(3 * SECOND);
        assert!(!lively.contains(7) && lively.contains(8));
        assert!(!lively.ran(8, 4 * SECOND), "it is one already");
        // After it has run, the first place seen is no sign of life.
        lively.seen(8, 3, 5 * SECOND);
        lively.turn(6 * SECOND);
        assert!(lively.is_empty());
        lively.add(9, 6 * SECOND);
        lively.forget(9);
        lively.turn(6 * SECOND);
        assert!(lively.is_empty());
    }

    #[test]
    fn new_thread_is_lively_for_a_while() {
        let mut lively = Lively::default();
        lively.began(3, 5 * SECOND);
        lively.turn(5 * SECOND);
        assert_eq!(lively.len(), 1);
        lively.began(4, 5 * SECOND);
        assert!(!lively.ran(4, 5 * SECOND + 1));
        lively.turn(5 * SECOND + TRIAL_NS);
        assert!(!lively.contains(3) && lively.contains(4), "one has run");
    }

    #[test]
    fn of_many_new_threads_the_last_are_lively() {
        let mut lively = Lively::default();
        lively.began(7, SECOND);
        lively.ran(7, SECOND);
        (100..10_000).for_each(|id| lively.began(id, SECOND));
        lively.turn(SECOND);
        assert_eq!(lively.len(), 1 + TRIALS_MAX);
        assert!(lively.contains(7), "it has run");
        assert!(lively.contains(9_999) && !lively.contains(100));
        lively.turn(2 * SECOND);
        assert_eq!(lively.len(), 1);
    }

    #[test]
    fn there_are_never_too_many() {
        let mut lively = Lively::default();
        for id in 0..2000 {
            if lively.ran(id, 0) {
                lively.add(id, 0);
            }
        }
        lively.turn(1);
        assert_eq!(lively.len(), LIVELY_MAX);
        assert!(!lively.ran(3000, 1));
    }

    #[test]
    fn each_lively_thread_is_equally_likely() {
        let mut lively = Lively::default();
        for id in 0..20 {
            lively.add(id, 0);
        }
        let (mut random, mut times) = (Random::new(3), [0u32; 20]);
        for _ in 0..20_000 {
            lively.turn(1);
            let chosen = lively.choose(5, &mut random);
            assert_eq!(chosen.len(), 5);
            for id in chosen {
                times[*id as usize] += 1;
            }
        }
        // Binomial, 20,000 times a quarter: a deviation of 61; six of them.
        assert!(
            times.iter().all(|seen| seen.abs_diff(5000) < 367),
            "{times:?}"
        );
    }

    #[test]
    fn other_threads_get_some_samples() {
        assert_eq!(part_of(12, 0), 0);
        assert_eq!(part_of(12, 20), 9);
        assert_eq!(part_of(12, 4), 4);
        assert_eq!(part_of(2, 20), 1);
        assert_eq!(part_of(1, 20), 1);
    }

    /// 300 threads are idle, and 6 go through two states of some ticks each. One state is seen
    /// only in the tick after the thread was seen to run. The sums of the weights of looks are
    /// right.
    #[test]
    fn weights_of_both_strata_add_up_to_the_truth() {
        let (ticks, looks, all) = (400u64, 12usize, 306u64);
        let mut totals = [0.0f64; 2];
        let mut truth = [0u64; 2];
        let runs = 60u64;
        for run in 0..runs {
            let mut random = Random::new(100 + run);
            let mut lively = Lively::default();
            for tick in 0..ticks {
                let now_ns = tick * 20_000_000;
                // The ids from 300 on change, the others do not. Each that changes runs in
                // between.
                let state = |id: u64| u64::from(id >= 300 && (tick / (3 + id % 5)) % 2 == 1);
                let runs_now = |id: u64| id >= 300 && tick % (3 + id % 5) == 0;
                lively.turn(now_ns);
                let of_lively = part_of(looks, lively.len());
                let each = lively.len() as f64 / of_lively.max(1) as f64;
                let chosen = lively.choose(of_lively, &mut random).to_vec();
                for &id in &chosen {
                    totals[state(id) as usize] += each;
                    lively.seen(id, state(id), now_ns);
                }
                let of_others = looks - of_lively;
                let part = all as f64 / of_others as f64;
                let mut seen = Vec::new();
                while seen.len() < of_others {
                    let id = random.below(all);
                    if !seen.contains(&id) {
                        seen.push(id);
                    }
                }
                for id in seen.into_iter().filter(|id| !lively.ids.contains(id)) {
                    totals[state(id) as usize] += part;
                }
                for id in (0..all).filter(|id| runs_now(*id)) {
                    if lively.ran(id, now_ns) {
                        lively.add(id, now_ns);
                    }
                }
                for id in 0..all {
                    truth[state(id) as usize] += 1;
                }
            }
        }
        // State 1: until they are lively, 6 threads are met once in 26 ticks, for some 3 ticks: a
        // deviation of 21 ticks in 1200 each time, 0.23 % in 60. State 0: of six draws 5.88 +-
        // 0.34 find an idle thread, for 51: 0.3 % of a time's sum, 0.04 % in 60.
        let parts = totals
            .iter()
            .zip(truth)
            .map(|(seen, true_)| seen / true_ as f64);
        let parts: Vec<f64> = parts.collect();
        assert!((parts[0] - 1.0).abs() < 0.01, "{parts:?}");
        assert!((parts[1] - 1.0).abs() < 0.02, "{parts:?}");
    }
}
