//! The samples and looks of a page. Very many are binned: equal thread, stack, cause and request
//! within a bin of time become one entry. Its time is then that of the bin. Weights are rounded,
//! and the rounding error is carried to the next weight, so counts and sums of weights stay the
//! same.

use std::borrow::Cow;

use dwell_profile::{BINS_MIN, BINS_NS, Look, Profile, Role, SAMPLES_MAX, Sample, choices_of_both};

use super::calls::Calls;

/// Weights are rounded to about this part of their mean: less than the error of a sample.
const WEIGHT_PARTS: u64 = 8;
/// Durations are rounded to about this part of a bin.
const DURATION_PARTS: u64 = 16;

/// Maximum number of entries with times to the nanosecond and exact weights.
const EXACT_MAX: usize = 100_000;
/// Times of more entries are rounded to a power of two: this part of the recording's time ...
const STEPS: u64 = 1 << 19;
/// Maximum step.
const STEP_MAX_NS: u64 = 1 << 16;

/// Entries of a page.
pub(super) struct Entries<'p> {
    pub(super) samples: Cow<'p, [Sample]>,
    /// How many samples each one stands for.
    pub(super) counts: Vec<u64>,
    pub(super) roles: Vec<Role>,
    /// Whether each one is part of the wall time.
    pub(super) running: Vec<bool>,
    pub(super) looks: Cow<'p, [Look]>,
    /// The bin of time within which they are put together; 0: they are not.
    pub(super) bin_ns: u64,
    /// Step to which times are rounded, a power of two.
    step_ns: u64,
}

/// Key of equal entries: all that the page shows of them except time, weight and count.
type Key = [u64; 4];
/// Key, time and place of a sample. All compared values are together, because looking them up again
/// takes most of the time.
type Item = (Key, u64, u32);

impl<'p> Entries<'p> {
    /// The entries of a profile. `work` has one number for all contexts that the page shows as one.
    pub(super) fn of(profile: &'p Profile, calls: &Calls<'_>, work: &[u64]) -> Entries<'p> {
        Entries::at_most(profile, calls, work, SAMPLES_MAX)
    }

    fn at_most(profile: &'p Profile, calls: &Calls<'_>, work: &[u64], most: usize) -> Entries<'p> {
        let (samples, looks) = (profile.samples(), profile.looks());
        let (roles, running) = (profile.sample_roles(), profile.samples_in_wall());
        if samples.len() + looks.len() <= most && profile.bin_ns() == 0 {
            return Entries {
                samples: Cow::Borrowed(samples),
                counts: samples.iter().map(|s| u64::from(s.count)).collect(),
                roles,
                running,
                looks: Cow::Borrowed(looks),
                bin_ns: 0,
                step_ns: step(samples.len() + looks.len(), profile.info().duration_ns),
            };
        }
        let start_ns = profile.info().start_ns;
        let of = |context: Option<u32>| {
            let number = context.and_then(|context| work.get(context as usize));
            number.copied().unwrap_or(0)
        };
        let sample_key = |at: u32| key_of_sample((samples, calls), &roles, &running, at, of);
        let look_key = |at: u32| key_of_look((looks, calls), at, of);
        let sample_time = |at: u32| samples.get(at as usize).map_or(0, |s| s.time_ns);
        let look_time = |at: u32| looks.get(at as usize).map_or(0, |l| l.time_ns);
        let order = sorted(samples.len(), sample_key, sample_time);
        let look_order = sorted(looks.len(), look_key, look_time);
        let count = |bin_ns| {
            let in_bin = |time_ns: u64| time_ns.saturating_sub(start_ns) / bin_ns;
            runs(&order, in_bin).count() + runs(&look_order, in_bin).count()
        };
        let fits = |bin_ns| bin_ns >= profile.bin_ns() && count(bin_ns) <= most;
        let bin_ns = bin_for(profile.info().duration_ns, fits);
        let in_bin = |time_ns: u64| time_ns.saturating_sub(start_ns) / bin_ns;
        let groups = runs(&order, in_bin);
        let mut merged: Vec<(Sample, u64, u32)> = groups
            .filter_map(|run| merged_sample(samples, run))
            .collect();
        drop(order);
        // The order of a recording: by time, then by the order that compresses best.
        merged.sort_by_key(|(s, ..)| (in_bin(s.time_ns), s.thread, s.node, s.time_ns));
        let groups = runs(&look_order, in_bin);
        let mut merged_looks: Vec<Look> =
            groups.filter_map(|run| merged_look(looks, run)).collect();
        drop(look_order);
        merged_looks.sort_by_key(|l| (in_bin(l.time_ns), l.thread, l.node, l.time_ns));
        let begin = |time_ns: u64| start_ns + in_bin(time_ns) * bin_ns;
        round_samples(&mut merged, begin);
        round_looks(&mut merged_looks, bin_ns, begin);
        let role = |at: u32| roles.get(at as usize).copied().unwrap_or(Role::Program);
        Entries {
            counts: merged.iter().map(|(_, count, _)| *count).collect(),
            roles: merged.iter().map(|(_, _, first)| role(*first)).collect(),
            running: merged
                .iter()
                .map(|(_, _, first)| running.get(*first as usize) == Some(&true))
                .collect(),
            samples: merged.into_iter().map(|(sample, ..)| sample).collect(),
            looks: merged_looks.into(),
            bin_ns,
            step_ns: 1,
        }
    }

    /// A time, rounded to the step.
    pub(super) fn rounded(&self, time_ns: u64) -> u64 {
        time_ns & !(self.step_ns - 1)
    }

    /// Rounds the weights of samples, one after another.
    pub(super) fn weights(&self) -> Rounding {
        match self.step_ns {
            1 => Rounding::to(1),
            _ => Rounding::to(mean(self.samples.iter().map(|s| s.weight)) / WEIGHT_PARTS),
        }
    }
}

