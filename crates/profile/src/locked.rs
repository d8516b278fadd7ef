//! Time in locks: in total, by class, and by method.

use std::collections::{BTreeMap, HashMap};

use crate::aggregate::{GroupBy, Row, sort_by_total};
use crate::locks::{
    LockClass, Locked, MonitorOwner, MonitorSums, MonitorWait, NOT_KNOWN, OwnerRow,
};
use crate::names::NameId;
use crate::platform::is_of_platform;
use crate::profile::Profile;
use crate::sample::Weight;
use crate::tree::NodeId;
use crate::wall::{WallFilter, group_of};

/// Methods of an owner's stack that a report names.
const OWNER_METHODS: usize = 3;
/// Where an owner was that had no method on its stack.
const NO_METHOD: &str = "[no method]";

/// Sums by class while they are made.
#[derive(Default)]
struct Sum {
    blocked: Weight,
    waits: f64,
    longest_ns: u64,
    is_exact: bool,
    owners: BTreeMap<String, u64>,
    owners_at: BTreeMap<String, u64>,
    is_asked: bool,
    waiters: BTreeMap<String, u64>,
}

impl Profile {
    /// Waits for monitors that were chosen, in the order of the recording.
    #[must_use]
    pub fn monitor_waits(&self) -> &[MonitorWait] {
        &self.monitor_waits
    }

    /// Whether the recording has waits for locks, be it none of them.
    #[must_use]
    pub fn has_locks(&self) -> bool {
        !self.monitor_waits.is_empty() || self.monitor_sums.is_some()
    }

    /// All waits for monitors, chosen or not, if the recording says.
    #[must_use]
    pub fn monitor_sums(&self) -> Option<&MonitorSums> {
        self.monitor_sums.as_ref()
    }

    /// The time in locks of threads that `filter` wants, whose causes do not matter: of monitors
    /// from events, of all other locks from looks.
    #[must_use]
    pub fn locked(&self, filter: &WallFilter) -> Vec<Locked> {
        let wanted = self.wanted(filter);
        let waits = self.monitor_waits.iter().map(|wait| Locked {
            time_ns: wait.time_ns,
            duration_ns: wait.duration_ns,
            thread: wait.thread,
            node: wait.node,
            class: wait.class,
            weight: wait.weight(),
            waits: wait.waits(),
            lasted_ns: wait.duration_ns,
            context: wait.context,
            owner: wait.owner,
            is_look: false,
        });
        let heaviest = self.heaviest_looks();
        let looks = self.lock_looks.iter().filter_map(|of| {
            let look = self.looks.get(of.look as usize)?;
            let wall = self.waited(look, &heaviest);
            Some(Locked {
                time_ns: wall.time_ns,
                duration_ns: wall.duration_ns,
                thread: wall.thread,
                node: of.node,
                class: of.class,
                weight: wall.weight,
                waits: 0.0,
                lasted_ns: wall.lasted_ns,
                context: wall.context,
                owner: look.owner,
                is_look: true,
            })
        });
        waits
            .chain(looks)
            .filter(|it| wanted.is_of(it.thread, it.context))
            .filter_map(|it| it.within(&wanted.window))
            .collect()
    }

