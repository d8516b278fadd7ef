//! Recordings that are too short, have too few samples, or lost too many.

use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Focus, Sure, Verdict, View};
use crate::numbers::{count, duration, percent, plural, some_of};
use crate::share::Share;
use dwell_profile::{Lack, Profile, Recorder, Weight};

/// Less is too short: a program has not done everything yet.
const SHORTEST_NS: u64 = 3_000_000_000;
/// Below this a share of a tenth is uncertain by more than itself.
const SAMPLES: u64 = 100;
/// Parts of stacks failed, of samples lost and of CPU time not seen that make shares wrong.
const FAILED: f64 = 0.10;
const LOST: f64 = 0.05;
const SEEN: f64 = 0.85;
/// Causes of samples that are not taken because their thread or the recording ends.
const ENDS: [&str; 2] = ["thread_ended_unsampled", "recording_ended_unsampled"];

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let reasons = reasons(facts);
    let Some((_, remedy)) = reasons.first() else {
        return match other_measures(facts) {
            Some(told) if facts.profile.samples().is_empty() && facts.entries.is_empty() => {
                Verdict::Lacks(format!("the recording has no samples of time, but {told}"))
            }
            _ => Verdict::Found(Vec::new()),
        };
    };
    let all: Vec<&str> = reasons.iter().map(|(reason, _)| reason.as_str()).collect();
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!("too little data: {}", all.join("; ")),
        share: Share::counted(1, 1, "the recording"),
        evidence: vec![Evidence {
            text: "other findings have wide intervals, and some problems may be missing".to_owned(),
            view: View {
                focus: Some(Focus::Part("recording".to_owned())),
                ..View::default()
            },
            stack: Vec::new(),
        }],
        remedy: (*remedy).to_owned(),
        sure: Sure::High,
        because: "it is counted".to_owned(),
        // This finding comes first because it limits the confidence in all others.
        weight: f64::MAX,
    }])
}

fn reasons(facts: &Facts<'_>) -> Vec<(String, &'static str)> {
    let profile = facts.profile;
    let remedy = |lack| profile.info().remedy(lack);
    let mut reasons = Vec::new();
    let span_ns = profile.info().duration_ns;
    // Files of other tools may not say how long they are.
    let is_known = span_ns > 0 || profile.info().recorder() == Recorder::Dwell;
    if is_known && span_ns < SHORTEST_NS {
        let text = format!("it is {} long", duration(span_ns as f64));
        reasons.push((text, remedy(Lack::Samples)));
    }
    let looks: u64 = facts.entries.iter().map(|entry| entry.weight.samples).sum();
    let samples = match (facts.endpoint, facts.cpu_total.samples) {
        // Other rules report what such recordings measure.
        (None, 0) => profile.total().samples,
        (_, samples) => samples,
    };
    let samples = samples.max(looks);
    // More time does not help a recording that measures something else.
    let is_of_time = samples > 0 || other_measures(facts).is_none();
    if samples < SAMPLES && is_of_time {
        let of = facts
            .endpoint
            .map_or(String::new(), |endpoint| format!(" of {endpoint}"));
        let text = format!("it has {}{of}", plural(samples, "sample"));
        reasons.push((text, remedy(Lack::Samples)));
    }
    reasons.extend(failed(profile));
    if let Some(text) = lost(profile) {
        reasons.push((text, remedy(Lack::Lost)));
    }
    let is_sure = profile.total().samples >= SAMPLES;
    if let Some(seen) = profile.cpu_share().filter(|it| is_sure && *it < SEEN) {
        let text = format!(
            "its samples stand for {} of the CPU time used",
            percent(seen)
        );
        reasons.push((text, "see docs/limits-samples.md for what takes no samples"));
    }
    reasons
}

