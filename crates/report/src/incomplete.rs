//! The effect of lost samples on tables by method, thread and place, in words.

use dwell_profile::{Loss, Profile, Recorder};

use crate::number::{count, percent};

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

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, Sample};

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
