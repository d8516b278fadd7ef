//! Throttling: the control group's quota of processor time is used up, and all threads stand.

use super::ready::Ready;
use crate::evidence::{Facts, THROTTLED};
use crate::finding::{Evidence, Finding, Focus, Measure, Sure, Verdict, View};
use crate::numbers::{count, duration, percent, plural};
use crate::share::Share;
use dwell_profile::Platform;

/// A part of the periods that is worth a change.
const SHARE: f64 = 0.05;
/// Periods below which it is chance.
const PERIODS: u64 = 20;

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let Some(limit) = facts.profile.cpu_limit() else {
        return Verdict::lacks("the recording does not have the control group's limit");
    };
    let periods = Share::counted(
        limit.throttled,
        limit.periods,
        "the periods of the control group",
    );
    if limit.quota_ns == 0 || limit.periods < PERIODS || periods.value < SHARE {
        return Verdict::Found(Vec::new());
    }
    let in_periods = percent(periods.value);
    let sums = Ready::of(facts);
    let held = (sums.throttled.samples > 0).then(|| Evidence {
        text: format!(
            "{} of {}, {} in all: runnable threads that the quota held back",
            percent(sums.throttled.share(&sums.busy)),
            sums.of,
            duration(sums.throttled.sum as f64)
        ),
        view: View {
            measure: Measure::Wall,
            causes: vec![THROTTLED.to_owned()],
            ..View::default()
        },
        stack: Vec::new(),
    });
    // Cost, if it is known.
    let share = match held {
        Some(_) => Share::sampled(&sums.throttled, &sums.busy, sums.of),
        None => Share {
            ns: limit.throttled_ns,
            ..periods
        },
    };
    let weight = match held {
        Some(_) => facts.lost_waiting(sums.throttled.sum),
        None => facts.lost_by_all(share.value),
    };
    let counted = Evidence {
        text: format!(
            "{} of {} throttled",
            count(limit.throttled),
            plural(limit.periods, "period")
        ),
        view: View {
            focus: Some(Focus::Part("overtime".to_owned())),
            ..View::default()
        },
        stack: Vec::new(),
    };
    let quota = limit.quota_ns as f64 / 1e9;
    Verdict::Found(vec![Finding {
        rule: "",
        what: format!(
            "the quota of {quota:.1} CPUs was used up in {in_periods} of its periods, and threads \
             were throttled for {} in all",
            duration(limit.throttled_ns as f64)
        ),
        weight,
        share,
        evidence: held.into_iter().chain([counted]).collect(),
        remedy: remedy(facts.profile.info().platform(), quota),
        sure: Sure::High,
        because: "the kernel counts these periods".to_owned(),
    }])
}

fn remedy(platform: Platform, quota: f64) -> String {
    let below = match platform {
        Platform::Jvm => format!(
            "keep the JVM below it: with -XX:ActiveProcessorCount={:.0} pools and collectors \
             start fewer threads",
            quota.ceil().max(1.0)
        ),
        Platform::Mono => "let the program run fewer threads at a time".to_owned(),
    };
    format!("raise the quota (cpu.max, the container's CPU limit) or remove it, or {below}")
}

/// Whether this rule has a finding. Other rules then leave out its consequences.
pub(super) fn speaks(facts: &Facts<'_>) -> bool {
    matches!(check(facts), Verdict::Found(found) if !found.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn exhausted_quota_is_reported() {
        let mut art = Art::default();
        art.processors(8, 1500, 100, 40);
        let found = art.found(check);
        assert!(
            found[0].what.contains("1.5 CPUs was used up in 40 %"),
            "{found:?}"
        );
        assert!(found[0].remedy.contains("ActiveProcessorCount=2"));
    }

    #[test]
    fn throttling_reports_known_cost_for_requests() {
        let mut art = Art::default();
        art.look("w-1", "GET /h", "throttled", "app.Hot.loop", 75, 20);
        art.cpu("w-1", "GET /h", "app.Hot.loop", 50, 10);
        art.processors(8, 1500, 100, 40);
        let found = art.found(check);
        let evidence = &found[0].evidence[0];
        let told = "75 % of the wall time of requests, 1.5 s in all";
        assert!(evidence.text.contains(told), "{evidence:?}");
        assert_eq!(evidence.view.causes, ["throttled"]);
        assert!((found[0].share.value - 0.75).abs() < 1e-9, "{found:?}");
        assert!(found[0].what.contains("in 40 % of its"), "{found:?}");
    }

    #[test]
    fn a_quota_with_room_or_none_is_fine() {
        for (quota, throttled) in [(1500, 1), (0, 40)] {
            let mut art = Art::default();
            art.processors(8, quota, 100, throttled);
            assert_eq!(art.found(check), []);
        }
        assert!(Art::default().lacks(check).contains("control group"));
    }
}
