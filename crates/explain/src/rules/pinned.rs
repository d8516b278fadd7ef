//! Pinned virtual threads: they wait and keep the platform thread that others need.

use super::no_wall;
use crate::evidence::{Facts, IDLE, is_wait};
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::numbers::{percent, plural, short};
use crate::share::Share;
use dwell_profile::{NodeId, WallFilter, Weight};
use std::collections::{BTreeMap, BTreeSet};

/// A share of the wall time of virtual threads that is worth a change, and the least it must be.
const SHARE: f64 = 0.02;
const SURELY: f64 = 0.005;
const LOOKS: u64 = 5;
const MOST: usize = 2;

pub(crate) fn check(facts: &Facts<'_>) -> Verdict {
    let profile = facts.profile;
    if !profile.has_wall() {
        return no_wall(facts);
    }
    if !facts.is_ours() {
        return Verdict::lacks("the recorder does not report the carriers of virtual threads");
    }
    let is_virtual = |thread: u32| {
        let thread = profile.threads().get(thread as usize);
        thread.is_some_and(|thread| thread.is_virtual)
    };
    if !profile.threads().iter().any(|thread| thread.is_virtual) {
        return Verdict::lacks("no virtual thread was seen");
    }
    let mut total = Weight::default();
    let filter = WallFilter {
        endpoint: facts.endpoint.map(str::to_owned),
        ..WallFilter::default()
    };
    let busy = profile.wall(&filter).filter(|wall| wall.cause != IDLE);
    for wall in busy.filter(|wall| is_virtual(wall.thread)) {
        total += &wall.weight;
    }
    let mut carriers = BTreeSet::new();
    let mut places: BTreeMap<(String, String), (Weight, NodeId)> = BTreeMap::new();
    for (place, look) in profile.looks().iter().enumerate() {
        let cause = profile.names().text(look.cause);
        let Some(carrier) = profile.carrier_of_look(place).filter(|_| is_pinning(cause)) else {
            continue;
        };
        carriers.insert(carrier);
        let key = (facts.stacks.place_name(look.node), cause.to_owned());
        let sum = places.entry(key).or_insert((Weight::default(), look.node));
        // Found on its carrier, so it has the weight of a look at a platform thread.
        sum.0 += &Weight::of_look(look, 0.0);
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, (weight, _))| std::cmp::Reverse(weight.sum));
    let found = places
        .into_iter()
        .filter_map(|((place, cause), (weight, node))| {
            let share = Share::sampled(&weight, &total, "the wall time of virtual threads");
            let is_large = share.is_at_least(SHARE, SURELY, LOOKS);
            is_large.then(|| finding(facts, &place, &cause, share, node, carriers.len()))
        });
    Verdict::Found(found.take(MOST).collect())
}

/// Files are read on the carrier by design; the JVM adds carriers for that.
fn is_pinning(cause: &str) -> bool {
    is_wait(cause)
        && matches!(
            cause,
            "monitor" | "lock" | "park" | "sleep" | "object-wait" | "socket"
        )
}

fn finding(
    facts: &Facts<'_>,
    place: &str,
    cause: &str,
    share: Share,
    node: NodeId,
    carriers: usize,
) -> Finding {
    Finding {
        rule: "",
        what: format!(
            "virtual threads wait in {place} ({cause}) without leaving their platform threads, \
             {} of their time",
            percent(share.value)
        ),
        weight: facts.lost_waiting(share.ns),
        share,
        evidence: vec![Evidence {
            text: format!(
                "{} held by such waits",
                plural(carriers as u64, "platform thread")
            ),
            view: View {
                measure: Measure::Wall,
                causes: vec![cause.to_owned()],
                focus: facts.stacks.focus_of(node),
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        }],
        remedy: remedy(&facts.profile.info().jvm_version, short(place)),
        sure: Sure::High,
        because: "the virtual thread was mounted while it waited".to_owned(),
    }
}

/// From this version of the JDK on monitors do not pin.
const FREE_MONITORS: u32 = 24;

fn remedy(version: &str, place: &str) -> String {
    let major = version.split(|c: char| !c.is_ascii_digit()).next();
    match major.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(FREE_MONITORS..) => format!(
            "let {place} not wait below native frames (a callback from C, say) or in a class's \
             static initializer, which hold the platform thread: let a platform thread do that part"
        ),
        _ => format!(
            "use a ReentrantLock instead of synchronized around what waits in {place} (or JDK 24 \
             and later, where monitors do not pin), and no blocking calls under native frames"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::art::Art;

    #[test]
    fn wait_on_carrier_is_reported() {
        let mut art = Art::default();
        let stack = "java.lang.Thread.sleep;app.Cache.load";
        art.pinned("v-1", "sleep", stack, 10, 20, "ForkJoinPool-1-worker-1");
        let found = art.found(check);
        assert!(
            found[0].what.contains("app.Cache.load (sleep)"),
            "{found:?}"
        );
        assert!(found[0].evidence[0].text.contains("1 platform thread held"));
    }

    #[test]
    fn virtual_threads_that_let_go_are_fine() {
        let mut art = Art::default();
        art.virtual_thread("v-1");
        art.look(
            "v-1",
            "",
            "park",
            "jdk.internal.misc.Unsafe.park;app.A.b",
            50,
            20,
        );
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn without_virtual_threads_the_rule_does_not_apply() {
        let mut art = Art::default();
        art.look("w-1", "", "park", "app.A.b", 50, 20);
        assert!(art.lacks(check).contains("virtual"));
    }

    #[test]
    fn monitors_are_blamed_only_where_they_pin() {
        for (version, expected) in [
            ("21.0.4+7", "ReentrantLock"),
            ("", "ReentrantLock"),
            ("24+36", "below native frames"),
            ("25.0.3+9-LTS", "below native frames"),
        ] {
            assert!(remedy(version, "A.b").contains(expected), "{version}");
        }
    }
}