/// Stacks that failed, if it is no chance that they are many. The last sample of a thread is not
/// taken if the thread or the recording ends before: such samples are many where few are taken.
fn failed(profile: &Profile) -> Option<(String, &'static str)> {
    let (mut walks, mut ends) = (Weight::default(), Weight::default());
    for failure in profile.failures() {
        match ENDS.contains(&failure.cause.as_str()) {
            true => ends += &failure.weight,
            false => walks += &failure.weight,
        }
    }
    let total = profile.total();
    let are_many = |part: &Weight| Share::sampled(part, &total, "").low > FAILED;
    if walks.samples > 0 && are_many(&walks) {
        let text = format!(
            "{} of its stacks are incomplete",
            percent(walks.share(&total))
        );
        let remedy = "see docs/troubleshooting.md for the causes of failed stacks that \
                      report --text names";
        return Some((text, remedy));
    }
    (total.samples >= SAMPLES && are_many(&ends)).then(|| {
        let share = percent(ends.share(&total));
        let text = format!("{share} of its CPU time was used just before threads or it ended");
        (text, profile.info().remedy(Lack::Samples))
    })
}

/// Measures of a recording without time: objects, waits for locks, memory.
fn other_measures(facts: &Facts<'_>) -> Option<String> {
    let profile = facts.profile;
    let counts = [
        (profile.allocations().len(), "allocated objects"),
        (profile.live().len(), "live objects"),
        (profile.monitor_waits().len(), "waits for monitors"),
    ];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0);
    let counts = counts.map(|(number, what)| format!("{} {what}", count(number as u64)));
    let held = profile.info().held_events.iter();
    let held = held.map(|(name, number)| format!("{} {name}", count(*number)));
    let all: Vec<String> = counts.chain(held).collect();
    (!all.is_empty()).then(|| some_of(&all))
}

