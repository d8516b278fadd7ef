//! Columns of waits for locks.

use std::collections::BTreeMap;

use dwell_profile::{ContextId, Locked, NameId, Profile, SAMPLES_MAX, WallFilter, Weight};
use serde_json::{Value, json};

use super::calls::Calls;
use super::columns::{Column, U8, U16, U32, U48, U48_MAX, endpoint, endpoints, numbered, whole};
use super::events::since;
use super::requests::Requests;

/// Of more, those that say the same are one, whenever they were within a second.
const BIN_NS: u64 = 1_000_000_000;

/// Key under which waits are merged.
type Key = (u64, u32, u32, Option<u32>, Option<ContextId>, bool, NameId);

/// The entries of a page: waits, or some that say the same.
fn entries(profile: &Profile, most: usize) -> Vec<Locked> {
    let all = profile.locked(&WallFilter::default());
    if all.len() <= most {
        return all;
    }
    let mut sums: BTreeMap<Key, Locked> = BTreeMap::new();
    for of in all {
        let bin = of.time_ns / BIN_NS;
        let key = (
            bin, of.thread, of.node, of.owner, of.context, of.is_look, of.class,
        );
        sums.entry(key)
            .and_modify(|sum| {
                sum.weight += &of.weight;
                sum.waits += of.waits;
                sum.lasted_ns = sum.lasted_ns.max(of.lasted_ns);
                let ends = [&*sum, &of].map(|it| it.time_ns.saturating_add(it.duration_ns));
                sum.time_ns = sum.time_ns.min(of.time_ns);
                sum.duration_ns = ends[0].max(ends[1]).saturating_sub(sum.time_ns);
            })
            .or_insert(of);
    }
    sums.into_values().collect()
}

/// As how many samples of one weight a sum is certain; without an error as many as there can be.
pub(super) fn choices(weight: &Weight) -> u64 {
    let most = f64::from(u32::MAX);
    let as_many = (weight.sum as f64).powi(2) / weight.squares.max(1.0);
    as_many.round().clamp(1.0, most) as u64
}

/// The columns.
pub(super) fn columns(profile: &Profile, calls: &Calls<'_>, requests: &Requests) -> Vec<Column> {
    let (time, endpoints) = (since(profile), endpoints(profile));
    let all = entries(profile, SAMPLES_MAX);
    let small = |number: u64| number.min(u64::from(u32::MAX));
    let waits = whole(all.iter().map(|of| (of.class, of.waits)));
    vec![
        Column::new("lock.time", U48.differences(), &all, |l| time(l.time_ns)),
        Column::new("lock.thread", U32, &all, |l| l.thread.into()),
        Column::new("lock.node", U32, &all, |l| calls.of_node(l.node).into()),
        Column::new("lock.class", U32, &all, |l| l.class.into()),
        Column::new("lock.ns", U48, &all, |l| l.weight.sum.min(U48_MAX)),
        Column::new("lock.waits", U48, &waits, |waits| *waits),
        Column::new("lock.duration", U48, &all, |l| l.duration_ns.min(U48_MAX)),
        Column::new("lock.longest", U48, &all, |l| l.lasted_ns.min(U48_MAX)),
        Column::new("lock.count", U32, &all, |l| small(l.weight.samples)),
        Column::new("lock.choices", U32, &all, |l| choices(&l.weight)),
        Column::new("lock.owner", U32, &all, |l| numbered(l.owner)),
        Column::new("lock.look", U8, &all, |l| l.is_look.into()),
        Column::new("lock.endpoint", U16, &all, |l| {
            endpoint(profile, &endpoints, l.context)
        }),
        Column::new("lock.request", U32, &all, |l| requests.number_of(l.context)),
    ]
}

/// Header entry about them; null if waits for locks were not recorded.
pub(super) fn header(profile: &Profile) -> Option<Value> {
    if !profile.has_locks() {
        return None;
    }
    let sums = profile.monitor_sums().copied().unwrap_or_default();
    Some(json!({
        "intervalNs": sums.interval_ns,
        "askedNs": if sums.has_grown() { sums.asked_ns } else { 0 },
        "waits": sums.waits,
        "blockedNs": sums.blocked_ns,
        "lost": sums.lost,
        "lostNs": sums.lost_ns,
    }))
}
