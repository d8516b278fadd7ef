//! Threads that nobody has looked at yet, and who of them is looked at first.
//!
//! A thread whose place is not known stands for itself only when it is looked at. Where thousands
//! begin at once, or were there before us, not all can be looked at in one tick, and a look at one
//! stands for many: were that one a thread that works, its time would be told a hundredfold, or not
//! at all. So they are strata of their own: the young ones, by the tick in which they began, and
//! those that are older. Small ones are looked at in whole, so a few threads that begin to work
//! after thousands that do not soon stand for themselves (stratified sampling with unequal
//! allocation: Cochran, "Sampling Techniques", chapter 5). Who is found to have run since it was
//! met leaves for those that are active. Which stratum a thread is in is known before anybody is
//! chosen.

use crate::members::Chosen;
use crate::random::Random;

/// For so many ticks those that began in one stay together.
const TICKS: usize = 16;
/// Those that began longer ago, or before us; the others follow, by the tick in which they began.
const OLD: usize = 0;
const FIRST: usize = 1;
const ABSENT: Place = (u8::MAX, 0);
/// A young thread is asked whether it has run at these ages, in ticks: at the first one it has just
/// begun, and has run for that.
const ASKED_AT: [usize; 4] = [1, 2, 4, 8];

/// A thread's group and its place in it.
type Place = (u8, u32);

/// Small numbers, each standing for a thread that was never looked at.
#[derive(Clone, Debug)]
pub struct Fresh {
    groups: [Vec<u32>; FIRST + TICKS],
    places: Vec<Place>,
    /// The group of those that begin now.
    now: usize,
}

impl Default for Fresh {
    fn default() -> Fresh {
        Fresh {
            groups: Default::default(),
            places: Vec::new(),
            now: FIRST,
        }
    }
}

impl Fresh {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.iter().map(Vec::len).sum()
    }

    /// Whether there is nobody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Vec::is_empty)
    }

    /// How many of them are not young any more.
    #[must_use]
    pub fn old(&self) -> usize {
        self.size(OLD)
    }

    /// Whether `id` is one of them.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        self.place(id).is_some()
    }

    /// A tick begins: who began long ago is not told apart from those before any more.
    pub fn turn(&mut self) {
        self.now = FIRST + (self.now + 1 - FIRST) % TICKS;
        self.join(self.now, OLD);
    }

    /// The young ones that are to be asked now whether they have run.
    #[must_use]
    pub fn to_ask(&self) -> Vec<u32> {
        let group = |age: &usize| FIRST + (self.now - FIRST + TICKS - age) % TICKS;
        let groups = ASKED_AT.iter().map(group);
        groups
            .filter_map(|group| self.groups.get(group))
            .flatten()
            .copied()
            .collect()
    }

    /// Takes in a thread that has begun in this tick, or was there before.
    pub fn insert(&mut self, id: u32, begins: bool) {
        if !self.contains(id) {
            self.put(id, if begins { self.now } else { OLD });
        }
    }

    /// Lets `id` go; false if it was no member.
    pub fn remove(&mut self, id: u32) -> bool {
        let Some((group, at)) = self.place(id) else {
            return false;
        };
        let Some(ids) = self.groups.get_mut(usize::from(group)) else {
            return false;
        };
        let last = ids.pop();
        if let Some(last) = last.filter(|last| *last != id) {
            if let Some(hole) = ids.get_mut(at as usize) {
                *hole = last;
            }
            self.set_place(last, (group, at));
        }
        self.set_place(id, ABSENT);
        true
    }

    /// Chooses so many of the old ones, or all if there are fewer.
    pub fn choose_old(&mut self, count: usize, random: &mut Random) -> Chosen {
        self.choose_of(OLD, count, random)
    }

    /// Chooses so many of the young ones, or all if there are fewer: as many of each group, or all.
    /// With fewer looks than groups the oldest of these count as old from then on.
    pub fn choose_young(&mut self, count: usize, random: &mut Random) -> Vec<Chosen> {
        let mut groups = self.at_most(count.max(1));
        groups.sort_by_key(|group| self.size(*group));
        let (mut left, mut others) = (count, groups.len());
        let mut chosen = Vec::with_capacity(others);
        for group in groups {
            let of_group = self.choose_of(group, left / others, random);
            left -= of_group.ids.len();
            others -= 1;
            chosen.push(of_group);
        }
        chosen
    }

    /// A uniform choice: the beginning of a Fisher-Yates shuffle.
    fn choose_of(&mut self, group: usize, count: usize, random: &mut Random) -> Chosen {
        let eligible = self.size(group);
        let count = count.min(eligible);
        for at in 0..count {
            let other = at + random.below((eligible - at) as u64) as usize;
            if let Some(ids) = self.groups.get_mut(group) {
                ids.swap(at, other);
            }
            for at in [at, other] {
                let id = self.groups.get(group).and_then(|ids| ids.get(at)).copied();
                if let Some(id) = id {
                    self.set_place(id, (group as u8, at as u32));
                }
            }
        }
        let ids = self.groups.get(group).and_then(|ids| ids.get(..count));
        Chosen {
            eligible,
            ids: ids.unwrap_or(&[]).to_vec(),
        }
    }

    /// Where there are more than `count` groups of young ones, the oldest of these are old now.
    fn at_most(&mut self, count: usize) -> Vec<usize> {
        let oldest_first = (1..=TICKS).map(|age| FIRST + (self.now - FIRST + age) % TICKS);
        let mut groups: Vec<usize> = oldest_first.filter(|group| self.size(*group) > 0).collect();
        let many = groups.len().saturating_sub(count);
        for group in groups.drain(..many) {
            self.join(group, OLD);
        }
        groups
    }

    fn join(&mut self, group: usize, to: usize) {
        let ids = self.groups.get_mut(group).map(std::mem::take);
        for id in ids.unwrap_or_default() {
            self.set_place(id, ABSENT);
            self.put(id, to);
        }
    }

    fn size(&self, group: usize) -> usize {
        self.groups.get(group).map_or(0, Vec::len)
    }

    fn put(&mut self, id: u32, group: usize) {
        let Some(ids) = self.groups.get_mut(group) else {
            return;
        };
        ids.push(id);
        let place = (group as u8, ids.len() as u32 - 1);
        self.set_place(id, place);
    }

    fn place(&self, id: u32) -> Option<Place> {
        let place = self.places.get(id as usize).copied();
        place.filter(|place| *place != ABSENT)
    }

    fn set_place(&mut self, id: u32, place: Place) {
        let index = id as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, ABSENT);
        }
        if let Some(slot) = self.places.get_mut(index) {
            *slot = place;
        }
    }
}