/// The step for this number of entries: invisible in the full recording, and at most about 66 us.
fn step(entries: usize, duration_ns: u64) -> u64 {
    match entries <= EXACT_MAX {
        true => 1,
        false => 1 << (duration_ns / STEPS).clamp(1, STEP_MAX_NS).ilog2(),
    }
}

/// The finest bin that fits, of those of which the recording has enough.
fn bin_for(duration_ns: u64, mut fits: impl FnMut(u64) -> bool) -> u64 {
    let [finest, coarser @ ..] = BINS_NS;
    let mut bin_ns = finest;
    for next in coarser {
        if fits(bin_ns) || next > duration_ns / BINS_MIN {
            break;
        }
        bin_ns = next;
    }
    bin_ns
}

/// Rounds numbers one after the other to a power of two, so that few of their bytes say anything.
pub(super) struct Rounding {
    step: u64,
    /// Rounding error of the values so far.
    carry: i128,
}

impl Rounding {
    fn to(step: u64) -> Rounding {
        let step = 1u64 << step.max(1).ilog2();
        Rounding { step, carry: 0 }
    }

    pub(super) fn round(&mut self, value: u64) -> u64 {
        let step = i128::from(self.step);
        let wanted = i128::from(value) + self.carry;
        let rounded = ((wanted + step / 2).div_euclid(step) * step).max(0);
        self.carry = wanted - rounded;
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }
}

fn mean(weights: impl Iterator<Item = u64>) -> u64 {
    let (sum, count) = weights.fold((0u128, 0u128), |(s, n), w| (s + u128::from(w), n + 1));
    u64::try_from(sum / count.max(1)).unwrap_or(u64::MAX)
}

fn round_samples(samples: &mut [(Sample, u64, u32)], begin: impl Fn(u64) -> u64) {
    // Where samples are only counted there is nothing to round.
    let step = mean(samples.iter().map(|(s, ..)| s.weight)) / WEIGHT_PARTS;
    let mut rounding = Rounding::to(step);
    for (sample, ..) in samples {
        sample.time_ns = begin(sample.time_ns);
        sample.weight = rounding.round(sample.weight);
    }
}

fn round_looks(looks: &mut [Look], bin_ns: u64, begin: impl Fn(u64) -> u64) {
    let mut weights = Rounding::to(mean(looks.iter().map(|l| l.weight_ns)) / WEIGHT_PARTS);
    let mut durations = Rounding::to(bin_ns / DURATION_PARTS);
    for look in looks {
        look.time_ns = begin(look.time_ns);
        look.duration_ns = durations.round(look.duration_ns);
        look.weight_ns = weights.round(look.weight_ns);
    }
}

