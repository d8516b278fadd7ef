//! Activity of a lock's owner while others waited for the lock: where the owner itself waited, or
//! the stacks in which it was sampled.

use crate::evidence::{Facts, IDLE};
use crate::stacks::Stacks;
use dwell_profile::{Look, NodeId, RUNNING, ThreadId, group_of};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Looks are about 20 ms apart, samples 10 ms of CPU time: a sample within this time belongs to a
/// look.
const NEAR_NS: u64 = 20_000_000;

/// Sums of what owners did, by the kind of observation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Deeds {
    /// Wall time waited while the owner did this, in this group of threads.
    sums: BTreeMap<Deed, u64>,
    /// All that was waited for owners that were named.
    pub(crate) known_ns: u64,
}

/// Activity of an owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Deed {
    /// `running`, or the cause of its wait; empty: it has no sample.
    pub(crate) cause: String,
    /// The stack it did so in.
    pub(crate) node: Option<NodeId>,
    /// The place in words.
    pub(crate) place: String,
    /// The group of threads.
    pub(crate) group: String,
}

/// Times at which threads were seen.
pub(crate) struct Owners {
    ran: HashMap<ThreadId, Vec<(u64, NodeId)>>,
    waited: HashMap<ThreadId, Vec<(u64, u64, NodeId, String)>>,
}

impl Owners {
    /// Those of all looks that name one.
    pub(crate) fn new(facts: &Facts<'_>) -> Owners {
        let profile = facts.profile;
        let owners: HashSet<ThreadId> = profile.looks().iter().filter_map(|l| l.owner).collect();
        let mut ran: HashMap<ThreadId, Vec<(u64, NodeId)>> = HashMap::new();
        for sample in profile.samples() {
            if owners.contains(&sample.thread) {
                let times = ran.entry(sample.thread).or_default();
                times.push((sample.time_ns, sample.node));
            }
        }
        let mut waited: HashMap<ThreadId, Vec<(u64, u64, NodeId, String)>> = HashMap::new();
        for look in profile.looks() {
            if owners.contains(&look.thread) {
                let end_ns = look.time_ns.saturating_add(look.duration_ns);
                let cause = profile.names().text(look.cause).to_owned();
                let times = waited.entry(look.thread).or_default();
                times.push((look.time_ns, end_ns, look.node, cause));
            }
        }
        ran.values_mut().for_each(|times| times.sort_unstable());
        waited.values_mut().for_each(|times| times.sort_unstable());
        Owners { ran, waited }
    }

    /// Adds the activity of a look's owner.
    pub(crate) fn add(&self, facts: &Facts<'_>, look: &Look, deeds: &mut Deeds) {
        let Some(owner) = look.owner else { return };
        deeds.known_ns = deeds.known_ns.saturating_add(look.weight_ns);
        let stacks = &facts.stacks;
        let group = group_of(facts.profile.thread_name(owner));
        let deed = match look.owner_node {
            Some(node) => self.waiting(stacks, owner, look, node),
            None => self.running(facts, owner, look),
        };
        let deed = Deed { group, ..deed };
        *deeds.sums.entry(deed).or_default() += look.weight_ns;
    }

    /// The owner waited at this node. The cause comes from a wall-clock sample of the owner.
    fn waiting(&self, stacks: &Stacks<'_>, owner: ThreadId, look: &Look, node: NodeId) -> Deed {
        let from = look.time_ns.saturating_sub(NEAR_NS);
        let to = end_ns(look).saturating_add(NEAR_NS);
        let looks = self.waited.get(&owner).map_or(&[][..], |times| times);
        let first = looks.partition_point(|(start, ..)| *start < from.saturating_sub(NEAR_NS * 50));
        let near = looks
            .iter()
            .skip(first)
            .take_while(|(start, ..)| *start <= to);
        let cause = near
            .filter(|(_, end, at, _)| *end >= from && stacks.place(*at) == stacks.place(node))
            .map(|(.., cause)| cause.clone())
            .next();
        Deed {
            cause: cause.unwrap_or_else(|| "waiting".to_owned()),
            node: Some(node),
            place: stacks.place_name(node),
            group: String::new(),
        }
    }

    /// The owner did not wait at that moment, so the nearest samples of it show what it did. Only
    /// samples inside the lock count: the others were taken just before or after.
    fn running(&self, facts: &Facts<'_>, owner: ThreadId, look: &Look) -> Deed {
        let stacks = &facts.stacks;
        let wanted = stacks.taker(look.node);
        let detail = look.detail.map_or("", |id| facts.profile.names().text(id));
        let class = detail.split('@').next().unwrap_or("");
        let from = look.time_ns.saturating_sub(NEAR_NS);
        let to = end_ns(look).saturating_add(NEAR_NS);
        let samples = self.ran.get(&owner).map_or(&[][..], |times| times);
        let first = samples.partition_point(|(time, _)| *time < from);
        let ran = (samples.iter().skip(first))
            .take_while(|(time, _)| *time <= to)
            .map(|(_, node)| (RUNNING, *node));
        let looks = self.waited.get(&owner).map_or(&[][..], |times| times);
        let first = looks.partition_point(|(start, ..)| *start < from);
        // A thread that waits for the lock itself does not hold it yet.
        let waited = (looks.iter().skip(first))
            .take_while(|(start, ..)| *start <= to)
            .map(|(_, _, node, cause)| (cause.as_str(), *node))
            .filter(|(cause, _)| !matches!(*cause, "monitor" | "lock" | IDLE));
        let mut places: BTreeMap<(&str, String), (u64, NodeId)> = BTreeMap::new();
        for (cause, node) in ran.chain(waited) {
            if stacks.is_inside(node, wanted, class) {
                let place = (cause, stacks.place_name(node));
                places.entry(place).or_insert((0, node)).0 += 1;
            }
        }
        let most = places.into_iter().max_by_key(|(_, (count, _))| *count);
        let (cause, place, node) = match most {
            Some(((cause, place), (_, node))) => (cause, place, Some(node)),
            None => ("", String::new(), None),
        };
        Deed {
            cause: cause.to_owned(),
            node,
            place,
            group: String::new(),
        }
    }
}

fn end_ns(look: &Look) -> u64 {
    look.time_ns.saturating_add(look.duration_ns)
}

impl Deeds {
    /// The most frequent activity of owners, and its part of the time with a known owner, if that
    /// part is at least `least`.
    pub(crate) fn most(&self, least: f64) -> Option<(&Deed, f64)> {
        let mut by_place: BTreeMap<(&str, &str), (u64, &Deed)> = BTreeMap::new();
        for (deed, ns) in self.sums.iter().filter(|(deed, _)| !deed.cause.is_empty()) {
            by_place
                .entry((&deed.cause, &deed.place))
                .or_insert((0, deed))
                .0 += ns;
        }
        let (ns, deed) = by_place.into_values().max_by_key(|(ns, _)| *ns)?;
        let part = ns as f64 / self.known_ns.max(1) as f64;
        (part >= least).then_some((deed, part))
    }

    /// The group of threads that owned it most.
    pub(crate) fn group(&self) -> Option<&str> {
        let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
        for (deed, ns) in &self.sums {
            *groups.entry(&deed.group).or_default() += ns;
        }
        let most = groups.into_iter().max_by_key(|(_, ns)| *ns)?;
        Some(most.0)
    }
}
