//! The activity of a lock's owner while others waited for it: where the owner itself waited, or the
//! stacks in which it was sampled.

use crate::evidence::{Facts, IDLE};
use dwell_profile::{CauseId, Look, MethodId, NodeId, RUNNING, ThreadId, group_of};
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
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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
pub(crate) struct Owners<'p> {
    ran: HashMap<ThreadId, Vec<(u64, NodeId)>>,
    /// Wall-clock samples by their ends. Those of one thread do not overlap.
    waited: HashMap<ThreadId, Vec<&'p Look>>,
    /// Wall time of all threads by cause, by the methods on top of their stacks. Without waits for
    /// locks: the same methods wait for a lock, and wait while they hold it.
    usual: HashMap<Box<[MethodId]>, BTreeMap<CauseId, u64>>,
}

impl<'p> Owners<'p> {
    /// Those of all looks that name one.
    pub(crate) fn new(facts: &Facts<'p>) -> Owners<'p> {
        let profile = facts.profile;
        let owners: HashSet<ThreadId> = profile.looks().iter().filter_map(|l| l.owner).collect();
        let mut ran: HashMap<ThreadId, Vec<(u64, NodeId)>> = HashMap::new();
        for sample in profile.samples() {
            if owners.contains(&sample.thread) {
                let times = ran.entry(sample.thread).or_default();
                times.push((sample.time_ns, sample.node));
            }
        }
        let mut waited: HashMap<ThreadId, Vec<&Look>> = HashMap::new();
        for look in profile.looks() {
            if owners.contains(&look.thread) {
                waited.entry(look.thread).or_default().push(look);
            }
        }
        ran.values_mut().for_each(|times| times.sort_unstable());
        for looks in waited.values_mut() {
            looks.sort_unstable_by_key(|look| (end_ns(look), look.time_ns, look.node));
        }
        let usual = usual(facts);
        Owners { ran, waited, usual }
    }

    /// Adds the activity of a look's owner.
    pub(crate) fn add(&self, facts: &Facts<'_>, look: &Look, deeds: &mut Deeds) {
        let Some(owner) = look.owner else { return };
        deeds.known_ns = deeds.known_ns.saturating_add(look.weight_ns);
        let group = group_of(facts.profile.thread_name(owner));
        let deed = match look.owner_node {
            Some(node) => self.waiting(facts, owner, look, node),
            None => self.running(facts, owner, look),
        };
        let deed = Deed { group, ..deed };
        *deeds.sums.entry(deed).or_default() += look.weight_ns;
    }

    /// The owner waited at this node. The cause comes from its own wall-clock samples with the same
    /// methods on top, or else from those of any thread.
    fn waiting(&self, facts: &Facts<'_>, owner: ThreadId, look: &Look, node: NodeId) -> Deed {
        let stacks = &facts.stacks;
        let mut is_queued = false;
        let mut own = None;
        for at in self.near(owner, look) {
            if stacks.has_same_top(at.node, node) {
                is_queued |= waits_for_same(at, look);
                own = own.or_else(|| (!waits_for_same(at, look)).then_some(at.cause));
            }
        }
        let usual = || {
            let causes = self.usual.get(&stacks.top_methods(node))?;
            let (cause, _) = causes.iter().max_by_key(|(_, ns)| **ns)?;
            Some(*cause)
        };
        // A thread that waits for the lock itself was asked for its stack after it released it.
        if own.is_none() && is_queued {
            return Deed::default();
        }
        let cause = own.or_else(usual);
        let cause = cause.map_or("waiting", |cause| facts.profile.names().text(cause));
        Deed {
            cause: cause.to_owned(),
            node: Some(node),
            place: stacks.place_name(node),
            group: String::new(),
        }
    }

    /// The wall-clock samples of an owner about the time of a look.
    fn near(&self, owner: ThreadId, look: &Look) -> impl Iterator<Item = &'p Look> {
        let from = look.time_ns.saturating_sub(NEAR_NS);
        let to = end_ns(look).saturating_add(NEAR_NS);
        let looks = self.waited.get(&owner).map_or(&[][..], |looks| looks);
        let first = looks.partition_point(|look| end_ns(look) < from);
        let near = looks.iter().skip(first).copied();
        near.take_while(move |look| look.time_ns <= to)
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
        // A thread that waits for a lock without running on may have been handed it just now.
        let waited = (self.near(owner, look))
            .map(|at| (facts.profile.names().text(at.cause), at.node))
            .filter(|(cause, _)| !is_of_lock(cause) && *cause != IDLE);
        let mut places: BTreeMap<(&str, String), (u64, NodeId)> = BTreeMap::new();
        for (cause, node) in ran.chain(waited) {
            if stacks.is_inside(node, wanted, class) {
                let place = (cause, stacks.place_name(node));
                places.entry(place).or_insert((0, node)).0 += 1;
            }
        }
        let most = places.into_iter().max_by_key(|(_, (count, _))| *count);
        let Some(((cause, place), (_, node))) = most else {
            return Deed::default();
        };
        Deed {
            cause: cause.to_owned(),
            node: Some(node),
            place,
            group: String::new(),
        }
    }
}

/// Sums of causes other than locks, by the methods on top of a stack.
fn usual(facts: &Facts<'_>) -> HashMap<Box<[MethodId]>, BTreeMap<CauseId, u64>> {
    let names = facts.profile.names();
    let mut of_node: HashMap<NodeId, BTreeMap<CauseId, u64>> = HashMap::new();
    for look in facts.profile.looks() {
        if !is_of_lock(names.text(look.cause)) {
            let causes = of_node.entry(look.node).or_default();
            let sum = causes.entry(look.cause).or_default();
            *sum = sum.saturating_add(look.weight_ns);
        }
    }
    let mut usual: HashMap<Box<[MethodId]>, BTreeMap<CauseId, u64>> = HashMap::new();
    for (node, causes) in of_node {
        let all = usual.entry(facts.stacks.top_methods(node)).or_default();
        for (cause, ns) in causes {
            let sum = all.entry(cause).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    usual
}

fn is_of_lock(cause: &str) -> bool {
    matches!(cause, "monitor" | "lock")
}

/// Whether a thread waits for the very lock that another one waits for.
fn waits_for_same(one: &Look, other: &Look) -> bool {
    one.cause == other.cause && one.detail == other.detail
}

fn end_ns(look: &Look) -> u64 {
    look.time_ns.saturating_add(look.duration_ns)
}

impl Deeds {
    /// The most frequent activity of owners, and its part of the time with a known owner, if that
    /// part is at least `least`.
    pub(crate) fn most(&self, least: f64) -> Option<(&Deed, f64)> {
        let known = || self.sums.iter().filter(|(deed, _)| !deed.cause.is_empty());
        let mut places: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (deed, ns) in known() {
            *places.entry((&deed.cause, &deed.place)).or_default() += ns;
        }
        let (place, ns) = places.into_iter().max_by_key(|(_, ns)| *ns)?;
        // Of its stacks the heaviest one.
        let there = known().filter(|(deed, _)| (&*deed.cause, &*deed.place) == place);
        let (deed, _) = there.max_by_key(|(_, ns)| **ns)?;
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