fn key_of_sample(
    (samples, calls): (&[Sample], &Calls<'_>),
    roles: &[Role],
    running: &[bool],
    at: u32,
    work: impl Fn(Option<u32>) -> u64,
) -> Key {
    let at = at as usize;
    let Some(sample) = samples.get(at) else {
        return Key::default();
    };
    let role = roles.get(at).map_or(0, |&role| role as u64);
    let is_running = u64::from(running.get(at) == Some(&true));
    [
        u64::from(sample.thread) << 32 | u64::from(calls.of_node(sample.node)),
        sample.failure.map_or(0, |id| u64::from(id) + 1),
        role << 1 | is_running,
        work(sample.context),
    ]
}

fn key_of_look(
    (looks, calls): (&[Look], &Calls<'_>),
    at: u32,
    work: impl Fn(Option<u32>) -> u64,
) -> Key {
    let Some(look) = looks.get(at as usize) else {
        return Key::default();
    };
    let numbered = |id: Option<u32>| id.map_or(0, |id| u64::from(id) + 1);
    [
        u64::from(look.thread) << 32 | u64::from(calls.of_node(look.node)),
        u64::from(look.cause) << 32 | numbered(look.detail),
        numbered(look.owner) << 32 | numbered(look.owner_node.map(|node| calls.of_node(node))),
        work(look.context),
    ]
}

/// Items by key, then time.
fn sorted(items: usize, key: impl Fn(u32) -> Key, time: impl Fn(u32) -> u64) -> Vec<Item> {
    let places = 0..u32::try_from(items).unwrap_or(u32::MAX);
    let mut order: Vec<Item> = places.map(|at| (key(at), time(at), at)).collect();
    order.sort_unstable();
    order
}

/// Runs of items with the same key and bin.
fn runs<'o>(order: &'o [Item], bin: impl Fn(u64) -> u64 + 'o) -> impl Iterator<Item = &'o [Item]> {
    order.chunk_by(move |a, b| a.0 == b.0 && bin(a.1) == bin(b.1))
}

/// A sample for some that are alike: at the time of the first, the count, and the first's place.
fn merged_sample(samples: &[Sample], run: &[Item]) -> Option<(Sample, u64, u32)> {
    let &(_, _, first) = run.first()?;
    let mut sum = *samples.get(first as usize)?;
    let mut count = u64::from(sum.count);
    let rest = run.iter().skip(1);
    for sample in rest.filter_map(|&(_, _, at)| samples.get(at as usize)) {
        sum.weight = sum.weight.saturating_add(sample.weight);
        count = count.saturating_add(u64::from(sample.count));
    }
    Some((sum, count, first))
}

/// A look for some that are alike: from the first one's beginning to the last end.
fn merged_look(looks: &[Look], run: &[Item]) -> Option<Look> {
    let &(_, _, first) = run.first()?;
    let mut sum = *looks.get(first as usize)?;
    let mut end_ns = sum.time_ns.saturating_add(sum.duration_ns);
    let rest = run.iter().skip(1);
    for look in rest.filter_map(|&(_, _, at)| looks.get(at as usize)) {
        let [a, b] = [&sum, look].map(|it| (it.weight_ns, it.as_choices()));
        sum.choices = choices_of_both(a, b);
        sum.weight_ns = sum.weight_ns.saturating_add(look.weight_ns);
        sum.count = sum.count.saturating_add(look.count);
        end_ns = end_ns.max(look.time_ns.saturating_add(look.duration_ns));
    }
    sum.duration_ns = end_ns.saturating_sub(sum.time_ns);
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Context, text_art};

    /// 100 samples and looks of two stacks, 4 ms apart, the later half for a request.
    fn profile() -> Profile {
        let mut builder: Builder = text_art::builder("a.A.x  a.A.y");
        let cause = builder.cause("park");
        let context = builder.context(Context {
            span_id: 1,
            ..Context::default()
        });
        for number in 0..100u64 {
            let context = (number >= 50).then_some(context);
            let node = 1 + (number % 2) as u32;
            builder.sample(Sample {
                time_ns: number * 4_000_000,
                thread: 0,
                node,
                weight: number,
                count: 1,
                failure: None,
                context,
            });
            builder.look(Look {
                time_ns: number * 4_000_000,
                duration_ns: 1_000_000,
                thread: 0,
                node,
                cause,
                weight_ns: 7,
                count: 2,
                choices: 0,
                context,
                detail: None,
                owner: None,
                owner_node: None,
            });
        }
        builder.finish()
    }

    #[test]
    fn few_entries_are_as_they_were() {
        let profile = profile();
        let entries = Entries::of(&profile, &Calls::of(&profile), &[]);
        assert_eq!(entries.bin_ns, 0);
        assert_eq!(entries.samples.len(), profile.samples().len());
        assert!(entries.counts.iter().all(|&count| count == 1));
    }

    #[test]
    fn equal_entries_of_a_bin_are_merged_if_there_are_many() {
        let profile = profile();
        let entries = Entries::at_most(&profile, &Calls::of(&profile), &[5], 60);
        // 400 ms are too few for bins of 50 ms: 40 bins of samples and of looks, two stacks each,
        // and two samples of the text art.
        assert_eq!(entries.bin_ns, 10_000_000);
        assert!(entries.samples.len() < profile.samples().len());
        let weight: u64 = entries.samples.iter().map(|s| s.weight).sum();
        let step = 1 << (50u64 / WEIGHT_PARTS).ilog2();
        assert!(weight.abs_diff(profile.total().sum) <= step);
        assert_eq!(
            entries.counts.iter().sum::<u64>(),
            profile.samples().len() as u64
        );
        let looks = entries.looks.iter();
        let (weight, count) = looks.fold((0, 0), |(w, c), l| (w + l.weight_ns, c + l.count));
        assert_eq!((weight, count), (700, 200));
        for look in entries.looks.iter() {
            assert_eq!(look.time_ns % entries.bin_ns, 0);
            assert_eq!(look.context.is_some(), look.time_ns >= 200_000_000);
        }
        assert!(
            entries
                .samples
                .is_sorted_by_key(|s| (s.time_ns, s.thread, s.node))
        );
        assert_eq!(entries.roles.len(), entries.samples.len());
        assert_eq!(entries.running.len(), entries.samples.len());
    }

    #[test]
    fn bins_are_as_fine_as_fits_and_enough() {
        let hour_ns = 3_600_000_000_000;
        assert_eq!(bin_for(hour_ns, |_| true), 10_000_000);
        assert_eq!(
            bin_for(hour_ns, |bin_ns| bin_ns >= 1_000_000_000),
            1_000_000_000
        );
        assert_eq!(bin_for(hour_ns, |_| false), 5_000_000_000);
        assert_eq!(bin_for(1_000, |_| false), 10_000_000);
    }

    #[test]
    fn times_of_many_entries_are_rounded_invisibly() {
        let minute_ns = 60_000_000_000;
        assert_eq!(step(EXACT_MAX, minute_ns), 1);
        assert_eq!(step(EXACT_MAX + 1, minute_ns), STEP_MAX_NS);
        assert_eq!(step(EXACT_MAX + 1, 1_000_000_000), 1024);
        assert_eq!(step(EXACT_MAX + 1, 0), 1);
        let profile = profile();
        let mut entries = Entries::of(&profile, &Calls::of(&profile), &[]);
        assert_eq!(
            (entries.rounded(4097), entries.weights().round(77)),
            (4097, 77)
        );
        entries.step_ns = 4096;
        assert_eq!(entries.rounded(4097), 4096);
        // The mean is 48.
        let step = 1 << (48u64 / WEIGHT_PARTS).ilog2();
        assert_eq!(entries.weights().round(77) % step, 0);
    }

    #[test]
    fn rounding_keeps_the_sum() {
        let mut rounding = Rounding::to(9);
        assert_eq!(rounding.step, 8);
        let values = [3u64, 3, 3, 100, 0, 7, 7];
        let rounded: Vec<u64> = values.iter().map(|&value| rounding.round(value)).collect();
        assert!(rounded.iter().all(|value| value % 8 == 0), "{rounded:?}");
        let (sum, rounded): (u64, u64) = (values.iter().sum(), rounded.iter().sum());
        assert!(sum.abs_diff(rounded) <= 4, "{sum} {rounded}");
        assert_eq!(Rounding::to(0).round(5), 5);
    }
}
