//! Columns of allocated objects.

use std::borrow::Cow;
use std::collections::BTreeMap;

use dwell_profile::{Allocation, ContextId, Profile, SAMPLES_MAX};
use serde_json::{Value, json};

use super::calls::Calls;
use super::columns::{Column, U16, U32, U48, U48_MAX, endpoint, endpoints, whole};
use super::events::since;
use super::requests::Requests;
use crate::incomplete::incomplete_allocations;

/// Of more, those that say the same are one, whenever they were within a second.
const BIN_NS: u64 = 1_000_000_000;

/// One entry of a page: an object, or some that say the same.
#[derive(Clone, Copy)]
struct Entry {
    of: Allocation,
    objects: f64,
    count: u64,
}

/// The entries of a profile.
fn entries(profile: &Profile, most: usize) -> Cow<'_, [Entry]> {
    let single = |of: &Allocation| Entry {
        of: *of,
        objects: of.objects(),
        count: 1,
    };
    let all = profile.allocations();
    if all.len() <= most {
        return all.iter().map(single).collect();
    }
    let mut sums: BTreeMap<(u64, u32, u32, Option<ContextId>), Entry> = BTreeMap::new();
    for of in all {
        let key = (of.time_ns / BIN_NS, of.thread, of.node, of.context);
        sums.entry(key)
            .and_modify(|sum| {
                sum.of.bytes = sum.of.bytes.saturating_add(of.bytes);
                sum.objects += of.objects();
                sum.count += 1;
            })
            .or_insert_with(|| single(of));
    }
    sums.into_values().collect()
}

/// The columns.
pub(super) fn columns(profile: &Profile, calls: &Calls<'_>, requests: &Requests) -> Vec<Column> {
    let (time, endpoints) = (since(profile), endpoints(profile));
    let all = entries(profile, SAMPLES_MAX);
    let small = |number: u64| number.min(u64::from(u32::MAX));
    let objects = whole(all.iter().map(|a| (a.of.class, a.objects)));
    vec![
        Column::new("alloc.time", U48.differences(), &all, |a| {
            time(a.of.time_ns)
        }),
        Column::new("alloc.thread", U32, &all, |a| a.of.thread.into()),
        Column::new("alloc.node", U32, &all, |a| calls.of_node(a.of.node).into()),
        Column::new("alloc.class", U32, &all, |a| a.of.class.into()),
        Column::new("alloc.bytes", U48, &all, |a| a.of.bytes.min(U48_MAX)),
        Column::new("alloc.objects", U48, &objects, |objects| *objects),
        Column::new("alloc.count", U32, &all, |a| small(a.count)),
        Column::new("alloc.endpoint", U16, &all, |a| {
            endpoint(profile, &endpoints, a.of.context)
        }),
        Column::new("alloc.request", U32, &all, |a| {
            requests.number_of(a.of.context)
        }),
    ]
}

/// Header entry about them; null if allocations were not sampled.
pub(super) fn header(profile: &Profile) -> Option<Value> {
    if !profile.has_allocations() {
        return None;
    }
    let sampling = profile.allocation_sampling().copied().unwrap_or_default();
    let all = profile.allocated();
    Some(json!({
        "bytes": all.sum,
        "samples": all.samples,
        "intervalBytes": sampling.interval_bytes,
        "rate": sampling.rate,
        "askedBytes": if sampling.has_grown() { sampling.asked_bytes } else { 0 },
        "lost": sampling.lost,
        "lostBytes": sampling.lost_bytes,
        "lossNote": incomplete_allocations(profile),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Builder, FrameKind, text_art};

    #[test]
    fn of_too_many_those_that_say_the_same_are_one() {
        let mut builder: Builder = text_art::builder("a.A.x");
        let frame = builder.marker("byte[]", FrameKind::Other);
        let node = builder.child(1, frame);
        let class = builder.name("byte[]");
        for time_ns in [0, 10, 2 * BIN_NS] {
            builder.allocations.push(Allocation {
                time_ns,
                thread: 0,
                node,
                class,
                bytes: 100,
                size: 50,
                context: None,
            });
        }
        let profile = builder.finish();
        let told = |most| {
            let entries = entries(&profile, most);
            let told = entries.iter().map(|e| (e.of.bytes, e.objects, e.count));
            told.collect::<Vec<_>>()
        };
        assert_eq!(told(3), [(100, 2.0, 1); 3]);
        assert_eq!(told(2), [(200, 4.0, 2), (100, 2.0, 1)]);
        assert_eq!(header(&profile).unwrap()["bytes"], 300);
        assert!(header(&text_art::profile("a.A.x")).is_none());
    }
}
