//! Waits of one kind, merged by object and place, with their main subject.

use crate::evidence::{Entry, Facts, Kind};
use crate::finding::{Evidence, Measure, View};
use crate::numbers::{percent, plural, some_of};
use crate::share::Share;
use dwell_profile::{NodeId, Weight};
use std::collections::BTreeMap;

/// From this part on, a wait belongs to its main subject.
const MOSTLY: f64 = 0.7;
/// Least time, part of the recorded time, and part of all time that is not idle, for a finding.
const LEAST_NS: u64 = 50_000_000;
const LEAST_OF_RECORDING: f64 = 0.01;
const LEAST_OF_BUSY: f64 = 0.005;
/// Fewer waits are chance, unless they are so long that they have this number of samples.
const LEAST_WAITS: u64 = 3;
const LONG_SAMPLES: u64 = 12;
/// Least part of all requests' time for an endpoint to get a finding, so that findings are few.
const LEAST_OF_ALL: f64 = 0.01;

/// Wall time spent waiting in one way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wait {
    pub(crate) weight: Weight,
    /// Stretches of time in it.
    pub(crate) events: u64,
    /// The time in stretches that were seen to be long.
    pub(crate) long_ns: u64,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
    causes: BTreeMap<String, u64>,
    by_subject: BTreeMap<usize, Weight>,
    by_node: BTreeMap<NodeId, u64>,
}

/// Whose time a wait is.
pub(crate) struct Whose {
    /// In words.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// The endpoint or the group of threads, if it is one.
    pub(crate) only: Option<usize>,
    /// All their time in which they had something to do.
    pub(crate) busy: Weight,
}

/// Sums of the wall time that `key` names, the largest first.
pub(crate) fn gather<'p, K: Ord>(
    facts: &Facts<'p>,
    key: impl Fn(&Entry<'p>) -> Option<K>,
) -> Vec<(K, Wait)> {
    let mut waits: BTreeMap<K, Wait> = BTreeMap::new();
    for entry in &facts.entries {
        if let Some(key) = key(entry) {
            waits.entry(key).or_default().add(entry);
        }
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.weight.sum));
    waits
}

impl Wait {
    fn add(&mut self, entry: &Entry<'_>) {
        let is_first = self.events == 0;
        self.first_ns = match is_first {
            true => entry.first_ns,
            false => self.first_ns.min(entry.first_ns),
        };
        self.last_ns = self.last_ns.max(entry.last_ns);
        self.weight += &entry.weight;
        self.events += entry.events;
        self.long_ns = self.long_ns.saturating_add(entry.long_ns);
        *self.causes.entry(entry.cause.to_owned()).or_default() += entry.weight.sum;
        *self.by_subject.entry(entry.subject).or_default() += &entry.weight;
        *self.by_node.entry(entry.node).or_default() += entry.weight.sum;
    }

    /// The stack with the largest part of it.
    pub(crate) fn node(&self) -> NodeId {
        let largest = self.by_node.iter().max_by_key(|(_, ns)| **ns);
        largest.map_or(0, |(node, _)| *node)
    }

    /// Whether the sum over all subjects is enough for a finding: in seconds, as a part of the
    /// time that is not idle, and in the number of waits.
    fn is_enough(&self, facts: &Facts<'_>) -> bool {
        let recorded = facts.profile.info().duration_ns as f64;
        let ns = self.weight.sum as f64;
        let is_often = self.events >= LEAST_WAITS || self.weight.samples >= LONG_SAMPLES;
        self.weight.sum >= LEAST_NS
            && ns >= LEAST_OF_RECORDING * recorded
            && self.weight.share(&facts.all_busy()) >= LEAST_OF_BUSY
            && is_often
    }

