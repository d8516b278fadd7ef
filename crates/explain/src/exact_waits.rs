//! How long waits for a monitor were, where the recording has them one by one (`-e lock`).

use crate::evidence::Facts;
use crate::finding::{Evidence, Focus, Measure, View};
use crate::numbers::{duration, percent, plural};
use dwell_profile::group_of;
use std::collections::BTreeMap;

/// Recorded waits for monitors of one class in one method of the program, if there are any.
pub(crate) fn evidence(facts: &Facts<'_>, class: &str, place: &str) -> Option<Evidence> {
    let profile = facts.profile;
    let (mut waits, mut sum, mut longest) = (0.0, 0u64, None);
    let mut owners: BTreeMap<String, u64> = BTreeMap::new();
    for wait in profile.monitor_waits() {
        let stack = profile.tree().parent(wait.node);
        let is_of_class = profile.names().text(wait.class) == class;
        if !is_of_class || facts.stacks.place_name(stack) != place {
            continue;
        }
        waits += wait.waits();
        sum = sum.saturating_add(wait.weight_ns);
        if longest.is_none_or(|(ns, _)| wait.duration_ns > ns) {
            longest = Some((wait.duration_ns, stack));
        }
        if let Some(owner) = wait.owner {
            let owner = group_of(profile.thread_name(owner));
            *owners.entry(owner).or_default() += wait.weight_ns;
        }
    }
    let (longest_ns, stack) = longest?;
    let had = match owners.into_iter().max_by_key(|(_, ns)| *ns) {
        Some((owner, ns)) => format!(
            "; {} of the time {owner} held it when the wait began",
            percent(ns as f64 / sum.max(1) as f64)
        ),
        None => String::new(),
    };
    Some(Evidence {
        text: format!(
            "recorded by the JVM: {} for it here took {}, mean {}, max {}{had}",
            plural(waits.round() as u64, "wait"),
            duration(sum as f64),
            duration(sum as f64 / waits.max(1.0)),
            duration(longest_ns as f64),
        ),
        view: View {
            measure: Measure::Wall,
            focus: Some(Focus::Lock(class.to_owned())),
            ..View::default()
        },
        stack: facts.stacks.shown(stack),
    })
}
