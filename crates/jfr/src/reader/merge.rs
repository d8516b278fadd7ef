//! Merges samples while they are read, so that memory does not grow with their number. The first
//! step merges equal samples within a bin of time: it sums counts and weights and only loses their
//! times. The second step, if needed, merges light samples with different stacks of one thread,
//! with the same kind, state, cause and endpoint, within a bin. One of the two stacks stands for
//! both, drawn with probabilities proportional to the weights. The sums by thread, cause and
//! endpoint therefore stay exact, and the sum of every stack is unbiased. The added error of a
//! share is that of a sample as large as the number of samples left. This module does not interpret
//! samples.

use super::intern::Interner;
use super::model::{Context, Sample, Wall, choices_of_both};
use crate::hash::{Seeds, mixed};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Bins of time that samples are put together in, fine to coarse: the coarsest that may be is taken
/// whatever is left then.
pub const BINS_NS: [u64; 7] = [
    10_000_000,
    50_000_000,
    200_000_000,
    1_000_000_000,
    5_000_000_000,
    20_000_000_000,
    60_000_000_000,
];
/// A recording has at least so many of them.
pub const BINS_MIN: u64 = 500;
/// A bin is tried with one of so many parts of the samples, of so many at least.
const PARTS: usize = 16;
const PART_MIN: usize = 4096;
/// A sample that stands for more samples is never light.
const LIGHT_MAX: u32 = 1 << 20;

/// Decides which samples are put together.
pub(crate) struct Merger {
    /// More than these are put together.
    most: usize,
    /// How many there may be before the next try to make them fewer.
    limit: usize,
    /// 0: nothing has been put together.
    bin_ns: u64,
    /// How long the recording is known to be; 0: not before all is read.
    duration_ns: u64,
    /// The first and the last time seen.
    span: Option<(u64, u64)>,
    /// The newest bin: samples come nearly in the order of time, so the tables that follow are
    /// emptied for each one and stay small.
    bin: u64,
    /// The samples in it, as their places plus one; by hash, with free slots between.
    slots: Vec<u32>,
    used: usize,
    seeds: Seeds,
    /// Samples that stand for at most this many are light; 0 if none are.
    light: u32,
    /// The last light one of each group.
    groups: HashMap<Group, u32, Seeds>,
    /// The generator's state: the same file always gives the same.
    random: u64,
}

/// The key under which light samples are merged: thread and carrier; kind, state, known fields and
/// the cause; the endpoint; the bin.
type Group = [u64; 4];

impl Default for Merger {
    fn default() -> Self {
        Self::above(usize::MAX)
    }
}