/// The time of old ones that no look stands for yet, where there is not one in each tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlooked {
    /// Of all together, and since when.
    threads_ns: u128,
    waited_ns: u64,
}

impl Unlooked {
    /// A tick in which there are so many old ones. How long none was looked at, with this tick.
    pub fn wait(&mut self, old: usize, span_ns: u64) -> u64 {
        if old == 0 {
            *self = Unlooked::default();
            return 0;
        }
        self.threads_ns += old as u128 * u128::from(span_ns);
        self.waited_ns = self.waited_ns.saturating_add(span_ns);
        self.waited_ns
    }

    /// Some of them are looked at now: what one of `old` stands for. Who joined them meanwhile
    /// counts from then on.
    pub fn take(&mut self, old: usize) -> u64 {
        let threads_ns = std::mem::take(self).threads_ns;
        u64::try_from(threads_ns / (old.max(1) as u128)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn few_that_begin_after_many_soon_stand_for_themselves() {
        for count in [50, 2] {
            let (mut fresh, mut random) = (Fresh::default(), Random::new(1));
            (0..10_000).for_each(|id| fresh.insert(id, false));
            for tick in 0..5u32 {
                fresh.turn();
                let new = 10_000 + 130 * tick..10_130 + 130 * tick;
                new.for_each(|id| fresh.insert(id, true));
            }
            fresh.turn();
            (20_000..20_018).for_each(|id| fresh.insert(id, true));
            let (mut ticks, mut heaviest) = (0, 0.0_f64);
            while (20_000..20_018).any(|id| fresh.contains(id)) && ticks < 15 {
                for of in fresh.choose_young(count, &mut random) {
                    assert!(!of.ids.is_empty());
                    let weight = of.eligible as f64 / of.ids.len() as f64;
                    let is_late = of.ids.iter().any(|id| *id >= 20_000);
                    heaviest = heaviest.max(if is_late { weight } else { 0.0 });
                    for id in &of.ids {
                        assert!(fresh.remove(*id));
                    }
                }
                fresh.turn();
                ticks += 1;
            }
            let (most, weight) = if count == 2 { (15, 18.0) } else { (3, 2.6) };
            assert!(
                ticks <= most && heaviest <= weight,
                "{ticks} ticks, {heaviest}"
            );
        }
    }

    #[test]
    fn young_ones_are_asked_a_few_times_and_grow_old() {
        let mut fresh = Fresh::default();
        (0..3).for_each(|id| fresh.insert(id, false));
        (3..8).for_each(|id| fresh.insert(id, true));
        let mut asked = Vec::new();
        for age in 1..=TICKS {
            fresh.turn();
            let ids = fresh.to_ask();
            assert!(ids.is_empty() || ids == [3, 4, 5, 6, 7], "{ids:?}");
            asked.extend((!ids.is_empty()).then_some(age));
            assert_eq!(fresh.old(), if age < TICKS { 3 } else { 8 });
        }
        assert_eq!(asked, ASKED_AT);
    }

    #[test]
    fn each_is_as_likely_as_the_others_of_its_group() {
        let (mut fresh, mut random) = (Fresh::default(), Random::new(7));
        (0..40).for_each(|id| fresh.insert(id, true));
        fresh.turn();
        (40..60).for_each(|id| fresh.insert(id, true));
        (60..80).for_each(|id| fresh.insert(id, false));
        let mut told = BTreeMap::<u32, f64>::new();
        const RUNS: usize = 20_000;
        for _ in 0..RUNS {
            let old = fresh.choose_old(3, &mut random);
            for of in fresh.choose_young(9, &mut random).into_iter().chain([old]) {
                let weight = of.eligible as f64 / of.ids.len() as f64;
                let mut add = |id: &u32| *told.entry(*id).or_default() += weight;
                of.ids.iter().for_each(&mut add);
            }
        }
        // Each stands for itself in the mean: with a weight of 10 at most, sd 3 for one choice.
        assert_eq!(told.len(), 80);
        for (id, sum) in told {
            let mean = sum / RUNS as f64;
            let off = (mean - 1.0).abs();
            assert!(off < 5.0 * 3.0 / (RUNS as f64).sqrt(), "{id}: {mean}");
        }
    }

    proptest! {
        /// Whatever is done, each member is in one group, all are chosen from, and looks stand for
        /// all of them.
        #[test]
        fn looks_stand_for_all(
            steps in prop::collection::vec((0..5u8, 0..60u32, 1..40usize), 1..300),
            seed in 0..1000u64,
        ) {
            let (mut fresh, mut random) = (Fresh::default(), Random::new(seed));
            let mut truth = std::collections::BTreeSet::new();
            for (what, id, count) in steps {
                match what {
                    0 | 1 => {
                        truth.insert(id);
                        fresh.insert(id, what == 0);
                    }
                    2 => prop_assert_eq!(fresh.remove(id), truth.remove(&id)),
                    3 => fresh.turn(),
                    _ => {
                        let mut chosen = fresh.choose_young(count, &mut random);
                        let looked: usize = chosen.iter().map(|of| of.ids.len()).sum();
                        let old = fresh.old();
                        prop_assert_eq!(looked, count.min(truth.len() - old));
                        if old > 0 {
                            chosen.push(fresh.choose_old(count, &mut random));
                        }
                        prop_assert!(chosen.iter().all(|of| !of.ids.is_empty()));
                        let stand_for: usize = chosen.iter().map(|of| of.eligible).sum();
                        prop_assert_eq!(stand_for, truth.len());
                        let mut ids: Vec<u32> = chosen.into_iter().flat_map(|of| of.ids).collect();
                        ids.sort_unstable();
                        ids.dedup();
                        prop_assert_eq!(ids.len(), looked + count.min(old));
                        prop_assert!(ids.iter().all(|id| truth.contains(id)));
                    }
                }
                prop_assert_eq!(fresh.len(), truth.len());
                prop_assert!((0..60).all(|id| fresh.contains(id) == truth.contains(&id)));
            }
        }
    }

    /// However many join or leave between two looks, all of their time is told.
    #[test]
    fn looks_stand_for_all_of_the_time_between_them() {
        let (mut unlooked, mut random) = (Unlooked::default(), Random::new(3));
        let (mut truth, mut told) = (0u128, 0u128);
        for _ in 0..2000 {
            let (old, span_ns) = (
                1 + random.below(7000) as usize,
                1 + random.below(60_000_000),
            );
            truth += old as u128 * u128::from(span_ns);
            if unlooked.wait(old, span_ns) > 640_000_000 {
                told += old as u128 * u128::from(unlooked.take(old));
                assert_eq!(unlooked.take(old), 0);
            }
        }
        // Others of the last time have been told to be there, and are not any more.
        told += u128::from(unlooked.take(1));
        assert!(
            truth >= told && truth - told < 2000 * 7000,
            "{truth} {told}"
        );
        unlooked.wait(3, 5);
        assert_eq!((unlooked.wait(0, 5), unlooked.take(1)), (0, 0));
    }
}
