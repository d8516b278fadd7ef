//! The tables of methods, threads, endpoints and causes. Pure.

use super::drilled::{Scope, Who};
use super::sheet::{Cell, Column, Row, Table, Target};
use super::window::{IDLE, Piece, RUNNING, Snapshot, Time};
use dwell_profile::{CallTree, group_of};
use std::collections::BTreeMap;

const METHODS: &[Column] = &[
    Column::number("CPUself", 7),
    Column::number("CPU%", 7),
    Column::number("WALLself", 8),
    Column::number("WALL%", 7),
];
const THREADS: &[Column] = &[
    Column::number("CPU%", 6),
    Column::number("READY%", 6),
    Column::number("WALL%", 6),
    Column::text("MOSTLY", 18),
];
const ENDPOINTS: &[Column] = &[
    Column::number("REQ/s", 7),
    Column::number("p50", 7),
    Column::number("p99", 7),
    Column::number("CPU%", 6),
    Column::number("WALL%", 7),
    Column::text("MOSTLY", 17),
];
const CAUSES: &[Column] = &[
    Column::number("WALL%", 7),
    Column::number("SHARE%", 6),
    Column::text("CAUSE", 11),
];

/// Time of each method: as the innermost frame, and anywhere on the stack.
pub fn methods(snapshot: &Snapshot, scope: &Scope, idle: bool) -> Table {
    let tree = &snapshot.tree;
    let mut own = vec![Time::default(); tree.len()];
    for piece in scope.pieces(snapshot, idle) {
        if let Some(own) = own.get_mut(piece.node as usize) {
            *own += &piece.time;
        }
    }
    let below = tree.totals(&own);
    let mut sums = vec![[Time::default(); 2]; snapshot.methods.names.len()];
    let mut open = vec![0u32; sums.len()];
    tree.walk(
        |_| {},
        |node, is_entering| {
            let group = tree.key(node) as usize;
            let (Some(sum), Some(open)) = (sums.get_mut(group), open.get_mut(group)) else {
                return;
            };
            if !is_entering {
                *open -= 1;
                return;
            }
            let at = |times: &[Time]| times.get(node as usize).copied().unwrap_or_default();
            let [own_sum, total] = sum;
            *own_sum += &at(&own);
            // A recursive method counts once per stack.
            if *open == 0 {
                *total += &at(&below);
            }
            *open += 1;
        },
    );
    let rows = snapshot.methods.names.iter().zip(sums);
    let rows = rows
        .filter(|(_, [_, total])| *total != Time::default())
        .map(|(name, [own, total])| Row {
            key: name.clone(),
            cells: [own.cpu, total.cpu, own.wall, total.wall]
                .map(|ns| Cell::share(snapshot.rate(ns)))
                .to_vec(),
            name: name.clone(),
            depth: 0,
            target: Target::Method(name.clone()),
        });
    Table {
        columns: METHODS,
        title: "METHOD",
        rows: rows.collect(),
        is_tree: false,
        empty: "no time was seen here",
    }
}

/// Time by cause.
#[derive(Default)]
struct ByCause<'s> {
    sums: BTreeMap<&'s str, u64>,
    all: Time,
}

impl<'s> ByCause<'s> {
    fn add(&mut self, snapshot: &'s Snapshot, piece: &Piece) {
        self.all += &piece.time;
        *self.sums.entry(snapshot.cause(piece)).or_default() += piece.time.wall;
    }

    /// The most frequent cause of wall time, with its share.
    fn mostly(&self) -> Cell {
        let most = self.sums.iter().max_by_key(|(_, wall)| **wall);
        match most {
            Some((cause, wall)) if *wall > 0 => {
                let share = 100.0 * *wall as f64 / self.all.wall as f64;
                Cell::words(format!("{cause} {share:.0} %"), share)
            }
            _ => Cell::words(String::new(), 0.0),
        }
    }
}