    /// The time in locks by their class, the most first.
    #[must_use]
    pub fn lock_classes(&self) -> Vec<LockClass> {
        let mut sums: HashMap<NameId, Sum> = HashMap::new();
        for it in self.locked(&WallFilter::default()) {
            let sum = sums.entry(it.class).or_default();
            sum.blocked += &it.weight;
            sum.waits += it.waits;
            sum.longest_ns = sum.longest_ns.max(it.lasted_ns);
            sum.is_exact |= !it.is_look;
            let waiter = self.place(self.tree.parent(it.node));
            add(&mut sum.waiters, waiter, it.weight.sum);
            let owner = it.owner.map(|owner| group_of(self.thread_name(owner)));
            add(&mut sum.owners, owner, it.weight.sum);
        }
        self.owners_places(&mut sums);
        let row = |(class, sum): (NameId, Sum)| LockClass {
            name: self.names.text(class).to_owned(),
            blocked: sum.blocked,
            waits: sum.waits,
            longest_ns: sum.longest_ns,
            is_looks: !sum.is_exact,
            owners: most_first(sum.owners),
            owners_at: most_first(sum.owners_at),
            is_asked: sum.is_asked,
            waiters: most_first(sum.waiters),
        };
        let mut rows: Vec<LockClass> = sums.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let by_time = b.blocked.sum.cmp(&a.blocked.sum);
            by_time.then_with(|| a.name.cmp(&b.name))
        });
        rows
    }

    /// Where owners were of monitors, as waits asked that began, in the order of the recording.
    #[must_use]
    pub fn monitor_owners(&self) -> &[MonitorOwner] {
        &self.monitor_owners
    }

    /// The time that each of the [`monitor_owners`](Profile::monitor_owners) stands for, scaled to
    /// the blocked time of its class. Waits that ask last longer than the others, so alone they
    /// would stand for more time than was blocked.
    #[must_use]
    pub fn owners_blocked(&self) -> Vec<Weight> {
        let mut blocked: HashMap<NameId, u64> = HashMap::new();
        for wait in &self.monitor_waits {
            let sum = blocked.entry(wait.class).or_default();
            *sum = sum.saturating_add(wait.weight_ns);
        }
        let mut asked: HashMap<NameId, u64> = HashMap::new();
        for owner in &self.monitor_owners {
            let sum = asked.entry(owner.class).or_default();
            *sum = sum.saturating_add(owner.weight_ns);
        }
        let scaled = |owner: &MonitorOwner| {
            let weight = owner.weight();
            let sums = [&blocked, &asked].map(|sums| sums.get(&owner.class).copied());
            match sums {
                [Some(blocked), Some(asked)] if asked > 0 => {
                    weight.scaled(blocked as f64 / asked as f64)
                }
                _ => weight,
            }
        };
        self.monitor_owners.iter().map(scaled).collect()
    }

    /// The time in waits for monitors by where their owners were when they began, the most first.
    #[must_use]
    pub fn owner_rows(&self) -> Vec<OwnerRow> {
        let mut rows: HashMap<_, Weight> = HashMap::new();
        for (it, weight) in self.monitor_owners.iter().zip(self.owners_blocked()) {
            let group = it.owner.map(|owner| group_of(self.thread_name(owner)));
            let methods = it.node.map_or(Vec::new(), |node| self.own_methods(node));
            let waiter = self.place(it.waiter_node);
            *rows.entry((it.class, group, methods, waiter)).or_default() += &weight;
        }
        let row = |((class, group, methods, waiter), blocked)| OwnerRow {
            class: self.names.text(class).to_owned(),
            group,
            methods,
            waiter,
            blocked,
        };
        let mut rows: Vec<OwnerRow> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| {
            let key = |row: &OwnerRow| (row.class.clone(), row.methods.clone(), row.waiter.clone());
            let by_time = b.blocked.sum.cmp(&a.blocked.sum);
            by_time.then_with(|| key(a).cmp(&key(b)))
        });
        rows
    }

    /// The program's methods in a stack, the innermost ones first; without any, its one place.
    fn own_methods(&self, node: NodeId) -> Vec<String> {
        let mut methods = Vec::new();
        for frame in self.tree.stack(node) {
            let kind = self.frames.get(frame as usize).map(|frame| frame.kind);
            let is_method = kind.is_some_and(|kind| kind.is_java());
            if let Some((id, method)) = self.method_of(frame).filter(|_| is_method)
                && !is_of_platform(self.names.text(method.class))
            {
                methods.push(self.method_name(id));
                if methods.len() == OWNER_METHODS {
                    break;
                }
            }
        }
        match methods.is_empty() {
            true => vec![self.place(node).unwrap_or_else(|| NO_METHOD.to_owned())],
            false => methods,
        }
    }

    /// Adds the places of owners: from waits that recorded their owners' stacks, otherwise from
    /// wall-clock samples of waiting threads, including waits for monitors.
    fn owners_places(&self, sums: &mut HashMap<NameId, Sum>) {
        for it in &self.monitor_owners {
            if let Some(sum) = sums.get_mut(&it.class) {
                sum.is_asked = true;
                let place = it.node.map(|node| self.place(node));
                let place = match place {
                    Some(place) => place.unwrap_or_else(|| NO_METHOD.to_owned()),
                    None => NOT_KNOWN.to_owned(),
                };
                add(&mut sum.owners_at, Some(place), it.weight_ns);
            }
        }
        for look in &self.looks {
            let Some(node) = look.owner_node else {
                continue;
            };
            let detail = look.detail.map_or("", |detail| self.names.text(detail));
            let class = self.names.find(class_of_detail(detail));
            let sum = class.and_then(|class| sums.get_mut(&class));
            if let Some(sum) = sum.filter(|sum| !sum.is_asked) {
                add(&mut sum.owners_at, self.place(node), look.weight_ns);
            }
        }
    }

    /// The methods that waited for locks, by the time that they, or those that they called, did:
    /// the most in all first. Classes of locks have no rows of their own.
    #[must_use]
    pub fn waiting_methods(&self) -> Vec<Row> {
        let grouped = self.group(GroupBy::Method);
        let mut by_node = vec![Weight::default(); self.tree.len()];
        for it in self.locked(&WallFilter::default()) {
            let stack = self.tree.parent(it.node);
            if let Some(weight) = by_node.get_mut(stack as usize) {
                *weight += &it.weight;
            }
        }
        let (own, total) = self.sums(&grouped, &by_node);
        let mut managed = vec![false; grouped.names.len()];
        for (frame, group) in self.frames.iter().zip(&grouped.of_frame) {
            if let Some(managed) = managed.get_mut(*group as usize) {
                *managed |= frame.kind.is_java();
            }
        }
        let row = |(name, (own, total))| Row { name, own, total };
        let rows = grouped.names.into_iter().zip(own.into_iter().zip(total));
        let mut rows: Vec<Row> = (rows.map(row).zip(managed))
            .filter(|(row, managed)| *managed && row.total.samples > 0)
            .map(|(row, _)| row)
            .collect();
        sort_by_total(&mut rows);
        rows
    }
}

/// The class without the address of the single monitor: `app.Ledger@7f00`.
pub(crate) fn class_of_detail(detail: &str) -> &str {
    detail.split('@').next().unwrap_or("")
}

fn add(sums: &mut BTreeMap<String, u64>, name: Option<String>, ns: u64) {
    if let Some(name) = name {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(ns);
    }
}

fn most_first(sums: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    sums
}
