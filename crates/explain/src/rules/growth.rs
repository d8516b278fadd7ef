//! Memory that only grows: of one stack, objects of all parts of the recording are still there.

use crate::evidence::Facts;
use crate::finding::{Evidence, Finding, Focus, Measure, Sure, Verdict, View};
use crate::numbers::{percent, short, whole};
use crate::share::Share;
use dwell_profile::{AliveStack, Lack};

/// Least share of the live bytes for a finding, and its least lower bound.
const SHARE: f64 = 0.10;
const SURELY: f64 = 0.03;
const SAMPLES: u64 = 12;
/// In a shorter recording, growth cannot be distinguished from data in use.
const SHORTEST_NS: u64 = 20_000_000_000;
/// The oldest objects have survived at least this number of collections: they are not just
/// undetected garbage.
const COLLECTIONS: u64 = 3;
/// Maximum number of stacks in a finding.
const MOST: usize = 2;
/// Methods of a stack that are shown.
const SHOWN: usize = 8;
/// Weight of a leak relative to times: it ends the program, but later.
const GRAVITY: f64 = 0.2;

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let profile = facts.profile;
    if !profile.has_live() {
        let remedy = profile.info().remedy(Lack::Live);
        return Verdict::Lacks(format!(
            "the recording does not show which objects are alive; {remedy}"
        ));
    }
    if profile.info().has_sums_only() {
        return Verdict::lacks("the file does not show when objects were allocated");
    }
    if profile.info().duration_ns < SHORTEST_NS {
        return Verdict::lacks("the recording is too short to show growth; record for 20 s");
    }
    let collections = profile.live().iter().map(|object| object.collections).max();
    if collections.unwrap_or(0) < COLLECTIONS {
        return Verdict::Found(Vec::new());
    }
    let all = profile.alive().bytes;
    let stacks = profile.alive_stacks();
    let found = stacks.iter().filter(|stack| stack.alive.grows());
    let found = found.map(|stack| {
        let share = Share::sampled(&stack.alive.bytes, &all, "the bytes that stay alive");
        // The counts here are not time.
        (stack, Share { ns: 0, ..share })
    });
    let found = found.filter(|(_, share)| share.is_at_least(SHARE, SURELY, SAMPLES));
    let found = found.take(MOST);
    Verdict::Found(
        found
            .map(|(stack, share)| finding(facts, stack, share))
            .collect(),
    )
}

fn finding(facts: &Facts<'_>, stack: &AliveStack, share: Share) -> Finding {
    let profile = facts.profile;
    let mut frames = stack.frames.iter();
    let class = frames.next().map_or("[unknown class]", String::as_str);
    let is_own = |frame: &&String| !frame.starts_with("java.") && !frame.starts_with("jdk.");
    let by = frames.clone().find(is_own).or(frames.clone().next());
    let by = by.map_or("[no stack]", |method| short(method));
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    let seconds = profile.info().duration_ns as f64 / 1e9;
    let [first, middle, last] = stack.alive.parts.map(mib);
    Finding {
        rule: "",
        what: format!(
            "memory grows: {class} allocated in {by} is never collected, {:.1} MiB in {} s, {} of \
             surviving bytes",
            mib(stack.alive.bytes.sum),
            whole(seconds),
            percent(share.value)
        ),
        // No time is lost yet.
        weight: facts.lost_by_all(share.value * GRAVITY),
        share,
        evidence: vec![Evidence {
            text: format!(
                "surviving bytes from the first, second and last third of the recording: \
                 {first:.1}, {middle:.1} and {last:.1} MiB"
            ),
            view: View {
                measure: Measure::Alive,
                focus: Some(Focus::Class(class.to_owned())),
                ..View::default()
            },
            stack: frames.take(SHOWN).cloned().collect(),
        }],
        remedy: format!(
            "find where objects from {by} are stored and remove them, or bound the store (by \
             number, size or age); compare two snapshots with dwell dump and dwell diff -e live, \
             and take a heap dump to see what holds them"
        ),
        sure: Sure::Medium,
        because: "a cache that still fills looks the same".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn survivors_of_all_thirds_are_a_leak_and_of_one_are_not() {
        let mut art = Art::lasting(30);
        let put = "java.util.HashMap.put;app.Sessions.add;app.Main.run";
        art.alive(put, "java.util.HashMap$Node", (1 << 20, 30), 1..30, 5);
        art.alive("app.Cache.fill", "byte[]", (1 << 20, 20), 0..1, 5);
        art.alive("app.Work.do", "int[]", (1 << 20, 500), 28..30, 0);
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = &found[0].what;
        assert!(
            what.contains("allocated in Sessions.add") && what.contains("30.0 MiB in 30 s"),
            "{what}"
        );
        assert_eq!(found[0].evidence[0].stack.len(), 3);
        assert_eq!((found[0].share.ns, found[0].share.samples), (0, 30));
    }

    #[test]
    fn growth_lacks_ages_in_sums_of_other_tools() {
        let mut art = Art::lasting(30);
        art.alive("app.Cache.fill", "byte[]", (1 << 20, 20), 0..1, 1);
        assert!(art.found(check).is_empty());
        art.builder.info.sample_event = "pprof".to_owned();
        assert!(art.lacks(check).contains("when objects were allocated"));
    }

    #[test]
    fn growth_lacks_data_without_objects_or_time() {
        let mut art = Art::lasting(30);
        assert!(art.lacks(check).contains("-e cpu,wall,live"));
        // Hardly a collection has looked.
        art.alive("app.A.a", "byte[]", (1 << 20, 30), 1..30, 2);
        assert_eq!(art.found(check), []);
        let mut art = Art::lasting(10);
        art.alive("app.A.a", "byte[]", (1 << 20, 30), 1..10, 5);
        assert!(art.lacks(check).contains("too short"));
    }
}
