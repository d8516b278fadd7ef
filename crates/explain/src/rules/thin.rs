//! Recordings that are too short or too thin to say much, or that lost too much of what there was.

use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Sure, Verdict, View};
use crate::numbers::{duration, percent, plural};
use crate::share::Share;

/// Less is too short: a program has not done everything yet.
const SHORTEST_NS: u64 = 3_000_000_000;
/// Below this a share of a tenth is uncertain by more than itself.
const SAMPLES: u64 = 100;
/// Parts of stacks failed, of samples lost and of CPU time not seen that make shares wrong.
const FAILED: f64 = 0.10;
const LOST: f64 = 0.05;
const SEEN: f64 = 0.85;

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let reasons = reasons(facts);
    let Some((_, remedy)) = reasons.first() else {
        return Verdict::Found(Vec::new());
    };
    let all: Vec<&str> = reasons.iter().map(|(reason, _)| reason.as_str()).collect();
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!("the recording says little: {}", all.join("; ")),
        share: Share::counted(1, 1, "the recording"),
        evidence: vec![Evidence {
            text: "what else is found here has wide intervals, and what is not may be there"
                .to_owned(),
            view: View::default(),
            stack: Vec::new(),
        }],
        remedy: (*remedy).to_owned(),
        sure: Sure::High,
        because: "it is counted".to_owned(),
        // First of all, so that the rest is read with it in mind.
        weight: 2.0,
    }])
}

fn reasons(facts: &Facts<'_>) -> Vec<(String, &'static str)> {
    const LONGER: &str = "record longer (-d 60), under the load that is slow, and with a shorter \
                          interval (-i 1ms, --wall 5ms)";
    let profile = facts.profile;
    let mut reasons = Vec::new();
    let span_ns = profile.info().duration_ns;
    if span_ns < SHORTEST_NS {
        let text = format!("it is {} long", duration(span_ns as f64));
        reasons.push((text, LONGER));
    }
    let looks: u64 = facts.entries.iter().map(|entry| entry.weight.samples).sum();
    let samples = facts.cpu_total.samples.max(looks);
    if samples < SAMPLES {
        let of = facts
            .endpoint
            .map_or(String::new(), |endpoint| format!(" of {endpoint}"));
        reasons.push((format!("it has {}{of}", plural(samples, "sample")), LONGER));
    }
    let failed = profile.failed().share(&profile.total());
    if failed > FAILED {
        let text = format!("{} of its stacks are not whole", percent(failed));
        let remedy = "see docs/troubleshooting.md for the causes of failed stacks that \
                      report --text names";
        reasons.push((text, remedy));
    }
    let lost = profile
        .losses()
        .iter()
        .fold(0u64, |sum, l| sum.saturating_add(l.weight_ns));
    let all = profile.total().sum.saturating_add(lost);
    if lost as f64 > LOST * all as f64 {
        let text = format!("{} of its time was lost", percent(lost as f64 / all as f64));
        reasons.push((
            text,
            "use a longer interval (-i 10ms), so that dwell keeps up",
        ));
    }
    if let Some(seen) = profile.cpu_share().filter(|seen| *seen < SEEN) {
        let text = format!(
            "its samples stand for {} of the CPU time used",
            percent(seen)
        );
        reasons.push((text, "see docs/limits.md for what takes no samples"));
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn few_samples_and_a_short_time_are_told() {
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
    fn enough_is_enough() {
        let mut art = Art::default();
        art.cpu("w", "", "app.A.b", 200, 10);
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn stacks_that_failed_are_told() {
        let mut art = Art::default();
        art.cpu("w", "", "app.A.b", 200, 10).failed(50, 10);
        assert!(art.found(check)[0].what.contains("20 % of its stacks"));
    }
}
