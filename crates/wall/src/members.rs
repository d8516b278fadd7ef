//! The threads that may be sampled, and a uniform random choice among them.
//!
//! A choice is the beginning of a Fisher-Yates shuffle. Every subset of the requested size is as
//! likely as any other, for any earlier choices and any members that joined or left in between.
//! Joining and leaving take constant time, choosing takes time for the chosen members only.

use crate::random::Random;

const ABSENT: u32 = u32::MAX;

/// A set of small numbers, each standing for a thread.
#[derive(Clone, Debug, Default)]
pub struct Members {
    order: Vec<u32>,
    /// Where in `order` a member is.
    place: Vec<u32>,
}

impl Members {
    /// An empty set.
    #[must_use]
    pub fn new() -> Members {
        Members::default()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether `id` is one of them.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.place.get(id as usize).is_some_and(|p| *p != ABSENT)
    }

    /// A number that is greater than every member.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.place.len() as u32
    }

    /// Adds `id`; false if it was a member already.
    pub fn insert(&mut self, id: u32) -> bool {
        let index = id as usize;
        if self.place.len() <= index {
            self.place.resize(index + 1, ABSENT);
        }
        if self.contains(id) {
            return false;
        }
        self.put(self.order.len(), id);
        true
    }

    /// Removes `id`; false if it was not a member.
    pub fn remove(&mut self, id: u32) -> bool {
        if !self.contains(id) {
            return false;
        }
        let Some(place) = self.place.get_mut(id as usize) else {
            return false;
        };
        let hole = std::mem::replace(place, ABSENT) as usize;
        let last = self.order.pop();
        if let Some(last) = last.filter(|last| *last != id) {
            self.put(hole, last);
        }
        true
    }

    /// Chooses `count` members, or all if there are fewer.
    pub fn choose(&mut self, count: usize, random: &mut Random) -> &[u32] {
        let len = self.order.len();
        let count = count.min(len);
        for at in 0..count {
            let other = at + random.below((len - at) as u64) as usize;
            let (Some(&a), Some(&b)) = (self.order.get(at), self.order.get(other)) else {
                break;
            };
            self.put(at, b);
            self.put(other, a);
        }
        self.order.get(..count).unwrap_or(&[])
    }

    fn put(&mut self, at: usize, id: u32) {
        match self.order.get_mut(at) {
            Some(slot) => *slot = id,
            None => self.order.push(id),
        }
        if let Some(place) = self.place.get_mut(id as usize) {
            *place = at as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Choosing `k` of `n`, `draws` times: how often each was chosen.
    fn counts(n: u32, k: usize, draws: u64, mut change: impl FnMut(&mut Members, u64)) -> Vec<u64> {
        let mut members = Members::new();
        (0..n).for_each(|id| assert!(members.insert(id)));
        let mut random = Random::new(u64::from(n));
        let mut counts = vec![0; n as usize];
        for draw in 0..draws {
            for id in members.choose(k, &mut random) {
                counts[*id as usize] += 1;
            }
            change(&mut members, draw);
        }
        counts
    }

    /// The counts of draws without replacement scatter less than independent ones would: with `k`
    /// of `n` the statistic below is chi-square with `n - 1` degrees of freedom once it is divided
    /// by the share not chosen, times `(n - 1) / n`.
    fn assert_uniform(counts: &[u64], k: usize, draws: u64) {
        let n = counts.len() as f64;
        let share = k as f64 / n;
        let expected = draws as f64 * share;
        let scatter: f64 = counts.iter().map(|c| (*c as f64 - expected).powi(2)).sum();
        let chi = scatter / (expected * (1.0 - share)) * (n - 1.0) / n;
        // Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is nearly
        // normal. 4.9 standard deviations are exceeded once in two million.
        let freedom = n - 1.0;
        let part = 2.0 / (9.0 * freedom);
        let bound = |z: f64| freedom * (1.0 - part + z * part.sqrt()).powi(3);
        assert!(chi < bound(4.9), "{chi} is over {}: {counts:?}", bound(4.9));
        // And not suspiciously even.
        assert!(chi > bound(-4.9), "{chi} of at least {}", bound(-4.9));
    }

    #[test]
    fn each_member_is_chosen_equally_often() {
        for (n, k) in [
            (25, 16),
            (100, 16),
            (1000, 16),
            (1000, 300),
            (17, 16),
            (9, 1),
        ] {
            let draws = 40_000;
            assert_uniform(&counts(n, k, draws, |_, _| ()), k, draws);
        }
    }

    #[test]
    fn members_that_leave_and_rejoin_are_chosen_as_often() {
        let (n, k, draws) = (50, 16, 40_000);
        // After each choice one member leaves and comes back at another place in the order.
        let counts = counts(n, k, draws, |members, draw| {
            let id = (draw % u64::from(n)) as u32;
            assert!(members.remove(id) && members.insert(id));
        });
        assert_uniform(&counts, k, draws);
    }

    #[test]
    fn pairs_are_chosen_as_often() {
        let (n, draws) = (6u32, 60_000u64);
        let mut members = Members::new();
        (0..n).for_each(|id| assert!(members.insert(id)));
        let mut random = Random::new(3);
        let mut counts = vec![0u64; (n * n) as usize];
        for _ in 0..draws {
            let pair = members.choose(2, &mut random);
            let (a, b) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            counts[(a * n + b) as usize] += 1;
        }
        let pairs: Vec<u64> = counts.into_iter().filter(|c| *c > 0).collect();
        assert_eq!(pairs.len(), 15);
        let expected = draws as f64 / 15.0;
        let chi: f64 = pairs
            .iter()
            .map(|c| (*c as f64 - expected).powi(2) / expected)
            .sum();
        // Chi-square with 14 degrees of freedom exceeds 53 once in half a million.
        assert!(chi < 53.0, "{chi} {pairs:?}");
    }

    proptest! {
        #[test]
        fn a_set_is_a_set(steps in proptest::collection::vec((0u8..3, 0u32..40), 0..400)) {
            let mut members = Members::new();
            let mut truth = BTreeSet::new();
            let mut random = Random::new(9);
            for (what, id) in steps {
                match what {
                    0 => prop_assert_eq!(members.insert(id), truth.insert(id)),
                    1 => prop_assert_eq!(members.remove(id), truth.remove(&id)),
                    _ => {
                        let chosen: Vec<u32> = members.choose(id as usize, &mut random).to_vec();
                        let different: BTreeSet<u32> = chosen.iter().copied().collect();
                        prop_assert_eq!(chosen.len(), (id as usize).min(truth.len()));
                        prop_assert_eq!(different.len(), chosen.len());
                        prop_assert!(different.is_subset(&truth));
                    }
                }
                prop_assert_eq!(members.len(), truth.len());
                prop_assert!((0..40).all(|id| members.contains(id) == truth.contains(&id)));
            }
        }
    }
}