/// Time of each thread, or of each group of threads whose names differ in numbers only.
pub fn threads(snapshot: &Snapshot, scope: &Scope, idle: bool, grouped: bool) -> Table {
    let profile = &snapshot.profile;
    let mut by_thread: BTreeMap<u32, ByCause<'_>> = BTreeMap::new();
    for piece in scope.pieces(snapshot, idle) {
        by_thread
            .entry(piece.thread)
            .or_default()
            .add(snapshot, piece);
    }
    let recent = snapshot.recent();
    let mut ready: BTreeMap<(i64, i64), f64> = BTreeMap::new();
    for time in recent.thread_times() {
        if let Some(thread) = recent.threads().get(time.thread as usize) {
            let share = time.waited_ns as f64 / time.duration_ns.max(1) as f64;
            ready.insert((thread.os_tid, thread.java_tid), share);
        }
    }
    let mut rows: BTreeMap<String, (Who, ByCause<'_>, f64)> = BTreeMap::new();
    for (thread, sum) in by_thread {
        let Some(found) = profile.threads().get(thread as usize) else {
            continue;
        };
        let name = profile.thread_name(thread);
        // There may be a million virtual threads, each seen once, so they are grouped.
        let who = match grouped || found.is_virtual {
            true => Who::Group(group_of(name)),
            false => Who::One {
                name: name.to_owned(),
                os_tid: found.os_tid,
                java_tid: found.java_tid,
            },
        };
        let key = match &who {
            Who::Group(group) => group.clone(),
            Who::One { .. } => format!("{name}\0{}\0{}", found.os_tid, found.java_tid),
        };
        let entry = rows.entry(key);
        let row = entry.or_insert_with(|| (who, ByCause::default(), 0.0));
        row.1.all += &sum.all;
        for (cause, wall) in sum.sums {
            *row.1.sums.entry(cause).or_default() += wall;
        }
        let numbers = (found.os_tid, found.java_tid);
        row.2 += ready.get(&numbers).copied().unwrap_or(0.0);
    }
    let row = |(key, (who, sum, ready)): (String, (Who, ByCause<'_>, f64))| Row {
        key,
        cells: vec![
            Cell::share(snapshot.rate(sum.all.cpu)),
            Cell::share(ready),
            Cell::share(snapshot.rate(sum.all.wall)),
            sum.mostly(),
        ],
        name: who.name().to_owned(),
        depth: 0,
        target: Target::Who(who),
    };
    Table {
        columns: THREADS,
        title: if grouped { "THREADS" } else { "THREAD" },
        rows: rows.into_iter().map(row).collect(),
        is_tree: false,
        empty: "no thread was seen here",
    }
}

/// Percentile of weighted values.
fn percentile(sorted: &[(u64, u64)], percent: f64) -> u64 {
    let all: u64 = sorted.iter().map(|(_, count)| count).sum();
    let wanted = (percent / 100.0 * all as f64).ceil().max(1.0) as u64;
    let mut seen = 0u64;
    let found = sorted.iter().find(|(_, count)| {
        seen = seen.saturating_add(*count);
        seen >= wanted
    });
    found.or(sorted.last()).map_or(0, |(ns, _)| *ns)
}

/// Requests and time of each endpoint.
pub fn endpoints(snapshot: &Snapshot, scope: &Scope, idle: bool) -> Table {
    let mut sums: BTreeMap<Option<&str>, ByCause<'_>> = BTreeMap::new();
    for piece in scope.pieces(snapshot, idle) {
        let endpoint = snapshot.endpoint(piece);
        sums.entry(endpoint).or_default().add(snapshot, piece);
    }
    let mut requests: BTreeMap<Option<&str>, Vec<(u64, u64)>> = BTreeMap::new();
    for request in snapshot.profile.requests() {
        let endpoint = request.endpoint;
        let endpoint = endpoint.map(|name| snapshot.profile.names().text(name));
        let is_in = |wanted: &Option<String>| wanted.as_deref() == endpoint;
        let is_in = scope.has_requests() && scope.endpoint.as_ref().is_none_or(is_in);
        if is_in && snapshot.sees(request.time_ns.saturating_add(request.duration_ns)) {
            let times = requests.entry(endpoint).or_default();
            times.push((request.duration_ns, request.count));
            sums.entry(endpoint).or_default();
        }
    }
    // Without any endpoint, the table would have one row.
    if sums.keys().all(Option::is_none) && requests.is_empty() {
        sums.clear();
    }
    let row = |(endpoint, sum): (Option<&str>, ByCause<'_>)| {
        let mut times = requests.get(&endpoint).cloned().unwrap_or_default();
        times.sort_unstable();
        let count: u64 = times.iter().map(|(_, count)| count).sum();
        let rate = count as f64 * 1e9 / snapshot.span_ns() as f64;
        let rate_text = match count {
            0 => "-".to_owned(),
            _ if rate >= 99.95 => format!("{rate:.0}"),
            _ => format!("{rate:.1}"),
        };
        let mut row = Row {
            key: endpoint.map_or(String::new(), |endpoint| format!(" {endpoint}")),
            cells: vec![
                Cell::words(rate_text, rate),
                Cell::time(percentile(&times, 50.0)),
                Cell::time(percentile(&times, 99.0)),
                Cell::share(snapshot.rate(sum.all.cpu)),
                Cell::share(snapshot.rate(sum.all.wall)),
                sum.mostly(),
            ],
            name: endpoint.unwrap_or("(no endpoint)").to_owned(),
            depth: 0,
            target: Target::Endpoint(endpoint.map(str::to_owned)),
        };
        // Sorted last: time without a request is mostly the largest, and of no interest here.
        if endpoint.is_none() {
            row.cells.iter_mut().for_each(|cell| cell.value = -1.0);
        }
        row
    };
    Table {
        columns: ENDPOINTS,
        title: "ENDPOINT",
        rows: sums.into_iter().map(row).collect(),
        is_tree: false,
        empty: "the program names no endpoint, see docs/context.md",
    }
}

/// Wall time of Java threads by cause.
pub fn causes(snapshot: &Snapshot, scope: &Scope, idle: bool) -> Table {
    let mut sums: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
    for piece in scope.pieces(snapshot, idle) {
        if piece.time.wall > 0 {
            let places = sums.entry(snapshot.cause(piece)).or_default();
            *places.entry(piece.place).or_default() += piece.time.wall;
        }
    }
    let all: u64 = sums.values().flat_map(BTreeMap::values).sum();
    let row = |(cause, places): (&str, BTreeMap<u32, u64>)| {
        let sum: u64 = places.values().sum();
        let mut by_place: BTreeMap<String, u64> = BTreeMap::new();
        for (node, wall) in places {
            let place = snapshot.profile.place(node);
            let place = place.unwrap_or_else(|| top_of(snapshot, node));
            *by_place.entry(place).or_default() += wall;
        }
        let most = by_place.into_iter().max_by_key(|(_, wall)| *wall);
        let place = most.map_or(String::new(), |(place, wall)| {
            format!("{:.0} % {place}", 100.0 * wall as f64 / sum as f64)
        });
        let share = 100.0 * sum as f64 / all.max(1) as f64;
        Row {
            key: cause.to_owned(),
            cells: vec![
                Cell::share(snapshot.rate(sum)),
                Cell::words(format!("{share:.1}"), share),
                // Alphabetical order would be meaningless.
                Cell::words(cause.to_owned(), share),
            ],
            name: place,
            depth: 0,
            target: Target::Cause(cause.to_owned()),
        }
    };
    Table {
        columns: CAUSES,
        title: "MOSTLY AT",
        rows: sums.into_iter().map(row).collect(),
        is_tree: false,
        empty: "no wall time was seen: is it recorded (-e cpu,wall)?",
    }
}

/// The innermost frame.
fn top_of(snapshot: &Snapshot, node: u32) -> String {
    let frame = snapshot.profile.tree().key(node);
    if frame == CallTree::NO_KEY {
        return "[no stack]".to_owned();
    }
    let method = snapshot.profile.method_of(frame);
    method.map_or(String::new(), |(id, _)| snapshot.profile.method_name(id))
}

/// The wall time of all Java threads by cause, largest first, and that of idle ones.
pub fn strip(snapshot: &Snapshot) -> (Vec<(&str, f64)>, f64) {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in &snapshot.pieces {
        *sums.entry(snapshot.cause(piece)).or_default() += piece.time.wall;
    }
    let idle = snapshot.rate(sums.remove(IDLE).unwrap_or(0));
    let mut strip: Vec<_> = sums
        .into_iter()
        .map(|(cause, wall)| (cause, snapshot.rate(wall)))
        .filter(|(_, rate)| *rate > 0.0)
        .collect();
    strip.sort_by(|a, b| {
        let runs = |cause: &str| cause == RUNNING;
        (runs(b.0).cmp(&runs(a.0))).then(b.1.total_cmp(&a.1))
    });
    (strip, idle)
}
