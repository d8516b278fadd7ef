//! Why is it slow? Rules over a profile that give findings: what is wrong, how much it costs, what
//! shows it, what to do, and how sure that is.
//!
//! One small file a rule, in `rules`; what they share is in [`Facts`](evidence::Facts). A rule that
//! lacks data says so and never guesses. Nothing here opens files or knows an output format.

#![forbid(unsafe_code)]

mod allocators;
mod evidence;
mod exact_waits;
mod finding;
mod machine;
mod names;
mod numbers;
mod operation;
mod owners;
mod rules;
mod services;
mod share;
mod stacks;
mod waits;

#[cfg(test)]
mod any_profile;
#[cfg(test)]
mod art;

pub use finding::{Evidence, Explanation, Finding, Measure, Skipped, Sure, View};
pub use numbers::short;
pub use operation::Operation;
pub use rules::names as rule_names;
pub use share::Share;

use dwell_profile::{Profile, Unit, WallFilter};
use finding::Verdict;

/// The most findings of one explanation: more are not read.
const FINDINGS_MAX: usize = 12;
/// What shares of samples of CPU time are shares of.
const CPU_TIME: &str = "the CPU time";

/// What is to be explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Only requests of such endpoints, `*` for anything.
    pub endpoint: Option<String>,
}

/// The findings of a profile, the gravest first.
#[must_use]
pub fn explain(profile: &Profile, options: &Options) -> Explanation {
    let filter = WallFilter {
        endpoint: options.endpoint.clone(),
        ..WallFilter::default()
    };
    let facts = evidence::Facts::new(profile, &filter);
    let mut explanation = Explanation {
        idle: profile.has_wall().then(|| profile.idle(&filter)).flatten(),
        self_check: profile.self_check(options.endpoint.as_deref()),
        ..Explanation::default()
    };
    for rule in rules::ALL {
        match (rule.check)(&facts) {
            Verdict::Found(found) => {
                if found.is_empty() {
                    explanation.passed.push(rule.name);
                }
                let named = found.into_iter().map(|finding| finding.of_rule(rule.name));
                explanation.findings.extend(named);
            }
            Verdict::Lacks(why) => explanation.not_applicable.push(Skipped {
                rule: rule.name,
                why,
            }),
        }
    }
    if profile.unit() != Unit::Nanoseconds {
        (explanation.findings.iter_mut()).for_each(|finding| count_only(&mut finding.share));
    }
    let gravest_first = |a: &Finding, b: &Finding| b.weight.total_cmp(&a.weight);
    explanation.findings.sort_by(gravest_first);
    explanation.left_out = explanation.findings.len().saturating_sub(FINDINGS_MAX);
    explanation.findings.truncate(FINDINGS_MAX);
    explanation
}

/// Samples that only count stand for no time: what is a share of them has none.
fn count_only(share: &mut Share) {
    if share.of == CPU_TIME && share.samples > 0 {
        share.ns = 0;
        share.of = "the samples".to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn idle_time_is_told_besides_and_shares_are_of_the_rest() {
        let mut art = Art::default();
        let waits = "app.Stock.reserve";
        art.look("job-1", "", "monitor", waits, 60, 20);
        art.cpu("job-1", "", "app.Work.run", 60, 20);
        let take = "java.util.concurrent.ThreadPoolExecutor.getTask";
        art.look("job-1", "", "idle-pool", take, 600, 20);
        art.look("other-1", "", "idle-pool", take, 600, 20);
        let explained = explain(&art.profile(), &Options::default());
        let idle = explained.idle.unwrap();
        assert_eq!((idle.threads, idle.all_threads), (2, 2));
        assert!((idle.share() - 1200.0 / 1320.0).abs() < 1e-9, "{idle:?}");
        let lock = (explained.findings.iter()).find(|found| found.rule == "lock-contention");
        let share = &lock.unwrap().share;
        assert!((share.value - 0.5).abs() < 1e-9, "{share:?}");
        // Nothing was idle: nothing is said.
        let mut art = Art::default();
        art.look("job-1", "", "monitor", waits, 60, 20);
        assert_eq!(explain(&art.profile(), &Options::default()).idle, None);
    }

    #[test]
    fn a_hot_path_with_a_known_reason_is_told_once() {
        let mut art = Art::default();
        let read = "java.nio.file.Files.readAllBytes;app.Files.send";
        art.cpu("w", "", read, 60, 10);
        art.cpu("w", "", "app.Work.run", 60, 10);
        let explained = explain(&art.profile(), &Options::default());
        let told = |rule, place: &str| {
            let of_rule = explained.findings.iter().filter(|found| found.rule == rule);
            of_rule.filter(|found| found.what.contains(place)).count()
        };
        assert_eq!(told("repeated-reads", "app.Files.send"), 1);
        assert_eq!(told("hot-path", "app.Files.send"), 0);
        assert_eq!(told("hot-path", "app.Work.run"), 1);
        // Where the rule for the reason does not speak, the hot path does.
        let mut art = Art::default();
        let little = "java.lang.Throwable.fillInStackTrace;app.Parse.int";
        (art.cpu("w", "", little, 3, 10)).cpu("w", "", "app.Parse.int", 60, 10);
        let explained = explain(&art.profile(), &Options::default());
        assert!(
            explained
                .findings
                .iter()
                .any(|found| found.rule == "hot-path")
        );
    }
}
