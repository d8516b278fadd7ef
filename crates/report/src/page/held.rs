//! Columns of the owners of monitors: where they were when waits began, as some of these asked.

use dwell_profile::Profile;

use super::calls::Calls;
use super::columns::{Column, U32, U48, U48_MAX, numbered};
use super::events::since;
use super::locks::choices;

/// The columns; empty ones where no wait asked.
pub(super) fn columns(profile: &Profile, calls: &Calls<'_>) -> Vec<Column> {
    let time = since(profile);
    let weights = profile.owners_blocked();
    let all: Vec<_> = profile.monitor_owners().iter().zip(&weights).collect();
    let all = &all[..];
    let node = |node| numbered(Some(calls.of_node(node)));
    vec![
        Column::new("held.time", U48.differences(), all, |(o, _)| {
            time(o.time_ns)
        }),
        Column::new("held.duration", U48, all, |(o, _)| {
            o.duration_ns.min(U48_MAX)
        }),
        Column::new("held.class", U32, all, |(o, _)| o.class.into()),
        Column::new("held.ns", U48, all, |(_, w)| w.sum.min(U48_MAX)),
        Column::new("held.choices", U32, all, |(_, w)| choices(w)),
        Column::new("held.owner", U32, all, |(o, _)| numbered(o.owner)),
        // 0: it is not known where the owner was.
        Column::new("held.node", U32, all, |(o, _)| o.node.map_or(0, node)),
        Column::new("held.waiter", U32, all, |(o, _)| numbered(o.waiter)),
        Column::new("held.waiter_node", U32, all, |(o, _)| node(o.waiter_node)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use dwell_profile::{MonitorOwner, text_art};

    #[test]
    fn unknown_owner_has_no_number() {
        let mut builder = text_art::builder("a.A.x  a.A.y");
        let class = builder.name("app.Lock");
        let known = MonitorOwner {
            time_ns: 5,
            duration_ns: 10,
            weight_ns: 20,
            class,
            owner: Some(0),
            node: Some(1),
            failure: None,
            waiter: Some(0),
            waiter_node: 2,
        };
        builder.monitor_owners.push(known);
        builder.monitor_owners.push(MonitorOwner {
            weight_ns: 10,
            owner: None,
            node: None,
            waiter: None,
            ..known
        });
        let profile = builder.finish();
        let columns = columns(&profile, &Calls::of(&profile));
        let numbers = |name: &str| {
            let column = columns.iter().find(|column| column.name == name);
            column.unwrap().numbers()
        };
        assert_eq!(numbers("held.duration"), [10, 10]);
        assert_eq!(numbers("held.node"), [2, 0]);
        assert_eq!(numbers("held.owner"), [1, 0]);
        assert_eq!(numbers("held.waiter_node"), [3, 3]);
        // A wait of 10 that stands for 20 is one of two: 20^2 / (20^2 / 2). A wait that stands for
        // itself has no error: its number of choices is the maximum.
        assert_eq!(numbers("held.choices"), [2, 100]);
    }
}