impl Merger {
    /// For at most about so many samples.
    pub(crate) fn above(most: usize) -> Self {
        let seeds = Seeds::default();
        Self {
            most,
            limit: most,
            bin_ns: 0,
            duration_ns: 0,
            span: None,
            bin: 0,
            slots: Vec::new(),
            used: 0,
            seeds,
            light: 0,
            groups: HashMap::with_hasher(seeds),
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// Sets the length of the recording, which limits the length of bins.
    pub(crate) fn lasts(&mut self, duration_ns: u64) {
        self.duration_ns = duration_ns;
    }

    /// Within how long samples were put together; 0: none were.
    pub(crate) fn bin_ns(&self) -> u64 {
        self.bin_ns
    }

    /// Adds a sample that was just read. If it says anything about a wait, that is the last of
    /// `walls`.
    pub(crate) fn add(
        &mut self,
        sample: Sample,
        samples: &mut Vec<Sample>,
        walls: &mut Vec<Wall>,
        contexts: &Interner<Context>,
    ) {
        let (first, last) = self.span.unwrap_or((sample.time_ns, sample.time_ns));
        self.span = Some((first.min(sample.time_ns), last.max(sample.time_ns)));
        if self.bin_ns > 0 {
            let wall = sample.wall.and_then(|place| walls.get(place as usize));
            let wall = wall.copied();
            let kept = samples.len();
            if self.put(&sample, wall, kept, samples, walls)
                || self.draw(&sample, wall, kept, samples, walls, contexts)
            {
                if sample.wall.is_some() {
                    walls.pop();
                }
                return;
            }
        }
        samples.push(sample);
        if samples.len() > self.limit {
            self.shrink(samples, walls, contexts);
        }
    }

    /// Makes bins coarser until few enough samples are left or bins are as coarse as they may be;
    /// then more and more samples are light.
    fn shrink(
        &mut self,
        samples: &mut Vec<Sample>,
        walls: &mut Vec<Wall>,
        contexts: &Interner<Context>,
    ) {
        let (first, last) = self.span.unwrap_or_default();
        let coarsest = (last - first).max(self.duration_ns) / BINS_MIN;
        for (place, &bin_ns) in BINS_NS.iter().enumerate() {
            if samples.len() <= self.most || (place > 0 && bin_ns > coarsest) {
                break;
            }
            let is_last = BINS_NS.get(place + 1).is_none_or(|next| *next > coarsest);
            if bin_ns > self.bin_ns && (is_last || self.may_fit(bin_ns, samples, walls, contexts)) {
                self.bin_ns = bin_ns;
                self.merge_all(samples, walls, contexts);
            }
        }
        // The doublings are bounded by the number of bits.
        while samples.len() > self.most && self.light < LIGHT_MAX {
            self.light = (self.light * 2).max(1);
            self.merge_all(samples, walls, contexts);
        }
        self.limit = samples.len().max(self.most).saturating_add(self.most / 4);
    }

    /// Whether bins of this length may leave few enough, by what they make of the first samples: to
    /// put all together in vain would take as long as in earnest.
    fn may_fit(
        &self,
        bin_ns: u64,
        samples: &[Sample],
        walls: &[Wall],
        contexts: &Interner<Context>,
    ) -> bool {
        let part = (samples.len() / PARTS).max(PART_MIN).min(samples.len());
        let mut first = samples.get(..part).unwrap_or_default().to_vec();
        let last_wall = first.iter().filter_map(|sample| sample.wall).max();
        let their_walls = last_wall.map_or(0, |place| place as usize + 1);
        let mut first_walls = walls.get(..their_walls).unwrap_or_default().to_vec();
        let mut trial = Self {
            bin_ns,
            light: self.light,
            ..Self::above(usize::MAX)
        };
        trial.merge_all(&mut first, &mut first_walls, contexts);
        let left = first.len() as u128 * samples.len() as u128;
        // Later samples may be more alike than the first ones.
        left * 8 <= self.most as u128 * part as u128 * 9
    }

    /// Merges all samples again, in place: a merged sample never moves behind an unread one.
    fn merge_all(
        &mut self,
        samples: &mut Vec<Sample>,
        walls: &mut Vec<Wall>,
        contexts: &Interner<Context>,
    ) {
        self.open(0);
        let (mut kept, mut kept_walls) = (0, 0);
        for at in 0..samples.len() {
            let Some(mut sample) = samples.get(at).copied() else {
                break;
            };
            let wall = sample.wall.and_then(|place| walls.get(place as usize));
            let wall = wall.copied();
            if self.put(&sample, wall, kept, samples, walls)
                || self.draw(&sample, wall, kept, samples, walls, contexts)
            {
                continue;
            }
            if let Some(wall) = wall {
                if let Some(to) = walls.get_mut(kept_walls) {
                    *to = wall;
                }
                sample.wall = u32::try_from(kept_walls).ok();
                kept_walls += 1;
            }
            if let Some(to) = samples.get_mut(kept) {
                *to = sample;
            }
            kept += 1;
        }
        samples.truncate(kept);
        walls.truncate(kept_walls);
    }

    /// Empties the tables for the next bin.
    fn open(&mut self, bin: u64) {
        self.bin = bin;
        self.slots.fill(0);
        self.used = 0;
        self.groups.clear();
    }

    /// Adds a sample to an equal one among the first `kept`. If no such sample exists, it remembers
    /// this one as the next and returns false.
    fn put(
        &mut self,
        sample: &Sample,
        wall: Option<Wall>,
        kept: usize,
        samples: &mut [Sample],
        walls: &mut [Wall],
    ) -> bool {
        let bin = sample.time_ns / self.bin_ns.max(1);
        if bin > self.bin {
            self.open(bin);
        }
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow(&*samples, &*walls);
        }
        let mask = self.slots.len().saturating_sub(1);
        let mut slot = self.hash(sample, wall.as_ref()) as usize & mask;
        // Half of the slots are free.
        while let Some(place) = self.slots.get(slot).and_then(|link| link.checked_sub(1)) {
            let Some(known) = samples.get_mut(place as usize) else {
                break;
            };
            let known_wall = known.wall.and_then(|place| walls.get_mut(place as usize));
            if !is_alike(known, known_wall.as_deref(), sample, wall.as_ref()) {
                slot = (slot + 1) & mask;
                continue;
            }
            if known.time_ns / self.bin_ns.max(1) != bin {
                break;
            }
            absorb(known, known_wall, sample, wall.as_ref());
            return true;
        }
        if let Some(link) = self.slots.get_mut(slot) {
            self.used += usize::from(*link == 0);
            // More than fit cannot be in memory.
            *link = u32::try_from(kept + 1).unwrap_or(0);
        }
        false
    }

    /// Merges a light sample with the last light one of its group, and draws the stack of one of
    /// the two. If the sample is not light or the group is empty, it remembers this one as the next
    /// and returns false.
    fn draw(
        &mut self,
        sample: &Sample,
        wall: Option<Wall>,
        kept: usize,
        samples: &mut [Sample],
        walls: &mut [Wall],
        contexts: &Interner<Context>,
    ) -> bool {
        if sample.count > self.light {
            return false;
        }
        let group = self.group(sample, wall.as_ref(), contexts);
        let next = u32::try_from(kept).unwrap_or(u32::MAX);
        let last = match self.groups.entry(group) {
            Entry::Vacant(free) => {
                free.insert(next);
                return false;
            }
            Entry::Occupied(last) => last.into_mut(),
        };
        let known = samples.get_mut(*last as usize);
        let Some(known) = known.filter(|known| known.count <= self.light) else {
            *last = next;
            return false;
        };
        let known_wall = known.wall.and_then(|place| walls.get_mut(place as usize));
        let weight = |sample: &Sample| sample.weight_ns.unwrap_or(sample.count.into());
        let all = weight(known).saturating_add(weight(sample)).max(1);
        let is_new = self.below(all) < weight(sample);
        let was = known_wall.as_deref().copied();
        absorb(known, known_wall, sample, wall.as_ref());
        if is_new {
            known.stack = sample.stack;
            known.context = sample.context;
            known.failure = sample.failure;
            let at = known.wall.and_then(|place| walls.get_mut(place as usize));
            if let (Some(at), Some(wall), Some(_)) = (at, wall, was) {
                (at.detail, at.owner, at.owner_stack) = (wall.detail, wall.owner, wall.owner_stack);
            }
        }
        true
    }

    fn group(&self, sample: &Sample, wall: Option<&Wall>, contexts: &Interner<Context>) -> Group {
        let some = |place: Option<u32>| place.map_or(0, |place| u64::from(place) + 1);
        let context = sample.context.map(|place| contexts.get(place));
        let endpoint = context.map(|context| some(context.and_then(|context| context.endpoint)));
        let known = [
            sample.failure.is_some(),
            sample.weight_ns.is_some(),
            sample.biased,
        ];
        let flags = known
            .iter()
            .fold(0, |flags, is| flags << 1 | u64::from(*is));
        let what = (sample.kind as u64) << 16 | (sample.state as u64) << 8 | flags;
        [
            // Places are below 2^32, and one more than that cannot be in memory.
            u64::from(sample.thread) << 32 | some(sample.carrier) & u64::from(u32::MAX),
            what << 33 | some(wall.and_then(|wall| wall.cause)),
            endpoint.map_or(0, |endpoint| endpoint + 1),
            sample.time_ns / self.bin_ns.max(1),
        ]
    }

    /// A number below a limit (xorshift).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * u128::from(limit)) >> 64) as u64
    }

