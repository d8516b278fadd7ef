//! The tables of safepoints: by operation, and the late threads. Pure.

use super::drilled::Scope;
use super::sheet::{Cell, Column, Row, Table, Target};
use super::window::Snapshot;
use std::collections::BTreeMap;

const OPERATIONS: &[Column] = &[
    Column::number("COUNT", 5),
    Column::number("SUM", 7),
    Column::number("LONGEST", 7),
    Column::number("TO REACH", 8),
];
const LATE: &[Column] = &[
    Column::number("AGO", 7),
    Column::number("LATE", 7),
    Column::text("THREAD", 20),
];
/// Name for safepoints of which only the number is known.
const COUNTED: &str = "(unnamed)";

#[derive(Default)]
struct Sum {
    count: u64,
    sum_ns: u64,
    longest_ns: u64,
    reaching_ns: u64,
}

/// The safepoints of the window by operation.
pub fn operations(snapshot: &Snapshot) -> Table {
    let names = snapshot.profile.names();
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for stop in snapshot.safepoints() {
        let sum = sums.entry(names.text(stop.operation)).or_default();
        sum.count += stop.count;
        sum.sum_ns = sum.sum_ns.saturating_add(stop.duration_ns());
        if stop.count == 1 {
            sum.longest_ns = sum.longest_ns.max(stop.duration_ns());
            sum.reaching_ns = sum.reaching_ns.max(stop.reaching_ns);
        }
    }
    let row = |(name, sum): (&str, Sum)| Row {
        key: name.to_owned(),
        cells: vec![
            Cell::count(sum.count),
            Cell::time(sum.sum_ns),
            Cell::time(sum.longest_ns),
            Cell::time(sum.reaching_ns),
        ],
        name: match name {
            "" => COUNTED.to_owned(),
            name => name.to_owned(),
        },
        depth: 0,
        target: Target::Operation(name.to_owned()),
    };
    Table {
        columns: OPERATIONS,
        title: "OPERATION",
        rows: sums.into_iter().map(row).collect(),
        is_tree: false,
        empty: "no safepoint in this window",
    }
}

/// The late threads of the scope's operation.
pub fn late(snapshot: &Snapshot, scope: &Scope) -> Table {
    let profile = &snapshot.profile;
    let wanted = scope.operation.as_deref();
    let late = profile.late().iter().filter(|late| {
        let end_ns = late.time_ns.saturating_add(late.duration_ns);
        snapshot.sees(end_ns) && wanted.is_none_or(|o| o == profile.names().text(late.operation))
    });
    let row = |late: &dwell_profile::Late| {
        let ago_ns = snapshot.to_ns.saturating_sub(late.time_ns);
        let thread = profile.thread_name(late.thread);
        let place = late.node.and_then(|node| profile.place(node));
        let place = place.unwrap_or_else(|| "[no Java frame]".to_owned());
        Row {
            key: format!("{} {}", late.time_ns, late.thread),
            cells: vec![
                // The latest first.
                Cell::words(crate::units::short(ago_ns), -(ago_ns as f64)),
                Cell::time(late.duration_ns),
                Cell::words(thread.to_owned(), late.held_ns as f64),
            ],
            name: format!("{place} ({})", profile.names().text(late.state)),
            depth: 0,
            target: match late.node.and_then(|node| profile.place(node)) {
                Some(method) => Target::Method(method),
                None => Target::Nothing,
            },
        }
    };
    Table {
        columns: LATE,
        title: "WAS LATE IN",
        rows: late.map(row).collect(),
        is_tree: false,
        empty: "no thread was late for these (1 ms or more)",
    }
}
