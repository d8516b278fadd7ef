//! Columns of objects that are still there.

use dwell_profile::{LiveObject, Profile};
use serde_json::{Value, json};

use super::calls::Calls;
use super::columns::{Column, U16, U32, U48, U48_MAX, endpoint, endpoints, whole};
use super::events::since;
use super::requests::Requests;

/// The columns; empty ones where nothing is there.
pub(super) fn columns(profile: &Profile, calls: &Calls<'_>, requests: &Requests) -> Vec<Column> {
    let (time, endpoints) = (since(profile), endpoints(profile));
    let all = profile.live();
    let of = |object: &LiveObject| object.allocated;
    let small = |number: u64| number.min(u64::from(u32::MAX));
    // Objects that no collection has met are in a sum of their own.
    let key = |o: &LiveObject| (of(o).class, o.collections == 0);
    let objects = whole(all.iter().map(|o| (key(o), of(o).objects())));
    vec![
        Column::new("live.time", U48, all, |o| time(of(o).time_ns)),
        Column::new("live.thread", U32, all, |o| of(o).thread.into()),
        Column::new("live.node", U32, all, |o| calls.of_node(of(o).node).into()),
        Column::new("live.class", U32, all, |o| of(o).class.into()),
        Column::new("live.bytes", U48, all, |o| of(o).bytes.min(U48_MAX)),
        Column::new("live.objects", U48, &objects, |objects| *objects),
        Column::new("live.age", U48, all, |o| o.age_ns.min(U48_MAX)),
        Column::new("live.collections", U32, all, |o| small(o.collections)),
        Column::new("live.endpoint", U16, all, |o| {
            endpoint(profile, &endpoints, of(o).context)
        }),
        Column::new("live.request", U32, all, |o| {
            requests.number_of(of(o).context)
        }),
    ]
}

/// Header entry about them; null if objects were not followed.
pub(super) fn header(profile: &Profile) -> Option<Value> {
    let sampling = profile.live_sampling()?;
    let all = profile.alive();
    let followed_ns = profile.followed_ns();
    // As all times of the page: since the recording's begin.
    let since_start = |time_ns: u64| time_ns.saturating_sub(profile.info().start_ns);
    Some(json!({
        "bytes": all.bytes.sum,
        "young": all.young.sum,
        "intervalBytes": sampling.interval_bytes,
        "oneOf": sampling.one_of,
        "lost": sampling.lost,
        "fromNs": since_start(followed_ns.start),
        "toNs": since_start(followed_ns.end),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{Allocation, LiveSampling, text_art};

    #[test]
    fn page_has_young_objects_in_a_sum_of_their_own() {
        assert!(header(&text_art::profile("a.A.x")).is_none());
        let mut builder = text_art::builder("a.A.x");
        builder.info.start_ns = 1000;
        builder.live_sampling = Some(LiveSampling {
            time_ns: 1900,
            followed_ns: 300,
            ..LiveSampling::default()
        });
        let class = builder.name("byte[]");
        for collections in [0, 3] {
            builder.live.push(LiveObject {
                allocated: Allocation {
                    time_ns: 0,
                    thread: 0,
                    node: 1,
                    class,
                    bytes: 100 + collections,
                    size: 50,
                    context: None,
                },
                age_ns: 7,
                collections,
            });
        }
        let profile = builder.finish();
        let header = header(&profile).unwrap();
        assert_eq!(
            (&header["bytes"], &header["young"]),
            (&json!(103), &json!(100))
        );
        // Followed from the middle of the recording on.
        assert_eq!(
            (&header["fromNs"], &header["toNs"]),
            (&json!(600), &json!(900))
        );
        let columns = columns(&profile, &Calls::of(&profile), &Requests::of(&profile));
        assert_eq!(columns.len(), 10);
    }
}