/// Share of lost samples, if it is high: by time, or by number if the lost time is unknown. Where
/// dwell names losses without time, nothing is lost: the thread's next sample has the time.
fn lost(profile: &Profile) -> Option<String> {
    let losses = || profile.losses().iter();
    let time = losses().fold(0u64, |sum, loss| sum.saturating_add(loss.weight_ns));
    let number = losses().fold(0u64, |sum, loss| sum.saturating_add(loss.samples));
    let total = profile.total();
    let part = |lost: u64, kept: u64| lost as f64 / lost.saturating_add(kept).max(1) as f64;
    let is_ours = profile.info().recorder() == Recorder::Dwell;
    match (time, part(time, total.sum), part(number, total.samples)) {
        (0, ..) if is_ours => None,
        (1.., of_time, _) if of_time > LOST => {
            Some(format!("{} of its time was lost", percent(of_time)))
        }
        (0, _, of_number) if of_number > LOST => Some(format!(
            "{} were lost, {} of all",
            plural(number, "sample"),
            percent(of_number)
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;
    use dwell_profile::Loss;

    #[test]
    fn few_samples_and_short_time_are_reported() {
        let mut art = Art::default();
        art.builder.info.duration_ns = 1_000_000_000;
        art.cpu("w", "", "app.A.b", 20, 10);
        let found = art.found(check);
        let what = &found[0].what;
        assert!(
            what.contains("1.0 s long") && what.contains("20 samples"),
            "{what}"
        );
    }

    #[test]
    fn unknown_length_is_not_a_short_one() {
        let mut art = Art::default();
        art.cpu("w", "", "app.A.b", 200, 10);
        art.builder.info.duration_ns = 0;
        art.builder.info.profiler_version = "1".to_owned();
        assert!(art.found(check)[0].what.contains("0.0 ns long"));
        art.builder.info.profiler_version.clear();
        art.builder.info.sample_event = "pprof".to_owned();
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn thin_remedy_fits_the_recorder() {
        let mut art = Art::default();
        art.cpu("w", "", "app.A.b", 20, 10);
        assert!(art.found(check)[0].remedy.contains("(-d 60)"));
        art.builder.info.profiler_version.clear();
        art.builder.info.sample_event = "jdk.ExecutionSample".to_owned();
        let remedy = &art.found(check)[0].remedy;
        assert!(remedy.contains("JFR.start duration=60s"), "{remedy}");
        for check in [
            super::super::operations::check,
            super::super::safepoints::check,
        ] {
            let lacks = art.lacks(check);
            assert!(lacks.contains("jdk.SafepointBegin"), "{lacks}");
        }
    }

    #[test]
    fn recording_of_other_measures_is_not_thin() {
        let mut art = Art::default();
        let held = ("profiler.Malloc".to_owned(), 3465);
        art.builder.info.held_events.push(held);
        let lacks = art.lacks(check);
        assert!(
            lacks.contains("no samples of time, but 3,465 profiler.Malloc"),
            "{lacks}"
        );
        // Nothing at all is thin.
        let found = Art::default().found(check);
        assert!(found[0].what.contains("0 samples"), "{found:?}");
    }

    #[test]
    fn enough_is_enough() {
        let mut art = Art::default();
        art.cpu("w", "", "app.A.b", 200, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn losses_are_reported_by_time_or_by_number() {
        let lost = |is_ours: bool, samples, weight_ns| {
            let mut art = Art::default();
            art.cpu("w", "", "app.A.b", 200, 10);
            if !is_ours {
                art.builder.info.profiler_version.clear();
            }
            art.builder.losses.push(Loss {
                cause: "no room".to_owned(),
                samples,
                weight_ns,
            });
            art.found(check).first().map(|found| found.what.clone())
        };
        // 200 samples of 10 ms are 2 s.
        let of_time = lost(true, 1, 500_000_000).unwrap();
        assert!(of_time.contains("20 % of its time was lost"), "{of_time}");
        assert_eq!(lost(true, 1000, 1_000_000), None);
        let of_number = lost(false, 50, 0).unwrap();
        assert!(
            of_number.contains("50 samples were lost, 20 % of all"),
            "{of_number}"
        );
        assert_eq!(lost(false, 10, 0), None);
        assert_eq!(lost(true, 50, 0), None, "other samples have their time");
    }

    #[test]
    fn failed_stacks_are_reported() {
        let mut art = Art::default();
        art.cpu("w", "", "app.A.b", 200, 10).failed(50, 10);
        assert!(art.found(check)[0].what.contains("20 % of its stacks"));
    }

    #[test]
    fn few_failed_stacks_of_an_idle_program_are_chance() {
        let found = |failed, cause: &str, cpu: u64| {
            let mut art = Art::default();
            art.cpu("w", "", "app.A.b", cpu, 10);
            art.look("w", "", "park", "app.A.b", 200, 10);
            art.failed_by(cause, failed, 10);
            art.found(check).first().map(|found| found.what.clone())
        };
        assert_eq!(found(3, "no_table", 10), None);
        let all = found(12, "no_table", 0).unwrap();
        assert!(all.contains("100 % of its stacks"), "{all}");
        for cause in ENDS {
            assert_eq!(found(12, cause, 3), None, "{cause}");
            let many = found(60, cause, 200).unwrap();
            assert!(
                many.contains("23 % of its CPU time was used just"),
                "{many}"
            );
        }
    }

    #[test]
    fn unseen_cpu_time_of_an_idle_program_is_chance() {
        let found = |samples| {
            let mut art = Art::default();
            art.cpu("w", "", "app.A.b", samples, 10);
            art.look("w", "", "park", "app.A.b", 200, 10);
            art.builder.cpu_use = Some(dwell_profile::CpuUse {
                user_ns: samples * 12_500_000,
                system_ns: 0,
                since_ns: 0,
            });
            art.found(check).first().map(|found| found.what.clone())
        };
        assert_eq!(found(7), None);
        assert!(found(200).unwrap().contains("80 % of the CPU time"));
    }
}