    fn grow(&mut self, samples: &[Sample], walls: &[Wall]) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; (old.len() * 4).max(1 << 12)];
        let mask = self.slots.len() - 1;
        for link in old.into_iter().filter(|link| *link != 0) {
            let Some(sample) = samples.get(link as usize - 1) else {
                continue;
            };
            let wall = sample.wall.and_then(|place| walls.get(place as usize));
            let mut slot = self.hash(sample, wall) as usize & mask;
            while self.slots.get(slot).is_some_and(|link| *link != 0) {
                slot = (slot + 1) & mask;
            }
            if let Some(to) = self.slots.get_mut(slot) {
                *to = link;
            }
        }
    }

    fn hash(&self, sample: &Sample, wall: Option<&Wall>) -> u64 {
        let some = |place: Option<u32>| place.map_or(0, |place| u64::from(place) + 1);
        let Seeds(seeds) = self.seeds;
        let mut hash = u64::from(sample.thread) << 32 | u64::from(sample.stack);
        hash = mixed(hash, seeds, some(sample.context), some(sample.failure));
        if let Some(wall) = wall {
            let owner = some(wall.owner) << 32 | some(wall.owner_stack);
            let cause = some(wall.cause) << 32 | some(wall.detail);
            hash = mixed(hash, seeds, owner, cause);
        }
        hash
    }
}

