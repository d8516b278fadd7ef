//! Lock contention in recordings without wall time: waits for monitors that the JVM reported, and
//! the places of their owners when the waits began.

use crate::evidence::Facts;
use crate::exact_waits;
use crate::finding::{Evidence, Finding, Measure, Sure, Verdict, View};
use crate::numbers::{percent, plural, short};
use crate::share::Share;
use dwell_profile::{NodeId, ThreadId, Weight, group_of};
use std::collections::{BTreeMap, BTreeSet};

/// A share of the waiters' time that is worth a change.
const SHARE: f64 = 0.05;
/// Waits below which a lock is chance.
const WAITS: u64 = 8;
/// Least part of the owners' time for a place to be named.
const PLACE: f64 = 0.3;
/// Findings at most.
const MOST: usize = 4;

/// Waits for the monitors of one class in one method of the program.
#[derive(Default)]
struct Blocked {
    weight: Weight,
    threads: BTreeSet<ThreadId>,
    groups: BTreeMap<String, u64>,
}

/// Places of owners: by group, method and callee.
#[derive(Default)]
pub(super) struct Places {
    sums: BTreeMap<(String, String), (u64, NodeId)>,
    asked: Weight,
}

pub(super) fn check(facts: &Facts<'_>) -> Verdict {
    let profile = facts.profile;
    let mut locks: BTreeMap<(String, String), Blocked> = BTreeMap::new();
    for wait in profile.monitor_waits() {
        let stack = profile.tree().parent(wait.node);
        if !facts.stacks.is_of_program(stack) {
            continue;
        }
        let class = profile.names().text(wait.class).to_owned();
        let lock = (locks.entry((class, facts.stacks.place_name(stack)))).or_default();
        lock.weight += &wait.weight();
        lock.threads.insert(wait.thread);
        let group = group_of(profile.thread_name(wait.thread));
        *lock.groups.entry(group).or_default() += wait.weight_ns;
    }
    let told_ns = match profile.monitor_sums().map_or(0, |sums| sums.told_ns) {
        0 => profile.info().duration_ns,
        told_ns => told_ns,
    };
    let mut found: Vec<Finding> = locks
        .iter()
        .filter_map(|(lock, blocked)| finding(facts, lock, blocked, told_ns))
        .collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.share.ns));
    found.truncate(MOST);
    Verdict::Found(found)
}

fn finding(
    facts: &Facts<'_>,
    (class, place): &(String, String),
    blocked: &Blocked,
    told_ns: u64,
) -> Option<Finding> {
    let threads = blocked.threads.len() as u64;
    let (group, _) = blocked.groups.iter().max_by_key(|(_, ns)| **ns)?;
    let of = format!("the time of {} that waited", plural(threads, "thread"));
    let share = Share::counted(
        blocked.weight.sum,
        told_ns.saturating_mul(threads.max(1)),
        of,
    );
    if share.value < SHARE || blocked.weight.samples < WAITS {
        return None;
    }
    let places = Places::of(facts, class, place);
    let most = places.most();
    let held = most.map_or(String::new(), |it| format!(", while {it}"));
    let mut evidence: Vec<Evidence> = exact_waits::evidence(facts, class, place)
        .into_iter()
        .collect();
    evidence.extend(places.evidence(facts));
    let is_known = !held.is_empty();
    Some(Finding {
        rule: "",
        what: format!(
            "{group} waits {} of its time for a monitor (synchronized) of {class} in {place}{held}",
            percent(share.value)
        ),
        weight: facts.lost_waiting(blocked.weight.sum),
        share,
        evidence,
        remedy: match places.method() {
            Some(method) => format!(
                "shorten the work of {} under the monitor, or give each part of the data a lock \
                 of its own",
                short(method)
            ),
            None => format!(
                "shorten the code inside the lock that {} takes, or give each part of the data a \
                 lock of its own",
                short(place)
            ),
        },
        sure: match is_known {
            true => Sure::High,
            false => Sure::Medium,
        },
        because: match is_known {
            true => "the JVM reports waiting threads and their monitors' holders".to_owned(),
            false => "the wait is certain; the holder's activity was not sampled at that moment"
                .to_owned(),
        },
    })
}

