//! The effect of lost samples on tables by method, thread and place, in words.

use dwell_profile::{Loss, Profile, Recorder};

use crate::number::{count, percent, plural, size};
use crate::plain::plain;

/// Classes, threads or methods that are named.
const PLACES: usize = 3;

/// A sentence; empty if no sample was lost.
#[must_use]
pub fn incomplete(profile: &Profile) -> String {
    // Where dwell names a loss without weight, nothing is lost: another sample has the weight.
    let is_ours = profile.info().recorder() == Recorder::Dwell;
    let is_lost = |loss: &&Loss| loss.weight_ns > 0 || !is_ours;
    let lost = profile.losses().iter().filter(is_lost);
    let lost = lost.fold(0u64, |sum, loss| sum.saturating_add(loss.samples));
    let all = lost.saturating_add(profile.total().samples);
    match lost {
        0 => String::new(),
        _ => format!(
            "{} of {} samples were lost ({}): shares are of the others, and incomplete by place",
            count(lost),
            count(all),
            percent(lost as f64 / all as f64)
        ),
    }
}

/// The same of allocations, with the classes, threads and methods of most lost bytes.
pub(crate) fn incomplete_allocations(profile: &Profile) -> String {
    let sampling = profile.allocation_sampling().copied().unwrap_or_default();
    if sampling.lost == 0 {
        return String::new();
    }
    let mut told = format!(
        "{} (buffer full) of {}, {} of the allocated bytes: shares are of the others, and \
         incomplete by class and method",
        plural(sampling.lost, "sample"),
        size(sampling.lost_bytes),
        percent(profile.lost_allocated_share()),
    );
    let of = profile.lost_bytes();
    for (what, rows) in ["class", "thread", "method"].into_iter().zip(of) {
        if rows.is_empty() {
            continue;
        }
        let shown = rows.iter().take(PLACES);
        let shown = shown.map(|(name, bytes)| format!("{} {}", plain(name), size(*bytes)));
        let mut shown: Vec<String> = shown.collect();
        if rows.len() > PLACES {
            shown.push("...".to_owned());
        }
        told += &format!("; by {what}: {}", shown.join(", "));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{AllocationSampling, Builder, LostAllocations, Sample};

    fn lost(version: &str, weight_ns: u64) -> String {
        let mut builder = Builder::default();
        builder.info.profiler_version = version.to_owned();
        let thread = builder.thread("main", 1, 1, false);
        let node = builder.stack([]);
        builder.sample(Sample {
            time_ns: 0,
            thread,
            node,
            weight: 1,
            count: 3,
            failure: None,
            context: None,
        });
        builder.losses.push(Loss {
            cause: "no room".to_owned(),
            samples: 1,
            weight_ns,
        });
        incomplete(&builder.finish())
    }

    #[test]
    fn lost_allocations_are_named_by_class_thread_and_method() {
        let mut builder = Builder::default();
        assert_eq!(incomplete_allocations(&builder.clone().finish()), "");
        let thread = builder.thread("loader-1", 7, 7, false);
        let load = builder.name("app.Loader.load");
        for at in 0..4u64 {
            let class = builder.name(&format!("app.C{at}[]"));
            builder.lost_allocations.push(LostAllocations {
                class,
                thread: Some(thread),
                method: (at > 0).then_some(load),
                samples: 1,
                bytes: (10 - at) << 20,
            });
        }
        builder.allocation_sampling = Some(AllocationSampling {
            lost: 4,
            lost_bytes: 34 << 20,
            ..AllocationSampling::default()
        });
        assert_eq!(
            incomplete_allocations(&builder.finish()),
            "4 samples (buffer full) of 34.0 MiB, 100.0 % of the allocated bytes: shares are of \
             the others, and incomplete by class and method; by class: app.C0[] 10.0 MiB, app.C1[] \
             9216 KiB, app.C2[] 8192 KiB, ...; by thread: loader-1 34.0 MiB; by method: \
             app.Loader.load 24.0 MiB, [other methods] 10.0 MiB"
        );
    }

    #[test]
    fn lost_samples_make_shares_incomplete() {
        let told = lost("", 0);
        assert!(
            told.starts_with("1 of 4 samples were lost (25.0 %)"),
            "{told}"
        );
        assert_eq!(lost("0.1.0", 7), told);
        assert_eq!(lost("0.1.0", 0), "", "another sample has the weight");
    }
}