    /// The main subject: an endpoint if any endpoint has this wait. `None` if it is too little for
    /// a finding.
    pub(crate) fn whose(&self, facts: &Facts<'_>) -> Option<Whose> {
        if !self.is_enough(facts) {
            return None;
        }
        let subject = |place: &usize| facts.subjects.get(*place);
        let is_endpoint = |place: &&usize| subject(place).is_some_and(|s| s.kind == Kind::Endpoint);
        let of_endpoints: Vec<&usize> = self.by_subject.keys().filter(is_endpoint).collect();
        let of_requests = of_endpoints.iter().fold(0u64, |sum, place| {
            sum.saturating_add(self.by_subject.get(place).map_or(0, |weight| weight.sum))
        });
        let kind = match of_requests as f64 >= 0.5 * self.weight.sum as f64 && of_requests > 0 {
            true => Kind::Endpoint,
            false => Kind::Threads,
        };
        let mut parts: Vec<(usize, &Weight)> = (self.by_subject.iter())
            .filter(|(place, _)| subject(place).is_some_and(|s| s.kind == kind))
            .map(|(place, weight)| (*place, weight))
            .collect();
        parts.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.sum));
        let (first, most) = *parts.first()?;
        let sum = parts
            .iter()
            .fold(0u64, |sum, (_, w)| sum.saturating_add(w.sum));
        if most.sum as f64 >= MOSTLY * sum as f64 {
            let subject = facts.subjects.get(first)?;
            return Some(Whose {
                name: subject.shown(),
                kind,
                only: Some(first),
                busy: subject.busy,
            });
        }
        let mut busy = Weight::default();
        let mut names = Vec::new();
        for (place, _) in &parts {
            let subject = facts.subjects.get(*place)?;
            busy += &subject.busy;
            names.push(subject.name.clone());
        }
        let names = match kind {
            Kind::Endpoint => some_of(&names),
            Kind::Threads => format!("thread groups {}", some_of(&names)),
        };
        Some(Whose {
            name: names,
            kind,
            only: None,
            busy,
        })
    }

    /// The part of this wait that is `whose` time.
    pub(crate) fn part_of(&self, facts: &Facts<'_>, whose: &Whose) -> Weight {
        let mut sum = Weight::default();
        for (place, weight) in &self.by_subject {
            let is_kind = (facts.subjects.get(*place)).is_some_and(|s| s.kind == whose.kind);
            if is_kind && whose.only.is_none_or(|only| only == *place) {
                sum += weight;
            }
        }
        sum
    }

    /// Its share of the waiting subjects' time.
    pub(crate) fn share(&self, facts: &Facts<'_>, whose: &Whose) -> Share {
        let part = self.part_of(facts, whose);
        let of = format!("the wall time of {}", whose.name);
        Share {
            waits: self.events,
            ..Share::sampled(&part, &whose.busy, of)
        }
    }

    /// Weight by which findings are sorted.
    pub(crate) fn gravity(&self, facts: &Facts<'_>) -> f64 {
        facts.lost_waiting(self.weight.sum)
    }

    /// The stack with its view.
    pub(crate) fn evidence(&self, facts: &Facts<'_>, whose: &Whose, text: String) -> Evidence {
        let only = whose.only.and_then(|place| facts.subjects.get(place));
        let name_if = |kind| only.filter(|s| s.kind == kind).map(|s| s.name.clone());
        Evidence {
            text,
            view: View {
                measure: Measure::Wall,
                causes: self.causes.keys().cloned().collect(),
                endpoint: name_if(Kind::Endpoint),
                threads: name_if(Kind::Threads),
                focus: facts.stacks.focus_of(self.node()),
            },
            stack: facts.stacks.shown(self.node()),
        }
    }

    /// How often it was seen.
    pub(crate) fn seen(&self) -> String {
        let samples = plural(self.weight.samples, "sample");
        format!("{samples} of {}", plural(self.events, "wait"))
    }
}

impl Whose {
    /// "A waits 20 % of its time", or "A, B wait 20 % of their time".
    pub(crate) fn spends(&self, verb: &str, share: f64) -> String {
        let (name, share) = (&self.name, percent(share));
        match self.only {
            Some(_) => format!("{name} {verb}s {share} of its time"),
            None => format!("{name} {verb} {share} of their time"),
        }
    }

    /// Whether they take enough of all time for a finding.
    pub(crate) fn matters(&self, facts: &Facts<'_>) -> bool {
        self.busy.share(&facts.all_busy()) >= LEAST_OF_ALL
    }

    /// Whether only one thread waits so.
    pub(crate) fn is_one_thread(&self, facts: &Facts<'_>) -> bool {
        let subject = self.only.and_then(|place| facts.subjects.get(place));
        subject.is_some_and(|subject| subject.threads.len() == 1)
    }

    /// How much of a time that is for each request, if requests were counted.
    pub(crate) fn per_request(&self, facts: &Facts<'_>, ns: u64) -> Option<f64> {
        let subject = self.only.and_then(|place| facts.subjects.get(place))?;
        let latencies = facts.profile.latencies();
        let requests = latencies.get(&Some(subject.name.as_str()))?.requests;
        (subject.kind == Kind::Endpoint && requests > 0).then(|| ns as f64 / requests as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_names_have_a_verb_in_the_plural() {
        let mut whose = Whose {
            name: "GET /a".to_owned(),
            kind: Kind::Endpoint,
            only: Some(0),
            busy: Weight::default(),
        };
        assert_eq!(whose.spends("wait", 0.2), "GET /a waits 20 % of its time");
        whose.name = "GET /a, GET /b".to_owned();
        whose.only = None;
        assert_eq!(
            whose.spends("wait", 0.2),
            "GET /a, GET /b wait 20 % of their time"
        );
    }
}