/// Whether two samples say the same but for when and how much.
fn is_alike(a: &Sample, a_wall: Option<&Wall>, b: &Sample, b_wall: Option<&Wall>) -> bool {
    let what = |sample: &Sample| Sample {
        time_ns: 0,
        count: 0,
        weight_ns: sample.weight_ns.map(|_| 0),
        wall: None,
        ..*sample
    };
    let of_wall = |wall: &Wall| Wall {
        duration_ns: 0,
        count: 0,
        choices: 0,
        ..*wall
    };
    what(a) == what(b) && a_wall.map(of_wall) == b_wall.map(of_wall)
}

fn absorb(known: &mut Sample, known_wall: Option<&mut Wall>, more: &Sample, wall: Option<&Wall>) {
    let end = |sample: &Sample, wall: &Wall| sample.time_ns.saturating_add(wall.duration_ns);
    let begin = known.time_ns.min(more.time_ns);
    if let (Some(known_wall), Some(wall)) = (known_wall, wall) {
        let last = end(known, known_wall).max(end(more, wall));
        known_wall.duration_ns = last - begin;
        let choices = |wall: &Wall| match wall.choices {
            0 => wall.count.max(1),
            choices => choices,
        };
        let [a, b] = [(&*known, &*known_wall), (more, wall)]
            .map(|(sample, wall)| (sample.weight_ns.unwrap_or(0), choices(wall)));
        known_wall.choices = choices_of_both(a, b);
        // One that says nothing stands for one look.
        known_wall.count = (known_wall.count.max(1)).saturating_add(wall.count.max(1));
    }
    known.time_ns = begin;
    known.count = known.count.saturating_add(more.count);
    known.weight_ns = match (known.weight_ns, more.weight_ns) {
        (Some(known), Some(more)) => Some(known.saturating_add(more)),
        (known, _) => known,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadState;
    use crate::reader::SampleKind;

    /// The variance of a sum is the sum of the variances, also if one of the two is almost zero.
    #[test]
    fn two_sums_are_as_certain_as_their_variances_together() {
        assert_eq!(choices_of_both((10, 1), (10, 1)), 2);
        assert_eq!(choices_of_both((40, 4), (60, 6)), 10);
        // 100^2 / (100 + 900).
        assert_eq!(choices_of_both((70, 49), (30, 1)), 10);
        assert_eq!(
            choices_of_both((1_000_000, 1_000_000_000), (1, 1)),
            999_002_997
        );
        assert_eq!(choices_of_both((0, 2), (0, 3)), 5);
        assert_eq!(choices_of_both((u64::MAX, 1), (u64::MAX, u64::MAX)), 4);
    }

    fn sample(number: u64) -> Sample {
        Sample {
            time_ns: 1_000_000_000 + number * 4_000_000,
            weight_ns: Some(number),
            thread: 1,
            stack: (number % 2) as u32,
            ..Sample::PLAIN
        }
    }

    fn read(most: usize, all: u64) -> (Vec<Sample>, Vec<Wall>, u64) {
        let (mut samples, mut walls) = (Vec::new(), Vec::new());
        let mut merger = Merger::above(most);
        let contexts = Interner::default();
        merger.lasts(all * 4_000_000);
        for number in 0..all {
            merger.add(sample(number), &mut samples, &mut walls, &contexts);
            walls.push(Wall {
                duration_ns: 1_000_000,
                cause: Some((number % 2) as u32),
                count: 2,
                ..Wall::default()
            });
            let look = Sample {
                kind: SampleKind::Wall,
                wall: Some(walls.len() as u32 - 1),
                ..sample(number)
            };
            merger.add(look, &mut samples, &mut walls, &contexts);
        }
        (samples, walls, merger.bin_ns())
    }

    #[test]
    fn few_samples_stay_as_they_are() {
        let (samples, walls, bin_ns) = read(200, 100);
        assert_eq!((samples.len(), walls.len(), bin_ns), (200, 100, 0));
        assert!((0..100).all(|n| samples[2 * n] == sample(n as u64)));
    }

    #[test]
    fn merging_keeps_sums_and_leaves_few_samples() {
        // 100 s of two stacks, with CPU and wall-clock samples.
        let (samples, walls, bin_ns) = read(2_000, 25_000);
        assert_eq!(bin_ns, 200_000_000);
        // 500 bins, two stacks, twice; and what is on both sides of a change of bins.
        assert!((2_000..2_600).contains(&samples.len()), "{}", samples.len());
        let of = |kind| samples.iter().filter(move |sample| sample.kind == kind);
        for kind in [SampleKind::Execution, SampleKind::Wall] {
            assert_eq!(of(kind).map(|s| s.count).sum::<u32>(), 25_000);
            let weight = of(kind).filter_map(|s| s.weight_ns).sum::<u64>();
            assert_eq!(weight, 24_999 * 25_000 / 2);
        }
        let looks: u64 = of(SampleKind::Wall)
            .map(|look| walls[look.wall.unwrap() as usize].count)
            .sum();
        assert_eq!((walls.len(), looks), (of(SampleKind::Wall).count(), 50_000));
        for look in of(SampleKind::Wall) {
            let wall = walls[look.wall.unwrap() as usize];
            assert_eq!(wall.cause, Some(look.stack));
            assert!(wall.duration_ns <= bin_ns + 1_000_000);
        }
        assert!(samples.is_sorted_by_key(|sample| sample.time_ns));
    }

    #[test]
    fn merged_stacks_keep_true_shares() {
        let (mut samples, mut walls) = (Vec::new(), Vec::new());
        let mut merger = Merger::above(2_000);
        let contexts = Interner::default();
        let mut weights = [0u64; 2];
        for number in 0..40_000u64 {
            // Each stack once; those below 20,000 weigh three times as much.
            let stack = (number * 7919 % 40_000) as u32;
            let weight = if stack < 20_000 { 3 } else { 1 };
            let thread = (number % 2) as u32;
            weights[thread as usize] += weight;
            let sample = Sample {
                stack,
                thread,
                weight_ns: Some(weight),
                ..sample(number)
            };
            merger.add(sample, &mut samples, &mut walls, &contexts);
        }
        assert!(samples.len() <= 2_500, "{}", samples.len());
        assert_eq!(samples.iter().map(|s| s.count).sum::<u32>(), 40_000);
        let sum = |wanted: &dyn Fn(&Sample) -> bool| -> u64 {
            let of = samples.iter().filter(|sample| wanted(sample));
            of.filter_map(|sample| sample.weight_ns).sum()
        };
        for thread in [0, 1] {
            assert_eq!(sum(&|s| s.thread == thread), weights[thread as usize]);
        }
        // Some 1,500 draws or more with chance 3/4: five standard deviations are 0.056.
        let share = sum(&|s| s.stack < 20_000) as f64 / 80_000.0;
        assert!((share - 0.75).abs() < 0.06, "{share} of {}", samples.len());
    }

    #[test]
    fn different_samples_are_not_merged() {
        let (mut samples, mut walls) = (Vec::new(), Vec::new());
        let mut merger = Merger::above(2);
        let contexts = Interner::default();
        let base = sample(0);
        let others = [
            base,
            Sample { thread: 2, ..base },
            Sample {
                failure: Some(0),
                ..base
            },
            Sample {
                context: Some(0),
                ..base
            },
            Sample {
                carrier: Some(0),
                ..base
            },
            Sample {
                biased: true,
                ..base
            },
            Sample {
                weight_ns: None,
                ..base
            },
            Sample {
                state: ThreadState::Blocked,
                ..base
            },
        ];
        for _ in 0..3 {
            for sample in others {
                merger.add(sample, &mut samples, &mut walls, &contexts);
            }
        }
        assert_eq!(samples.len(), others.len());
        assert!(samples.iter().all(|sample| sample.count == 3));
    }

    /// Samples of as many groups; the last three are of contexts that were placed.
    fn of_different_groups(base: Sample, contexts: [u32; 3]) -> [Sample; 13] {
        let with = |context| Sample {
            context: Some(context),
            ..base
        };
        let carrier = |carrier| Sample {
            carrier: Some(carrier),
            ..base
        };
        let [none, first, second] = contexts.map(with);
        [
            base,
            Sample { thread: 2, ..base },
            carrier(0),
            carrier(1),
            Sample {
                failure: Some(0),
                ..base
            },
            Sample {
                weight_ns: Some(0),
                ..base
            },
            Sample {
                biased: true,
                ..base
            },
            Sample {
                kind: SampleKind::Wall,
                ..base
            },
            Sample {
                state: ThreadState::Blocked,
                ..base
            },
            Sample {
                time_ns: base.time_ns + 1,
                ..base
            },
            none,
            first,
            second,
        ]
    }

    #[test]
    fn light_samples_stand_for_others_of_their_group_only() {
        let mut contexts = Interner::default();
        let places = [None, Some(0), Some(1)].map(|endpoint| {
            contexts.place(Context {
                endpoint,
                ..Context::default()
            })
        });
        let merger = Merger::above(2);
        let base = Sample {
            weight_ns: None,
            ..sample(0)
        };
        let (mut all, causes) = (Vec::new(), [None, Some(0), Some(1)]);
        for sample in of_different_groups(base, places) {
            for cause in causes {
                let wall = Wall {
                    cause,
                    ..Wall::default()
                };
                all.push(merger.group(&sample, Some(&wall), &contexts));
            }
            // Nothing is said of a wait, or that its cause is not known.
            assert_eq!(merger.group(&sample, None, &contexts), all[all.len() - 3]);
        }
        let of_another_stack = Sample { stack: 99, ..base };
        assert_eq!(merger.group(&of_another_stack, None, &contexts), all[0]);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn equal_samples_are_found_among_thousands() {
        const THREADS: u32 = 3000;
        let (mut samples, mut walls) = (Vec::new(), Vec::new());
        let mut merger = Merger::above(2000);
        let contexts = Interner::default();
        for _ in 0..3 {
            for thread in 0..THREADS {
                let sample = Sample {
                    thread,
                    ..sample(0)
                };
                merger.add(sample, &mut samples, &mut walls, &contexts);
            }
        }
        assert_eq!(samples.len(), THREADS as usize);
        assert!(samples.iter().all(|sample| sample.count == 3));
    }

    /// Of 16 numbers each is drawn as often as any other, and after each of them. The seed is
    /// fixed; of 272 counts one lies five standard deviations off in one of 6000 seeds.
    #[test]
    fn whose_stack_is_kept_is_drawn_evenly() {
        const EACH: u64 = 1000;
        let mut merger = Merger::above(1);
        let (mut times, mut pairs, mut last) = ([0u64; 16], [0u64; 256], 0);
        for _ in 0..16 * 16 * EACH {
            let number = merger.below(16);
            times[number as usize] += 1;
            pairs[(16 * last + number) as usize] += 1;
            last = number;
        }
        let is_even = |count: u64, mean: u64| count.abs_diff(mean).pow(2) < 25 * mean;
        assert!(
            times.iter().all(|count| is_even(*count, 16 * EACH)),
            "{times:?}"
        );
        assert!(pairs.iter().all(|count| is_even(*count, EACH)), "{pairs:?}");
        assert!((0..1000).all(|_| merger.below(3) < 3));
        assert_eq!(merger.below(1), 0);
    }
}