impl Places {
    /// Those of owners of the monitors of one class, for which was waited in one method.
    pub(super) fn of(facts: &Facts<'_>, class: &str, place: &str) -> Places {
        let profile = facts.profile;
        let mut places = Places::default();
        for it in profile.monitor_owners() {
            let is_of_class = profile.names().text(it.class) == class;
            if !is_of_class || facts.stacks.place_name(it.waiter_node) != place {
                continue;
            }
            places.asked += &it.weight();
            let Some(node) = it.node else { continue };
            let group = it.owner.map(|owner| group_of(profile.thread_name(owner)));
            let key = (group.unwrap_or_default(), facts.stacks.place_name(node));
            let sum = places.sums.entry(key).or_insert((0, node));
            sum.0 = sum.0.saturating_add(it.weight_ns);
        }
        places
    }

    fn largest(&self) -> Option<(&(String, String), u64, NodeId)> {
        let (key, (ns, node)) = self.sums.iter().max_by_key(|(_, (ns, _))| *ns)?;
        let is_much = *ns as f64 >= PLACE * self.asked.sum as f64;
        is_much.then_some((key, *ns, *node))
    }

    /// Where they were most, as the end of a sentence.
    pub(super) fn most(&self) -> Option<String> {
        let ((group, place), ..) = self.largest()?;
        Some(match group.is_empty() {
            true => format!("its holder is in {place}"),
            false => format!("{group} holds it and is in {place}"),
        })
    }

    /// The method where they were most.
    pub(super) fn method(&self) -> Option<&str> {
        self.largest().map(|((_, place), ..)| place.as_str())
    }

    /// Evidence for the place.
    pub(super) fn evidence(&self, facts: &Facts<'_>) -> Option<Evidence> {
        let ((group, _), ns, node) = self.largest()?;
        Some(Evidence {
            text: format!(
                "{} recorded the holder's place at their begin and stand for {} of waits; in {} \
                 of that it was here",
                plural(self.asked.samples, "wait"),
                crate::numbers::duration(self.asked.sum as f64),
                percent(ns as f64 / self.asked.sum.max(1) as f64),
            ),
            view: View {
                measure: Measure::Cpu,
                threads: (!group.is_empty()).then(|| group.clone()),
                ..View::default()
            },
            stack: facts.stacks.shown(node),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::art::Art;
    use crate::finding::Sure;
    use crate::rules::locks::check;

    #[test]
    fn exact_waits_show_lock_and_owner_without_wall_time() {
        let mut art = Art::default();
        for _ in 0..10 {
            art.waited("w-1", "app.Ledger.book", "app.Ledger", "o-2", (900, 900));
            art.owner_was(
                "w-1",
                "app.Ledger.book",
                "app.Ledger",
                Some("app.Audit.sum"),
            );
        }
        art.owner_was("w-1", "app.Ledger.book", "app.Ledger", None);
        art.owner_was("w-1", "app.Ledger.read", "app.Ledger", Some("app.Other.x"));
        let found = art.found(check);
        assert_eq!(found.len(), 1, "{found:?}");
        let what = &found[0].what;
        for part in [
            "w-*",
            "app.Ledger in app.Ledger.book",
            "is in app.Audit.sum",
        ] {
            assert!(what.contains(part), "{what}");
        }
        assert!(found[0].remedy.contains("Audit.sum"), "{found:?}");
        assert_eq!(found[0].sure, Sure::High);
        let text = &found[0].evidence[1].text;
        assert!(text.contains("11 waits") && text.contains("91 %"), "{text}");
    }

    #[test]
    fn a_monitor_that_is_waited_for_a_few_times_is_chance() {
        let mut art = Art::default();
        for _ in 0..7 {
            art.waited("w-1", "app.Ledger.book", "app.Ledger", "o-2", (900, 900));
        }
        assert_eq!(art.found(check), []);
    }

    #[test]
    fn unknown_owner_still_reports_the_wait() {
        let mut art = Art::default();
        for _ in 0..8 {
            art.waited("w-1", "app.Ledger.book", "app.Ledger", "o-2", (900, 900));
            art.owner_was("w-1", "app.Ledger.book", "app.Ledger", None);
        }
        let found = art.found(check);
        assert_eq!(found[0].sure, Sure::Medium);
        assert!(!found[0].what.contains("while"), "{found:?}");
    }
}
